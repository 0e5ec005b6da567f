# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States at which level of the memory hierarchy each operation meets what it reads (`tile.levels`).

It is the connect level of Welder's tile graph (Shi et al., OSDI 2023, section 4.1), read off the nesting of groups: one
register group passes values in registers, register groups of a task in a buffer of the task, all others in memory. A
buffer of a task that leaves room in the inner cache stays there until it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.model.traffic import element_bytes

#: More bytes than any cache has: what is held of a size known at run time only.
_UNKNOWN = 1 << 62


def _level_of(group: ir.Operation) -> str:
    return ir.StringAttr(group.attributes["level"]).value


def _groups(op: ir.Operation | ir.OpView, level: str | None = None) -> Iterator[ir.Operation]:
    """The outermost groups below an operation, or those of a level."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                operation = inner.operation
                if operation.name == "tile.group" and level in (
                    None,
                    ir.StringAttr(operation.attributes["level"]).value,
                ):
                    yield operation
                else:
                    yield from _groups(operation, level)


def _terminator(op: ir.Operation) -> ir.Operation:
    block = op.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operation


def _maker(value: ir.Value) -> ir.OpResult | None:
    """The result of a register group that a value of a task is or is a slice of; None: it comes from outside."""
    if isinstance(value, ir.BlockArgument):
        owner = value.owner.owner.operation
        return _maker(owner.operands[2 + value.arg_number]) if owner.name == "scf.for" else None
    owner = value.owner.operation
    if owner.name == "tensor.extract_slice":
        return _maker(owner.operands[0])
    if owner.name == "scf.for":
        return _maker(_terminator(owner).operands[ir.OpResult(value).result_number])
    return ir.OpResult(value) if owner.name == "tile.group" else None


def _task_bytes(result: ir.OpResult) -> int:
    """Bytes of what a task holds of a register group's result, by the tile of its root.

    Raises:
        UserError: the group has no root.
    """
    group = result.owner.operation
    shape = list(ir.RankedTensorType(result.type).shape)
    root = next((o.operation for o in group.regions[0].blocks[0].operations if decisions.RTILE.on(o.operation)), None)
    if root is None:
        raise located(UserError("is a register group without a root, the operation that carries `tile.rtile`"), group)
    sizes = decisions.RTILE.read(root).sizes.get("l2")
    dims = root.attributes["indexing_maps"][len(root.operands) - 1].value.results
    if sizes is not None and len(dims) == len(shape):
        for at, dim in enumerate(dims):
            size = sizes[dim.position] if isinstance(dim, ir.AffineDimExpr) else shape[at]
            shape[at] = min(shape[at], size) if shape[at] > 0 and size > 0 else max(shape[at], size)
    return prod(shape) * element_bytes(result) if min(shape, default=0) >= 0 else _UNKNOWN


@register
@dataclass(frozen=True)
class MarkLevels(Pass):
    """State at which level each operation meets what it reads (`tile.levels`).

    One entry per input: "register", the level of the task ("l2", of which small buffers are in "l1", or "shared" on a
    GPU), or "memory".

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %y = tile.group "l2" (%x0 = %x : tensor<64xf32>) -> (tensor<64xf32>) {
        %r = tile.group "register" (%x1 = %x0 : tensor<64xf32>) -> (tensor<64xf32>) {
          %e = tensor.empty() : tensor<64xf32>
          %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
              ins(%x1 : tensor<64xf32>) outs(%e : tensor<64xf32>) {
          ^bb0(%p: f32, %o: f32):
            %n = arith.negf %p : f32
            linalg.yield %n : f32
          } -> tensor<64xf32>
          %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"],
              tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>}
              ins(%a, %x1 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
          ^bb0(%p: f32, %q: f32, %o: f32):
            %n = arith.mulf %p, %q : f32
            linalg.yield %n : f32
          } -> tensor<64xf32>
          tile.yield %b : tensor<64xf32>
        }
        tile.yield %r : tensor<64xf32>
      }
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x1 : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {tile.levels = ["memory"]} {
    ...
    %b = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
        ins(%a, %x1 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>)
        attrs = {tile.levels = ["register", "memory"],
    ```
    """

    name: ClassVar[str] = "tile-mark-levels"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    l1_bytes: int = device_option(32768, facts.l1_bytes, "bytes of the inner cache")

    def run(self, op: ir.Operation) -> None:
        """Mark the operations of all tasks."""
        for task in _groups(op):
            if _level_of(task) == "register":
                continue
            for nest in _groups(task, "register"):
                self._mark(nest, _level_of(task))

    def _mark(self, nest: ir.Operation, task: str) -> None:
        for inner in nest.regions[0].blocks[0].operations:
            op = inner.operation
            if op.name != "linalg.generic":
                continue
            inputs = list(op.operands)[: len(op.operands) - len(op.results)]
            names = [ir.StringAttr.get(self._level(nest, value, task), op.context) for value in inputs]
            op.attributes[decisions.LEVELS] = ir.ArrayAttr.get(names, op.context)

    def _level(self, nest: ir.Operation, value: ir.Value, task: str) -> str:
        if not isinstance(value, ir.BlockArgument):
            return "register"
        maker = _maker(nest.operands[value.arg_number])
        if maker is None:
            return "memory"
        if task != "l2":
            return task
        return "l1" if 2 * _task_bytes(maker) <= self.l1_bytes else "l2"
