# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks the families of kernels whether they take a product that does not stand in the IR yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Pattern
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.passes.weights import bound
from tilewright.plan.sparse.forms.form import Form
from tilewright.plan.sparse.forms.registry import FORMS
from tilewright.plan.sparse.lower_sparse import product_of

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def transposed(pattern: Pattern) -> Pattern:
    """The pattern of a matrix, for the transposed one."""
    if isinstance(pattern, NM):
        return NM(pattern.n, pattern.m, 1 - pattern.axis, tuple(reversed(pattern.unit)))
    return Block((pattern.shape[1], pattern.shape[0])) if isinstance(pattern, Block) else pattern


def held_types(encoded: ir.Type, units: int) -> list[ir.RankedTensorType]:
    """Types of the parts of an encoded tensor of which `units` units are kept."""
    kinds = [ir.RankedTensorType(kind) for kind in part_types(encoded)]
    return [
        ir.RankedTensorType.get([units if size == _DYNAMIC else size for size in kind.shape], kind.element_type)
        for kind in kinds
    ]


def orientation(
    kernel: str, pattern: Pattern, units: int, sizes: Sequence[int], elements: Sequence[ir.Type], device: Device
) -> bool | str:
    """Whether a family wants `x [m, k] @ w [k, n]` as `w^T @ x^T`, or why it does not take it at all.

    A family that takes both gets it as it stands: nothing is transposed around it.

    Args:
        kernel: the family.
        pattern: of the weight, as [k, n].
        units: how many of its units are kept.
        sizes: m, n, k; below zero where a run brings them.
        elements: element types of the operands and of the result.
        device: the machine.
    """
    form = next((form for form in FORMS if form.name == kernel), None)
    if form is None:
        return f'there is no family "{kernel}"'
    reasons = []
    for left in (False, True):
        try:
            why = _reason(form, left, transposed(pattern) if left else pattern, units, sizes, elements, device)
        except UserError as error:
            why = str(error)
        if why is None:
            return left
        reasons.append(why)
    return reasons[0]


def _reason(
    form: Form,
    left: bool,
    pattern: Pattern,
    units: int,
    sizes: Sequence[int],
    elements: Sequence[ir.Type],
    device: Device,
) -> str | None:
    """Why a family does not take a product with a constant encoded operand, on the left or on the right."""
    m, n, k = (size if size >= 0 else _DYNAMIC for size in sizes)
    plain = ir.RankedTensorType.get([n, k] if left else [k, n], elements[0])
    encoded = Tesa.one(pattern).type(plain.shape, elements[0])
    dense = ir.RankedTensorType.get([k, m] if left else [m, k], elements[0])
    result = ir.RankedTensorType.get([n, m] if left else [m, n], elements[1])
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            extern = ir.Attribute.parse(f"#ml_program.extern : {plain}")
            named = {"sym_name": ir.StringAttr.get("w"), "type": ir.TypeAttr.get(plain), "value": extern}
            ir.Operation.create(
                "ml_program.global", attributes={**named, "sym_visibility": ir.StringAttr.get("private")}
            )
            kind = ir.FunctionType.get([dense, result], [])
            attributes = {"sym_name": ir.StringAttr.get("probe"), "function_type": ir.TypeAttr.get(kind)}
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = ir.Block.create_at_start(function.regions[0], list(kind.inputs))
        with ir.InsertionPoint(block):
            weight = create("ml_program.global_load_const", [], plain, {"global": ir.FlatSymbolRefAttr.get("w")})
            whole = assembled(create("sparse_tile.pack", [weight], encoded), units)
            activations, init = block.arguments
            operands = [whole, activations, init] if left else [activations, whole, init]
            matmul = ir.Operation.create("sparse_tile.matmul", results=[result], operands=operands)
            # Families that ask for a weight's elements are to find some: which ones is not known yet.
            with bound(module.operation, {"w": np.broadcast_to(np.float32(1), plain.shape)}):
                return form.reason_against(product_of(matmul), device)


def assembled(packed: ir.Value, units: int) -> ir.Value:
    """An encoded tensor of which `units` units are kept, assembled of parts of known sizes at the insertion point."""
    parts = ir.Operation.create("sparse_tile.parts", results=held_types(packed.type, units), operands=[packed])
    return create("sparse_tile.assemble", list(parts.results), packed.type)
