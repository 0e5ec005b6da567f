# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long vectors may be, whatever a run brings: bounds that begin at normalizations and follow weights.

A vector that is divided by the root of the mean of its squares is no longer than the root of its size. Scales and
biases, and products with weights that are known, make it longer by no more than their norms. The product of two such
vectors is a score, and is no larger than both lengths together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations

import numpy as np

from tilewright.ir.generics import body, constant_of, dims_of, kinds, loops_of, maker, maps
from tilewright.ir.views import groups_of
from tilewright.mlir import ir
from tilewright.passes.weights import known_array
from tilewright.plan.sparse.padding.normalized import Squares, follow, squares_of

#: What rounding adds to lengths, in each step that is no sum, at most.
_ROUNDING = 1.01
#: Elements of a constant that is looked at.
_MOST = 1 << 24
#: What f16 may hold as an infinity, less what rounding adds.
_LARGE_HALF = 6e4
#: The same of other floats.
_LARGE = 3e38
#: Operations between a normalization and a score, at most: what is further away has no bound.
_FAR = 48
#: Columns of a matrix whose norm is computed: a sum bounds that of more.
_WIDE = 128
#: A product of so many rows and columns is too small for BLAS to share: threads of a busy machine wait for each other.
_PIECE = 64
_SAME = ("arith.negf", "arith.extf", "arith.truncf", "math.absf")


@dataclass(frozen=True)
class Bound:
    """Of neighbours: the root of the sum of their squares, and the largest, at most."""

    length: float
    most: float


NONE = Bound(math.inf, math.inf)


class Norms:
    """Bounds of the values of a function; infinite where none is known."""

    def __init__(self) -> None:
        """Nothing is looked at yet."""
        self._held: dict[tuple[ir.Value, int, int], Bound] = {}
        self._depth = 0

    def product(self, op: ir.Operation) -> float:
        """How large a sum of products along one loop is, at most; infinite for what is none, or is not known.

        Neither factor is a weight: who bounds scores needs those alone.
        """
        pair = _factors(op)
        if pair is None or any(known_array(value) is not None for value, _ in pair[1]):
            return math.inf
        loop, inputs = pair
        both = 1.0
        for value, access in inputs:
            dim = _dim(access, loop)
            if dim is None or math.isinf(both):
                return math.inf
            both *= self.of(value, dim, ir.RankedTensorType(value.type).shape[dim]).length
        start = self.of(op.operands[len(op.operands) - 1], 0, 1).most
        return (both + start) * _summed(*inputs[0], loop, 1)

    def of(self, value: ir.Value, dim: int, size: int) -> Bound:
        """Of `size` neighbours along a dimension, counted from its multiples."""
        key = (value, dim, size)
        if key not in self._held:
            kind = ir.RankedTensorType(value.type)
            fits = size > 0 and (not kind.rank or (kind.shape[dim] > 0 and kind.shape[dim] % size == 0))
            self._held[key] = _finite(self._near(value, dim, size), kind.element_type) if fits else NONE
        return self._held[key]

    def _near(self, value: ir.Value, dim: int, size: int) -> Bound:
        """What is found within some operations: a model may be deeper than Python's stack."""
        if self._depth == _FAR:
            return NONE
        self._depth += 1
        try:
            return self._found(value, dim, size)
        finally:
            self._depth -= 1

    def _found(self, value: ir.Value, dim: int, size: int) -> Bound:
        op = maker(value)
        if op is None:
            return NONE
        if op.name in ("arith.constant", "ml_program.global_load_const"):
            return _of_constant(value, dim, size)
        if op.name == "linalg.fill":
            number = constant_of(op.operands[0])
            return NONE if number is None else _of_number(number, size)
        rules = {
            "tensor.expand_shape": self._expanded,
            "tensor.collapse_shape": self._collapsed,
            "tensor.extract_slice": self._sliced,
            "linalg.generic": self._generic,
        }
        return rules[op.name](op, dim, size) if op.name in rules and len(op.results) == 1 else NONE

    def _expanded(self, op: ir.Operation, dim: int, size: int) -> Bound:
        """Innermost of what one dimension is split into: neighbours as they were."""
        shape = ir.RankedTensorType(op.results[0].type).shape
        source, group = next((s, g) for s, g in enumerate(groups_of(op.attributes["reassociation"])) if dim in g)
        inner = math.prod(shape[d] for d in group if d > dim)
        return self.of(op.operands[0], source, size) if inner == 1 else NONE

    def _collapsed(self, op: ir.Operation, dim: int, size: int) -> Bound:
        """Several vectors behind each other, or a part of one."""
        shape = ir.RankedTensorType(op.operands[0].type).shape
        group = groups_of(op.attributes["reassociation"])[dim]
        inner = next((d for d in reversed(group) if shape[d] != 1), group[-1])
        extent = shape[inner]
        if extent > 0 and size % extent == 0:
            one = self.of(op.operands[0], inner, extent)
            return Bound(one.length * math.sqrt(size // extent), one.most)
        return self.of(op.operands[0], inner, size)

    def _sliced(self, op: ir.Operation, dim: int, size: int) -> Bound:
        offsets, steps = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in ("offsets", "strides"))
        same = ir.RankedTensorType(op.operands[0].type).rank == ir.RankedTensorType(op.results[0].type).rank
        fits = same and steps[dim] == 1 and offsets[dim] >= 0 and offsets[dim] % size == 0
        return self.of(op.operands[0], dim, size) if fits else NONE

    def _generic(self, op: ir.Operation, dim: int, size: int) -> Bound:
        written = maps(op)[-1].results
        if dim >= len(written) or not isinstance(written[dim], ir.AffineDimExpr):
            return NONE
        loop = ir.AffineDimExpr(written[dim]).position
        return self._multiplied(op, loop, dim, size) if any(kinds(op)) else self._elements(op, loop, size)

    def _multiplied(self, op: ir.Operation, loop: int, dim: int, size: int) -> Bound:
        """A product with a matrix that is known."""
        pair = _factors(op)
        if pair is None:
            return NONE
        summed, inputs = pair
        for (value, access), (weight, other) in (inputs, reversed(inputs)):
            at, places = _dim(access, summed), [_dim(other, one) for one in (summed, loop)]
            if at is None or None in places or len(other.results) != 2 or _is_in(access, loop):
                continue
            matrix = known_array(weight)
            if matrix is None or matrix.size > _MOST or matrix.dtype.kind != "f":
                continue
            one = self.of(value, at, ir.RankedTensorType(value.type).shape[at])
            start = self.of(op.operands[len(op.operands) - 1], dim, size)
            if math.isinf(one.length):
                continue
            grown = largest_norm(matrix if places == [0, 1] else matrix.T, size)
            length = (one.length * grown + start.length) * _summed(value, access, summed, size)
            return Bound(length, length)
        return NONE

    def _elements(self, op: ir.Operation, loop: int, size: int) -> Bound:
        """An elementwise operation: its body, on vectors."""
        block = body(op)
        held: dict[ir.Value, Bound] = {}
        for argument, value, access in zip(block.arguments, op.operands, maps(op), strict=True):
            held[argument] = self._argument(value, access, loop, size)
        roots = _roots(op)
        *steps, end = [one.operation for one in block.operations]
        for step in steps:
            found = _step(step, [_operand(held, value, size) for value in step.operands])
            unit = _unit(op, step, loop, roots)
            found = found if found.length <= unit.length else unit
            held.update({result: _finite(found, result.type) for result in step.results})
        return _operand(held, end.operands[0], size)

    def _argument(self, value: ir.Value, access: ir.AffineMap, loop: int, size: int) -> Bound:
        if not isinstance(value.type, ir.RankedTensorType):
            return NONE
        dim = _dim(access, loop)
        if dim is not None:
            return self.of(value, dim, size)
        if any(not isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in access.results):
            return NONE
        return _of_number(self.of(value, 0, 1).most, size)


def _roots(op: ir.Operation) -> dict[ir.Value, tuple[Squares, int]]:
    """Numbers of a body that sums of squares are followed to, each with the input that it is made of."""
    found: dict[ir.Value, tuple[Squares, int]] = {}
    for number, value in enumerate(list(op.operands)[:-1]):
        start = squares_of(value)
        held: dict[ir.Value, Squares | None] = {body(op).arguments[number]: start}
        for one in body(op).operations if start is not None else ():
            for result in one.operation.results:
                held[result] = follow(one.operation, held)
        found |= {scalar: (squares, number) for scalar, squares in held.items() if squares is not None}
    return found


def _unit(op: ir.Operation, step: ir.Operation, loop: int, roots: Mapping[ir.Value, tuple[Squares, int]]) -> Bound:
    """What a normalization gives: elements over, or times, what follows from the sum of their squares."""
    power = {"arith.divf": 0.5, "arith.mulf": -0.5}.get(step.name)
    for one, other in permutations(step.operands, 2) if power else ():
        found, number = roots.get(other, (None, 0))
        first = power == -0.5 or one == step.operands[0]
        if not first or found is None or found.power != power or not _is_argument(one, op):
            continue
        vector = ir.BlockArgument(one).arg_number
        read, shared = (list(maps(op)[at].results) for at in (vector, number))
        along = _dim(maps(op)[vector], loop) == found.dim and read[: found.dim] + read[found.dim + 1 :] == shared
        if along and found.source == op.operands[vector]:
            return Bound(found.most * _ROUNDING, found.most * _ROUNDING)
    return NONE


def _finite(bound: Bound, kind: ir.Type) -> Bound:
    """A bound of numbers that their type holds: floats have infinities in the place of large ones."""
    return NONE if bound.most >= (_LARGE_HALF if isinstance(kind, ir.F16Type) else _LARGE) else bound


def _is_argument(value: ir.Value, op: ir.Operation) -> bool:
    return isinstance(value, ir.BlockArgument) and value.owner == body(op)


def _factors(op: ir.Operation) -> tuple[int, list[tuple[ir.Value, ir.AffineMap]]] | None:
    """The loop that a sum of products runs over, and both operands with their maps; None where it is none."""
    reduced = [loop for loop, reduces in enumerate(kinds(op)) if reduces]
    block = body(op)
    if len(op.operands) != 3 or len(reduced) != 1 or len(block.operations) != 3:
        return None
    product, total = (one.operation for one in list(block.operations)[:2])
    pair = set(block.arguments[:2]) == set(product.operands) and product.name == "arith.mulf"
    sums = total.name == "arith.addf" and set(total.operands) == {product.results[0], block.arguments[2]}
    if not pair or not sums or block.operations[2].operands[0] != total.results[0]:
        return None
    return reduced[0], list(zip(op.operands, maps(op), strict=True))[:2]


def _dim(access: ir.AffineMap, loop: int) -> int | None:
    """The dimension that a loop alone indexes; None where there is none, or the loop is in others, too."""
    found = dims_of(access, loop)
    mixed = any(not isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in access.results)
    return found[0] if len(found) == 1 and not mixed else None


def _is_in(access: ir.AffineMap, loop: int) -> bool:
    return any(loop in loops_of(expr) for expr in access.results)


def _summed(value: ir.Value, access: ir.AffineMap, loop: int, size: int) -> float:
    """What rounding makes of the length of `size` sums of products, at most."""
    kind, dim = ir.RankedTensorType(value.type), _dim(access, loop)
    unit = 2.0**-23 if ir.FloatType(kind.element_type).width >= 32 else 2.0**-8
    return _ROUNDING + unit * kind.shape[dim or 0] * math.sqrt(size)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _of_number(number: float, size: int) -> Bound:
    return Bound(abs(number) * math.sqrt(size), abs(number))


def _operand(held: dict[ir.Value, Bound], value: ir.Value, size: int) -> Bound:
    if value in held:
        return held[value]
    number = constant_of(value)
    return NONE if number is None else _of_number(number, size)


def _step(op: ir.Operation, operands: Sequence[Bound]) -> Bound:
    """A step of a body, element by element."""
    if op.name in _SAME:
        return Bound(operands[0].length * _ROUNDING, operands[0].most * _ROUNDING)
    if op.name in ("arith.addf", "arith.subf"):
        total = reduce(lambda a, b: Bound(a.length + b.length, a.most + b.most), operands)
        return Bound(total.length * _ROUNDING, total.most * _ROUNDING)
    if op.name == "arith.mulf":
        a, b = operands
        length = min(_times(a.most, b.length), _times(b.most, a.length))
        return Bound(length * _ROUNDING, _times(a.most, b.most) * _ROUNDING)
    divisor = constant_of(op.operands[1]) if op.name == "arith.divf" else None
    if divisor:
        return Bound(operands[0].length / abs(divisor) * _ROUNDING, operands[0].most / abs(divisor) * _ROUNDING)
    return NONE


def _of_constant(value: ir.Value, dim: int, size: int) -> Bound:
    array = known_array(value)
    if array is None or array.dtype.kind != "f" or array.size > _MOST or not np.isfinite(array).all():
        return NONE
    wide = array.astype(np.float64)
    if not array.ndim:
        return _of_number(float(wide), size)
    rows = np.moveaxis(wide, dim, -1).reshape(-1, size)
    return Bound(float(np.sqrt((rows**2).sum(axis=1).max(initial=0))), float(np.abs(wide).max(initial=0)))


def largest_norm(matrix: np.ndarray, size: int) -> float:
    """The largest of the spectral norms of blocks of so many columns, or a bound of it.

    The square of a wide block's is no more than the sum of its parts': work is linear in the elements.
    """
    if not np.isfinite(matrix).all():
        return math.inf
    width = size if size > min(_PIECE, len(matrix)) else _PIECE // size * size
    norms = [_norm(matrix[:, at : at + width], size) for at in range(0, matrix.shape[1], width)]
    return max(norms, default=0.0) * _ROUNDING


def _norm(columns: np.ndarray, size: int) -> float:
    """The largest of the norms of blocks: one that is wide, or several that are not."""
    if size > _WIDE:
        parts = range(0, size, _WIDE)
        return math.hypot(*(_norm(part, part.shape[1]) for part in (columns[:, at : at + _WIDE] for at in parts)))
    most = float(np.abs(columns).max(initial=0))
    if most == 0:
        return 0.0
    scaled = (columns / np.float64(most)).astype(np.float32)  # neither subnormal numbers nor squares overflow
    gram = _gram(scaled if size <= len(scaled) else scaled.T)
    many = max(len(gram) // size, 1)
    grams = gram.reshape(many, len(gram) // many, many, -1)[range(many), :, range(many)]
    largest = np.linalg.eigvalsh(grams.astype(np.float64))[:, -1]
    lost = sum(scaled.shape) * 2.0**-23 * np.trace(grams, axis1=1, axis2=2)  # by sums of products in f32
    return math.sqrt((largest + lost).max()) * most


def _gram(matrix: np.ndarray) -> np.ndarray:
    """The products of all pairs of columns, of which there are few: sums of small products."""
    rows, columns = matrix.shape
    padded = np.zeros([-(-extent // _PIECE) * _PIECE for extent in matrix.shape], np.float32)
    padded[:rows, :columns] = matrix
    pieces = padded.reshape(-1, _PIECE, padded.shape[1] // _PIECE, _PIECE).transpose(2, 0, 1, 3)
    sums = [[(one.transpose(0, 2, 1) @ other).sum(axis=0) for other in pieces] for one in pieces]
    return np.block(sums)[:columns, :columns]
