# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile kernels as assembly for AMD GPUs: the text has the instructions that it should have, and spills nothing."""

import json
import re
import subprocess
import sys

import pytest

from tilewright.core.errors import InternalError, UnsupportedError, UserError
from tilewright.targets.registry import checked
from tilewright.targets.rocm.assembly import assembly

ELEMENTWISE = """
tile.kernel @scale(%x: memref<64x256xf32>, %y: memref<64x256xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<64x256xf32>, !tile.tile<256xf32>
  %d = math.exp %t : !tile.tile<256xf32>
  %e = arith.addf %d, %t : !tile.tile<256xf32>
  tile.store %e, %y[%i, %c0] : !tile.tile<256xf32>, memref<64x256xf32>
  tile.return
}
"""

REDUCTION = """
tile.kernel @sums(%x: memref<64x256xf32>, %y: memref<64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<64x256xf32>, !tile.tile<256xf32>
  %s = tile.reduce add %t dims [0] : !tile.tile<256xf32> -> !tile.tile<1xf32>
  tile.store %s, %y[%i] : !tile.tile<1xf32>, memref<64xf32>
  tile.return
}
"""


def _spills(text: str) -> list[int]:
    return [int(count) for count in re.findall(r"\.[sv]gpr_spill_count: +(\d+)", text)]


def test_elementwise():
    text = assembly(ELEMENTWISE)
    assert 'amdgcn_target "amdgcn-amd-amdhsa--gfx942"' in text
    assert re.search(r"^scale:", text, re.MULTILINE)
    assert re.search(r"v_(pk_)?(fma|mul|add)", text) and "global_load_dword" in text and "global_store_dword" in text
    assert _spills(text) == [0, 0]
    assert "s_swappc" not in text, "no calls"


def test_reduction():
    text = assembly(REDUCTION)
    assert "v_add_f32" in text
    assert "ds_bpermute_b32" in text or "ds_read" in text
    assert "s_barrier" in text, "several waves meet"
    assert _spills(text) == [0, 0]


def test_what_is_refused():
    with pytest.raises(UserError, match="no AMD GPU: use 'rocm:gfx942'"):
        assembly(ELEMENTWISE, "cuda:sm_80")
    with pytest.raises(UserError, match="unknown AMD GPU 'gfx803'"):
        assembly(ELEMENTWISE, "rocm:gfx803")
    with pytest.raises(UserError, match="malformed"):
        assembly("tile.kernel @k( {")
    with pytest.raises(UserError, match="the module has func.func"):
        assembly("func.func @f() { return }")
    with pytest.raises(InternalError, match='has the unit "wgmma", which an AMD GPU has not'):
        assembly(_gemm("f16").replace("tile.mma %x, %y, %s", 'tile.mma %x, %y, %s {tile.unit = "wgmma"}'))


def test_models_are_not_compiled_for_it():
    with pytest.raises(UnsupportedError, match="text only, and untested on hardware"):
        checked("rocm:gfx942")


GEMM = """
tile.kernel @gemm(%a: memref<256x128xTY>, %b: memref<128x256xTY>, %c: memref<256x256xACC>) grid(%i, %j)
    attributes {tile.threads = 256 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c32 = arith.constant 32 : index
  %k = arith.constant 128 : index
  %row = arith.muli %i, %c64 : index
  %col = arith.muli %j, %c64 : index
  %zero = arith.constant dense<ZERO> : !tile.tile<64x64xACC>
  %r = scf.for %p = %c0 to %k step %c32 iter_args(%s = %zero) -> (!tile.tile<64x64xACC>) {
    %x = tile.load %a[%row, %p] : memref<256x128xTY>, !tile.tile<64x32xTY>
    %y = tile.load %b[%p, %col] : memref<128x256xTY>, !tile.tile<32x64xTY>
    %n = tile.mma %x, %y, %s : !tile.tile<64x32xTY>, !tile.tile<32x64xTY>, !tile.tile<64x64xACC>
    scf.yield %n : !tile.tile<64x64xACC>
  }
  tile.store %r, %c[%row, %col] : !tile.tile<64x64xACC>, memref<256x256xACC>
  tile.return
}
"""
UNITS = {
    "f16": ("f32", "v_mfma_f32_16x16x16_f16", 16, 4),
    "bf16": ("f32", "v_mfma_f32_16x16x16_bf16", 16, 4),
    "f32": ("f32", "v_mfma_f32_16x16x4_f32", 4, 1),
    "i8": ("i32", "v_mfma_i32_16x16x32_i8", 32, 8),
}


def _gemm(kind):
    sums = UNITS[kind][0]
    return GEMM.replace("TY", kind).replace("ACC", sums).replace("ZERO", "0" if sums == "i32" else "0.0")


@pytest.mark.parametrize("kind", UNITS)
def test_products_are_matrix_instructions(kind):
    """A wave of the four has 4 of the 16 blocks of 16 x 16; the loop over k may be unrolled."""
    _, name, depth, _ = UNITS[kind]
    text = assembly(_gemm(kind))
    count = len(re.findall(rf"\t{name}\b", text))
    assert count in (4 * 32 // depth, 4 * 128 // depth)
    assert "global_load_dword" in text and _spills(text) == [0, 0]


def _spread(text, tile):
    """Basis vectors (registers, lanes and warps) of the tile of a product."""
    lists = re.search(
        rf"!tile.tile<{tile}, #tile.distributed<register = (\[.*?\]), lane = (\[.*?\]), warp = (\[.*?\])>>", text
    )
    register, lane, warp = map(json.loads, lists.groups())
    return register, lane + warp


def _place(basis, number):
    return [sum(vector[dim] for bit, vector in enumerate(basis) if number >> bit & 1) for dim in (0, 1)]


@pytest.mark.parametrize("kind", UNITS)
def test_fragments_are_those_of_the_instruction(kind):
    """CDNA 3 ISA, "Matrix fused multiply-add": a lane's elements of A, B and of the result, in a wave of 64."""
    sums, _, depth, each = UNITS[kind]
    flag = "--pass-pipeline=builtin.module(tile-kernels-to-gpu,tile-assign-distributed-layouts{arch=942})"
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", "-", flag]
    text = subprocess.run(command, input=_gemm(kind), capture_output=True, text=True, check=True).stdout
    product = next(line for line in text.splitlines() if "tile.mma" in line)
    a, b, c = (_spread(product, tile) for tile in (f"64x32x{kind}", f"32x64x{kind}", f"64x64x{sums}"))
    for lane in range(64):
        for i in range(each):
            k = each * (lane // 16) + i
            assert [x + y for x, y in zip(_place(a[0], i), _place(a[1], lane), strict=True)] == [lane % 16, k]
            assert [x + y for x, y in zip(_place(b[0], i), _place(b[1], lane), strict=True)] == [k, lane % 16]
        for i in range(4):
            place = [x + y for x, y in zip(_place(c[0], i), _place(c[1], lane), strict=True)]
            assert place == [4 * (lane // 16) + i, lane % 16]
    assert depth == 4 * each
