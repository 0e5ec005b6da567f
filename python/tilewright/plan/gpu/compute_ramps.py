# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes tables of positions from coordinates: a causal mask's bounds need no memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewright.ir.generics import walk
from tilewright.ir.units import kernel_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.weights import known_array


@dataclass(frozen=True)
class _Ramp:
    """Element i is start + i * step."""

    start: int
    step: int


def _ramp(array: np.ndarray | None) -> _Ramp | None:
    """The ramp that an array of one dimension is, by its values; None where it is none."""
    if array is None or array.ndim != 1 or array.size < 2 or array.dtype.kind not in "iu":
        return None
    start, step = int(array[0]), int(array[1]) - int(array[0])
    wanted = start + step * np.arange(array.size, dtype=np.int64)
    return _Ramp(start, step) if np.array_equal(array.astype(np.int64), wanted) else None


def _is_plain_load(use: ir.OpOperand) -> bool:
    """Whether a use loads whole tiles of one dimension: the table, an offset and nothing else (bounds, a list)."""
    op = use.owner.operation
    if op.name != "tile.load" or use.operand_number != 0 or len(op.operands) != 2:
        return False
    plain = isinstance(op.operands[1].type, ir.IndexType)
    return plain and set(op.attributes) <= {"operandSegmentSizes", "dims"}


def _compute(load: ir.Operation, ramp: _Ramp) -> None:
    """Puts start + (offset + position) * step in the place of a load."""
    tile = load.results[0].type
    element = ir.MemRefType(load.operands[0].type).element_type

    def make(name: str, operands: list[ir.Value], result: ir.Type, **attributes: ir.Attribute) -> ir.Value:
        return ir.Operation.create(name, [result], operands, attributes).results[0]

    def number(value: int) -> ir.Value:
        return make("arith.constant", [], element, value=ir.IntegerAttr.get(element, value))

    with ir.InsertionPoint(load), load.location:
        base = make("arith.index_cast", [load.operands[1]], element)
        ticks = make("tile.iota", [], tile, dim=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0))
        if ramp.step != 1:
            base = make("arith.muli", [base, number(ramp.step)], element)
            ticks = make("arith.muli", [ticks, make("tile.splat", [number(ramp.step)], tile)], tile)
        if ramp.start:
            base = make("arith.addi", [base, number(ramp.start)], element)
        total = make("arith.addi", [ticks, make("tile.splat", [base], tile)], tile)
    load.results[0].replace_all_uses_with(total)
    load.erase()


def _drop(kernel: ir.Operation, launches: list[ir.Operation], number: int) -> None:
    """Takes argument `number` from a kernel and from its launches."""
    kernel.regions[0].blocks[0].erase_argument(number)
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    inputs = [t for n, t in enumerate(kind.inputs) if n != number]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    if "arg_attrs" in kernel.attributes:
        kept = [a for n, a in enumerate(ir.ArrayAttr(kernel.attributes["arg_attrs"])) if n != number]
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)
    for launch in launches:
        _relaunch(launch, number)


def _relaunch(launch: ir.Operation, number: int) -> None:
    """A launch without one of its inputs."""
    grid, inputs, outputs = ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])
    operands = [v for n, v in enumerate(launch.operands) if n != grid + number]
    attributes = {name: launch.attributes[name] for name in launch.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([grid, inputs - 1, outputs])
    with ir.InsertionPoint(launch), launch.location:
        new = ir.Operation.create("tile.launch", [r.type for r in launch.results], operands, attributes)
    for old, result in zip(launch.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    launch.erase()


def _launched(launches: list[ir.Operation], number: int) -> _Ramp | None:
    """The ramp that all launches of a kernel bring as input `number`."""
    found = set()
    for launch in launches:
        grid, inputs, _ = ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])
        if number >= inputs:
            return None
        found.add(_ramp(known_array(launch.operands[grid + number])))
    return found.pop() if len(found) == 1 else None


@register
@dataclass(frozen=True)
class ComputeRamps(Pass):
    """Compute tables whose elements grow evenly from the coordinates, instead of loading them.

    Positions of rows and columns, which a causal mask compares, are such tables; they are known by their values. A
    kernel of which each load of the table is whole no longer has it as an argument.

    Before:
    ```mlir
    tile.kernel @below(%p: memref<8xi32>, %y: memref<8xi32>) grid(%i) {
      %c4 = arith.constant 4 : index
      %at = arith.muli %i, %c4 : index
      %t = tile.load %p[%at] : memref<8xi32>, !tile.tile<4xi32>
      tile.store %t, %y[%at] : !tile.tile<4xi32>, memref<8xi32>
      tile.return
    }
    func.func @main(%e: tensor<8xi32>) -> tensor<8xi32> {
      %c2 = arith.constant 2 : index
      %p = arith.constant dense<[3, 4, 5, 6, 7, 8, 9, 10]> : tensor<8xi32>
      %y = tile.launch @below grid(%c2) ins(%p : tensor<8xi32>) outs(%e : tensor<8xi32>) -> (tensor<8xi32>)
      return %y : tensor<8xi32>
    }
    ```
    After:
    ```mlir
    %1 = arith.index_cast %0 : index to i32
    %2 = tile.iota dim 0 : !tile.tile<4xi32>
    ```
    """

    name: ClassVar[str] = "tile-compute-ramps"
    dialects: ClassVar[tuple[str, ...]] = ("tile", "arith")

    def run(self, op: ir.Operation) -> None:
        """Kernel by kernel."""
        launches: dict[str, list[ir.Operation]] = {}
        for launch in walk(op, "tile.launch"):
            launches.setdefault(kernel_of(launch), []).append(launch)
        for kernel in list(op.regions[0].blocks[0].operations):
            if kernel.operation.name != "tile.kernel":
                continue
            name = ir.StringAttr(kernel.operation.attributes["sym_name"]).value
            self._clean(kernel.operation, name, launches.get(name, []), op)

    def _clean(self, kernel: ir.Operation, name: str, launches: list[ir.Operation], module: ir.Operation) -> None:
        block = kernel.regions[0].blocks[0]
        count = len(ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs)
        for number in reversed(range(count)):
            uses = list(block.arguments[number].uses)
            ramp = _launched(launches, number) if uses and all(map(_is_plain_load, uses)) else None
            if ramp is None:
                continue
            for use in uses:
                _compute(use.owner.operation, ramp)
            _drop(kernel, launches, number)
            launches = [x for x in walk(module, "tile.launch") if kernel_of(x) == name]
