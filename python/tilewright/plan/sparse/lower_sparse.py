# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-lower-sparse`: operations of the `sparse_tile` dialect become kernels and generics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class LowerSparse(Pass):
    """Make kernels of products with encoded operands.

    Each `sparse_tile.matmul` becomes a kernel of the family that its `kernel` names, or of the first one that has one;
    what packs constant weights is left to `tile-hoist-init`. Families: `plan/sparse/forms`. What `sparse_tile.index`,
    `gather` and `scatter` is left then becomes kernels of its own.

    Before:
    ```mlir
    #w = #sparse_tile.tesa<nm<2 : 4, axis = 1>>
    func.func @main(%w: tensor<32x64xf32>, %x: tensor<64x16xf32>) -> tensor<32x16xf32> {
      %p = sparse_tile.pack %w : tensor<32x64xf32> to tensor<32x64xf32, #w>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<32x16xf32>
      %c = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
      %y = sparse_tile.matmul %p, %x, %c {kernel = "dense"}
          : tensor<32x64xf32, #w>, tensor<64x16xf32>, tensor<32x16xf32>
      return %y : tensor<32x16xf32>
    }
    ```
    After:
    ```mlir
    arith.mulf
    ```
    """

    name: ClassVar[str] = "tile-lower-sparse"
    dialects: ClassVar[tuple[str, ...]] = (
        "linalg",
        "tensor",
        "arith",
        "tile",
        "scf",
        "memref",
        "math",
        "cf",
        "sparse_tile",
    )

    def run(self, op: ir.Operation) -> None:
        """Product by product, then what moves tensors."""
        from tilewright.plan.sparse.lowering import lower_operations  # numpy and kernels: when it runs

        lower_operations(op)
