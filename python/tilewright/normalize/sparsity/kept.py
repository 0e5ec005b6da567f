# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which indices of axes and loops something needs: needs go backward, from what a function returns.

Axes of tensors and loops of operations are linked: a loop and the axes that it indexes keep the same indices, so do
a slice and its place in a tensor, and the parts of a reshape keep a product. A reduction keeps the indices at which its
body changes something (`facts.py`). What an operation that has no rule here reads or makes is kept whole. The sets
only grow until all links hold: the least sets that are sound. Indices that nobody keeps are left out everywhere at
once. Where a reduction could do with less than what it reads, or makes slices of a known number that are read, its loop
is apart: it keeps less than the axes; what it reads is gathered, what it makes is spread (`apart.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from tilewright.ir.generics import body, kinds, loops_of, maps
from tilewright.ir.structure import captured
from tilewright.ir.views import groups_of
from tilewright.mlir import ir
from tilewright.normalize.sparsity.facts import Facts, extent, is_tensor, shape_of, small_and_large, window_of

#: An axis of a tensor, or a loop of an operation, which goes by its first result.
Place = tuple[ir.Value, int, bool]
#: How the indices of one place follow from those of another.
Link = Callable[[np.ndarray], np.ndarray]

#: Lanes of a vector, whole ones of which are kept where an axis is longer.
_LANES = 16


def axis_of(value: ir.Value, axis: int) -> Place:
    """An axis of a tensor."""
    return value, axis, False


def loop_of(op: ir.Operation, loop: int) -> Place:
    """A loop of an operation."""
    return op.results[0], loop, True


class Kept:
    """The indices of each place that are kept."""

    def __init__(self, facts: Facts, tied: Set[Place] = frozenset()) -> None:
        """Nothing is kept yet.

        Args:
            facts: what is known of tensors.
            tied: loops that keep what the axes that they index keep, although they could do with less.
        """
        self._facts = facts
        self._ties = tied
        #: Loops that may keep less than the axes they index: what they read is gathered, what they make spread.
        self.free: dict[Place, ir.Operation] = {}
        self._sets: dict[Place, np.ndarray] = {}
        self._links: dict[Place, list[tuple[Place, Link]]] = {}
        self._exact: set[Place] = set()
        self._work: list[Place] = []

    def axes(self, value: ir.Value) -> list[np.ndarray] | None:
        """[indices] of each axis, bool; None where all are kept."""
        found = self.all_axes(value)
        return None if all(one.all() for one in found) else found

    def all_axes(self, value: ir.Value) -> list[np.ndarray]:
        """[indices] of each axis, bool."""
        found = [self._sets.get(axis_of(value, d)) for d in range(len(shape_of(value)))]
        sizes = shape_of(value)
        return [np.ones(max(n, 0), bool) if one is None else one for n, one in zip(sizes, found, strict=True)]

    def loop(self, op: ir.Operation, loop: int) -> np.ndarray | None:
        """[indices] of a loop, bool; None where they are known at run time only."""
        return self._sets.get(loop_of(op, loop))

    def of(self, place: Place) -> np.ndarray:
        """[indices] of a place that has a known size, bool."""
        self._size(place)
        return self._sets[place]

    def look_at(self, op: ir.Operation) -> None:
        """Link what an operation reads and makes, or keep it whole."""
        rule = _RULES.get(op.name)
        if rule is None or len(op.results) != 1 or not rule(self, op):
            for value in [*op.operands, *captured(op), *op.results]:
                self.whole(value)

    def whole(self, value: ir.Value) -> None:
        """Keep all of a tensor."""
        for d in range(len(shape_of(value)) if is_tensor(value) else 0):
            self._all(axis_of(value, d))

    def close(self) -> None:
        """Let the sets grow until all links hold; each has one index at least, and whole vectors where it may."""
        self._grow()
        for place, kept in list(self._sets.items()):
            if not kept.any():
                self._add(place, np.arange(len(kept)) == 0)
        self._grow()
        tied = self._tied()
        for place in [place for place in self._sets if place not in tied]:
            kept = self._sets[place]
            wanted = -(-int(kept.sum()) // _LANES) * _LANES if len(kept) > _LANES else 0
            spare = np.flatnonzero(~kept)[: max(wanted - int(kept.sum()), 0)]
            self._add(place, np.isin(np.arange(len(kept)), spare))
            self._grow()

    def _tied(self) -> set[Place]:
        """Places whose indices follow from others by more than being the same, and those whose own reach such ones.

        A loop that is apart would bring the indices that fill its vectors to the axis that it reads, and that to heads.
        """
        near: dict[Place, set[Place]] = {}
        for place, links in self._links.items():
            for other, _ in links:
                near.setdefault(place, set()).add(other)
                near.setdefault(other, set()).add(place)
        tied, work = set(self._exact), list(self._exact)
        while work:
            new = near.get(work.pop(), set()) - tied
            tied |= new
            work += new
        return tied

    def _grow(self) -> None:
        while self._work:
            place = self._work.pop()
            for other, follow in self._links.get(place, []):
                self._add(other, follow(self._sets[place]))

    def _add(self, place: Place, more: np.ndarray) -> None:
        held = self._sets[place]
        if (more & ~held).any():
            self._sets[place] = held | more
            self._work.append(place)

    def _all(self, place: Place) -> None:
        size = self._size(place)
        if size:
            self._add(place, np.ones(size, bool))

    def _size(self, place: Place) -> int:
        """How many indices a place has, and room for them; 0 where that is known at run time only."""
        if place not in self._sets:
            value, number, is_loop = place
            size = extent(value.owner.operation, number) if is_loop else max(shape_of(value)[number], 0)
            self._sets[place] = np.zeros(size or 0, bool)
        return len(self._sets[place])

    def _link(self, a: Place, b: Place, there: Link, back: Link, exact: bool = False) -> None:
        """Two places whose indices follow from each other."""
        if self._size(a) == 0 or self._size(b) == 0:
            self._all(a)
            self._all(b)
            return
        self._links.setdefault(a, []).append((b, there))
        self._links.setdefault(b, []).append((a, back))
        self._work += [a, b]
        if exact:
            self._exact |= {a, b}

    def _same(self, a: Place, b: Place) -> None:
        if self._size(a) != self._size(b):
            self._all(a)
            self._all(b)
            return
        self._link(a, b, _itself, _itself)

    # Rules, by the name of the operation; False where one does not apply ---------------------------------------------

    def source(self, _op: ir.Operation) -> bool:
        """Constants and empty tensors need nothing."""
        return True

    def fill(self, op: ir.Operation) -> bool:
        """The result is as large as what is filled."""
        return self._alike(op.results[0], op.operands[1])

    def generic(self, op: ir.Operation) -> bool:
        """Loops index axes; reductions need what changes their sums."""
        for value in captured(op):
            self.whole(value)
        apart = self._apart(op)
        for value, access in zip(op.operands, maps(op), strict=True):
            self._indexed(op, value, access, [loop for loop in apart if kinds(op)[loop]])
        for inner in body(op).operations:
            if inner.operation.name == "linalg.index":
                self._all(loop_of(op, ir.IntegerAttr(inner.operation.attributes["dim"]).value))
        for loop, reduces in enumerate(kinds(op)):
            size = self._size(loop_of(op, loop))
            if reduces and size:
                dead = apart.get(loop, self._facts.terms(op, loop))
                self._add(loop_of(op, loop), np.ones(size, bool) if dead is None else ~dead)
        return self._made(op, apart)

    def _apart(self, op: ir.Operation) -> dict[int, np.ndarray]:
        """Loops of a reduction that may keep less than their axes, each with the indices that it does not need."""
        if not any(kinds(op)):
            return {}
        found = {}
        for loop, reduces in enumerate(kinds(op)):
            place = loop_of(op, loop)
            dead = self._facts.terms(op, loop) if reduces else self._facts.results(op, loop)
            if place not in self._ties and dead is not None and dead.any() and _is_plain(op, loop):
                found[loop] = dead
                self.free[place] = op
        return found

    def _made(self, op: ir.Operation, apart: Mapping[int, np.ndarray]) -> bool:
        """The result is as its place; where it holds known numbers, loops need not make them."""
        result, place = op.results[0], op.operands[len(op.operands) - 1]
        for d, expr in enumerate(maps(op)[-1].results):
            dead = apart.get(expr.position) if isinstance(expr, ir.AffineDimExpr) else None
            if dead is None:
                self._same(axis_of(result, d), axis_of(place, d))
            elif self._size(axis_of(result, d)) == len(dead):
                self._follows(axis_of(result, d), loop_of(op, expr.position), _without(dead))
        return True

    def _follows(self, a: Place, b: Place, there: Link) -> None:
        """One place whose indices follow from those of another, but not the other way round."""
        self._size(b)
        self._links.setdefault(a, []).append((b, there))
        self._work.append(a)

    def _indexed(self, op: ir.Operation, value: ir.Value, access: ir.AffineMap, apart: Sequence[int]) -> None:
        for d, expr in enumerate(access.results if is_tensor(value) else ()):
            if isinstance(expr, ir.AffineDimExpr) and expr.position in apart:
                self._size(axis_of(value, d))
                self._follows(loop_of(op, expr.position), axis_of(value, d), _itself)
                continue
            if isinstance(expr, ir.AffineDimExpr):
                self._same(loop_of(op, expr.position), axis_of(value, d))
                continue
            self._all(axis_of(value, d))
            for loop in loops_of(expr):
                self._all(loop_of(op, loop))

    def reshape(self, op: ir.Operation) -> bool:
        """Parts of an axis keep a product."""
        expands = op.name == "tensor.expand_shape"
        narrow, wide = (op.operands[0], op.results[0]) if expands else (op.results[0], op.operands[0])
        shape = shape_of(wide)
        for axis, group in enumerate(groups_of(op.attributes["reassociation"])):
            sizes = [shape[d] for d in group]
            for place, d in enumerate(group):
                if min(sizes) < 0:
                    self._all(axis_of(narrow, axis))
                    self._all(axis_of(wide, d))
                else:
                    there, back = _digit(sizes, place), self._product(wide, group)
                    exact = sum(size > 1 for size in sizes) > 1
                    self._link(axis_of(narrow, axis), axis_of(wide, d), there, back, exact)
        return True

    def _product(self, wide: ir.Value, group: Sequence[int]) -> Link:
        """All combinations of the indices that the axes of a group keep."""
        places = [axis_of(wide, d) for d in group]

        def combined(_: np.ndarray) -> np.ndarray:
            found = np.ones(1, bool)
            for place in places:
                self._size(place)
                found = np.logical_and.outer(found, self._sets[place]).reshape(-1)
            return found

        return combined

    def slice_(self, op: ir.Operation) -> bool:
        """A part of a tensor and its place there."""
        window = window_of(op)
        if window is None or any(place.step != 1 for place in window):
            return False
        small, large = small_and_large(op)
        for d, place in enumerate(window):
            size = shape_of(large)[d]
            exact = place != slice(0, size, 1)
            self._link(axis_of(large, d), axis_of(small, d), _part(place), _within(place, size), exact)
        return op.name != "tensor.insert_slice" or self._alike(op.results[0], op.operands[1])

    def pad(self, op: ir.Operation) -> bool:
        """Axes that are not padded pass."""
        low, high = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("low", "high"))
        source, result = op.operands[0], op.results[0]
        for d, padded in enumerate(zip(low, high, strict=True)):
            if padded == (0, 0):
                self._same(axis_of(source, d), axis_of(result, d))
            else:
                self._all(axis_of(source, d))
                self._all(axis_of(result, d))
        return True

    def _alike(self, a: ir.Value, b: ir.Value) -> bool:
        for d in range(len(shape_of(a))):
            self._same(axis_of(a, d), axis_of(b, d))
        return True


def _is_plain(op: ir.Operation, loop: int) -> bool:
    """Whether a loop only indexes axes, each of its own size, one of an operand at most."""
    for inner in body(op).operations:
        if inner.operation.name == "linalg.index" and ir.IntegerAttr(inner.operation.attributes["dim"]).value == loop:
            return False
    size = extent(op, loop)
    for value, access in zip(op.operands, maps(op), strict=True):
        at = [d for d, expr in enumerate(access.results) if loop in loops_of(expr)]
        if len(at) > 1 or any(not isinstance(access.results[d], ir.AffineDimExpr) for d in at):
            return False
        if not is_tensor(value) or any(shape_of(value)[d] != size for d in at):
            return False
    return True


def _without(dead: np.ndarray) -> Link:
    return lambda kept: kept & ~dead


def _itself(kept: np.ndarray) -> np.ndarray:
    return kept


def _digit(sizes: Sequence[int], place: int) -> Link:
    """The indices of one axis of a group that occur in those of all of them."""
    others = tuple(d for d in range(len(sizes)) if d != place)
    return lambda kept: np.asarray(kept.reshape(sizes).any(axis=others))


def _part(place: slice) -> Link:
    return lambda kept: kept[place]


def _within(place: slice, size: int) -> Link:
    def spread(kept: np.ndarray) -> np.ndarray:
        found = np.zeros(size, bool)
        found[place] = kept
        return found

    return spread


_RULES: dict[str, Callable[[Kept, ir.Operation], bool]] = {
    "arith.constant": Kept.source,
    "ml_program.global_load_const": Kept.source,
    "tensor.empty": Kept.source,
    "linalg.fill": Kept.fill,
    "linalg.generic": Kept.generic,
    "tensor.expand_shape": Kept.reshape,
    "tensor.collapse_shape": Kept.reshape,
    "tensor.extract_slice": Kept.slice_,
    "tensor.insert_slice": Kept.slice_,
    "tensor.pad": Kept.pad,
}
