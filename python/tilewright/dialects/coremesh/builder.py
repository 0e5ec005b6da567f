# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds `coremesh.program` ops: an algorithm for a mesh of cores is a Python function that makes IR.

```python
with program("around", (2, 3), [a], [a.type]) as p:
    tiles = p.buffer("A", RankedTensorType.get((2, 3), f32), slots=2)
    left = p.route("left", "x", (p.p + 1) % 3, order="ring")
    p.place(p.inputs[0], tiles[0], (p.y, p.x), order="ring")
    with p.loop(3) as i:
        tokens = [p.send(tiles[i % 2], left), p.recv(tiles[(i + 1) % 2], left)]
        p.wait(tokens, overhead="round")
    p.yield_(p.collect([(tiles[1], (p.y, p.x))], a.type, order="ring"))
```

Expressions are MLIR's affine ones, which Python's operators combine; numbers stand for constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops

Axis = Literal["x", "y"]
Order = Literal["linear", "ring"]
Combine = Literal["add", "max", "min", "umax", "umin", "mul"]
Overhead = Literal["none", "round", "collective"]
Expr = ir.AffineExpr | int
#: More than an expression of (y, x, loops...) can have: the verifier tells what is too much.
_MOST_DIMS = 64


@dataclass(frozen=True)
class Condition:
    """``left >= 0``, or ``left == 0`` where ``exact``."""

    left: ir.AffineExpr
    exact: bool


def at_least(left: Expr, right: Expr) -> Condition:
    """``left >= right``."""
    return Condition(_difference(left, right), exact=False)


def at_most(left: Expr, right: Expr) -> Condition:
    """``left <= right``."""
    return Condition(_difference(right, left), exact=False)


def equal(left: Expr, right: Expr) -> Condition:
    """``left == right``."""
    return Condition(_difference(left, right), exact=True)


@dataclass(frozen=True)
class Slot:
    """One slot of a buffer; the index is an expression of (y, x, loops...)."""

    buffer: Buffer
    index: Expr


@dataclass(frozen=True)
class Buffer:
    """A `coremesh.buffer`; indexing gives a slot.

    Attributes:
        tile: the tensor type of one slot.
    """

    name: str
    tile: ir.RankedTensorType

    def __getitem__(self, index: Expr) -> Slot:
        """The slot of this number."""
        return Slot(self, index)


class ProgramBuilder:
    """Adds ops to a program.

    Attributes:
        op: the `coremesh.program`.
        inputs: its operands inside.
    """

    def __init__(self, op: ir.OpView) -> None:
        self.op = op
        self.block = op.regions[0].blocks[0]
        self.inputs = list(self.block.arguments)
        self._loops = 0

    @property
    def y(self) -> ir.AffineExpr:
        """The row."""
        return ir.AffineExpr.get_dim(0)

    @property
    def x(self) -> ir.AffineExpr:
        """The column."""
        return ir.AffineExpr.get_dim(1)

    @property
    def p(self) -> ir.AffineExpr:
        """In routes: the position along the route's axis."""
        return ir.AffineExpr.get_dim(0)

    @property
    def q(self) -> ir.AffineExpr:
        """In routes: the position along the other axis."""
        return ir.AffineExpr.get_dim(1)

    def buffer(self, name: str, tile: ir.RankedTensorType, slots: int = 1, address: int | None = None) -> Buffer:
        """Memory of each core: ``slots`` tiles of a type, from byte ``address`` on (None: not allocated yet)."""
        ops.BufferOp(name, ir.TypeAttr.get(tile), slots=slots, address=address)
        return Buffer(name, tile)

    def route(
        self,
        name: str,
        axis: Axis,
        source: Expr,
        order: Order = "linear",
        colors: Sequence[int] = (),
        color: Expr = 0,
    ) -> str:
        """Paths along an axis, to position p from ``source``, of (p, q, loops...). Returns its name.

        Args:
            colors: empty before they are assigned.
            color: index into ``colors``, of (p, q) as cores stand.
        """
        ops.RouteOp(
            name,
            _enum(ops.Axis, axis),
            _map([source]),
            order=_enum(ops.Order, order),
            colors=ir.DenseI64ArrayAttr.get(list(colors)) if colors else None,
            color=_map([color]) if colors else None,
        )
        return name

    def place(self, tensor: ir.Value, slot: Slot, block: Sequence[Expr], order: Order = "linear") -> None:
        """The block of (y, x) of a tensor lies in a slot before the program runs."""
        ops.PlaceOp(tensor, slot.buffer.name, _map([slot.index]), _map(block), order=_enum(ops.Order, order))

    def collect(
        self, pieces: Sequence[tuple[Slot, Sequence[Expr]]], type_: ir.Type, order: Order = "linear"
    ) -> ir.Value:
        """The tensor whose blocks, of (y, x), lie in these slots after the program has run."""
        op = ops.CollectOp(
            type_,
            _symbols(slot for slot, _ in pieces),
            _maps(slot for slot, _ in pieces),
            ir.ArrayAttr.get([_map(block) for _, block in pieces]),
            order=_enum(ops.Order, order),
        )
        return op.tensor

    def yield_(self, *values: ir.Value) -> None:
        """End the program, or the kernel of a `compute`."""
        ops.YieldOp(list(values))

    @contextmanager
    def compute(
        self,
        name: str,
        reads: Sequence[Slot],
        writes: Sequence[Slot],
        where: Sequence[Condition] = (),
        order: Order = "linear",
    ) -> Iterator[list[ir.Value]]:
        """A kernel; yields its arguments, tiles as tensors, and its body ends with `yield_`."""
        op = ops.ComputeOp(
            name,
            _symbols(reads),
            _maps(reads),
            _symbols(writes),
            _maps(writes),
            order=_enum(ops.Order, order),
            cores=_set(where),
        )
        block = op.body.blocks.append(*[slot.buffer.tile for slot in reads])
        with ir.InsertionPoint(block):
            yield list(block.arguments)

    def send(self, slot: Slot, route: str, where: Sequence[Condition] = (), order: Order = "linear") -> ir.Value:
        """Start to send a slot. Returns the token."""
        index, counted = _map([slot.index]), _enum(ops.Order, order)
        return ops.SendOp(_token(), slot.buffer.name, index, route, order=counted, cores=_set(where)).token

    def recv(
        self,
        slot: Slot,
        route: str,
        combine: Combine | None = None,
        where: Sequence[Condition] = (),
        order: Order = "linear",
    ) -> ir.Value:
        """Start to receive into a slot. Returns the token."""
        op = ops.RecvOp(
            _token(),
            slot.buffer.name,
            _map([slot.index]),
            route,
            combine=_enum(ops.Combine, combine) if combine else None,
            order=_enum(ops.Order, order),
            cores=_set(where),
        )
        return op.token

    def relay(
        self,
        slot: Slot,
        incoming: str,
        outgoing: str,
        combine: Combine = "add",
        where: Sequence[Condition] = (),
        order: Order = "linear",
    ) -> ir.Value:
        """Start to receive, combine with a slot and send on. Returns the token."""
        op = ops.RelayOp(
            _token(),
            slot.buffer.name,
            _map([slot.index]),
            incoming,
            outgoing,
            _enum(ops.Combine, combine),
            order=_enum(ops.Order, order),
            cores=_set(where),
        )
        return op.token

    def wait(self, tokens: Sequence[ir.Value], overhead: Overhead = "none") -> None:
        """Wait for tokens of this block."""
        ops.WaitOp(list(tokens), overhead=_enum(ops.Overhead, overhead))

    @contextmanager
    def loop(self, count: int) -> Iterator[ir.AffineExpr]:
        """Run what is built inside ``count`` times; yields the index."""
        op = ops.LoopOp(count)
        block = op.body.blocks.append()
        self._loops += 1
        with ir.InsertionPoint(block):
            yield ir.AffineExpr.get_dim(1 + self._loops)
        self._loops -= 1


@contextmanager
def program(
    name: str, grid: tuple[int, int], inputs: Sequence[ir.Value], results: Sequence[ir.Type]
) -> Iterator[ProgramBuilder]:
    """A `coremesh.program` on ``grid`` = (height, width) cores; its body ends with `yield_`."""
    op = ops.ProgramOp(list(results), name, grid[0], grid[1], list(inputs))
    block = op.body.blocks.append(*[value.type for value in inputs])
    with ir.InsertionPoint(block):
        yield ProgramBuilder(op)


def _expr(value: Expr) -> ir.AffineExpr:
    return ir.AffineExpr.get_constant(value) if isinstance(value, int) else value


def _difference(left: Expr, right: Expr) -> ir.AffineExpr:
    return _expr(left) - _expr(right)


def _dims(exprs: Sequence[ir.AffineExpr]) -> int:
    """One more than the largest dimension of the expressions."""
    # What an operator returns is of the operator's class even where MLIR has folded it; results of a map are not.
    folded = ir.AffineMap.get(_MOST_DIMS, 0, list(exprs)).results
    return max((_last(expr) for expr in folded), default=-1) + 1


def _last(expr: ir.AffineExpr) -> int:
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position
    if isinstance(expr, ir.AffineBinaryExpr):
        return max(_last(expr.lhs), _last(expr.rhs))
    return -1


def _map(values: Sequence[Expr]) -> ir.AffineMapAttr:
    exprs = [_expr(value) for value in values]
    return ir.AffineMapAttr.get(ir.AffineMap.get(_dims(exprs), 0, exprs))


def _set(where: Sequence[Condition]) -> ir.IntegerSetAttr | None:
    if not where:
        return None
    exprs = [condition.left for condition in where]
    return ir.IntegerSetAttr.get(ir.IntegerSet.get(_dims(exprs), 0, exprs, [one.exact for one in where]))


def _symbols(slots: Iterator[Slot] | Sequence[Slot]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(slot.buffer.name) for slot in slots])


def _maps(slots: Iterator[Slot] | Sequence[Slot]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([_map([slot.index]) for slot in slots])


def _token() -> ir.Type:
    return ir.Type.parse("!coremesh.token")


def _enum(cls: type[IntEnum], name: str) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), int(cls[name]))
