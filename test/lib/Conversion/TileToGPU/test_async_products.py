# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose operands come through rings (cp.async and mma.sync, TMA and wgmma): assembled, and run emulated."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace

import gpu_kernels
import ml_dtypes
import numpy as np
import pytest

from tilewright.sim.ptx.errors import EmulationError

TEXT = """
tile.kernel @gemm(%a: memref<{a_shape}x{element}>, %b: memref<{b_shape}x{element}>,
                  %c: memref<{m}x{n}x{out}>{more})
    grid(%i, %j) {cluster}attributes {{tile.warps = {warps} : i64{marks}}} {{
  %c0 = arith.constant 0 : index
  %cm = arith.constant {m} : index
  %cn = arith.constant {n} : index
  %ck = arith.constant {k} : index
  %step = arith.constant {bk} : index
  %rows = arith.constant {bm} : index
  %columns = arith.constant {bn} : index
  %row = arith.muli %i, %rows : index
  %column = arith.muli %j, %columns : index
  %vm = arith.subi %cm, %row : index
  %vn = arith.subi %cn, %column : index
  %zero = arith.constant dense<{zero}> : !tile.tile<{bm}x{bn}x{sum}>
  %sum = scf.for %at = %c0 to %ck step %step iter_args(%s = %zero) -> (!tile.tile<{bm}x{bn}x{sum}>) {{
    %vk = arith.subi %ck, %at : index
    %x = tile.load %a[{a_at}] {a_dims} valid (%vm, %vk) : memref<{a_shape}x{element}>, !tile.tile<{bm}x{bk}x{element}>
    %y = tile.load %b[{b_at}] {b_dims} valid (%vk, %vn) : memref<{b_shape}x{element}>, !tile.tile<{bk}x{bn}x{element}>
    %p = tile.mma %x, %y, %s {mma}: !tile.tile<{bm}x{bk}x{element}>, !tile.tile<{bk}x{bn}x{element}>,
                               !tile.tile<{bm}x{bn}x{sum}>
    scf.yield %p : !tile.tile<{bm}x{bn}x{sum}>
  }} {{tile.stages = {stages} : i64}}
{tail}
  tile.store %h, %c[%row, %column] valid (%vm, %vn) : !tile.tile<{bm}x{bn}x{out}>, memref<{m}x{n}x{out}>
  tile.return
}}
"""
CONVERT = "  %h = tile.convert {value} : !tile.tile<{bm}x{bn}x{sum}> -> !tile.tile<{bm}x{bn}x{out}>"
RESIDUAL = """
  %t = tile.load %r[%row, %column] valid (%vm, %vn) : memref<{m}x{n}x{out}>, !tile.tile<{bm}x{bn}x{out}>
  {widen}
  %v = arith.addf %sum, %w : !tile.tile<{bm}x{bn}xf32>
"""

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "i8": np.int8,
    "f32": np.float32,
}


@dataclass(frozen=True)
class Gemm:
    """A product of one size in tiles of another."""

    m: int
    n: int
    k: int
    bm: int
    bn: int
    bk: int
    warps: int = 8
    stages: int = 3
    arch: str = "sm_90a"
    specialized: bool = True
    element: str = "bf16"
    out: str = "f32"
    a_by_columns: bool = False
    b_by_rows: bool = False
    staged: int = 0
    persistent: int = 0
    raster: int = 0
    tf32: bool = False
    promotion: int | None = None
    cluster: tuple[int, int] | None = None
    residual: bool = False
    fetched: bool = False
    rounded: bool = False

    @property
    def grid(self) -> list[int]:
        """Tasks along rows and columns; rounded up where clusters need more."""
        tasks = [-(-self.m // self.bm), -(-self.n // self.bn)]
        if self.rounded and self.cluster:
            tasks = [-(-n // c) * c for n, c in zip(tasks, self.cluster, strict=True)]
        return tasks

    @property
    def tail(self) -> str:
        """What follows the product."""
        names = ("m", "n", "bm", "bn", "out")
        sizes = {name: getattr(self, name) for name in names} | {"sum": "i32" if self.element == "i8" else "f32"}
        if not self.residual:
            return CONVERT.format(value="%sum", **sizes)
        widen = "%w = tile.convert %t : !tile.tile<{bm}x{bn}x{out}> -> !tile.tile<{bm}x{bn}xf32>".format(**sizes)
        return RESIDUAL.format(widen=widen, **sizes) + CONVERT.format(value="%v", **sizes)

    @property
    def marks(self) -> str:
        """What a plan would say of the kernel besides its warps."""
        numbers = {"staged": self.staged, "persistent": self.persistent, "raster": self.raster}
        text = "".join(f", tile.{name} = {number} : i64" for name, number in numbers.items() if number)
        text += ", tile.fetched" if self.fetched else ""
        if self.rounded and self.cluster:  # how many there are is the launch's business
            text += f", tile.rounded = array<i64: {self.cluster[0]}, {self.cluster[1]}>"
        elif self.cluster:  # whole clusters need to know how many tasks there are
            text += f", tile.grid = array<i64: {self.grid[0]}, {self.grid[1]}>"
        return (", tile.specialized" if self.specialized else "") + text

    @property
    def mma_marks(self) -> str:
        """What a plan would say of the product."""
        if self.promotion is not None:
            return f"{{tile.promotion = {self.promotion} : i64}} "
        return "{tile.tf32} " if self.tf32 else ""

    @property
    def bound(self) -> float:
        """The largest error, relative to the largest result."""
        if self.element == "f8E4M3FN":  # by Hopper's short accumulators
            return 3e-4 if self.promotion else 1e-2
        return 4e-3 if self.out == "bf16" else 1e-3 if self.out == "f16" else 1e-6

    @property
    def text(self) -> str:
        """The kernel."""
        sums = "i32" if self.element == "i8" else "f32"
        text = TEXT.format(
            **{
                name: getattr(self, name)
                for name in ("m", "n", "k", "bm", "bn", "bk", "warps", "stages", "element", "out")
            },
            marks=self.marks,
            tail=self.tail,
            more=f", %r: memref<{self.m}x{self.n}x{self.out}>" if self.residual else "",
            mma=self.mma_marks,
            cluster=f"cluster [{self.cluster[0]}, {self.cluster[1]}] " if self.cluster else "",
            sum=sums,
            zero="0" if sums == "i32" else "0.0",
            a_shape=f"{self.k}x{self.m}" if self.a_by_columns else f"{self.m}x{self.k}",
            a_at="%at, %row" if self.a_by_columns else "%row, %at",
            a_dims="dims [1, 0]" if self.a_by_columns else "",
            b_shape=f"{self.k}x{self.n}" if self.b_by_rows else f"{self.n}x{self.k}",
            b_at="%at, %column" if self.b_by_rows else "%column, %at",
            b_dims="" if self.b_by_rows else "dims [1, 0]",
        )
        return text

    def run(self, seed: int, change: Callable[[str], str] | None = None) -> float:
        """Compare with NumPy; `change` makes another text of the PTX. Returns the error, relative to the largest."""
        rng = np.random.default_rng(seed)
        if self.element == "i8":
            a, b = (rng.integers(-100, 100, (rows, self.k)).astype(np.int8) for rows in (self.m, self.n))
        else:
            a, b = (rng.standard_normal((rows, self.k)).astype(NUMPY[self.element]) for rows in (self.m, self.n))
        c = np.zeros((self.m, self.n), NUMPY[self.out])
        args = [
            np.ascontiguousarray(a.T) if self.a_by_columns else a,
            np.ascontiguousarray(b.T) if self.b_by_rows else b,
            c,
        ]
        residual = rng.standard_normal(c.shape).astype(c.dtype)
        args += [residual] if self.residual else []
        grid = [-(-self.m // self.bm), -(-self.n // self.bn)]
        gpu_kernels.run(self.text, "gemm", args, grid, self.arch, seed, change=change)
        if self.tf32:  # wgmma drops the bits that tf32 lacks
            a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
        wanted = a.astype(np.float64) @ b.astype(np.float64).T
        wanted = wanted + residual.astype(np.float64) if self.residual else wanted
        if self.out == "i8":  # the lowest bits
            wanted = wanted.astype(np.int64).astype(np.int8)
        largest = np.abs(wanted.astype(np.float64)).max()
        np.testing.assert_allclose(c.astype(np.float64), wanted, rtol=0, atol=self.bound * largest)
        return float(np.abs(c.astype(np.float64) - wanted).max() / largest)


CASES = {
    "as the prototype, 128x256x64": Gemm(256, 512, 256, 128, 256, 64, stages=4, out="bf16"),
    "ragged everywhere": Gemm(200, 136, 328, 128, 128, 64, stages=4),
    "operands with rows along m and n": Gemm(128, 256, 128, 128, 128, 64, a_by_columns=True, b_by_rows=True),
    "four warps, swizzle of 64 bytes": Gemm(64, 64, 128, 64, 64, 32, warps=4, stages=2, element="f16", out="f16"),
    "two blocks of rows in a warpgroup": Gemm(128, 64, 128, 128, 64, 64, warps=4),
    "two panels": Gemm(128, 128, 256, 128, 128, 128, stages=2),
    "fp8": Gemm(128, 128, 256, 128, 128, 128, element="f8E4M3FN"),
    "fp8, fast": Gemm(128, 128, 256, 128, 128, 128, element="f8E4M3FN", promotion=0),
    "fp8, promoted": Gemm(128, 128, 512, 128, 128, 128, element="f8E4M3FN", promotion=128),
    "fp8, promoted, ragged": Gemm(200, 136, 336, 128, 128, 128, stages=4, element="f8E4M3FN", promotion=128),
    "fp8, promoted in every other step": Gemm(64, 64, 448, 64, 64, 64, warps=4, element="f8E4M3FN", promotion=128),
    "fp8, promoted in every third step, ragged": Gemm(
        72, 64, 208, 64, 32, 32, warps=4, element="f8E4M3FN", promotion=96
    ),
    "fp8, promoted, tile after tile": Gemm(
        384, 256, 384, 128, 128, 128, stages=4, element="f8E4M3FN", promotion=128, staged=2, persistent=1, raster=2
    ),
    "fp8, promoted, cluster, tile after tile": Gemm(
        512,
        256,
        384,
        128,
        128,
        128,
        stages=4,
        element="f8E4M3FN",
        promotion=128,
        staged=2,
        persistent=1,
        cluster=(2, 1),
    ),
    "fp8, promoted, threads copy": Gemm(
        128, 64, 384, 128, 64, 128, element="f8E4M3FN", promotion=128, specialized=False
    ),
    "fp8, one step": Gemm(128, 128, 128, 128, 128, 128, element="f8E4M3FN", promotion=128),
    "one step": Gemm(128, 128, 64, 128, 128, 64),
    "warpgroups multiply what all threads copy": Gemm(200, 128, 264, 128, 128, 64, specialized=False),
    "tf32": Gemm(128, 128, 128, 128, 128, 32, element="f32", tf32=True),
    "tf32, ragged": Gemm(200, 72, 100, 128, 64, 32, stages=4, element="f32", tf32=True),
    "tf32, TMA stores, tile after tile": Gemm(
        192, 136, 160, 64, 64, 32, warps=4, element="f32", tf32=True, staged=2, persistent=1
    ),
    "TMA stores": Gemm(256, 512, 256, 128, 256, 64, stages=4, out="bf16", staged=2),
    "TMA stores, ragged": Gemm(200, 136, 328, 128, 128, 64, stages=4, out="f16", staged=4),
    "TMA stores of f32": Gemm(200, 72, 128, 128, 64, 64, staged=1),
    "TMA stores of bytes": Gemm(72, 48, 64, 64, 64, 64, warps=4, stages=2, element="i8", out="i8", staged=2),
    "TMA stores, rows of 16 bytes": Gemm(64, 8, 128, 64, 8, 64, warps=4, stages=2, out="bf16", staged=2),
    "tile after tile": Gemm(384, 512, 320, 128, 256, 64, stages=4, out="bf16", staged=2, persistent=1, raster=2),
    "tile after tile, ragged": Gemm(328, 392, 200, 128, 128, 64, out="f16", staged=2, persistent=1),
    "tile after tile, more slots than steps": Gemm(
        192, 128, 128, 64, 64, 64, warps=4, stages=6, staged=2, persistent=1
    ),
    "tile after tile, stores by threads": Gemm(200, 136, 328, 64, 32, 64, warps=4, persistent=1),
    "tile after tile, sm_80": Gemm(200, 136, 328, 64, 64, 32, warps=4, arch="sm_80", specialized=False, persistent=1),
    "cluster along rows": Gemm(256, 512, 256, 128, 256, 64, stages=4, out="bf16", staged=4, cluster=(2, 1)),
    "cluster along columns": Gemm(256, 512, 256, 128, 256, 64, stages=4, out="bf16", staged=4, cluster=(1, 2)),
    "cluster, ragged": Gemm(200, 136, 328, 128, 128, 64, out="f16", staged=2, cluster=(2, 1)),
    "cluster, one block of it outside of the bytes": Gemm(72, 264, 200, 64, 128, 64, warps=4, cluster=(2, 1)),
    "cluster that shares panels": Gemm(
        256, 256, 192, 128, 128, 64, a_by_columns=True, b_by_rows=True, cluster=(1, 2), stages=2
    ),
    "cluster that shares panels of the right": Gemm(256, 256, 192, 128, 128, 64, b_by_rows=True, cluster=(2, 1)),
    "cluster of four": Gemm(128, 512, 128, 64, 128, 64, warps=4, out="f16", staged=2, cluster=(1, 4)),
    "cluster of two by two": Gemm(256, 256, 192, 128, 128, 64, cluster=(2, 2)),
    "cluster, tile after tile": Gemm(
        512, 512, 320, 128, 128, 64, stages=4, out="bf16", staged=2, persistent=1, raster=2, cluster=(2, 1)
    ),
    "cluster along columns, tile after tile": Gemm(
        384, 512, 200, 128, 128, 64, out="f16", staged=2, persistent=2, raster=2, cluster=(1, 2)
    ),
    "cluster of bytes, swizzle of 64": Gemm(
        128, 128, 192, 64, 64, 64, warps=4, element="i8", out="i8", staged=2, cluster=(2, 1)
    ),
    "cluster, a grid that is rounded up": Gemm(
        200, 136, 328, 64, 64, 64, warps=4, out="f16", cluster=(2, 1), rounded=True
    ),
    "cluster, both coordinates rounded up": Gemm(
        330, 300, 136, 128, 128, 64, out="bf16", staged=2, raster=2, cluster=(1, 2), rounded=True
    ),
    "cluster, rounded up, tile after tile": Gemm(
        328, 392, 200, 64, 128, 64, warps=4, out="f16", staged=2, persistent=1, raster=4, cluster=(2, 1), rounded=True
    ),
    "residual": Gemm(200, 136, 328, 128, 128, 64, out="bf16", staged=4, residual=True),
    "residual, fetched": Gemm(200, 136, 328, 128, 128, 64, out="bf16", staged=4, residual=True, fetched=True),
    "residual, fetched, tile after tile": Gemm(
        384, 512, 320, 128, 128, 64, out="bf16", staged=2, persistent=1, raster=2, residual=True, fetched=True
    ),
    "residual, fetched, wide tile after tile": Gemm(
        384, 512, 192, 128, 256, 64, stages=2, out="f16", staged=2, persistent=1, residual=True, fetched=True
    ),
    "residual, fetched, ragged, tile after tile, f32": Gemm(
        328, 200, 200, 64, 128, 64, warps=4, staged=2, persistent=1, residual=True, fetched=True
    ),
    "residual, fetched, cluster, tile after tile": Gemm(
        500, 392, 200, 128, 128, 64, out="f16", staged=2, persistent=1, cluster=(2, 1), residual=True, fetched=True
    ),
    "residual, fetched, stores by threads": Gemm(
        200, 136, 328, 64, 32, 64, warps=4, out="bf16", persistent=1, residual=True, fetched=True
    ),
    "sm_80": Gemm(256, 128, 256, 128, 128, 32, arch="sm_80", specialized=False),
    "sm_80, rows of an odd length are copied at once": Gemm(
        72, 40, 99, 64, 32, 32, warps=4, arch="sm_80", specialized=False, element="f16"
    ),
    "sm_80, ragged": Gemm(200, 136, 328, 128, 128, 32, arch="sm_80", specialized=False, b_by_rows=True),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    for seed in (0, 1):
        CASES[name].run(seed)


@pytest.mark.skipif(not shutil.which("ptxas"), reason="ptxas is not installed")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.staged or not case.persistent])
def test_assembles_without_spills(name: str) -> None:
    """What plans make: on Hopper a block with several tasks has TMA store its results, which takes fewer addresses."""
    said = gpu_kernels.assemble(CASES[name].text, CASES[name].arch)
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "C75" not in said, said


def test_parts_of_a_cluster() -> None:
    """Both blocks load half of the right operand for both, all of the left one for themselves, and tell each other."""
    gemm = Gemm(256, 512, 4096, 128, 256, 64, stages=4, out="bf16", staged=4, cluster=(2, 1))
    code, abi = gpu_kernels.compile_kernels(gemm.text, "sm_90a")
    ptx = code.decode()
    boxes = [param["box"] for param in abi["gemm"]["tile.params"] if param["kind"] == "tensor_map"]
    assert boxes[:2] == [[128, 64], [128, 64]], "256 rows of the right operand are two parts"
    assert ".reqnctapercluster 2, 1, 1" in ptx
    copies = set(re.findall(r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\S*", ptx))
    assert sorted(copy.endswith(".multicast::cluster") for copy in copies) == [False, True]
    assert re.search(r"mbarrier\.arrive\.release\.cluster\.shared::cluster", ptx)
    assert "mbarrier.try_wait.parity.acquire.cluster" in ptx
    assert len(re.findall(r"barrier\.cluster\.arrive", ptx)) == 2


FAULTS = {
    "no meeting before the first copy": (r"barrier\.cluster\.(arrive|wait)\.aligned;", ""),
    "no meeting before the end": (r"barrier\.cluster\.(arrive|wait);", ""),
    "copies to the first block only": (r"(mov\.b16\s+%rs\d+, )3;", r"\g<1>1;"),
    "own slots only are given back": (
        r"mapa\.shared::cluster\.u64(\s+%rd\d+, %rd\d+), %r\d+;",
        r"mapa.shared::cluster.u64\1, 0;",
    ),
    "slots are taken before they are given back": (
        r"mbarrier\.try_wait\.parity\.acquire\.cluster[^;]*;",
        r"setp.eq.u32 P1, 0, 0;",
    ),
}


@pytest.mark.parametrize("persistent", [0, 1])
@pytest.mark.parametrize("name", FAULTS)
def test_faults_between_blocks_are_caught(name: str, persistent: int) -> None:
    """What blocks of a cluster owe each other, left out: a rule of the emulator is broken, or the result wrong."""
    case = Gemm(
        256, 128, 384, 64, 64, 64, warps=4, stages=2, out="bf16", staged=2, persistent=persistent, cluster=(2, 1)
    )

    def change(ptx: str) -> str:
        changed, count = re.subn(*FAULTS[name], ptx)
        assert count, f"nothing to break: {FAULTS[name][0]}"
        return changed

    with pytest.raises((EmulationError, AssertionError), match=r"^(?!nothing to break)"):
        for seed in range(8):
            case.run(seed, change)


@pytest.mark.parametrize("persistent", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_a_block_that_does_not_wait_at_its_end_is_caught_in_every_order(seed: int, persistent: int) -> None:
    """Neighbours may still give slots back to it: a fault by the clocks, whether or not they come too late."""
    case = Gemm(
        256, 128, 384, 64, 64, 64, warps=4, stages=2, out="bf16", staged=2, persistent=persistent, cluster=(2, 1)
    )

    def change(ptx: str) -> str:
        changed, count = re.subn(r"barrier\.cluster\.(arrive|wait);", "", ptx)
        assert count == 2, "the first barrier is the aligned one"
        return changed

    with pytest.raises(EmulationError) as excinfo:
        case.run(seed, change)
    assert excinfo.value.rule in ("race", "asynchronous")


def test_hot_loop() -> None:
    """What the loop over k of a specialised kernel consists of."""
    gemm = Gemm(256, 512, 4096, 128, 256, 64, stages=4, out="bf16")
    ptx = gpu_kernels.compile_kernels(gemm.text, "sm_90a")[0].decode()
    # The first step stands before the loop, peeled off by LLVM.
    loop = [part for part in re.split(r"\n(?=\$L)", ptx) if re.search(r"wait_group.sync.aligned\s+1;", part)][-1]
    assert len(re.findall(r"wgmma\.mma_async", loop)) == 4
    assert len(re.findall(r"wgmma\.(?:fence|commit_group|wait_group)", loop)) == 3
    assert len(re.findall(r"mbarrier\.try_wait", loop)) == 1
    assert not re.search(r"\b(?:ld|st|div|rem|bar|shfl)\.", loop), loop
    assert "setmaxnreg.inc.sync.aligned.u32" in ptx
    assert "setmaxnreg.dec.sync.aligned.u32" in ptx


@pytest.mark.parametrize("k", [512, 4096, 16384])
def test_errors_of_float8_by_depth(k: int) -> None:
    """Sums grow by the root of the depth, and so does what is cut off them, unless they are promoted."""
    gemm = Gemm(64, 64, k, 64, 64, 128, warps=4, stages=4, element="f8E4M3FN", promotion=128)
    promoted, fast = gemm.run(0), replace(gemm, promotion=0).run(0)
    assert promoted < 2.5e-4
    assert {512: 5e-4, 4096: 1.5e-3, 16384: 4e-3}[k] < fast and fast > 3 * promoted


def test_hot_loop_of_promoted_sums() -> None:
    """The unit begins anew in each step; its slot is given back before 64 sums are added."""
    gemm = replace(CASES["fp8, promoted"], k=4096, stages=4)
    ptx = gpu_kernels.compile_kernels(gemm.text, "sm_90a")[0].decode()
    loop = [part for part in re.split(r"\n(?=\$L)", ptx) if "wgmma.mma_async" in part][-1]
    assert len(re.findall(r"wgmma\.mma_async\S*k32\.f32\.e4m3\.e4m3", loop)) == 4
    assert re.findall(r"wgmma\.wait_group\S*\s+(\d)", loop) == ["0"]
    told = loop.index("mbarrier.arrive", loop.index("wgmma.wait_group"))
    add = re.compile(r"add(?:\.rn)?\.f32")
    assert not add.search(loop[:told]) and len(add.findall(ptx)) == 64
    assert not add.search(gpu_kernels.compile_kernels(replace(gemm, promotion=0).text, "sm_90a")[0].decode())


def test_tf32_is_multiplied_by_warpgroups() -> None:
    ptx = gpu_kernels.compile_kernels(CASES["tf32"].text, "sm_90a")[0].decode()
    assert re.search(r"wgmma\.mma_async\.sync\.aligned\.m64n128k8\.f32\.tf32\.tf32", ptx)


WINDOW = """
tile.kernel @window(%x: memref<8x8x3xf16>, %w: memref<3x3x8xf16>, %y: memref<8x8x8xf32>)
    attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x8xf32>
  %s = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %zero) -> (!tile.tile<64x8xf32>) {
    %h = arith.subi %i, %c1 : index
    %p = tile.load %x[%h, %c0, %c0] valid (%c8, %c8, %c3) bounded [0]
        : memref<8x8x3xf16>, !tile.tile<8x8x16xf16>
    %r = tile.reshape %p : !tile.tile<8x8x16xf16> -> !tile.tile<64x16xf16>
    %q = tile.load %w[%i, %c0, %c0] dims [1, 2] valid (%c3, %c8) : memref<3x3x8xf16>, !tile.tile<16x8xf16>
    %m = tile.mma %r, %q, %a : !tile.tile<64x16xf16>, !tile.tile<16x8xf16>, !tile.tile<64x8xf32>
    scf.yield %m : !tile.tile<64x8xf32>
  } {tile.stages = 2 : i64}
  %o = tile.reshape %s : !tile.tile<64x8xf32> -> !tile.tile<8x8x8xf32>
  tile.store %o, %y[%c0, %c0, %c0] : !tile.tile<8x8x8xf32>, memref<8x8x8xf32>
  tile.return
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_copies_at_once_fill_what_lies_outside(arch: str) -> None:
    """Rows of 6 bytes are too short for cp.async; beside three channels, and above and below the image, are zeros."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 8, 3), (3, 3, 8)))
    y = np.zeros((8, 8, 8), np.float32)
    gpu_kernels.run(WINDOW, "window", [x, w, y], [], arch, 0)
    wide = np.pad(x.astype(np.float64), ((1, 1), (0, 0), (0, 0)))
    wanted = sum(wide[i : i + 8] @ w[i].astype(np.float64) for i in range(3))
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5)
