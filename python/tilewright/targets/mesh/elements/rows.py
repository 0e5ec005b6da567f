# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers of a table that is too large for each core to hold all of what may be picked, as embeddings of a vocabulary.

One axis splits the picked dimension: each core picks what it has, and lines of cores take the largest of that and of
the least number there is, which stands for the rest. A sum with zeros would make 0 of -0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import body, constant_of, create, create_generic, create_number, kinds, maker, maps
from tilewright.mlir import ir
from tilewright.sim.coremesh.combinations import Combine, identity
from tilewright.targets.mesh.bodies.captures import PICK, Table, captures
from tilewright.targets.mesh.bodies.copies import Copy, counted, inside
from tilewright.targets.mesh.computations import loop_sizes
from tilewright.targets.mesh.elementwise import lies
from tilewright.targets.mesh.placement import Axes, Placement, laid_type, local
from tilewright.targets.mesh.reductions import allreduced
from tilewright.targets.mesh.slices import expanded

#: As an algorithm.
ROWS = "rows"
_ALONG, _ACROSS = "y", "x"
#: How what cores picked becomes one.
_JOINED: Combine = "max"


@dataclass(frozen=True, eq=False)
class Gather:
    """An elementwise generic that yields what it picks.

    Attributes:
        pick: the op of its body.
        dim: of the table, whose index is computed.
    """

    pick: ir.Operation
    table: Table
    dim: int

    def axes(self, loops: Sequence[str]) -> Axes:
        """How the table lies."""
        axes = ["" if loop is None else loops[loop] for loop in self.table.loops]
        axes[self.dim] = _ALONG
        return tuple(axes)

    def bytes(self, loops: Sequence[str], side: int) -> int:
        """Bytes that a core holds of the table."""
        kind = ir.RankedTensorType(self.table.value.type)
        parts = [-(-size // side) if axis else size for size, axis in zip(kind.shape, self.axes(loops), strict=True)]
        return prod(parts) * of_mlir(str(kind.element_type)).itemsize


def gather(op: ir.Operation) -> Gather | None:
    """What an op picks along one dimension; None where it is another computation."""
    around = captures(op, loop_sizes(op))
    if isinstance(around, str) or len(around.tables) != 1 or around.numbers or around.asked or any(kinds(op)):
        return None
    operations = body(op).operations
    pick = maker(operations[len(operations) - 1].operands[0])
    if pick is None or pick.name != PICK or sum(one.operation.name == PICK for one in operations) != 1:
        return None
    (table,) = around.tables
    free = [at for at, loop in enumerate(table.loops) if loop is None and constant_of(pick.operands[1 + at]) is None]
    return Gather(pick, table, free[0]) if len(free) == 1 else None


def rows_loops(op: ir.Operation, found: Gather) -> list[str]:
    """The axis along each loop: the longest that counts a dimension of the table lies across."""
    sizes, loops = loop_sizes(op), [""] * maps(op)[0].n_dims
    shared = [loop for loop in found.table.loops if loop is not None and sizes[loop] > 1]
    if shared:
        loops[max(shared, key=sizes.__getitem__)] = _ACROSS
    return loops


def picked_rows(op: ir.Operation, found: Gather, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result on the grid."""
    reads, sizes, side = maps(op)[:-1], loop_sizes(op), placement.side
    written, kind = maps(op)[-1], ir.RankedTensorType(op.results[0].type)
    inputs = [placement.laid(v, lies(m, loops)) for v, m in zip(op.operands, reads, strict=False)]
    rows = ir.RankedTensorType(found.table.value.type).shape[found.dim]
    inputs += [placement.starts(_ALONG, rows), placement.laid(found.table.value, found.axes(loops))]
    reads.append(ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_constant(0)]))
    parts = ir.RankedTensorType.get([side, *kind.shape], kind.element_type)
    result = laid_type(parts, (_ALONG, *lies(written, loops)), side)
    padded = {loop for loop, axis in enumerate(loops) if axis and sizes[loop] % side}

    def compute(blocks: list[ir.Value]) -> ir.Value:
        *read, table = blocks
        block = ir.RankedTensorType(block_type(result))
        own = create("tensor.empty", [], ir.RankedTensorType.get(block.shape[1:], block.element_type))

        def step(given: list[ir.Value]) -> ir.Value:
            *elements, start, last = given
            return _own(found, Copy(op, [*elements, last], sizes, padded), start, table)

        pairs = list(zip(read, reads, strict=True))
        made = create_generic(pairs, own, written, [False] * written.n_dims, step)
        rank = block.rank
        return expanded(made, list(block.shape), [[0, 1], *([dim] for dim in range(2, rank))] if rank > 1 else [])

    return allreduced(local(inputs, result, compute), 0, _JOINED, placement)


def _own(found: Gather, copy: Copy, start: ir.Value, table: ir.Value) -> ir.Value:
    """An element that the core has, else what changes no other."""
    kind = ir.RankedTensorType(table.type)
    none = create_number(identity(_JOINED, of_mlir(str(kind.element_type))), kind.element_type)
    index = copy.value(found.pick.operands[1 + found.dim])
    here = create("arith.subi", [index, create("arith.index_cast", [start], index.type)], index.type)
    near = inside(here, kind.shape[found.dim])
    places = [
        near if dim == found.dim else counted(loop) if loop is not None else copy.value(found.pick.operands[1 + dim])
        for dim, loop in enumerate(found.table.loops)
    ]
    picked = create(PICK, [table, *places], kind.element_type)
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    is_own = create("arith.cmpi", [near, here], ir.IntegerType.get_signless(1), {"predicate": equal})
    return create("arith.select", [is_own, picked, none], kind.element_type)
