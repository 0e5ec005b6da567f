# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of a structured op seen over its iteration space.

An operand with an indexing map becomes an array with one dimension per loop: of the loop's size where the map uses
the loop, of size 1 where it does not. Linear maps (permutations, broadcasts, convolution windows) are strided views
that copy nothing; maps with floordiv/mod are strided views of split loops where the loops divide, index arrays else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.reference.affine import Linear, Term, evaluate, linear, plain_dim
from tilewright.reference.errors import InterpreterError
from tilewright.reference.slices import check_index
from tilewright.reference.types import strided

Map = tuple[Term, ...]


def loop_sizes(maps: Sequence[Map], shapes: Sequence[Sequence[int]], loops: int) -> list[int]:
    """Return the size of each loop: of the operand dimension that some map indexes with the loop alone.

    Raises:
        InterpreterError: two operands disagree, or no map has the loop alone.
    """
    sizes: list[int | None] = [None] * loops
    for map_, shape in zip(maps, shapes, strict=True):
        for term, size in zip(map_, shape, strict=True):
            d = plain_dim(term)
            if d is None:
                continue
            if sizes[d] not in (None, size):
                raise InterpreterError(f"loop {d} has sizes {sizes[d]} and {size} in different operands")
            sizes[d] = size
    if None in sizes:
        raise InterpreterError(f"no operand tells the size of loop {sizes.index(None)}")
    return [int(size) for size in sizes if size is not None]


def over_loops(array: np.ndarray, map_: Map, sizes: Sequence[int]) -> np.ndarray:
    """Return ``array``, indexed by ``map_``, as an array over loops of ``sizes`` (size 1 where it does not vary).

    Raises:
        InterpreterError: the map reaches outside of ``array``.
    """
    forms = [linear(term) for term in map_]
    if all(form is not None for form in forms):
        return _strided(array, forms, sizes)
    split = _split_loops(map_, sizes)
    if split is not None:
        return _over_split(array, map_, sizes, split)
    return array[index_arrays(array, map_, sizes)]


def _strided(array: np.ndarray, forms: Sequence[Linear], sizes: Sequence[int]) -> np.ndarray:
    strides, used, start = [0] * len(sizes), set(), [0] * array.ndim
    empty = 0 in sizes
    for axis, form in enumerate(forms):
        reach = {d: c for d, c in form.coefficients.items() if c}
        low = form.offset + sum(min(c, 0) * (sizes[d] - 1) for d, c in reach.items())
        high = form.offset + sum(max(c, 0) * (sizes[d] - 1) for d, c in reach.items())
        if not empty and (low < 0 or high >= array.shape[axis]):
            raise InterpreterError(f"the map reaches {low}..{high} of a dimension of {array.shape[axis]}")
        start[axis] = form.offset
        for d, c in reach.items():
            strides[d] += c * array.strides[axis]
            used.add(d)
    shape = [size if d in used else 1 for d, size in enumerate(sizes)]
    if 0 in shape or array.size == 0:
        return np.empty(shape, array.dtype)
    corner = array[tuple(slice(s, None) for s in start)]
    return strided(corner, shape, strides, writeable=False)


def _split_loops(map_: Map, sizes: Sequence[int]) -> dict[int, int] | None:
    """Return the divisor by which each loop under a floordiv/mod is split, or None where that does not go."""
    divisors: dict[int, int] = {}
    for term in _divisions(map_):
        loop, divisor = term.parts
        if loop.kind != "dim" or divisor.kind != "constant" or term.kind == "ceildiv":
            return None
        d, c = loop.value, divisor.value
        if c <= 0 or sizes[d] % c or divisors.setdefault(d, c) != c:
            return None
    return divisors


def _divisions(terms: Sequence[Term]) -> list[Term]:
    out: list[Term] = []
    for term in terms:
        out += [term] if term.kind in ("floordiv", "ceildiv", "mod") else _divisions(term.parts)
    return out


def _over_split(array: np.ndarray, map_: Map, sizes: Sequence[int], split: dict[int, int]) -> np.ndarray:
    """View over loops where each split loop d is two: d floordiv c and d mod c; then join them again."""
    inner: list[int] = []
    high: dict[int, int] = {}
    for d, size in enumerate(sizes):
        high[d] = len(inner)
        inner += [size // split[d], split[d]] if d in split else [size]
    terms = tuple(_substitute(term, high, split) for term in map_)
    view = over_loops(array, terms, inner)
    shape = []
    for d in range(len(sizes)):
        pair = range(high[d], high[d] + (2 if d in split else 1))
        used = any(view.shape[k] != 1 for k in pair)
        if used:
            view = _expand(view, pair, inner)
        shape.append(sizes[d] if used else 1)
    return view.reshape(shape)


def _expand(view: np.ndarray, axes: range, sizes: Sequence[int]) -> np.ndarray:
    """Broadcast ``axes`` to ``sizes``: a loop may be used through only one of its halves."""
    return np.broadcast_to(view, [sizes[k] if k in axes else n for k, n in enumerate(view.shape)])


def _substitute(term: Term, high: dict[int, int], split: dict[int, int]) -> Term:
    if term.kind == "dim":
        outer = Term("dim", high[term.value])
        if term.value not in split:
            return outer
        scaled = Term("*", 0, (outer, Term("constant", split[term.value])))
        return Term("+", 0, (scaled, Term("dim", high[term.value] + 1)))
    if term.kind in ("floordiv", "mod"):
        return Term("dim", high[term.parts[0].value] + (term.kind == "mod"))
    return Term(term.kind, term.value, tuple(_substitute(part, high, split) for part in term.parts))


def index_arrays(array: np.ndarray, map_: Map, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return one index array per dimension of ``array``, each over the loops it uses.

    Raises:
        InterpreterError: a position lies outside of ``array``.
    """
    ids = [loop_index(d, sizes) for d in range(len(sizes))]
    ones = (1,) * len(sizes)
    index = tuple(np.asarray(evaluate(term, ids), np.int64) for term in map_)
    return check_index([i if i.ndim else i.reshape(ones) for i in index], array.shape)


def loop_index(d: int, sizes: Sequence[int]) -> np.ndarray:
    """Return 0..size-1 along dimension ``d`` of the iteration space."""
    return np.arange(sizes[d]).reshape([-1 if k == d else 1 for k in range(len(sizes))])
