# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with a cover become `sparse_tile.matmul`s, one for each region, that add to each other's results."""

from __future__ import annotations

import numpy as np

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.tesa import Region, Tesa
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.ir.generics import create, create_fill, create_zero, is_zeros
from tilewright.ir.structure import describe
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.passes.notes import listened, note
from tilewright.plan.sparse.constants import LEAST_ZEROS, array_of, zero_part
from tilewright.plan.sparse.cover import Lattice, Piece, split
from tilewright.plan.sparse.decision import Sparsity
from tilewright.plan.sparse.encoding import encode
from tilewright.plan.sparse.matrices import matrix_of, tensor_of
from tilewright.plan.sparse.probe import asked
from tilewright.plan.sparse.telling import told
from tilewright.plan.sparse.weights import WeightProduct, is_product, weight_product


def apply(op: ir.Operation) -> None:
    """Rewrite a product as its decision says, and leave a note of it for the report.

    Raises:
        UserError: the cover does not fit the weight, or the operation is no product of matrices with a constant.
    """
    sparsity = Sparsity.read(op)
    if not sparsity.cover:
        if listened(op):
            _note_dense(op, sparsity)
        return
    product, array = _product(op)
    lattice = Lattice(product.matrix(array) != 0)
    try:
        Tesa(tuple(Region(pattern) for pattern in sparsity.cover)).type(lattice.live.shape, ir.F32Type.get())
        least = [sparsity.least_of(region) for region in range(len(sparsity.cover))]
        pieces = split(lattice, sparsity.cover, least)
    except UserError as error:
        raise located(UserError(f"`{decisions.SPARSITY}` asks for a cover that is none: {error}"), op) from None
    if listened(op):
        note(op, "sparsity", told(_name(op), product.m, lattice, sparsity, pieces))
    with ir.InsertionPoint(op), op.location:
        result = _multiplied(product, sparsity, pieces, find_device(op))
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _note_dense(op: ir.Operation, sparsity: Sparsity) -> None:
    """Tell of a weight with zeros that is multiplied as if it had none."""
    described = describe(op, 0)
    for number, access in enumerate(described.inputs):
        array = array_of(access.value)
        if array is None or not array.ndim or zero_part(array) < LEAST_ZEROS:
            continue
        product = weight_product(described, number) if is_product(described) else ""
        matrix = array.reshape(-1, array.shape[-1]) if isinstance(product, str) else product.matrix(array)
        rows = 0 if isinstance(product, str) else product.m
        note(op, "sparsity", told(_name(op), rows, Lattice(matrix != 0), sparsity, ()))


def _name(op: ir.Operation) -> str:
    """What the model calls an operation."""
    text = str(op.location)
    return text.split('"')[1] if text.count('"') >= 2 else ""


def _product(op: ir.Operation) -> tuple[WeightProduct, np.ndarray]:
    """The product that a decision stands on, and its constant operand's elements."""
    why = "it is no product of two tensors"
    described = describe(op, 0)
    if is_product(described):
        for number in (1, 0):
            product = weight_product(described, number)
            array = None if isinstance(product, str) else array_of(product.weight)
            if array is not None:
                assert isinstance(product, WeightProduct)
                return product, array
            why = product if isinstance(product, str) else "neither of its operands is a constant that is known"
    raise located(UserError(f'`{decisions.SPARSITY}` asks for a cover, but {why}: write cover = "dense"'), op)


def _multiplied(product: WeightProduct, sparsity: Sparsity, pieces: list[Piece], device: Device | None) -> ir.Value:
    """The result of all regions, in the place of the product's."""
    kernels = sparsity.kernels or ("",) * len(pieces)
    lefts = [_left(product, kernel, piece, device) for kernel, piece in zip(kernels, pieces, strict=True)]
    init = product.op.op.operands[2]
    kind = ir.RankedTensorType(product.op.result.type)
    result: ir.Value | None = None
    for left in (False, True):  # regions of one orientation one after the other: one transposition in all
        mine = [(p, k) for p, k, at in zip(pieces, kernels, lefts, strict=True) if at == left and p.units]
        if not mine:
            continue
        order, rows = _order(product, left)
        total = _start(init if result is None else result, init, order, rows, product, left)
        for piece, kernel in mine:
            total = _matmul(product, piece, kernel, total, left)
        result = tensor_of(total, order, rows, kind, init)
    return init if result is None else result


def _left(product: WeightProduct, kernel: str, piece: Piece, device: Device | None) -> bool:
    """Whether a family wants the weight transposed, on the left; what no family takes is told when it is lowered."""
    if not kernel or device is None:
        return False
    taken = asked(kernel, piece.pattern, product.sizes, product.elements, device)
    return not isinstance(taken, str) and taken.left


def _order(product: WeightProduct, left: bool) -> tuple[list[int], int]:
    """The result's dimensions as a matrix has them, and how many are its rows."""
    loops = product.columns + product.rows if left else product.rows + product.columns
    order = product.order_of_result(loops)
    ones = len(order) - len(loops)
    return order, ones + len(product.columns if left else product.rows)


def _start(
    value: ir.Value, init: ir.Value, order: list[int], rows: int, product: WeightProduct, left: bool
) -> ir.Value:
    """What the first matmul adds to, as a matrix."""
    if value != init or not is_zeros(init):
        return matrix_of(value, order, rows, init)
    kind = ir.RankedTensorType(init.type)
    empty = matrix_of(init.owner.operation.operands[1], order, rows) if product.open_rows else None
    if empty is None:
        shape = [product.n, product.m] if left else [product.m, product.n]
        empty = create("tensor.empty", [], ir.RankedTensorType.get(shape, kind.element_type))
    return create_fill(create_zero(kind.element_type), empty)


def _matmul(product: WeightProduct, piece: Piece, kernel: str, total: ir.Value, left: bool) -> ir.Value:
    """One region's product, added to `total`."""
    if left:
        order = product.order_of_weight(product.columns + product.depth)
        split_at = len(order) - len(product.depth)
        others = product.order_of_activations(product.depth + product.rows)
        others_at = len(others) - len(product.rows)
    else:
        order = product.order_of_weight(product.depth + product.columns)
        split_at = len(order) - len(product.columns)
        others = product.order_of_activations(product.rows + product.depth)
        others_at = len(others) - len(product.depth)
    encoded = encode(matrix_of(product.weight, order, split_at), piece, left)
    activations = matrix_of(product.activations, others, others_at)
    operands = [encoded, activations, total] if left else [activations, encoded, total]
    attributes = {"kernel": ir.StringAttr.get(kernel)} if kernel else {}
    return create("sparse_tile.matmul", operands, total.type, attributes)
