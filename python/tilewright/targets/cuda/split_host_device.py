# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes the host function out of a module whose kernels are lowered for a GPU: pass `tile-split-host-device`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant
from tilewright.ir.units import kernel_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.targets.cuda.launch_memory import shared_operands

_HOST_OPS = ("func.func", "memref.global", "ml_program.global")
_LAUNCHING = ("func.func", "tile.kernel")
_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


@register
@dataclass(frozen=True)
class SplitHostDevice(Pass):
    """Erase the host function, leaving on each kernel the grid and the memory it is launched with.

    The host function of a model for a GPU is data (a host program) by then. `tile.grid` lists a bound for each
    coordinate of the grid, as far as all launches agree on it; other bounds are parameters of the kernel.
    `tile.same_memory` lists pairs of arguments for which a launch passes one buffer (a result in an operand's place),
    `tile.may_overlap` pairs whose buffers may have bytes in common; all other arguments are different memory. Two
    temporaries that overlap in the arena while one launch needs both are an error: the plan of the arena is wrong.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%i, %j) {
      tile.return
    }
    func.func @main(%x: memref<?x64xf32>, %n: index) {
      %c4 = arith.constant 4 : index
      tile.launch @k grid(%n, %c4) ins(%x : memref<?x64xf32>) outs(%x : memref<?x64xf32>)
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @k(%x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%i, %j)
        attributes {tile.grid = array<i64: -9223372036854775808, 4>, tile.same_memory = [array<i64: 0, 1>]} {
      tile.return
    }
    ```
    """

    name: ClassVar[str] = "tile-split-host-device"
    anchor: ClassVar[str | None] = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        """Note grids and memory, then erase."""
        top = [child.operation for child in op.regions[0].blocks[0].operations]
        grids: dict[str, list[int]] = {}
        memory: dict[str, dict[str, set[tuple[int, int]]]] = {decisions.SAME_MEMORY: {}, decisions.MAY_OVERLAP: {}}
        for function in (child for child in top if child.name in _LAUNCHING):
            for launch in _launches(function):
                _note(grids, launch)
                for kind, pair in shared_operands(launch):
                    memory[kind].setdefault(kernel_of(launch), set()).add(pair)
        for kernel in (child for child in top if child.name == "tile.kernel"):
            name = ir.StringAttr(kernel.attributes["sym_name"]).value
            if grids.get(name):
                kernel.attributes[decisions.GRID] = ir.DenseI64ArrayAttr.get(grids[name])
            for kind, pairs in memory.items():
                if name in pairs:
                    entries = [ir.DenseI64ArrayAttr.get(pair) for pair in sorted(pairs[name])]
                    kernel.attributes[kind] = ir.ArrayAttr.get(entries)
        for child in top:
            if child.name in _HOST_OPS:
                child.erase()


def _launches(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in (child.operation for child in block.operations):
                if inner.name == "tile.launch":
                    yield inner
                else:
                    yield from _launches(inner)


def _note(grids: dict[str, list[int]], launch: ir.Operation) -> None:
    rank = next(iter(launch.attributes["operandSegmentSizes"]))
    found = [integer_constant(launch.operands[i]) for i in range(rank)]
    bounds = [_DYNAMIC if bound is None else bound for bound in found]
    name = kernel_of(launch)
    known = grids.setdefault(name, bounds)
    grids[name] = [a if a == b else _DYNAMIC for a, b in zip(known, bounds, strict=True)]
