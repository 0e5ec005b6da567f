# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constant weights as GPU kernels read them: tensors whose elements follow from their places, made at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.generics import create, create_generic, maker
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.indices import below, number


def element_of(value: ir.Value) -> str:
    """The type of a tensor's elements, as text."""
    return str(ir.RankedTensorType(value.type).element_type)


def reason_types(product: Product, types: Sequence[str]) -> str | None:
    """Why a family of kernels for operands of these types does not take a product; None where it does."""
    given, dense = element_of(product.encoded), element_of(product.dense)
    if given not in types or dense != given:
        return f"elements are {given} and {dense}, not both {', '.join(types[:-1])} or {types[-1]}"
    if product.element not in (given, "f32"):
        return f"the result is of {product.element}"
    if min(product.k, product.m if product.left else product.n) < 0:
        return "sizes of the sparse operand are not known"
    return "there is nothing to multiply" if 0 in (product.m, product.k, product.n) else None


def sized_parts(encoded: ir.Value, shapes: Sequence[Sequence[int]]) -> tuple[ir.Value, ...]:
    """The parts of an encoded constant, whose sizes are known: each as long as `shapes` says."""
    made = maker(encoded)
    if made is not None and made.name == "sparse_tile.assemble":
        return tuple(made.operands)
    kinds = [ir.RankedTensorType(kind) for kind in part_types(encoded.type)]
    results = [
        ir.RankedTensorType.get(list(shape), kind.element_type) for shape, kind in zip(shapes, kinds, strict=True)
    ]
    return tuple(ir.Operation.create("sparse_tile.parts", results=results, operands=[encoded]).results)


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


def tasks_of(product: Product, width: int) -> ir.Value | int:
    """How many tiles of so many elements cover the dense operand across the depth."""
    other, dim = (product.n, 1) if product.left else (product.m, 0)
    if other >= 0:
        return -(-other // width)
    size = create("tensor.dim", [product.dense, number(dim)], ir.IndexType.get())
    return create("arith.ceildivui", [size, number(width)], size.type)


def result_of(product: Product) -> ir.Value:
    """A tensor for the result."""
    other, dim = (product.n, 1) if product.left else (product.m, 0)
    sizes = [] if other >= 0 else [create("tensor.dim", [product.dense, number(dim)], ir.IndexType.get())]
    return create("tensor.empty", sizes, ir.RankedTensorType(product.op.results[0].type))
