# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-carry-formats`: codes are moved instead of the elements that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class CarryFormats(Pass):
    """Carry number formats through what moves elements, to products and later quantizations.

    Reshapes, slices and transposing copies of elements that codes stand for become ones of the codes, where all that
    reads the result takes codes: products, and `sparse_tile.quantize`. The latter is nothing where its
    format, scales and zero points are those that the codes have. Scales go along: those of a row become those of a
    column or of blocks of a longer row. Who else reads the elements has its own `sparse_tile.dequantize`.

    Before:
    ```mlir
    #q = #sparse_tile.tesa<dense : format<i8, scales = f32>>
    #r = #sparse_tile.tesa<dense : format<i8, scales = f32>>
    func.func @main(%c: tensor<4x6xi8>) -> tensor<24xi8> {
      %s = arith.constant dense<0.5> : tensor<1x1xf32>
      %t = arith.constant dense<0.5> : tensor<1xf32>
      %a = sparse_tile.assemble %c, %s : tensor<4x6xi8>, tensor<1x1xf32> to tensor<4x6xf32, #q>
      %x = sparse_tile.dequantize %a : tensor<4x6xf32, #q> to tensor<4x6xf32>
      %y = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
      %b = sparse_tile.quantize %y scales %t : tensor<24xf32>, tensor<1xf32> to tensor<24xf32, #r>
      %d, %u = sparse_tile.parts %b : tensor<24xf32, #r> to tensor<24xi8>, tensor<1xf32>
      return %d : tensor<24xi8>
    }
    ```
    After:
    ```mlir
    %d = tensor.collapse_shape %c [[0, 1]] : tensor<4x6xi8> into tensor<24xi8>
    ```
    """

    name: ClassVar[str] = "tile-carry-formats"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "sparse_tile", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Carry each, then drop what rounds codes to themselves."""
        if not walk(op, "sparse_tile.dequantize"):
            return
        from tilewright.normalize.formats.carrying import carry  # numpy: when it runs

        carry(op)
