# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with constant sparse weights as kernels for GPUs, on the emulator, against NumPy; small whole numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from bench.gpu.held import held_to
from models.sparse_programs import SparseProduct
from tilewright.core.errors import UserError
from tilewright.sim import ptx as emulate


def run(case: SparseProduct, target: str, **options: object) -> tuple[np.ndarray, np.ndarray, str]:
    """The result, what it should be, and the PTX."""
    inputs = case.inputs()
    model = tw.compile(case.text(), target=target, emulate=options or True, weights={"w": case.weight()})
    (result,) = model(*inputs)
    return np.asarray(result), case.expected(inputs), "".join(model.ptx().values())


NM24 = "nm<2 : 4, axis = 1>"
CASES = {
    "halves": (SparseProduct("gpu_mma_sp", NM24, (64, 128), 64), ["mma.sp"]),
    "halves_ragged": (SparseProduct("gpu_mma_sp", NM24, (70, 130), 33, types=("f16", "f16")), ["mma.sp"]),
    "halves_bf16": (SparseProduct("gpu_mma_sp", NM24, (48, 100), 40, types=("bf16", "bf16"), init=True), ["mma.sp"]),
    "halves_ring": (SparseProduct("gpu_mma_sp", NM24, (256, 256), 128, init=True), ["mma.sp", "cp.async"]),
    "halves_open": (SparseProduct("gpu_mma_sp", NM24, (64, 96), 24, open=True), ["mma.sp"]),
    "blocks": (SparseProduct("gpu_blocks", "block<[32, 32]>", (128, 128), 64), ["mma.sync", "cp.async"]),
    "blocks_ragged": (
        SparseProduct("gpu_blocks", "block<[32, 16]>", (100, 150), 33, types=("bf16", "bf16"), init=True),
        ["mma"],
    ),
    "blocks_right": (
        SparseProduct("gpu_blocks", "block<[32, 32]>", (96, 128), 80, left=False),
        ["mma.sync", "cp.async"],
    ),
    "blocks_f32": (
        SparseProduct("gpu_blocks", "block<[16, 64]>", (70, 90), 33, False, ("f32", "f32"), True),
        ["fma.rn.f32"],
    ),
    "blocks_open": (SparseProduct("gpu_blocks", "block<[64, 64]>", (128, 192), 48, open=True), ["mma."]),
    "own": (
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 1>", (50, 100), 64, types=("f32", "f32"), init=True),
        ["fma.rn.f32"],
    ),
    "own_few": (SparseProduct("gpu_nm", "nm<3 : 32, axis = 1>", (40, 64), 33, open=True), ["fma.rn.f32"]),
    "own_right": (
        SparseProduct("gpu_nm", NM24.replace("1>", "0>"), (96, 70), 40, False, ("f32", "f32")),
        ["fma.rn.f32"],
    ),
    "own_vector": (
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 0>", (128, 130), 1, False, ("f32", "f32")),
        ["fma.rn.f32"],
    ),
    "own_unit": (
        SparseProduct("gpu_nm", "nm<1 : 4, axis = 1, unit = [4, 2]>", (40, 64), 24, types=("f32", "f32")),
        ["fma"],
    ),
    "shared": (SparseProduct("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 112), 48, init=True), ["mma.sync"]),
    "shared_right": (
        SparseProduct("gpu_nm", "nm<3 : 32, axis = 0, unit = [1, 32]>", (128, 70), 40, False, ("f16", "f16")),
        ["mma.sync"],
    ),
    "shared_f32": (
        SparseProduct("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 64), 48, types=("f32", "f32")),
        ["fma"],
    ),
}


#: The instruction of a sparse product is one of each architecture's own; the other kernels are the same text.
RUNS = [
    (name, "sm_90a" if name in ("halves_ragged", "halves_ring", "blocks", "blocks_right") else "sm_80")
    for name in CASES
]
RUNS.append(("halves", "sm_90a"))
#: What others are like, in the long run of tests.
SLOW = ("halves_ring", "halves_open", "blocks_ragged", "own_few", "own_unit", "shared_f32")
PARAMS = [pytest.param(*one, marks=[pytest.mark.slow] if one[0] in SLOW else []) for one in RUNS]


@pytest.mark.parametrize(("name", "arch"), PARAMS)
def test_products(name: str, arch: str) -> None:
    case, marks = CASES[name]
    result, expected, ptx = run(case, f"cuda:{arch}")
    np.testing.assert_array_equal(result, expected)
    for mark in marks:
        assert mark in ptx, f"no {mark}"
    assert ("ordered_metadata" in ptx) == (arch == "sm_90a" and case.form == "gpu_mma_sp")


@pytest.mark.parametrize(
    ("shape", "other", "types", "cluster"),
    [((128, 256), 64, ("f16", "f32"), (1, 1)), ((200, 200), 136, ("bf16", "bf16"), (1, 1)),
     ((256, 136), 72, ("f16", "f16"), (2, 1))],
)  # fmt: skip
def test_warpgroups(shape: tuple[int, int], other: int, types: tuple[str, str], cluster: tuple[int, int]) -> None:
    """What large products take by themselves: TMA brings values, metadata and b, warpgroups multiply from there."""
    with held_to({"wgmma": True, "cluster": cluster, "persistent": False, "rows": 64}):
        case = SparseProduct("gpu_mma_sp", NM24, shape, other, types=types, init=True)
        result, expected, ptx = run(case, "cuda:sm_90a")
    np.testing.assert_array_equal(result, expected)
    assert "wgmma.mma_async.sp.sync" in ptx and "cp.async.bulk.tensor" in ptx and "setmaxnreg" in ptx
    assert ("multicast::cluster" in ptx) == (cluster != (1, 1))


def test_what_is_slower_than_a_dense_product_is_left_to_it() -> None:
    """Tensor cores multiply everything before ordinary units have a quarter; who asks for a family gets it."""
    case = SparseProduct("gpu_nm", "nm<8 : 32, axis = 1>", (1024, 1024), 1024, types=("f16", "f32"))
    text = case.text().replace(' {kernel = "gpu_nm"}', "")
    model = tw.compile(text, target="cuda:sm_80", emulate=True, weights={"w": case.weight()})
    ptx = "".join(model.ptx().values())
    assert "mma.sync" in ptx and "sparse_windows" not in ptx


@pytest.mark.parametrize("other", [1, 64])
@pytest.mark.parametrize("left", [True, False])
def test_windows_have_no_bank_conflicts(other: int, left: bool) -> None:
    """A place names an entry of a window of 32, which are in different banks (nmSPARSE 3.2); rows fill all banks."""
    shape = (64, 64) if left else (64, 128)
    trace = emulate.Trace()
    pattern = f"nm<8 : 32, axis = {int(left)}>"
    case = SparseProduct("gpu_nm", pattern, shape, other, left, ("f32", "f32"))
    result, expected, _ = run(case, "cuda:sm_80", trace=trace)
    np.testing.assert_array_equal(result, expected)
    passes, without = (int(n) for n in re.findall(r"(\d+) passes, (\d+) without", trace.launches[0].summary())[0])
    assert passes == without > 0


@pytest.mark.parametrize("form", ["gpu_mma_sp", "gpu_blocks", "gpu_nm"])
def test_a_cpu_is_refused(form: str) -> None:
    pattern = "block<[32, 32]>" if form == "gpu_blocks" else NM24
    case = SparseProduct(form, pattern, (64, 64), 32)
    with pytest.raises(UserError, match=r"it is for NVIDIA GPUs"):
        tw.compile(case.text(), target="cpu", weights={"w": case.weight()})


def test_types_without_a_unit_are_refused() -> None:
    case = SparseProduct("gpu_mma_sp", NM24, (64, 64), 32, types=("f32", "f32"))
    with pytest.raises(UserError, match=r"elements are f32 and f32, not both f16 or bf16"):
        tw.compile(case.text(), target="cuda:sm_80", emulate=True, weights={"w": case.weight()})
