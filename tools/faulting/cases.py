# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose generated kernels are broken on purpose: one of each kind of kernel, each as small as can be.

A kernel whose CTAs compute tile after tile needs more tiles than CTAs: such cases are planned for, and run on, a GPU
of a few multiprocessors. What only large models take by themselves (clusters, warpgroups of bytes), small ones are
held to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

import models
import tilewright as tw
from bench.gpu.held import held_to, of_units
from bench.gpu.kernels import BUILDERS
from faulting import graphs
from models.sparse_programs import SparseProduct
from tilewright.core.dtypes import to_numpy
from tilewright.passes.pipeline import Pipeline
from tilewright.runtime.gpu import gpu_code

ARCHS = ("sm_80", "sm_90a")


@dataclass(frozen=True)
class Case:
    """One model.

    Attributes:
        model: its builder: of `graphs`, of the GPU suite's kernels, or the name of a test model; or a sparse product.
        sizes: what the builder takes.
        units: multiprocessors of the GPU that it is planned for and runs on; 0: as many as the architecture's has.
        archs: that it is made for.
        marks: what its PTX or its host program must have, so that the case is of the kind that it stands for.
        shape: attributes of the shapes that its plan may take; none: all shapes.
        run: sizes of a run, by the names that the model has for them.
    """

    model: str | Callable[..., onnx.ModelProto] | SparseProduct
    sizes: Mapping[str, object] = field(default_factory=dict)
    units: int = 0
    archs: tuple[str, ...] = ARCHS
    marks: tuple[str, ...] = ()
    shape: Mapping[str, object] = field(default_factory=dict)
    run: Mapping[str, int] = field(default_factory=dict)

    def build(self) -> onnx.ModelProto:
        """The model."""
        assert not isinstance(self.model, SparseProduct)
        if callable(self.model):
            return self.model(**self.sizes)
        build = BUILDERS.get(self.model)
        return build(**self.sizes) if build else models.build(self.model, **self.sizes)

    def pipeline(self, arch: str) -> Pipeline | None:
        """The pipeline of its GPU; None: the architecture's own."""
        return of_units(arch, self.units)

    @property
    def gpu(self) -> dict[str, Any]:
        """Options of the emulator: the GPU that it runs on."""
        return {"multiprocessors": self.units} if self.units else {}

    def compile(self, arch: str, **options: object) -> Any:
        """The model on the emulator; of one with open sizes, the code for all of them.

        Args:
            arch: architecture.
            options: of the emulator, beside those of `gpu`.
        """
        with held_to(self.shape) if self.shape else nullcontext():
            emulate = {**self.gpu, **options} or True
            if isinstance(self.model, SparseProduct):
                weights = {"w": self.model.weight()}
                return tw.compile(self.model.text(), target=f"cuda:{arch}", emulate=emulate, weights=weights)
            model = tw.compile(self.build(), target=f"cuda:{arch}", pipeline=self.pipeline(arch), emulate=emulate)
        if not self.run:
            return model
        if model.general is None:
            raise ValueError("no code for all sizes: the plan makes another kind of kernel")
        return model.general

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of inputs with open sizes, in a run."""
        found = {}
        for value in self.build().graph.input if self.run else ():
            dims = value.type.tensor_type.shape.dim
            found[value.name] = tuple(self.run[d.dim_param] if d.dim_param else d.dim_value for d in dims)
        return found

    def check(self, text: str) -> None:
        """Raise ValueError where the code is of another kind."""
        missing = [mark for mark in self.marks if mark not in text]
        if missing:
            raise ValueError(f"the code has no {', '.join(missing)}: the plan makes another kind of kernel")


def code_of(model: Any) -> str:
    """The PTX of a model and its host program, as text."""
    program, _ = gpu_code.read(model._artifact)
    return "".join([*model.ptx().values(), json.dumps(program)])


HOPPER = ("sm_90a",)
#: In the PTX of kernels with warps that only load, of TMA's stores, and of CTAs that compute task after task.
_WARPS = ("wgmma.mma_async", "d.shared::cluster.global.tile.mbarrier", "setmaxnreg.dec", "mbarrier.try_wait")
_STORES = "d.global.shared::cta"
_TASKS = "%nctaid.x"
#: Of tasks that wait for others of their grid.
_WAITS = ("ld.acquire.gpu", "red.release.gpu", _TASKS)
#: Of loops in kernels, whose CTAs meet behind each launch of the host that was.
_GRID = ("atom.release.gpu", "ld.acquire.gpu", '"blocks": ')
#: Of products of boxes that TMA loads, and of clusters whose CTAs load them for each other.
_BOXES = ("wgmma.mma_async", "d.shared::cluster.global.tile.mbarrier")
_CLUSTERS = (".multicast::cluster", "mapa", "barrier.cluster.wait")
#: In the host program of a grid that is rounded up to whole clusters along the rows of a run.
_ROUNDED = '"rounded": [2, 1]'
#: Shapes of clusters along the rows.
_PAIRS = {"cluster": (2, 1), "rows": 64, "persistent": False}


#: Two of four neighbours of a row.
_HALVES = "nm<2 : 4, axis = 1>"


def _product(m: int, n: int, k: int, dtype: str = "bfloat16") -> Case:
    return Case("matmul", {"m": m, "n": n, "k": k, "dtype": dtype})


def _attention(queries: int, keys: int, depth: int, **attributes: object) -> Case:
    """Two heads, by two multiprocessors: with idle ones around, their keys would be cut into parts."""
    sizes = {"batch": 1, "heads": 2, "groups": 2, "queries": queries, "keys": keys, "depth": depth}
    return Case("attention", {**sizes, **attributes}, units=2, archs=HOPPER, marks=_WARPS)


def _open_rows(rows: int, persistent: bool) -> Case:
    """Rows that a run brings, in clusters, on two multiprocessors."""
    return Case(
        graphs.residual_product,
        {"m": "rows", "n": 256, "k": 200},
        units=2,
        archs=HOPPER,
        marks=(*_BOXES, *_CLUSTERS, _ROUNDED, *([_TASKS] if persistent else [])),
        shape={**_PAIRS, "lanes": 128, "persistent": persistent},
        run={"rows": rows},
    )


def _bytes(model: Callable[..., onnx.ModelProto], sizes: Mapping[str, object]) -> Case:
    """By warpgroups, which large models take."""
    return Case(model, sizes, archs=HOPPER, marks=(*_BOXES, "u8.s8"), shape={"wgmma": True})


CASES: dict[str, Case] = {
    "gemm": _product(64, 64, 512),
    "gemm_ragged_gelu": Case("feed_forward", {"m": 100, "n": 72, "k": 136}),
    "gemm_f32": _product(40, 36, 48, "float32"),
    "gemm_i8": Case(graphs.integer_product, {"m": 40, "n": 48, "k": 128}),
    "gemm_bytes": Case(graphs.byte_product, {"m": 70, "n": 96, "k": 144}, marks=("u8.s8",)),
    "gemm_bytes_warpgroups": _bytes(graphs.byte_product, {"m": 100, "n": 96, "k": 400}),
    "split_sums": _product(16, 16, 4096),
    "attention": Case(graphs.attention, {"heads": 2, "queries": 130, "keys": 300, "depth": 32, "causal": False}),
    "attention_causal": Case(graphs.attention, {"heads": 2, "queries": 200, "keys": 200, "depth": 32, "causal": True}),
    "attention_open": Case(
        graphs.open_attention,
        {"heads": 2, "groups": 2, "queries": "s", "keys": "t", "depth": 64},
        marks=("mma.",),
        run={"batch": 1, "s": 70, "t": 330},
    ),
    "softmax": Case("softmax", {"rows": 3, "columns": 2000, "dtype": "float32"}),
    "layernorm": Case("layernorm", {"rows": 3, "columns": 1500}),
    "column_sums": Case("column_sums", {"rows": 200, "columns": 64}),
    "gemm_stores": replace(_product(100, 136, 128), archs=HOPPER, marks=(*_WARPS, _STORES)),
    "gemm_persistent": replace(_product(192, 128, 128), units=2, archs=HOPPER, marks=(*_WARPS, _STORES, _TASKS)),
    "gemm_persistent_ragged": Case(
        "feed_forward", {"m": 200, "n": 136, "k": 136}, units=2, archs=HOPPER, marks=(*_WARPS, _STORES, _TASKS)
    ),
    "gemm_clusters": replace(
        _product(128, 64, 512, "float16"), archs=HOPPER, marks=(*_BOXES, *_CLUSTERS), shape={**_PAIRS, "lanes": 64}
    ),
    "gemm_residual": Case(
        graphs.residual_product,
        {"m": 192, "n": 128, "k": 192},
        units=2,
        archs=HOPPER,
        marks=(*_WARPS, _STORES, _TASKS),
        shape={"wgmma": True, "persistent": True},
    ),
    "gemm_open_rows": _open_rows(130, persistent=False),
    "gemm_open_persistent": _open_rows(260, persistent=True),
    "gemm_stream_k": replace(_product(128, 128, 1024), units=3, marks=_WAITS),
    "attention_warps": _attention(64, 192, 32),
    "attention_warpgroups": _attention(128, 256, 64),
    "attention_warpgroups_ragged": _attention(100, 300, 64),
    "attention_warps_causal": _attention(192, 192, 32, causal=True),
    "decode": Case("attention", {"batch": 1, "heads": 4, "groups": 1, "queries": 1, "keys": 512, "depth": 32}),
    "decode_open": Case(
        graphs.open_attention,
        {"heads": 8, "groups": 2, "queries": 1, "keys": 1, "depth": 64, "past": "p"},
        run={"p": 150},
    ),
    "decode_product": _product(1, 96, 320, "float16"),
    "decode_packed": Case(graphs.packed_row, {"n": 512, "k": 2048}),
    "conv": Case("convolution", {"batch": 1, "inputs": 16, "outputs": 24, "size": 8}, marks=("mma.",)),
    "conv_boxes": Case(
        "convolution", {"batch": 1, "inputs": 64, "outputs": 64, "size": 16}, units=2, archs=HOPPER, marks=_BOXES
    ),
    "conv_clusters": Case(
        "convolution",
        {"batch": 1, "inputs": 64, "outputs": 64, "size": 16},
        archs=HOPPER,
        marks=(*_BOXES, *_CLUSTERS),
        shape={**_PAIRS, "lanes": 64},
    ),
    "conv_bytes": Case(graphs.byte_convolution, {"inputs": 64, "outputs": 32, "size": 8}, marks=("u8.s8",)),
    "conv_bytes_warpgroups": _bytes(graphs.byte_convolution, {"inputs": 64, "outputs": 64, "size": 9}),
    "sparse_halves": Case(
        SparseProduct("gpu_mma_sp", _HALVES, (128, 256), 64, init=True), marks=("mma.sp", "cp.async")
    ),
    "sparse_halves_ragged": Case(SparseProduct("gpu_mma_sp", _HALVES, (70, 130), 33), marks=("mma.sp",)),
    "sparse_halves_warpgroups": Case(
        SparseProduct("gpu_mma_sp", _HALVES, (128, 256), 64),
        archs=HOPPER,
        marks=("wgmma.mma_async.sp", "d.shared::cluster.global.tile.mbarrier", "setmaxnreg.dec"),
        shape={"wgmma": True},
    ),
    "sparse_blocks": Case(
        SparseProduct("gpu_blocks", "block<[32, 32]>", (96, 256), 64), marks=("mma.sync", "cp.async")
    ),
    "sparse_windows": Case(
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 1>", (64, 128), 64, types=("f32", "f32")), marks=("fma.rn.f32",)
    ),
    "sparse_vector": Case(
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 0>", (256, 64), 1, False, ("f32", "f32")), marks=("fma.rn.f32",)
    ),
    "sparse_shared": Case(
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 128), 64), marks=("mma.sync",)
    ),
    "lstm": Case("lstm4", {"layers": 1, "hidden": 16, "inputs": 24, "sequence": 3}),
    "loop_rings": Case(
        graphs.repeated_product,
        {"rows": 64, "width": 128, "steps": 3},
        units=2,
        archs=HOPPER,
        marks=(*_WARPS, *_GRID, "fence.proxy.async;"),
    ),
    "teams": Case(
        graphs.recurrences,
        {"kinds": ("GRU", "LSTM"), "steps": (2, 3), "hidden": 64},
        marks=(*_GRID, f"_meetings[{4 * (1 + 2 * 32)}]"),  # the counter of all blocks, and two of teams
    ),
    "lstm_grid": Case("lstm4", {"layers": 1, "hidden": 96, "inputs": 8, "sequence": 2}, marks=_GRID),
}


def inputs_of(model: Any, case: Case | None) -> list[np.ndarray]:
    """Random inputs of a model, which is that of the case."""
    random, shapes = np.random.default_rng(0), case.shapes() if case else {}
    return [_drawn(to_numpy(spec.dtype), shapes.get(spec.name, spec.shape), random) for spec in model.inputs]


def _drawn(kind: np.dtype, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Normal numbers, all bytes, small whole numbers of other types, or both truth values."""
    if kind.kind in "iu" and kind.itemsize == 1:
        return random.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
    if kind.kind in "iub":
        return random.integers(0, 2 if kind.kind == "b" else 4, shape).astype(kind)
    return random.standard_normal(shape).astype(kind)
