# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of GPU kernels: which are taken, and the parts of constant ones."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import maker
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.plan.sparse.forms.form import Product


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
