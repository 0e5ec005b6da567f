# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-check-accesses`: kernels by hand reach nothing but their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located, remark
from tilewright.ir.generics import walk
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.kernels.bounds.guards import Guards, look_at_marks, message
from tilewright.kernels.bounds.proofs import Doubt, doubts_of, line_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.base import option


@register
@dataclass(frozen=True)
class CheckAccesses(Pass):
    """Prove that kernels stay inside of their arguments, or check it in their code.

    Places are affine forms of grid coordinates and loops, as far as they are such; sizes are those of each launch. An
    access that some task makes outside is an error. One that is proven stays as it is. Of others the condition is
    computed as the kernel runs: an access that would reach out is left undone, and leaves a mark, which the host finds.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64xf32>, %at: memref<8xindex>, %y: memref<8xf32>) grid(%i) {
      %place = memref.load %at[%i] : memref<8xindex>
      %e = memref.load %x[%place] : memref<64xf32>
      memref.store %e, %y[%i] : memref<8xf32>
      tile.return
    }
    func.func @main(%x: tensor<64xf32>, %at: tensor<8xindex>, %y: tensor<8xf32>) -> tensor<8xf32> {
      %c8 = arith.constant 8 : index
      %r = tile.launch @k grid(%c8) ins(%x, %at : tensor<64xf32>, tensor<8xindex>) outs(%y : tensor<8xf32>)
          -> (tensor<8xf32>)
      return %r : tensor<8xf32>
    }
    ```
    After:
    ```mlir
    tile.kernel @k(%x: memref<64xf32>, %at: memref<8xindex>, %y: memref<8xf32>, %marks: memref<1xi64>) grid(%i) {
      %place = memref.load %at[%i] : memref<8xindex>
      ...
      %e = scf.if %inside -> (f32) {
        %0 = memref.load %x[%place] : memref<64xf32>
        scf.yield %0 : f32
      } else {
    ```
    """

    name: ClassVar[str] = "tile-check-accesses"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "cf", "linalg", "memref", "scf", "tensor", "tile")
    guard: bool = option(True, "check in the code what is not proven; else only what is refuted counts")

    def run(self, op: ir.Operation) -> None:
        """Visit each kernel with its launches."""
        for kernel in walk(op, "tile.kernel"):
            if decisions.PREDICTION.on(kernel):
                continue  # the plan made it
            launches = walk(op, "tile.launch")  # those that got marks are others than before
            own = [launch for launch in launches if kernel_of(launch) == symbol_of(kernel)]
            self._visit(kernel, own)

    def _visit(self, kernel: ir.Operation, launches: list[ir.Operation]) -> None:
        doubts: dict[ir.Operation, Doubt] = {}
        for launch in launches:
            found, unknown = doubts_of(kernel, launch)
            if unknown and self.guard:
                raise located(UserError(_told(kernel, unknown[0])), unknown[0])
            for doubt in found:
                known = doubts.get(doubt.site.op)
                doubts[doubt.site.op] = Doubt(doubt.site, doubt.dims | (known.dims if known else frozenset()))
        if not doubts or not self.guard:
            return
        if not all(isinstance(value.type, ir.RankedTensorType) for one in launches for value in one.results):
            remark(kernel, "accesses of this kernel are not checked: it is launched on buffers")
            return
        ordered = [doubts[op] for op in _in_order(kernel) if op in doubts]
        Guards(kernel, ordered).write([op for op in _in_order(kernel) if op.name != "memref.subview"])
        for launch in launches:
            look_at_marks(launch, ordered, lambda doubt: message(kernel, doubt))
        what = "an access" if len(ordered) == 1 else f"{len(ordered)} accesses"
        remark(
            kernel, f"{what} of this kernel cannot be proven to stay inside, and {_is_are(ordered)} checked in its code"
        )


def _told(kernel: ir.Operation, op: ir.Operation) -> str:
    return (
        f"kernel {symbol_of(kernel)}{line_of(op)}: what {op.name} accesses cannot be checked; checks=False runs the "
        "kernel as it is, whatever it touches"
    )


def _is_are(doubts: list[Doubt]) -> str:
    return "is" if len(doubts) == 1 else "are"


def _in_order(kernel: ir.Operation) -> list[ir.Operation]:
    """Operations with memory among their operands, those inside of others too."""
    from tilewright.ir.generics import descendants

    return [op for op in descendants(kernel) if any(isinstance(value.type, ir.MemRefType) for value in op.operands)]
