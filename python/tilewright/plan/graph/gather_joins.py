# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-gather-joins`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from tilewright.devices import facts
from tilewright.ir.generics import create, create_generic, create_number, kinds, loops_of, maker, maps, uses, walk
from tilewright.ir.structure import Kind, describe
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, option, register

if TYPE_CHECKING:
    from tilewright.ir.joins import Join

_BINARY = {ir.AffineAddExpr: "arith.addi", ir.AffineMulExpr: "arith.muli"}
_DIVISIONS = {ir.AffineFloorDivExpr: "arith.divui", ir.AffineModExpr: "arith.remui"}
_MOVES = (
    "linalg.generic",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "tensor.insert_slice",
)


@register
@dataclass(frozen=True)
class GatherJoins(Pass):
    """Let products read slices that are put together where they lie: a join of them becomes a gather.

    Keys and values of a window of blocks, of blocks that all attend to, and of both one behind the other are many
    copies of the same elements. Which element of the one tensor behind them is at a place is an affine expression for
    each part of the join. As one operation that reads elements there, it can be part of the task of its reader
    (`tile-plan-fusion`): each task makes its own rows only, in its fast memory and in the order in which the product
    wants them, and memory never holds the join. Joins of parts that are computed in their places stay, as do those that
    others than products read, and those along the elements that lie side by side.

    Before:
    ```mlir
    func.func @main(%x: tensor<66x64x64xf32>, %q: tensor<64x16x64xf32>) -> tensor<64x16x128xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<64x2x64x64xf32>
      %a = tensor.extract_slice %x[1, 0, 0] [64, 64, 64] [1, 1, 1] : tensor<66x64x64xf32> to tensor<64x64x64xf32>
      %b = tensor.extract_slice %x[2, 0, 0] [64, 64, 64] [1, 1, 1] : tensor<66x64x64xf32> to tensor<64x64x64xf32>
      %f = tensor.insert_slice %a into %e[0, 0, 0, 0] [64, 1, 64, 64] [1, 1, 1, 1]
          : tensor<64x64x64xf32> into tensor<64x2x64x64xf32>
      %g = tensor.insert_slice %b into %f[0, 1, 0, 0] [64, 1, 64, 64] [1, 1, 1, 1]
          : tensor<64x64x64xf32> into tensor<64x2x64x64xf32>
      %k = tensor.collapse_shape %g [[0], [1, 2], [3]] : tensor<64x2x64x64xf32> into tensor<64x128x64xf32>
      %s = tensor.empty() : tensor<64x16x128xf32>
      %z = linalg.fill ins(%zero : f32) outs(%s : tensor<64x16x128xf32>) -> tensor<64x16x128xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
          affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<64x16x64xf32>, tensor<64x128x64xf32>) outs(%z : tensor<64x16x128xf32>) {
      ^bb0(%p: f32, %r: f32, %o: f32):
        %m = arith.mulf %p, %r : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<64x16x128xf32>
      return %y : tensor<64x16x128xf32>
    }
    ```
    After:
    ```mlir
    %k = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]}
        outs(%e : tensor<64x128x64xf32>) {
    ^bb0(%o: f32):
    ...
    %element = tensor.extract %x[%block, %row, %lane] : tensor<66x64x64xf32>
    linalg.yield %element : f32
    ...
    ins(%q, %k : tensor<64x16x64xf32>, tensor<64x128x64xf32>)
    ```
    """

    name: ClassVar[str] = "tile-gather-joins"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith")

    task_bytes: int = device_option(1048576, facts.task_bytes, "bytes of a task's tiles")
    parts: int = option(8, "parts of a join, beyond which finding the right one takes too long")

    def run(self, op: ir.Operation) -> None:
        """Visit the operands of products."""
        from tilewright.ir.joins import join_of

        blocks: list[ir.Block] = []
        for product in walk(op, "linalg.generic"):
            for value in list(product.operands)[:-1]:
                join = join_of(value) if _is_read_by_products(value) else None
                if join is not None and self._pays(value, join):
                    _gather(value, join)
                    blocks += [] if product.block in blocks else [product.block]
        for block in blocks:
            _erase_dead(block)

    def _pays(self, value: ir.Value, join: Join) -> bool:
        """Whether one tensor is behind it, whole vectors are copied, and the join would leave the fast memory."""
        kind = ir.RankedTensorType(value.type)
        source, rank = join.pieces[0].source, kind.rank
        if not 1 < len(join.pieces) <= self.parts or any(piece.source != source for piece in join.pieces):
            return False
        lane = ir.AffineDimExpr.get(rank - 1)
        beside = all(p.place[-1] == lane and not _uses(p.place[:-1], rank - 1) for p in join.pieces)
        bytes_ = prod(kind.shape) * max(_bits(kind.element_type) // 8, 1)
        return beside and rank - 1 not in loops_of(join.axis) and bytes_ > self.task_bytes // 2


def _bits(kind: ir.Type) -> int:
    return getattr(kind, "width", 64)


def _uses(exprs: tuple[ir.AffineExpr, ...], loop: int) -> bool:
    return any(loop in loops_of(expr) for expr in exprs)


def _is_read_by_products(value: ir.Value) -> bool:
    """Whether products read it, whole dimensions at a time, and nobody else."""
    made = maker(value)
    if made is None or not isinstance(value.type, ir.RankedTensorType) or value.owner.name == "linalg.generic":
        return False
    return all(_is_factor(user, number) for user, number in uses(value))


def _is_factor(op: ir.Operation, number: int) -> bool:
    if op.name != "linalg.generic" or number == len(op.operands) - 1 or not any(kinds(op)):
        return False
    return describe(op, 0).kind is Kind.CONTRACTION and maps(op)[number].is_projected_permutation


def _gather(value: ir.Value, join: Join) -> None:
    """Read the join's elements where they come from, right before its first reader."""
    kind = ir.RankedTensorType(value.type)
    source = join.pieces[0].source
    made = value.owner.operation
    with made.location, ir.InsertionPoint(made):
        identity = ir.AffineMap.get_identity(kind.rank)
        place = create("tensor.empty", [], kind)

        def element(_: list[ir.Value]) -> ir.Value:
            return create("tensor.extract", [source, *_Places(join).all()], kind.element_type)

        gathered = create_generic([], place, identity, [False] * kind.rank, element)
    for user, number in uses(value):
        user.operands[number] = gathered


def _erase_dead(block: ir.Block) -> None:
    """Erase copies and slices that nobody reads any more, readers first."""
    for op in reversed(list(block.operations)):
        if op.operation.name in _MOVES and not any(True for _ in uses(op.operation.results[0])):
            op.operation.erase()


class _Places:
    """Makes the indices of the element that is read, at the current insertion point."""

    def __init__(self, join: Join) -> None:
        self.join = join
        self.known: dict[ir.AffineExpr, ir.Value] = {}

    def all(self) -> Iterator[ir.Value]:
        """The index along each dimension of the source."""
        pieces = self.join.pieces
        for places in zip(*(piece.place for piece in pieces), strict=True):
            chosen = self._index(places[-1])
            for piece, place in reversed([*zip(pieces[:-1], places[:-1], strict=True)]):
                if place != places[-1] or chosen is not self._index(places[-1]):
                    chosen = self._select(piece.high, self._index(place), chosen)
            yield chosen

    def _select(self, end: int, inside: ir.Value, behind: ir.Value) -> ir.Value:
        """The one before an end along the axis, the other one from there on."""
        ult = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)
        at, flag = self._index(self.join.axis), ir.IntegerType.get_signless(1)
        before = create("arith.cmpi", [at, self._number(end)], flag, {"predicate": ult})
        return create("arith.select", [before, inside, behind], ir.IndexType.get())

    def _number(self, number: int) -> ir.Value:
        return self._index(ir.AffineConstantExpr.get(number))

    def _index(self, expr: ir.AffineExpr) -> ir.Value:
        """What an expression over the join's dimensions is at the element."""
        if expr not in self.known:
            self.known[expr] = self._made(expr)
        return self.known[expr]

    def _made(self, expr: ir.AffineExpr) -> ir.Value:
        index = ir.IndexType.get()
        if isinstance(expr, ir.AffineDimExpr):
            dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), expr.position)
            return create("linalg.index", [], index, {"dim": dim})
        if isinstance(expr, ir.AffineConstantExpr):
            return create_number(expr.value, index)
        names = _BINARY | _DIVISIONS
        name = next(name for kind, name in names.items() if isinstance(expr, kind))
        return create(name, [self._index(expr.lhs), self._index(expr.rhs)], index)
