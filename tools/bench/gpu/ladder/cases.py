# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each rung compiles: one line per kernel, with the sizes of a GPU and small ones for the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.gpu.ladder.products import Product

#: Of kernels whose CTAs wait for others of their grid.
_WAITS = ("ld.acquire.gpu", "red.release.gpu")
_TMA = ("cp.async.bulk.tensor", "mbarrier.try_wait", "wgmma.mma_async", "setmaxnreg")
_STORES = (*_TMA, "bulk.tensor.2d.global.shared::cta")
_CLUSTER = (*_TMA, ".multicast::cluster", "mapa", "barrier.cluster")
_COPIED = ("cp.async", "wgmma.mma_async")


@dataclass(frozen=True)
class Entry:
    """One compiled program of a rung.

    Attributes:
        name: unique.
        rung: that runs it.
        source: a tile kernel by hand, or the name of a builder: of `graphs`, of the suite's kernels, of test models.
        sizes: what the builder takes.
        small: sizes that differ for the emulator; of a kernel by hand another one.
        reference: function of far/ladder/references.py.
        error: the largest accepted max|ours - reference| / max|reference|.
        units: multiprocessors that small sizes are planned for, and run on; 0: all.
        shape: attributes of the shapes that a plan may take.
        accuracy: as `tilewright.compile` takes it.
        marks: what its PTX must have, so that it proves what its rung says.
        lacks: what it must not have.
        hopper: whether sm_80 has no such kernel.
        inputs: how they are filled: "normal", "positive" (1 to 2: sums that only grow), "short" (f32 with f16's bits).
    """

    name: str
    rung: str
    source: Product | str
    sizes: Mapping[str, object] = field(default_factory=dict)
    small: Mapping[str, object] | Product = field(default_factory=dict)
    reference: str = "matmul"
    error: float = 1e-6
    units: int = 0
    shape: Mapping[str, object] = field(default_factory=dict)
    accuracy: str = "exact"
    marks: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    hopper: bool = True
    inputs: str = "normal"

    def built(self, small: bool) -> dict[str, object]:
        """What the builder takes; nothing of a kernel by hand."""
        return {**self.sizes, **(self.small if small and not isinstance(self.small, Product) else {})}

    def product(self, small: bool) -> Product | None:
        """The kernel by hand; None where a builder makes the model."""
        return self.small if small and isinstance(self.small, Product) else _hand(self.source)


def _hand(source: Product | str) -> Product | None:
    return source if isinstance(source, Product) else None


def _rows(name: str, builder: str, dtype: str, error: float) -> Entry:
    sizes = {"rows": 1000, "columns": 4096, "dtype": dtype}
    small = {"rows": 5, "columns": 200}
    return Entry(name, "launches", builder, sizes, small, builder, error, hopper=False)


def _wgmma(name: str, **sizes: object) -> Entry:
    product = Product(64, **{"n": 64, "k": 128, **sizes})  # type: ignore[arg-type]
    inputs = "short" if product.registers else "normal"
    return Entry(name, name, product, marks=_COPIED, lacks=("cp.async.bulk",), inputs=inputs)


def _tile(k: int) -> Entry:
    product = Product(128, 128, k, bm=128, bn=128, warps=8, stages=4, specialized=True)
    small = Product(64, 64, k, stages=3, specialized=True)
    return Entry(f"tile_k{k}", "tile", product, small=small, marks=_TMA, error=1e-5)


def _stored(name: str, rung: str, marks: tuple[str, ...], units: int, columns: int = 264, **sizes: object) -> Entry:
    common = {"specialized": True, "staged": 2, "out": "f16", "stages": 3, **sizes}
    product = Product(2500, 2000, 200, bm=128, bn=128, warps=8, **common)  # type: ignore[arg-type]
    small = Product(200, columns, 200, bn=128, **common)  # type: ignore[arg-type]
    return Entry(name, rung, product, small=small, marks=marks, error=1e-3, units=units)


def _attention(
    name: str, depth: int, accuracy: str = "exact", dtype: str = "float16", small_units: int = 2, **sizes: object
) -> Entry:
    """As many CTAs as multiprocessors and more: else the plan cuts the keys into parts."""
    given = {"batch": 1, "heads": 132, "groups": 132, "queries": 256, "keys": 512, "depth": depth, "dtype": dtype}
    small = {"heads": 2, "groups": 2, "queries": 128, "keys": 256}
    for size in ("queries", "keys"):
        if size in sizes:
            small[size] = int(sizes[size])  # type: ignore[call-overload]
    error = 2e-2 if dtype == "bfloat16" else 3e-3
    return Entry(
        f"attention_{name}", "attention", "attention", {**given, **sizes}, small, "attention", error, small_units,
        accuracy=accuracy, marks=_TMA,
    )  # fmt: skip


def _fp8(k: int) -> Entry:
    """Planned, not by hand: how many terms the matrix unit adds itself is the plan's decision."""
    sizes, marks = {"m": 128, "n": 128, "k": k}, ("e4m3.e4m3", "wgmma.mma_async")
    small = {"m": 64, "n": 64}
    shape = {"wgmma": True, "stream_k": 0}
    return Entry(
        f"fp8_k{k}", "fp8", "float8_product", sizes, small, error=0.0, units=1, shape=shape, marks=marks,
        inputs="positive",
    )  # fmt: skip


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "add", "launches", "add", {"rows": 1000, "columns": 4096, "dtype": "float32"}, {"rows": 5, "columns": 200},
        "add", 1e-7, hopper=False,
    ),
    _rows("softmax", "softmax", "float32", 1e-5),
    _rows("layernorm", "layernorm", "float32", 1e-5),
    Entry("mma_sync", "mma_sync", Product(64, 64, 256, mma_sync=True), marks=("mma.sync", "cp.async"), hopper=False),
    Entry(
        "mma_sync_turned", "mma_sync", Product(64, 64, 256, mma_sync=True, b_by_rows=True),
        marks=("mma.sync", "cp.async", ".trans"), hopper=False,
    ),
    _wgmma("wgmma_k128"),
    _wgmma("wgmma_k64", k=64, bk=32),
    _wgmma("wgmma_k32", k=32, bk=16),
    _wgmma("wgmma_mn_b", n=128, bn=128, k=64, bk=32, b_by_rows=True),
    _wgmma("wgmma_mn_a", k=64, bk=32, a_by_columns=True, swizzles=(64, 0)),
    _wgmma("wgmma_registers", registers=True),
    *[_tile(k) for k in (64, 128, 8192)],
    _stored("persistent", "persistent", (*_STORES, "%nctaid.x"), 2, persistent=1),
    _stored("cluster_2x1", "clusters", _CLUSTER, 0, cluster=(2, 1)),
    _stored("cluster_1x2", "clusters", _CLUSTER, 0, 200, cluster=(1, 2)),
    _attention("d64", 64),
    _attention("d128", 128, dtype="bfloat16"),
    _attention("ragged", 64, queries=100, keys=300),
    _attention("causal", 128, queries=256, keys=256, causal=True),
    _attention("fast", 64, "fast", small_units=0),
    Entry(
        "stream_k", "semaphores", "matmul", {"m": 1536, "n": 1536, "k": 4096, "dtype": "float16"},
        {"m": 128, "n": 128, "k": 1024}, units=3, error=2e-3, marks=_WAITS, hopper=False,
    ),
    *[_fp8(k) for k in (512, 4096, 16384)],
)  # fmt: skip
"""In the order of the rungs."""
