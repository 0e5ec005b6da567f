# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars of a `linalg` body of which some are known: its expression over (number, known) pairs.

SparTA evaluates an operation's expression over two values, pruned and not (its "TeSA algebra"). Here a known number may
be any, so that a zero point cancels what is stored for zero, and masks select; a zero times anything is zero. That
takes what is not known for finite: 0 times an infinity is taken for 0, as it is wherever zeros are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.arithmetic import COMPARISONS, CONVERSIONS, FUNCTIONS, PREDICATES, TESTS
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.ir import decodes
from tilewright.mlir import ir
from tilewright.reference.types import constant, dtype_of

_ZERO_TIMES = ("arith.mulf", "arith.muli", "arith.andi")
_ZERO_OVER = ("arith.divf", "arith.divsi", "arith.divui")
_SUMS = ("arith.addf", "arith.addi", "arith.ori", "arith.xori")
_DIFFERENCES = ("arith.subf", "arith.subi")


@dataclass(frozen=True)
class Known:
    """A scalar at each index of a loop.

    Attributes:
        numbers: [indices], of the scalar's dtype; any number where it is not known.
        known: [indices], bool: whether it is this number wherever the other loops are.
        kept: [indices], bool: whether it is the accumulator as it came.
    """

    numbers: np.ndarray
    known: np.ndarray
    kept: np.ndarray

    @classmethod
    def nothing(cls, size: int, dtype: np.dtype) -> Known:
        """Not known at any index."""
        return cls(np.ones(size, dtype), np.zeros(size, bool), np.zeros(size, bool))

    @classmethod
    def all(cls, numbers: np.ndarray) -> Known:
        """Known at each index."""
        return cls(numbers, np.ones(numbers.shape, bool), np.zeros(numbers.shape, bool))

    @property
    def zero(self) -> np.ndarray:
        """[indices], bool: whether it is known to be zero."""
        return self.known & (self.numbers == 0)

    @property
    def any(self) -> bool:
        """Whether it is known at an index."""
        return bool(self.known.any())


def evaluate(body: ir.Block, arguments: Sequence[Known], indices: Mapping[int, Known], size: int) -> list[Known]:
    """What a body yields.

    Args:
        body: of a `linalg.generic`.
        arguments: its arguments.
        indices: of `linalg.index`, by loop; a loop that is not there is not known.
        size: number of indices.
    """
    found = dict(zip(body.arguments, arguments, strict=True))
    *operations, end = body.operations
    for op in operations:
        operation = op.operation
        operands = [found.get(value) or _outside(value, size) for value in operation.operands]
        results = _apply(operation, operands, indices, size)
        found.update(zip(operation.results, results, strict=True))
    return [found.get(value) or _outside(value, size) for value in end.operation.operands]


def _outside(value: ir.Value, size: int) -> Known:
    """A value from outside of the body: known where a constant is."""
    owner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    if owner is not None and owner.name == "arith.constant":
        return _constant(owner, size)
    return _unknown(value.type, size)


def _unknown(kind: ir.Type, size: int) -> Known:
    try:
        return Known.nothing(size, dtype_of(kind))
    except (KeyError, TypeError, ValueError, NotImplementedError):
        return Known.nothing(size, np.dtype(np.float32))


def _constant(op: ir.Operation, size: int) -> Known:
    if isinstance(op.results[0].type, (ir.ShapedType, ir.ComplexType)):
        return _unknown(op.results[0].type, size)
    number = constant(op.attributes["value"])
    return Known.all(np.full(size, number, dtype_of(op.results[0].type)))


def _apply(op: ir.Operation, operands: list[Known], indices: Mapping[int, Known], size: int) -> list[Known]:
    """What an operation makes."""
    if op.name == "arith.constant":
        return [_constant(op, size)]
    if op.name == "linalg.index":
        at = ir.IntegerAttr(op.attributes["dim"]).value
        return [indices.get(at) or _unknown(op.results[0].type, size)]
    if op.name == decodes.NAME:
        return [_decoded(decodes.Decoding.of(op), operands, size)]
    compute = _function(op)
    if compute is None or op.regions or len(op.results) != 1:
        return [_unknown(result.type, size) for result in op.results]
    if op.name == "arith.select":
        return [_select(*operands)]
    return [_simplified(op.name, operands, _computed(op, compute, operands, size))]


def _decoded(found: decodes.Decoding, operands: list[Known], size: int) -> Known:
    """`(code - zero point) * scale`: zero where code and zero point are the same, whatever the scale."""
    code, *others = operands
    zero = others[0] if found.zero is not None else Known.all(np.zeros(size, np.float32))
    scale = others[-1] if found.scale is not None else Known.all(np.ones(size, np.float32))
    signless = "u8" if found.unsigned else "i8"
    format = Format("f8e4m3fn" if found.is_float else signless, "f32", None if found.is_float else "f32")
    plain = [format.plain(one.numbers).astype(np.float64) for one in (code, zero)]
    known = code.known & zero.known
    same = known & (plain[0] == plain[1])
    with np.errstate(all="ignore"):
        numbers = np.where(same, 0, (plain[0] - plain[1]) * scale.numbers.astype(np.float64))
    return Known(numbers.astype(dtype_of(found.result)), same | (known & scale.known), np.zeros(size, bool))


def _function(op: ir.Operation) -> Callable[..., np.ndarray] | None:
    if op.name in CONVERSIONS:
        dtype = dtype_of(op.results[0].type)
        return lambda x: CONVERSIONS[op.name](x, dtype)
    if op.name in COMPARISONS:
        predicate = PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
        return lambda a, b: COMPARISONS[op.name](predicate, a, b)
    return FUNCTIONS.get(op.name) or TESTS.get(op.name)


def _computed(op: ir.Operation, compute: Callable[..., np.ndarray], operands: list[Known], size: int) -> Known:
    known = np.logical_and.reduce([operand.known for operand in operands])
    if not known.any():
        return _unknown(op.results[0].type, size)
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(compute(*(operand.numbers[known] for operand in operands)))
    except ZeroDivisionError:  # it is undefined at an index; nothing is said of any
        return _unknown(op.results[0].type, size)
    numbers = np.ones(size, found.dtype)
    numbers[known] = found
    return Known(numbers, known, np.zeros(size, bool))


def _simplified(name: str, operands: list[Known], plain: Known) -> Known:
    """What holds although an operand is not known: absorbing and neutral elements."""
    if name in _ZERO_TIMES:
        return _zeros(plain, operands[0].zero | operands[1].zero)
    if name in _ZERO_OVER:
        return _zeros(plain, operands[0].zero)
    if name in _SUMS:
        a, b = operands
        return Known(plain.numbers, plain.known, (a.kept & b.zero) | (b.kept & a.zero))
    if name in _DIFFERENCES:
        return Known(plain.numbers, plain.known, operands[0].kept & operands[1].zero)
    if name == "math.fma":
        a, b, c = operands
        gone = a.zero | b.zero
        numbers, known = np.where(gone & ~plain.known, c.numbers, plain.numbers), plain.known | (gone & c.known)
        return Known(numbers, known, gone & c.kept)
    if name in ("arith.maximumf", "arith.maxnumf"):
        return _beyond(operands, plain, -np.inf)
    if name in ("arith.minimumf", "arith.minnumf"):
        return _beyond(operands, plain, np.inf)
    return plain


def _zeros(plain: Known, zero: np.ndarray) -> Known:
    numbers = np.where(zero, np.zeros((), plain.numbers.dtype), plain.numbers)
    return Known(numbers, plain.known | zero, plain.kept)


def _beyond(operands: list[Known], plain: Known, end: float) -> Known:
    """A maximum with -inf, or a minimum with inf, is the other operand."""
    a, b = operands
    kept = (a.kept & b.known & (b.numbers == end)) | (b.kept & a.known & (a.numbers == end))
    return Known(plain.numbers, plain.known, kept)


def _select(condition: Known, a: Known, b: Known) -> Known:
    chosen = condition.numbers.astype(bool)
    same = a.known & b.known & (a.numbers == b.numbers)
    known = np.where(condition.known, np.where(chosen, a.known, b.known), same)
    kept = np.where(condition.known, np.where(chosen, a.kept, b.kept), a.kept & b.kept)
    return Known(np.where(chosen, a.numbers, b.numbers), known, kept)
