# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks the families of kernels whether they take a product that does not stand in the IR yet."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Pattern
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.plan.cost.sparse import LEFT
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


def reason_against(
    kernel: str, pattern: Pattern, units: int, sizes: Sequence[int], elements: Sequence[ir.Type], device: Device
) -> str | None:
    """Why a family does not take `x [m, k] @ w [k, n]` with `w` in a pattern; None where it does.

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
    m, n, k = (size if size >= 0 else _DYNAMIC for size in sizes)
    left = kernel in LEFT
    try:
        encoded = Tesa.one(transposed(pattern) if left else pattern).type([n, k] if left else [k, n], elements[0])
    except UserError as error:
        return str(error)
    dense = ir.RankedTensorType.get([k, m] if left else [m, k], elements[0])
    result = ir.RankedTensorType.get([n, m] if left else [m, n], elements[1])
    parts = held_types(encoded, units)
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            kind = ir.FunctionType.get([*parts, dense, result], [])
            attributes = {"sym_name": ir.StringAttr.get("probe"), "function_type": ir.TypeAttr.get(kind)}
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = ir.Block.create_at_start(function.regions[0], list(kind.inputs))
        with ir.InsertionPoint(block):
            *held, activations, init = block.arguments
            whole = ir.Operation.create("sparse_tile.assemble", results=[encoded], operands=held).result
            operands = [whole, activations, init] if left else [activations, whole, init]
            matmul = ir.Operation.create("sparse_tile.matmul", results=[result], operands=operands)
            return form.reason_against(product_of(matmul), device)
