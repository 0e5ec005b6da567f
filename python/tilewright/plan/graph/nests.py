# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nests and tasks while they are being formed, and what an operation reads and writes beyond its operands."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.structure import Kind, LinalgOp
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir

#: Operations of one task: its code is straight-line, for which compilers take longer than in proportion. Beyond, what a
#: launch costs is small beside the work between two of them.
MOST_OPS = 32
#: Iterations that are worth no second core.
SMALL = 1 << 14


@dataclass(eq=False)
class Nest:
    """Operations of one loop nest. `loops` binds each operation's loops to the nest's (those of its root)."""

    number: int
    task: Task
    ops: list[LinalgOp] = field(default_factory=list)
    loops: dict[LinalgOp, dict[int, int]] = field(default_factory=dict)
    root: LinalgOp | None = None
    #: loops of the nest that all nests of the task run over together -> number of the common row
    rows: dict[int, int] = field(default_factory=dict)

    @property
    def reduces(self) -> bool:
        """Whether a reduction is its root."""
        return any(op.reductions for op in self.ops)

    @property
    def gathers(self) -> set[int]:
        """Loops along which a member gathers by indices computed anew."""
        return {self.loops[op][d] for op in self.ops for d in op.gathers}


@dataclass(eq=False)
class Task:
    """Nests of one kernel, in the order in which each task runs them."""

    number: int
    nests: list[Nest] = field(default_factory=list)
    #: bit set of the tasks that this one needs, transitively, itself included
    needs: int = 0
    #: how many of the innermost row a task takes; 0: left to the tiles
    block: int = 0
    #: tensors that its operations read, and those of the enclosing block that they write into
    reads: set[ir.Value] = field(default_factory=set)
    writes: set[ir.Value] = field(default_factory=set)

    @property
    def ops(self) -> list[LinalgOp]:
        """All operations, in program order."""
        return sorted((op for nest in self.nests for op in nest.ops), key=lambda op: op.position)

    @property
    def size(self) -> int:
        """Number of operations."""
        return sum(len(nest.ops) for nest in self.nests)

    @property
    def multiplies(self) -> bool:
        """Whether a contraction is among them."""
        return any(nest.root is not None and nest.root.kind is Kind.CONTRACTION for nest in self.nests)


def base(value: ir.Value) -> ir.Value:
    """The tensor that a chain of slices, insertions and reshapes starts from."""
    while not isinstance(value, ir.BlockArgument):
        name = value.owner.name
        if name in ("tensor.extract_slice", *RESHAPES):
            value = value.owner.operands[0]
        elif name == "tensor.insert_slice":
            value = value.owner.operands[1]
        else:
            break
    return value


def read_bases(op: LinalgOp) -> set[ir.Value]:
    """The tensors that what `op` reads starts from."""
    return {base(value) for value in [*(a.value for a in op.inputs), *op.tables]}


def written_base(op: LinalgOp) -> set[ir.Value]:
    """What `op` writes into, unless it is a tensor of its own."""
    start = base(op.output.value)
    fresh = not isinstance(start, ir.BlockArgument) and start.owner.name in ("tensor.empty", "linalg.fill")
    return set() if fresh and start is op.output.value else {start}
