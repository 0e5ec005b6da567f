# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with constant sparse weights as kernels for GPUs, on the emulator, against NumPy; small whole numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.sim import ptx as emulate

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


@dataclass(frozen=True)
class Case:
    """`a @ b (+ c)` with one operand packed from a constant.

    Attributes:
        form: the family of kernels.
        pattern: what stands in `#sparse_tile.tesa<...>`.
        shape: of the weight.
        other: of the dense operand across the depth.
        left: whether the weight is `a`.
        types: of the operands and of the result.
        init: whether something is added.
        open: whether a run brings `other`.
    """

    form: str
    pattern: str
    shape: tuple[int, int]
    other: int
    left: bool = True
    types: tuple[str, str] = ("f16", "f32")
    init: bool = False
    open: bool = False

    def weight(self) -> np.ndarray:
        """Whole numbers in the pattern, a row of blocks without any among them."""
        rng = np.random.default_rng(sum(self.shape))
        numbers = [int(n) for n in re.findall(r"\d+", self.pattern)]
        if self.pattern.startswith("block"):
            keep = rng.random([-(-s // b) for s, b in zip(self.shape, numbers, strict=True)]) < 0.4
            keep[0, 0], keep[-1 if self.left else 0, :] = True, keep[-1 if self.left else 0, :] & False
            keep[0, 0] = True
            unit = numbers
        else:
            n, m, axis = numbers[:3]
            unit = numbers[3:] or [1, 1]
            counts = [-(-s // u) for s, u in zip(self.shape, unit, strict=True)]
            windows = rng.random((counts[1 - axis], -(-counts[axis] // m), m))
            keep = (np.argsort(np.argsort(windows, -1), -1) < n).reshape(counts[1 - axis], -1)
            keep = keep if axis == 1 else keep.T
        keep = np.repeat(np.repeat(keep, unit[0], 0), unit[1], 1)[: self.shape[0], : self.shape[1]]
        return (keep * rng.integers(1, 5, self.shape) * rng.choice([-1, 1], self.shape)).astype(DTYPES[self.types[0]])

    def text(self) -> str:
        """The program; the weight is the global `w`."""
        given, result = self.types
        size = "?" if self.open else self.other
        depth, across = self.shape[::-1] if self.left else self.shape
        w = f"tensor<{self.shape[0]}x{self.shape[1]}x{given}"
        x = f"tensor<{depth}x{size}x{given}>" if self.left else f"tensor<{size}x{depth}x{given}>"
        y = f"tensor<{across}x{size}x{result}>" if self.left else f"tensor<{size}x{across}x{result}>"
        operands = f"%p, %x, %c {{kernel = \"{self.form}\"}} : {w}, #w>, {x}, {y}"
        if not self.left:
            operands = f"%x, %p, %c {{kernel = \"{self.form}\"}} : {x}, {w}, #w>, {y}"
        argument, filled = (f", %c: {y}", "") if self.init else ("", self._zeros(x, y, result))
        return f"""
#w = #sparse_tile.tesa<{self.pattern}>
#e = #ml_program.extern : {w}>
ml_program.global private @w(#e) : {w}>
func.func @main(%x: {x}{argument}) -> {y} {{
  %w = ml_program.global_load_const @w : {w}>
  %p = sparse_tile.pack %w : {w}> to {w}, #w>
{filled}
  %y = sparse_tile.matmul {operands}
  return %y : {y}
}}
"""

    def _zeros(self, x: str, y: str, result: str) -> str:
        dim = f"  %d = arith.constant {int(self.left)} : index\n  %n = tensor.dim %x, %d : {x}\n" if self.open else ""
        return f"""{dim}  %zero = arith.constant 0.0 : {result}
  %e = tensor.empty({"%n" if self.open else ""}) : {y}
  %c = linalg.fill ins(%zero : {result}) outs(%e : {y}) -> {y}"""

    def inputs(self) -> list[np.ndarray]:
        """The dense operand, and what is added."""
        rng = np.random.default_rng(7)
        depth, across = self.shape[::-1] if self.left else self.shape
        shapes = [(depth, self.other), (across, self.other)] if self.left else [(self.other, depth), (self.other, across)]
        found = [rng.integers(-4, 5, shape).astype(DTYPES[t]) for shape, t in zip(shapes, self.types, strict=True)]
        return found if self.init else found[:1]

    def run(self, target: str, **options: object) -> tuple[np.ndarray, np.ndarray, str]:
        """The result, what it should be, and the PTX."""
        weight, inputs = self.weight(), self.inputs()
        model = tw.compile(self.text(), target=target, emulate=options or True, weights={"w": weight})
        (result,) = model(*inputs)
        w, x = weight.astype(np.float64), inputs[0].astype(np.float64)
        expected = w @ x if self.left else x @ w
        if self.init:
            expected = expected + inputs[1].astype(np.float64)
        return np.asarray(result), expected.astype(DTYPES[self.types[1]]), "".join(model.ptx().values())


NM24 = "nm<2 : 4, axis = 1>"
CASES = {
    "halves": (Case("gpu_mma_sp", NM24, (64, 128), 64), ["mma.sp"]),
    "halves_ragged": (Case("gpu_mma_sp", NM24, (70, 130), 33, types=("f16", "f16")), ["mma.sp"]),
    "halves_bf16": (Case("gpu_mma_sp", NM24, (48, 100), 40, types=("bf16", "bf16"), init=True), ["mma.sp"]),
    "halves_ring": (Case("gpu_mma_sp", NM24, (256, 256), 128, init=True), ["mma.sp", "cp.async"]),
    "halves_open": (Case("gpu_mma_sp", NM24, (64, 96), 24, open=True), ["mma.sp"]),
    "blocks": (Case("gpu_blocks", "block<[32, 32]>", (128, 128), 64), ["mma.sync", "cp.async"]),
    "blocks_ragged": (Case("gpu_blocks", "block<[32, 16]>", (100, 150), 33, types=("bf16", "bf16"), init=True), ["mma"]),
    "blocks_right": (Case("gpu_blocks", "block<[32, 32]>", (96, 128), 80, left=False), ["mma.sync", "cp.async"]),
    "blocks_f32": (Case("gpu_blocks", "block<[16, 64]>", (70, 90), 33, False, ("f32", "f32"), True), ["fma.rn.f32"]),
    "blocks_open": (Case("gpu_blocks", "block<[64, 64]>", (128, 192), 48, open=True), ["mma."]),
    "own": (Case("gpu_nm", "nm<8 : 32, axis = 1>", (50, 100), 64, types=("f32", "f32"), init=True), ["fma.rn.f32"]),
    "own_few": (Case("gpu_nm", "nm<3 : 32, axis = 1>", (40, 64), 33, open=True), ["fma.rn.f32"]),
    "own_right": (Case("gpu_nm", NM24.replace("1>", "0>"), (96, 70), 40, False, ("f32", "f32")), ["fma.rn.f32"]),
    "own_vector": (Case("gpu_nm", "nm<8 : 32, axis = 0>", (128, 130), 1, False, ("f32", "f32")), ["fma.rn.f32"]),
    "own_unit": (Case("gpu_nm", "nm<1 : 4, axis = 1, unit = [4, 2]>", (40, 64), 24, types=("f32", "f32")), ["fma"]),
    "shared": (Case("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 112), 48, init=True), ["mma.sync"]),
    "shared_right": (
        Case("gpu_nm", "nm<3 : 32, axis = 0, unit = [1, 32]>", (128, 70), 40, False, ("f16", "f16")),
        ["mma.sync"],
    ),
    "shared_f32": (Case("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 64), 48, types=("f32", "f32")), ["fma"]),
}


#: The instruction of a sparse product is one of each architecture's own; the other kernels are the same text.
RUNS = [(name, "sm_90a" if name in ("halves_ragged", "halves_ring", "blocks", "blocks_right") else "sm_80") for name in CASES]
RUNS.append(("halves", "sm_90a"))


@pytest.mark.parametrize(("name", "arch"), RUNS)
def test_products(name: str, arch: str) -> None:
    case, marks = CASES[name]
    result, expected, ptx = case.run(f"cuda:{arch}")
    np.testing.assert_array_equal(result, expected)
    for mark in marks:
        assert mark in ptx, f"no {mark}"
    assert ("ordered_metadata" in ptx) == (arch == "sm_90a" and case.form == "gpu_mma_sp")


@pytest.mark.parametrize("other", [1, 128])
@pytest.mark.parametrize("left", [True, False])
def test_windows_have_no_bank_conflicts(other: int, left: bool) -> None:
    """A place names an entry of a window of 32, which are in different banks (nmSPARSE 3.2); rows fill all banks."""
    shape = (128, 64) if left else (64, 128)
    trace = emulate.Trace()
    pattern = f"nm<8 : 32, axis = {int(left)}>"
    result, expected, _ = Case("gpu_nm", pattern, shape, other, left, ("f32", "f32")).run("cuda:sm_80", trace=trace)
    np.testing.assert_array_equal(result, expected)
    passes, without = (int(n) for n in re.findall(r"(\d+) passes, (\d+) without", trace.launches[0].summary())[0])
    assert passes == without > 0


@pytest.mark.parametrize("form", ["gpu_mma_sp", "gpu_blocks", "gpu_nm"])
def test_a_cpu_is_refused(form: str) -> None:
    pattern = "block<[32, 32]>" if form == "gpu_blocks" else NM24
    case = Case(form, pattern, (64, 64), 32)
    with pytest.raises(UserError, match=r"it is for NVIDIA GPUs"):
        tw.compile(case.text(), target="cpu", weights={"w": case.weight()})


def test_types_without_a_unit_are_refused() -> None:
    case = Case("gpu_mma_sp", NM24, (64, 64), 32, types=("f32", "f32"))
    with pytest.raises(UserError, match=r"elements are f32 and f32, not both f16 or bf16"):
        tw.compile(case.text(), target="cuda:sm_80", emulate=True, weights={"w": case.weight()})
