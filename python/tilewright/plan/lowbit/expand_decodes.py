# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-expand-decodes`: what is left of `sparse_tile.decode` becomes arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decodes
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class ExpandDecodes(Pass):
    """Make arithmetic of the numbers that codes stand for.

    By then it is decided which products multiply codes themselves and which ones decode them in registers: bodies need
    no longer say which operands are codes, zero points and scales.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    func.func @main(%q: tensor<8x64xi8>, %s: tensor<8xf16>) -> tensor<8x64xf16> {
      %point = arith.constant -56 : i8
      %e = tensor.empty() : tensor<8x64xf16>
      %x = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%q, %s : tensor<8x64xi8>, tensor<8xf16>) outs(%e : tensor<8x64xf16>) {
      ^bb0(%c: i8, %t: f16, %o: f16):
        %d = sparse_tile.decode unsigned %c zero_point %point : i8 scale %t : f16 : i8 to f16
        linalg.yield %d : f16
      } -> tensor<8x64xf16>
      return %x : tensor<8x64xf16>
    }
    ```
    After:
    ```mlir
    %u = arith.extui %c : i8 to i32
    %c200 = arith.constant 200 : i32
    %d = arith.subi %u, %c200 : i32
    %f = arith.sitofp %d : i32 to f32
    %w = arith.extf %t : f16 to f32
    %m = arith.mulf %f, %w : f32
    %r = arith.truncf %m : f32 to f16
    ```
    """

    name: ClassVar[str] = "tile-expand-decodes"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "sparse_tile")

    def run(self, op: ir.Operation) -> None:
        """Number by number."""
        for found in walk(op, decodes.NAME):
            with found.location, ir.InsertionPoint(found):
                value = decodes.arithmetic(decodes.Decoding.of(found))
            found.results[0].replace_all_uses_with(value)
            found.erase()
