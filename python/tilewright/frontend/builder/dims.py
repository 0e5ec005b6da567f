# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are known at run time only.

An entry of a tensor's shape is an int or a :class:`Dim`: an SSA value of type index with Python's arithmetic. A Dim
knows itself as an integer polynomial in the values that it was made from, so what is known folds: `n + 2 - n` is 2,
`32 * n // n` is 32, and two Dims are equal where their polynomials are. Arithmetic emits ops at the insertion point.

`n != 1` is True and `n == 1` False (nothing is known to be 1); so is `n == 0`. Any other question that has no answer
at compile time raises UnsupportedError. Programs that decide at run time use `minimum`, `maximum` and Scalars.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from math import prod
from operator import mul
from typing import NoReturn, TypeGuard, Union

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.limits import check_word
from tilewright.mlir import ir

Size = Union[int, "Dim"]
Terms = dict[tuple["_Atom", ...], int]  # coefficient of each product of atoms; () is the constant


class _Atom:
    """What is no sum or product of others, with the least and the largest that it can be (None: no bound).

    Two are the same where their keys are equal: the value itself, or what a quotient was made of.
    """

    __slots__ = ("_hash", "high", "key", "low", "meaning", "value")

    def __init__(self, value: ir.Value, low: int | None, high: int | None, key: Hashable = None) -> None:
        self.value, self.low, self.high = value, low, high
        self.meaning: Terms | None = None  # what it is taken to be, see Dim.assume_same
        self.key: Hashable = value if key is None else key
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Atom) and self._hash == other._hash and self.key == other.key


class Dim:
    """An index known at run time only.

    Args:
        value: the SSA value of type index.
        nonneg: whether it is known not to be negative, as sizes are.
        low, high: bounds, where there are closer ones.
    """

    __slots__ = ("terms", "value")

    def __init__(
        self,
        value: ir.Value,
        nonneg: bool = True,
        terms: Terms | None = None,
        *,
        low: int | None = None,
        high: int | None = None,
    ) -> None:
        self.value = value
        least = low if low is not None else 0 if nonneg else None
        self.terms: Terms = {(_Atom(value, least, high),): 1} if terms is None else terms

    # Arithmetic -------------------------------------------------------------------------------------------------

    def __add__(self, other: Size) -> Size:
        return _emit("addi", self, other, _sum(self.terms, _terms(other)))

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _emit("subi", self, other, _sum(self.terms, _terms(other), -1))

    def __rsub__(self, other: Size) -> Size:
        return _emit("subi", other, self, _sum(_terms(other), self.terms, -1))

    def __neg__(self) -> Size:
        return 0 - self

    def __mul__(self, other: Size) -> Size:
        return _emit("muli", self, other, _product(self.terms, _terms(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return _divide(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return _divide(other, self)

    def __mod__(self, other: Size) -> Size:
        return self - _divide(self, other) * other

    def __rmod__(self, other: Size) -> Size:
        return other - _divide(other, self) * self

    # Comparison -------------------------------------------------------------------------------------------------

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Dim):
            return NotImplemented
        found = equal(self, other)
        if found is None and not (isinstance(other, int) and other in (0, 1)):
            self._undecided(f"whether it is {other}")
        return bool(found)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return NotImplemented if equal is NotImplemented else not equal

    def __lt__(self, other: Size) -> bool:
        return self._decide(_sum(self.terms, _terms(other), -1), 0, f"whether it is less than {other}")

    def __le__(self, other: Size) -> bool:
        return self._decide(_sum(self.terms, _terms(other), -1), 1, f"whether it is at most {other}")

    def __gt__(self, other: Size) -> bool:
        return not self <= other

    def __ge__(self, other: Size) -> bool:
        return not self < other

    def _decide(self, difference: Terms, bound: int, question: str) -> bool:
        low, high = _bounds(difference)
        if high is not None and high < bound:
            return True
        if low is not None and low >= bound:
            return False
        self._undecided(question)

    def _undecided(self, question: str) -> NoReturn:
        raise UnsupportedError(
            f"a size that is known at run time only is needed at compile time ({question}); "
            "state the shape in the model (value_info), or fix what the size depends on"
        )

    def __bool__(self) -> bool:
        self._undecided("whether it is 0")

    def __index__(self) -> int:
        self._undecided("its value")

    __int__ = __index__

    def __float__(self) -> float:
        self._undecided("its value")

    def __repr__(self) -> str:
        return "?"

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """The least and the largest value, None where there is no bound."""
        return _bounds(self.terms)

    def is_same(self, other: Size) -> bool:
        """Whether the two are known to be equal."""
        return equal(self, other) is True

    def is_at_most(self, limit: int) -> bool:
        """Whether it is known not to be larger."""
        high = self.bounds[1]
        return high is not None and high <= limit

    def assume_at_most(self, limit: int) -> None:
        """Take for granted what a run checks, in all that is made of this size, which is made of no others."""
        ((atoms, _),) = self.terms.items()
        atoms[0].high = limit

    def assume_same(self, other: Dim) -> None:
        """Take for granted what a run checks: that this size, which is made of no others, is another one."""
        ((atoms, _),) = self.terms.items()
        atoms[0].meaning = _resolved(other.terms)

    @property
    def atoms(self) -> frozenset[Hashable]:
        """What it is made of: keys, of one alone for a size that is made of no others."""
        return frozenset(atom.key for product in self.terms for atom in product)

    def is_made_of(self, other: Dim) -> bool:
        """Whether it has an atom of another one, or is taken to be made of one: the other cannot be taken to be it."""
        taken = {atom.key for product in _resolved(self.terms) for atom in product}
        return not other.atoms.isdisjoint(self.atoms | taken)

    @property
    def is_alone(self) -> bool:
        """Whether it is made of no others."""
        return len(self.terms) == 1 and all(len(product) == 1 and n == 1 for product, n in self.terms.items())

    @property
    def nonneg(self) -> bool:
        """Whether it is known not to be negative."""
        low = _bounds(self.terms)[0]
        return low is not None and low >= 0


# Polynomials ----------------------------------------------------------------------------------------------------


def _terms(n: Size) -> Terms:
    return n.terms if isinstance(n, Dim) else {(): int(n)} if n else {}


def _sum(a: Terms, b: Terms, factor: int = 1) -> Terms:
    total = dict(a)
    for atoms, count in b.items():
        total[atoms] = total.get(atoms, 0) + factor * count
    return {atoms: count for atoms, count in total.items() if count}


def _product(a: Terms, b: Terms) -> Terms:
    total: Terms = {}
    for x, m in a.items():
        for y, n in b.items():
            atoms = tuple(sorted((*x, *y), key=hash))
            total[atoms] = total.get(atoms, 0) + m * n
    return {atoms: count for atoms, count in total.items() if count}


def _quotient(a: Terms, b: Terms) -> Terms | None:
    """a / b where b divides a as a polynomial: long division, by the leading terms of both."""
    if not b:
        return None
    atoms = sorted({atom for terms in (a, b) for product in terms for atom in product}, key=hash)

    def order(product: tuple[_Atom, ...]) -> list[int]:
        return [product.count(atom) for atom in atoms]

    leading = max(b, key=order)
    result: Terms = {}
    while a:
        first = max(a, key=order)
        factor = _without(first, leading)
        if factor is None or a[first] % b[leading]:
            return None
        step = {factor: a[first] // b[leading]}
        result |= step
        a = _sum(a, _product(step, b), -1)
    return result


def _without(product: tuple[_Atom, ...], divisor: tuple[_Atom, ...]) -> tuple[_Atom, ...] | None:
    """What is left of a product of atoms; None where the divisor holds others."""
    rest = list(product)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _bounds(terms: Terms) -> tuple[int | None, int | None]:
    """The least and the largest value, None where there is no bound."""
    low: int | None = 0
    high: int | None = 0
    for atoms, count in terms.items():
        if not all(atom.low is not None and atom.low >= 0 for atom in atoms):
            return None, None
        least = prod(atom.low or 0 for atom in atoms)
        most = None if any(atom.high is None for atom in atoms) else prod(atom.high or 0 for atom in atoms)
        if count < 0:
            least, most = most, least
        low = None if low is None or least is None else low + count * least
        high = None if high is None or most is None else high + count * most
    return low, high


def _resolved(terms: Terms) -> Terms:
    """A polynomial with what its atoms are taken to be in their place."""
    if not any(atom.meaning for product in terms for atom in product):
        return terms
    total: Terms = {}
    for product, count in terms.items():
        parts: list[Terms] = [atom.meaning or {(atom,): 1} for atom in product]
        total = _sum(total, reduce(_product, parts, {(): count}))
    return _resolved(total)


def equal(a: Size, b: Size) -> bool | None:
    """Whether two sizes are equal; None where that is known at run time only."""
    difference = _sum(_resolved(_terms(a)), _resolved(_terms(b)), -1)
    low, high = _bounds(difference)
    if low is not None and low > 0 or high is not None and high < 0:
        return False
    return None if difference else True


def equal_products(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two products of sizes are known to be equal. Emits nothing."""
    left, right = (reduce(_product, (_resolved(_terms(n)) for n in sizes), {(): 1}) for sizes in (a, b))
    return not _sum(left, right, -1)


def divides(n: Size, total: Size) -> bool:
    """Whether a size is known to divide another, whatever the two are. Emits nothing."""
    return _quotient(_resolved(_terms(total)), _resolved(_terms(n))) is not None


def in_terms_of(size: Dim, names: Mapping[str, Dim]) -> str | None:
    """A size as a sum of products of other sizes, which are none of others, by their names; None where it is not."""
    atoms = {next(iter(known.terms))[0]: name for name, known in names.items()}
    parts = []
    for product, count in sorted(size.terms.items(), key=lambda term: len(term[0]), reverse=True):
        if any(atom not in atoms for atom in product):
            return None
        factors = sorted(atoms[atom] for atom in product)
        number = [str(abs(count))] if abs(count) != 1 or not factors else []
        parts += ["-" if count < 0 else "+", "*".join([*number, *factors])]
    return " ".join(parts[1:] if parts[:1] == ["+"] else parts)


# Ops ------------------------------------------------------------------------------------------------------------


def index_value(n: Size) -> ir.Value:
    """The SSA value of type index: a new constant for an int."""
    if isinstance(n, Dim):
        return n.value
    check_word(int(n))
    kind = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(kind, int(n))}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).result


def _arith(name: str, a: Size, b: Size) -> ir.Value:
    operands = [index_value(a), index_value(b)]
    return ir.Operation.create(f"arith.{name}", results=[ir.IndexType.get()], operands=operands).result


def _emit(name: str, a: Size, b: Size, terms: Terms) -> Size:
    """The result of an op, or what it is known to be."""
    if not isinstance(a, int | Dim) or not isinstance(b, int | Dim):
        return NotImplemented
    if not any(terms):
        return terms.get((), 0)
    for n in (a, b):
        if isinstance(n, Dim) and n.terms == terms:
            return n
    if len(terms) == 1 and terms.get(next(iter(terms))) == 1 and len(next(iter(terms))) == 1:
        return Dim(next(iter(terms))[0].value, terms=terms)
    return Dim(_arith(name, a, b), terms=terms)


def _divide(a: Size, b: Size) -> Size:
    """Python's floor division; a divisor that turns out to be 0 counts as 1."""
    if not isinstance(a, int | Dim) or not isinstance(b, int | Dim):
        return NotImplemented
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError("a size is divided by 0")
    exact = _quotient(_terms(a), _terms(b))
    if exact is not None:
        return _build(exact)
    if isinstance(a, Dim) and isinstance(b, int) and b > 0:
        return _floor(a, b)
    natural = nonnegative(a) and nonnegative(b)
    divisor = maximum(b, 1) if natural else _nonzero(b)
    return Dim(_arith("divsi" if natural else "floordivsi", a, divisor), natural)


def _floor(a: Dim, divisor: int) -> Size:
    """The floor of a / divisor in canonical form: whole multiples of the divisor stand outside.

    (n - 1) // 2 + 1 and (n + 1) // 2 are the same size, and known not to be negative.
    """
    whole = {atoms: count // divisor for atoms, count in a.terms.items() if count // divisor}
    rest = {atoms: count % divisor for atoms, count in a.terms.items() if count % divisor}
    if not any(rest):
        return _build(whole)
    inner = _build(rest)
    low, high = (None if n is None else n // divisor for n in _bounds(rest))
    value = _arith("divsi" if nonnegative(inner) else "floordivsi", inner, divisor)
    key = (frozenset(rest.items()), divisor)
    return _build(whole) + Dim(value, terms={(_Atom(value, low, high, key),): 1})


def _build(terms: Terms) -> Size:
    """The size that a polynomial stands for, from its atoms."""
    total: Size = 0
    for atoms, count in terms.items():
        total = total + reduce(mul, (Dim(atom.value, terms={(atom,): 1}) for atom in atoms), count)
    return total


def _nonzero(n: Size) -> Size:
    if isinstance(n, int):
        return n
    predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
    kind, operands = ir.IntegerType.get_signless(1), [n.value, index_value(0)]
    is_zero = ir.Operation.create("arith.cmpi", results=[kind], operands=operands, attributes=predicate).result
    operands = [is_zero, index_value(1), n.value]
    return Dim(ir.Operation.create("arith.select", results=[ir.IndexType.get()], operands=operands).result, False)


def nonnegative(n: Size) -> bool:
    """Whether a size or index is known not to be negative."""
    return n.nonneg if isinstance(n, Dim) else n >= 0


def maximum(a: Size, b: Size) -> Size:
    """The larger of two."""
    low, high = _bounds(_sum(_terms(a), _terms(b), -1))
    if low is not None and low >= 0:
        return a
    if high is not None and high <= 0:
        return b
    return Dim(_arith("maxsi", a, b), nonnegative(a) or nonnegative(b))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two."""
    low, high = _bounds(_sum(_terms(a), _terms(b), -1))
    if low is not None and low >= 0:
        return b
    if high is not None and high <= 0:
        return a
    return Dim(_arith("minsi", a, b), nonnegative(a) and nonnegative(b))


def ceil_divide(a: Size, b: int) -> Size:
    """a / b rounded up, b positive."""
    return (a + b - 1) // b


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be equal."""
    return equal(a, b) is True


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(map(same, a, b))


def is_static(shape: Sequence[Size]) -> TypeGuard[Sequence[int]]:
    """Whether all sizes are known at compile time."""
    return not any(isinstance(n, Dim) for n in shape)


def has_zero(shape: Sequence[Size]) -> bool:
    """Whether a size is known to be 0: there are no elements."""
    return any(isinstance(n, int) and n == 0 for n in shape)


def marked(sizes: Sequence[Size]) -> list[int]:
    """Sizes, positions or steps as attributes and types hold them.

    Raises:
        ValueError: one is negative.
        UnsupportedError: one does not fit in 64 bits.
    """
    known = [n for n in sizes if not isinstance(n, Dim)]
    check_word(*known)
    if any(n < 0 for n in known):
        raise ValueError(f"a tensor of the sizes [{', '.join(map(str, sizes))}] would be made")
    return [ir.ShapedType.get_dynamic_size() if isinstance(n, Dim) else n for n in sizes]


def values(sizes: Sequence[Size]) -> list[ir.Value]:
    """The SSA values of those that are known at run time only."""
    return [n.value for n in sizes if isinstance(n, Dim)]
