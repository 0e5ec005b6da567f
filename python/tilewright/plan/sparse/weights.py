# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with a constant operand: which loops are rows, columns and depth, and the operand as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tilewright.ir.structure import Kind, LinalgOp
from tilewright.mlir import ir

if TYPE_CHECKING:
    import numpy as np

#: What a body has where it multiplies and adds, and nothing else.
_STEPS = frozenset({"arith.mulf", "arith.addf", "arith.extf", "linalg.yield"})


@dataclass(frozen=True)
class WeightProduct:
    """`y[m, n] += x[m, k] * w[k, n]` as a `linalg.generic` has it, with `w` a constant.

    Attributes:
        op: the operation.
        number: which of its inputs is the weight.
        rows: loops that the other operand alone has, in the result's order.
        columns: loops that the weight alone has, in the result's order.
        depth: reduced loops, in the weight's order.
    """

    op: LinalgOp
    number: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]

    @property
    def m(self) -> int:
        """Rows of the activations; one that a run brings counts as `EXPECTED`."""
        return prod(self.op.extents[d] for d in self.rows)

    @property
    def n(self) -> int:
        """Columns of the weight."""
        return prod(self.op.extents[d] for d in self.columns)

    @property
    def k(self) -> int:
        """Rows of the weight."""
        return prod(self.op.extents[d] for d in self.depth)

    @property
    def open_rows(self) -> bool:
        """Whether a run brings the number of rows."""
        return bool(self.op.dynamic.intersection(self.rows))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n, k; below zero where a run brings them."""
        return (-1 if self.open_rows else self.m, self.n, self.k)

    @property
    def elements(self) -> tuple[ir.Type, ir.Type]:
        """Element types of the operands and of the result."""
        return tuple(ir.RankedTensorType(v.type).element_type for v in (self.weight, self.op.result))

    @property
    def weight(self) -> ir.Value:
        """The constant operand, as it stands."""
        return self.op.inputs[self.number].value

    @property
    def activations(self) -> ir.Value:
        """The other operand, as it stands."""
        return self.op.inputs[1 - self.number].value

    def order_of_weight(self, loops: tuple[int, ...]) -> list[int]:
        """Which dimension of the weight each loop is, those of constant index 0 in front."""
        return _order(self.op.inputs[self.number].dims, loops)

    def order_of_activations(self, loops: tuple[int, ...]) -> list[int]:
        """Which dimension of the other operand each loop is, those of constant index 0 in front."""
        return _order(self.op.inputs[1 - self.number].dims, loops)

    def order_of_result(self, loops: tuple[int, ...]) -> list[int]:
        """Which dimension of the result each loop is, those of constant index 0 in front."""
        return _order(self.op.output.dims, loops)

    def matrix(self, array: np.ndarray) -> np.ndarray:
        """The weight's elements as a matrix [k, n]."""
        return array.transpose(self.order_of_weight(self.depth + self.columns)).reshape(self.k, self.n)


def _order(dims: tuple[int | None, ...], loops: tuple[int, ...]) -> list[int]:
    return [d for d, loop in enumerate(dims) if loop is None] + [dims.index(loop) for loop in loops]


def weight_product(op: LinalgOp, number: int) -> WeightProduct | str:
    """A contraction with input `number` a constant as a product of matrices, or why it is none."""
    weight, other = op.inputs[number], op.inputs[1 - number]
    if not (weight.pure and other.pure and op.output.pure):
        return "it reads windows of an image: sparse kernels multiply matrices"
    element = ir.RankedTensorType(op.result.type).element_type
    if not isinstance(element, ir.FloatType) or any(s.operation.name not in _STEPS for s in _steps(op.op)):
        return f"its products are not of floats alone (sums of {element})"
    if _widths(op) > element.width:
        return "its sums are narrower than what is multiplied"
    shared = [d for d in op.parallel if d in weight.loops and d in other.loops and op.extents[d] > 1]
    if shared:
        return f"each of {prod(op.extents[d] for d in shared)} batches has a weight of its own"
    if set(op.reductions) - (weight.loops & other.loops):
        return "it sums along a loop that not both operands have"
    if any(d not in op.output.dims for d in op.parallel) or (op.dynamic & weight.loops):
        return "its result does not have each loop as a dimension of its own"
    placed = [d for d in op.output.dims if d is not None]
    columns = tuple(d for d in placed if d in weight.loops and d not in other.loops)
    rows = tuple(d for d in placed if d not in columns)
    if any(d in weight.loops and d in rows for d in placed) or any(d not in other.loops for d in rows):
        return "a batch of one is a loop of both operands"
    depth = tuple(d for d in weight.dims if d in op.reductions)
    repeated = any(len(set(a.loops)) != sum(d is not None for d in a.dims) for a in (weight, other, op.output))
    return "an operand is read along a diagonal" if repeated else WeightProduct(op, number, rows, columns, depth)


def _steps(op: ir.Operation) -> ir.OperationList:
    return op.regions[0].blocks[0].operations


def _widths(op: LinalgOp) -> int:
    elements = [ir.RankedTensorType(a.value.type).element_type for a in op.inputs]
    return max(e.width if isinstance(e, ir.FloatType) else 1 << 10 for e in elements)


def is_product(op: LinalgOp) -> bool:
    """Whether it multiplies two tensors and sums up."""
    return op.kind is Kind.CONTRACTION and len(op.inputs) == 2 and not op.tables and not op.unpacks
