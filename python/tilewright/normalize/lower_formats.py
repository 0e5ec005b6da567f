# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-lower-formats`: tensors of codes, scales and zero points instead of encoded ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import ancestors, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register


@register
@dataclass(frozen=True)
class LowerFormats(Pass):
    """Put the number formats of dense tensors into bodies.

    `sparse_tile.quantize` becomes the rounding of each element, `dequantize` a generic whose body is one
    `sparse_tile.decode`, `parts` and `assemble` are what they take and give. Blocks that share scales are dimensions of
    their own then. From here on all computations are generics; `tile-expand-decodes` ends what this pass writes.
    Encoded tensors of other patterns stay, for `tile-lower-sparse`.

    Before:
    ```mlir
    #q = #sparse_tile.tesa<dense : format<i8, unsigned, scales = f32, zero_points = i8, group = [1, ?]>>
    func.func @main(%c: tensor<8x64xi8>, %s: tensor<8x1xf32>, %z: tensor<8x1xi8>) -> tensor<8x64xf32> {
      %q = sparse_tile.assemble %c, %s, %z
          : tensor<8x64xi8>, tensor<8x1xf32>, tensor<8x1xi8> to tensor<8x64xf32, #q>
      %x = sparse_tile.dequantize %q : tensor<8x64xf32, #q> to tensor<8x64xf32>
      return %x : tensor<8x64xf32>
    }
    ```
    After:
    ```mlir
    %x = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%c, %s, %z : tensor<8x64xi8>, tensor<8x1xf32>, tensor<8x1xi8>) outs(%e : tensor<8x64xf32>) {
    ^bb0(%in: i8, %t: f32, %p: i8, %o: f32):
      %d = sparse_tile.decode unsigned %in zero_point %p : i8 scale %t : f32 : i8 to f32
      linalg.yield %d : f32
    ```
    """

    name: ClassVar[str] = "tile-lower-formats"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "math", "sparse_tile", "tensor")

    lists: bool = option(False, "those alone that are in functions of lists, where only bodies can be lifted")

    def run(self, op: ir.Operation) -> None:
        """Op by op, in order; then what nobody takes goes."""
        names = ("quantize", "dequantize", "parts")
        found = [one for name in names for one in walk(op, f"sparse_tile.{name}") if not self.lists or _in_list(one)]
        if not found:
            return
        from tilewright.normalize.formats.lowering import lower  # numpy: when it runs

        for one in found:
            lower(one)
        for left in walk(op, "sparse_tile.assemble"):
            if not any(True for _ in left.results[0].uses):
                left.erase()


def _in_list(op: ir.Operation) -> bool:
    """Whether an op is in the body of one of dialect `fractal`."""
    return any(above.name.startswith("fractal.") for above in ancestors(op))
