# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-drop-proven`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import walk
from tilewright.ir.ranges import Ranges
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class DropProven(Pass):
    """Erase assertions that hold in any run.

    An index that counts iterations, or a sum of such a number and constants, lies where it should. Without the check
    no host waits for it, in each iteration, and a device can run the loop. Canonicalization erases what computed the
    condition.

    Before:
    ```mlir
    func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %c8 = arith.constant 8 : i64
      %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %x) -> tensor<8xi64> {
        %n = arith.index_cast %i : index to i64
        %ok = arith.cmpi slt, %n, %c8 : i64
        cf.assert %ok, "an index lies outside"
        %u = tensor.insert %n into %t[%i] : tensor<8xi64>
        scf.yield %u : tensor<8xi64>
      }
      return %y : tensor<8xi64>
    }
    ```
    After:
    ```mlir
    %ok = arith.cmpi slt, %n, %c8 : i64
    %u = tensor.insert %n into %t[%i] : tensor<8xi64>
    ```
    """

    name: ClassVar[str] = "tile-drop-proven"

    def run(self, op: ir.Operation) -> None:
        """Ask for the range of each condition."""
        ranges = Ranges()
        for assertion in list(walk(op, "cf.assert")):
            if ranges.is_true(assertion.operands[0]):
                assertion.erase()
