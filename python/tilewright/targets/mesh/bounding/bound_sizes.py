# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-bound-sizes`: tensors whose sizes a run brings become as large as they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class BoundSizes(Pass):
    """Give tensors whose sizes only a run knows the largest size that these may have.

    Programs of cores have buffers of known sizes. How large a tensor may become follows from what its size is made of:
    a loop counts so often at most, a slice is no larger than what it is cut from, a branch gives one of two, an
    assertion ends the run. All elements are computed; sums leave out those that do not count, and indices and divisors
    of these have a meaning. Slices and reshapes whose places a run brings pick each element where it lies. What leaves
    the function is cut to its size by the host. A tensor without a bound, or too large for all cores together, stays as
    it is, with a remark.

    Before:
    ```mlir
    func.func @main(%x: tensor<6xf32>, %n: tensor<1xi64>) -> tensor<?xf32> {
      %c0 = arith.constant 0 : index
      %0 = tensor.extract %n[%c0] : tensor<1xi64>
      %1 = arith.index_cast %0 : i64 to index
      %2 = tensor.extract_slice %x[2] [%1] [1] : tensor<6xf32> to tensor<?xf32>
      return %2 : tensor<?xf32>
    }
    ```
    After:
    ```mlir
    %2 = tensor.extract_slice %x[2] [4] [1] : tensor<6xf32> to tensor<4xf32>
    %3 = tensor.extract_slice %2[0] [%1] [1] : tensor<4xf32> to tensor<?xf32>
    return %3 : tensor<?xf32>
    ```
    """

    name: ClassVar[str] = "tile-bound-sizes"
    anchor: ClassVar[str | None] = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        """Visit the functions."""
        from tilewright.targets.mesh.bounding.bound_sizes_rewrite import rewrite

        rewrite(self, op)
