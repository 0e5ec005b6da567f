# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the views of a host program stand: a temporary begins right before its first use."""

from __future__ import annotations

from tilewright.ir.text import parse
from tilewright.targets.cuda.host_program import export

TWO_IN_ONE_PLACE = """
func.func @main(%x: memref<16xf32>, %arena: memref<64xi8> {tile.arena}) {
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  %b = memref.view %arena[%c0][] : memref<64xi8> to memref<4x4xf32>
  %flat = memref.collapse_shape %b [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  scf.for %i = %c0 to %c0 step %c0 {
    memref.copy %x, %flat : memref<16xf32> to memref<16xf32>
  }
  return
}
"""


def test_views_stand_before_their_first_use() -> None:
    module = parse(TWO_IN_ONE_PLACE, "main")
    with module.context:
        body = export(module, "main", "sm_80").program["body"]
    assert [op["op"] for op in body] == [
        "view",
        "copy",
        "copy",
        "drop",
        "view",
        "collapse",
        "drop",
        "for",
        "drop",
        "return",
    ]
    assert body[0]["type"]["shape"] == [16] and body[4]["type"]["shape"] == [4, 4]
