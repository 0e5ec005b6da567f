# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index values of a kernel as affine forms of its grid coordinates and loops, with the interval of each.

An interval of an affine form whose variables run over a box is exact: its ends are attained, each variable at one of
its own (linear programming over a box). What is no affine form is a variable of its own, with an interval that holds
it; a form with such a variable has an interval that may be too wide, and never too narrow.

Machine integers wrap around: a value is congruent to its form modulo two to the power of its bits, and equal to it
where the form's interval lies in its type. Sums and products keep this; what compares or divides asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.ir.constants import integer_constant
from tilewright.mlir import ir

Interval = tuple[int, int]
#: What an index can be.
ANY: Interval = (-(2**63), 2**63 - 1)
#: What sizes of memory and coordinates of tasks can be: there is neither more memory nor more time.
SIZES: Interval = (0, 2**48)
#: Loops of as many trips do not end.
_ENDLESS = 2**40
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui")
_LEAST = ("arith.minsi", "affine.min")
_UNSIGNED = "unsignedCmp"  # of a loop whose bounds are compared without a sign


@dataclass(frozen=True)
class Atom:
    """A variable of forms.

    Attributes:
        interval: the least and the greatest value.
        free: whether it takes both, whatever other free variables are.
        name: for messages, e.g. ``i``; "" where nobody chose it.
    """

    interval: Interval
    free: bool
    name: str = ""


@dataclass(frozen=True)
class Form:
    """A constant, and variables by their numbers with their factors."""

    constant: int
    terms: Mapping[int, int] = field(default_factory=dict)

    def plus(self, other: Form | int, factor: int = 1) -> Form:
        """This one and `factor` times another one."""
        if isinstance(other, int):
            return Form(self.constant + factor * other, self.terms)
        terms = dict(self.terms)
        for atom, value in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * value
        kept = {atom: value for atom, value in terms.items() if value}
        return Form(self.constant + factor * other.constant, kept)


class Forms:
    """The forms of the values of one kernel, for one launch.

    Args:
        sizes: sizes of the kernel's arguments in memory; None where a call brings one.
        is_made: whether each run makes the launch.
    """

    def __init__(self, sizes: Mapping[ir.Value, Sequence[int | None]], is_made: bool = True) -> None:
        self.atoms: list[Atom] = []
        self.is_made = is_made
        self._sizes = sizes
        self._known: dict[ir.Value, Form] = {}
        self._dims: dict[tuple[ir.Value, int], Form] = {}

    def bind(self, value: ir.Value, interval: Interval, free: bool, name: str = "") -> None:
        """Say what is known of an argument of a block."""
        self._known[value] = self._atom(interval, free, name)

    def of(self, value: ir.Value) -> Form:
        """The form of an integer or index."""
        if value not in self._known:
            self._known[value] = self._argument(value) if isinstance(value, ir.BlockArgument) else self._result(value)
        return self._known[value]

    def uppers(self, value: ir.Value) -> list[Form]:
        """Forms that a value exceeds in no run: of a least value those of all operands."""
        op = None if isinstance(value, ir.BlockArgument) else value.owner
        if op is None or op.name not in _LEAST:
            return [self.of(value)]
        if op.name == "affine.min":
            return self._results(op)
        return [form for operand in op.operands for form in self.uppers(operand)]

    def interval(self, form: Form) -> Interval:
        """The least and the greatest value of a form."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            ends = [factor * end for end in self.atoms[atom].interval]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def fits(self, form: Form) -> bool:
        """Whether an index with this form is equal to it: it cannot have wrapped around."""
        return _is_within(self.interval(form), ANY)

    def values(self, value: ir.Value) -> Interval:
        """The least and the greatest number that a value can be, read as a signed one of its type."""
        every, found = _every(value.type), self.interval(self.of(value))
        return found if _is_within(found, every) else every

    def runs(self, loop: ir.Operation) -> bool:
        """Whether the body of a `scf.for` runs at least once."""
        first, last = self.values(loop.operands[0]), self.values(loop.operands[1])
        return first[1] < last[0] and _UNSIGNED not in loop.attributes

    def is_attained(self, form: Form) -> bool:
        """Whether some task reaches the ends of a form's interval."""
        return all(self.atoms[atom].free for atom in form.terms)

    def corner(self, form: Form, greatest: bool) -> dict[str, int]:
        """Where an end is attained: values of the variables with a name."""
        found = {}
        for atom, factor in form.terms.items():
            low, high = self.atoms[atom].interval
            if self.atoms[atom].name:
                found[self.atoms[atom].name] = int(high if (factor > 0) == greatest else low)
        return found

    def size(self, memory: ir.Value, dim: int) -> Form:
        """The size of a dimension of memory, which its type, a launch or an operation tells."""
        kind = ir.MemRefType(memory.type)
        if not kind.is_dynamic_dim(dim):
            return Form(kind.get_dim_size(dim))
        if (memory, dim) not in self._dims:
            self._dims[memory, dim] = self._size(memory, dim)
        return self._dims[memory, dim]

    def unknown(self) -> Form:
        """A form of which nothing is known."""
        return self._atom(ANY)

    # How forms are found ------------------------------------------------------------------------------------------

    def _atom(self, interval: Interval, free: bool = False, name: str = "") -> Form:
        low, high = interval
        if low == high:
            return Form(int(low))
        self.atoms.append(Atom(interval, free, name))
        return Form(0, {len(self.atoms) - 1: 1})

    def _argument(self, value: ir.BlockArgument) -> Form:
        """A loop's variable; others may be anything."""
        loop = value.owner.owner
        if loop.name != "scf.for" or value.arg_number != 0 or _UNSIGNED in loop.attributes:
            return self._atom(ANY)
        first, last, step = (self.values(loop.operands[i]) for i in range(3))
        known = first[0] == first[1] and last[0] == last[1] and step[0] == step[1]
        if known and step[0] > 0:
            trips = -((first[0] - last[0]) // step[0])
            end = first[0] + max(trips - 1, 0) * step[0]
        else:
            trips = 0
            end = max(self._below(loop.operands[1], last[1]) - 1, first[0])
        greatest = _every(value.type)[1]
        # Behind the last trip the variable may wrap around, and the loop go on; a step may lead down.
        if step[0] <= 0 or (end + step[1] > greatest and greatest // step[1] < _ENDLESS):
            return self._atom(ANY)
        return self._atom((first[0], end), free=trips > 0)

    def _below(self, value: ir.Value, known: int) -> int:
        """The least of the numbers that a bound of a loop cannot exceed."""
        forms = self.uppers(value) if isinstance(value.type, ir.IndexType) else []
        return min([known, *(self.interval(form)[1] for form in forms if self.fits(form))])

    def _result(self, value: ir.Value) -> Form:
        op = value.owner
        constant = integer_constant(value)
        if constant is not None:
            return Form(constant)
        if op.name in ("arith.addi", "arith.subi"):
            return self.of(op.operands[0]).plus(self.of(op.operands[1]), 1 if op.name == "arith.addi" else -1)
        if op.name == "arith.muli":
            return self._product(self.of(op.operands[0]), self.of(op.operands[1]))
        if op.name in _CASTS:
            return self._cast(value)
        if op.name == "memref.dim" and (dim := _dim_of(op)) is not None:
            return self.size(op.operands[0], dim)
        if op.name == "affine.apply":
            return self._results(op)[0]
        return self._atom(self._other(op))

    def _cast(self, value: ir.Value) -> Form:
        source = value.owner.operands[0]
        form = self.of(source)
        unsigned = value.owner.name in ("arith.index_castui", "arith.extui")
        bits = _bits(source.type)
        if _bits(value.type) <= bits:
            return form  # what is left of the bits is the same
        # A narrow integer may have wrapped around on the way: then its form is that of another number.
        low, high = self.interval(form)
        if low >= (0 if unsigned else -(2 ** (bits - 1))) and high < 2 ** (bits - 1):
            return form
        return self._atom((0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))

    def _product(self, a: Form, b: Form) -> Form:
        if a.terms and b.terms:
            ends = [x * y for x in self.interval(a) for y in self.interval(b)]
            return self._atom((min(ends), max(ends)))
        constant, form = (a.constant, b) if not a.terms else (b.constant, a)
        return Form(0).plus(form, constant)

    def _other(self, op: ir.Operation) -> Interval:
        """What interval arithmetic knows of operations that are no affine form."""
        name = op.name
        if name == "arith.select":
            found = [self.values(operand) for operand in op.operands[1:]]
            return min(low for low, _ in found), max(high for _, high in found)
        if name in ("arith.minsi", "arith.maxsi"):
            a, b = (self.values(operand) for operand in op.operands)
            return (min(a[0], b[0]), min(a[1], b[1])) if name == "arith.minsi" else (max(a[0], b[0]), max(a[1], b[1]))
        if name in ("affine.min", "affine.max"):
            pairs = [self._interval_of_index(form) for form in self._results(op)]
            pick = min if name == "affine.min" else max
            return pick(low for low, _ in pairs), pick(high for _, high in pairs)
        if name.startswith(("arith.rem", "arith.div", "arith.floordiv")) and len(op.operands) == 2:
            divisor = integer_constant(op.operands[1])
            source = self.values(op.operands[0])
            if divisor is not None and divisor > 0 and source[0] >= 0:
                return _rest(source, divisor) if "rem" in name else _quotient(source, divisor)
        return ANY

    def _interval_of_index(self, form: Form) -> Interval:
        return self.interval(form) if self.fits(form) else ANY

    def _size(self, memory: ir.Value, dim: int) -> Form:
        if memory in self._sizes:
            size = self._sizes[memory][dim]
            return self._atom(SIZES) if size is None else Form(size)
        op = None if isinstance(memory, ir.BlockArgument) else memory.owner
        if op is None:
            return self._atom(SIZES)
        if op.name in ("memref.cast", "memref.assume_alignment") and _is_ranked(op.operands[0]):
            return self.size(op.operands[0], dim)
        if op.name == "memref.subview":
            return self._size_of_subview(op, dim)
        if op.name in ("tile.alloc", "memref.alloc", "memref.alloca"):
            kind = ir.MemRefType(memory.type)
            return self.of(op.operands[sum(kind.is_dynamic_dim(d) for d in range(dim))])
        return self._atom(SIZES)

    def _size_of_subview(self, op: ir.Operation, dim: int) -> Form:
        """Sizes that are values stay in order, whichever dimensions of size 1 the result leaves out."""
        kind = ir.MemRefType(op.results[0].type)
        values = [size for size in slices_of(op)[1] if not isinstance(size, int)]
        return self.of(values[sum(kind.is_dynamic_dim(d) for d in range(dim))])

    # Affine maps --------------------------------------------------------------------------------------------------

    def _results(self, op: ir.Operation) -> list[Form]:
        affine_map = ir.AffineMapAttr(op.attributes["map"]).value
        operands = [self.of(value) for value in op.operands]
        dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
        return [self._expression(expr, dims, symbols) for expr in affine_map.results]

    def _expression(self, expr: ir.AffineExpr, dims: list[Form], symbols: list[Form]) -> Form:
        if isinstance(expr, ir.AffineConstantExpr):
            return Form(expr.value)
        if isinstance(expr, ir.AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, ir.AffineSymbolExpr):
            return symbols[expr.position]
        binary = ir.AffineBinaryExpr(expr)
        a, b = (self._expression(side, dims, symbols) for side in (binary.lhs, binary.rhs))
        if isinstance(expr, ir.AffineAddExpr):
            return a.plus(b)
        if isinstance(expr, ir.AffineMulExpr):
            return self._product(a, b)
        if b.terms or b.constant <= 0:
            return self._atom(ANY)
        source = self._interval_of_index(a)
        if isinstance(expr, ir.AffineModExpr):
            return self._atom(_rest(source, b.constant) if source[0] >= 0 else (0, b.constant - 1))
        up = b.constant - 1 if isinstance(expr, ir.AffineCeilDivExpr) else 0
        return self._atom(_quotient((source[0] + up, source[1] + up), b.constant))


def slices_of(op: ir.Operation) -> tuple[list[int | ir.Value], list[int | ir.Value], list[int | ir.Value]]:
    """Offsets, sizes and strides of a `memref.subview`, by dimension of its operand: numbers, or values."""
    operands, at = list(op.operands), 1
    found: list[list[int | ir.Value]] = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        parts: list[int | ir.Value] = []
        for number in ir.DenseI64ArrayAttr(op.attributes[name]):
            if number == ir.ShapedType.get_dynamic_size():
                parts.append(operands[at])
                at += 1
            else:
                parts.append(number)
        found.append(parts)
    return found[0], found[1], found[2]


def _rest(source: Interval, divisor: int) -> Interval:
    return 0, min(source[1], divisor - 1)


def _quotient(source: Interval, divisor: int) -> Interval:
    return source[0] // divisor, source[1] // divisor


def _bits(kind: ir.Type) -> int:
    return 64 if isinstance(kind, ir.IndexType) else ir.IntegerType(kind).width


def _every(kind: ir.Type) -> Interval:
    """All signed numbers of a type."""
    half = 2 ** (_bits(kind) - 1)
    return -half, half - 1


def _is_within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _is_ranked(memory: ir.Value) -> bool:
    return isinstance(memory.type, ir.MemRefType)


def _dim_of(op: ir.Operation) -> int | None:
    """The dimension that a `memref.dim` asks for; None where it is none that is known."""
    dim = integer_constant(op.operands[1])
    known = dim is not None and _is_ranked(op.operands[0]) and 0 <= dim < ir.MemRefType(op.operands[0].type).rank
    return dim if known else None
