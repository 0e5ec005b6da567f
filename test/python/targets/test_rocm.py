# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile kernels as assembly for AMD GPUs: the text has the instructions that it should have, and spills nothing."""

import re

import pytest

from tilewright.errors import InternalError, UnsupportedError, UserError
from tilewright.targets.rocm import assembly
from tilewright.targets.target import check_target

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
    assert "v_exp_f32" in text and "global_load_dword" in text and "global_store_dword" in text
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
    with pytest.raises(InternalError, match="no expansion in the AMDGPU back end"):
        assembly(ELEMENTWISE.replace("math.exp", "math.tanh"))


def test_models_are_not_compiled_for_it():
    with pytest.raises(UnsupportedError, match="text only, and untested on hardware"):
        check_target("rocm:gfx942")
