# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constant weights as kernels read them: tensors whose elements follow from their places, made at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.generics import create, create_generic, create_zero
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.indices import below, number


def table(shape: Sequence[int], element: ir.Type, compute: Callable[..., ir.Value]) -> ir.Value:
    """A tensor whose elements `compute` makes of their places (index values, one a dimension)."""
    target = create("tensor.empty", [], ir.RankedTensorType.get(list(shape), element))

    def inner(_elements: list[ir.Value]) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        return compute(
            *(
                create("linalg.index", [], ir.IndexType.get(), {"dim": ir.IntegerAttr.get(i64, d)})
                for d in range(len(shape))
            )
        )

    return create_generic([], target, ir.AffineMap.get_identity(len(shape)), [False] * len(shape), inner)


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    """a and b."""
    return create("arith.andi", [a, b], a.type)


def read_or(source: ir.Value, places: Sequence[ir.Value], otherwise: ir.Value) -> ir.Value:
    """The element of a tensor at places, or another value where one of them lies behind its end."""
    kind = ir.RankedTensorType(source.type)
    inside, clamped = None, []
    for place, size in zip(places, kind.shape, strict=True):
        clamped.append(create("arith.minui", [place, number(size - 1)], place.type))
        here = below(place, size)
        inside = here if inside is None else both(inside, here)
    found = create("tensor.extract", [source, *clamped], kind.element_type)
    return create("arith.select", [inside, found, otherwise], kind.element_type)


def word_of(elements: Sequence[ir.Value], bits: int, word: ir.Type) -> ir.Value:
    """Integers or indices of so many bits each as one word, the first one in the lowest bits."""
    total = create_zero(word)
    for place, element in enumerate(elements):
        cast = "arith.index_castui" if isinstance(element.type, ir.IndexType) else "arith.extui"
        one = element if element.type == word else create(cast, [element], word)
        total = create("arith.ori", [total, create("arith.shli", [one, number(place * bits, word)], word)], word)
    return total
