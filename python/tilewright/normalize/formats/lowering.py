# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantize, dequantize and parts of dense tensors as generics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.dtypes import to_numpy
from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.frontend.builder.dtypes import element_type
from tilewright.frontend.builder.rounding import quantized
from tilewright.frontend.builder.scalars import IRMath, Scalar
from tilewright.ir import decodes
from tilewright.ir.generics import create, create_generic, maker
from tilewright.mlir import ir
from tilewright.normalize.formats.spread import Blocks, sizes_for
from tilewright.passes import located
from tilewright.reference.types import dtype_of


def lower(op: ir.Operation) -> None:
    """Lower one op; one of a pattern that is not dense stays."""
    with op.location, ir.InsertionPoint(op):
        results = _LOWERINGS[op.name](op)
    if results is None:
        return
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _format(value: ir.Value) -> Format | None:
    """The format of a dense tensor; None of another one."""
    tesa = Tesa.of(value.type)
    if tesa is None or len(tesa.regions) != 1 or tesa.regions[0].pattern.kind != "dense":
        return None
    return tesa.regions[0].format


def _held(op: ir.Operation) -> tuple[ir.Value, ...]:
    """What holds the encoded tensor that an operation takes: what it was assembled of."""
    made = maker(op.operands[0])
    if made is not None and made.name == "sparse_tile.assemble":
        return tuple(made.operands)
    raise located(
        UserError(
            "an encoded tensor comes from where its parts are not known: functions, loops and branches take and give "
            "parts (sparse_tile.parts, sparse_tile.assemble)"
        ),
        op,
    )


def _parts(op: ir.Operation) -> Sequence[ir.Value] | None:
    if _format(op.operands[0]) is None:
        return None
    return [_as(value, result.type) for value, result in zip(_held(op), op.results, strict=True)]


def _as(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A tensor of which more or fewer sizes are known."""
    return value if value.type == kind else create("tensor.cast", [value], kind)


def _dequantize(op: ir.Operation) -> Sequence[ir.Value] | None:
    format = _format(op.operands[0])
    if format is None:
        return None
    codes, *numbers = _held(op)
    kind = ir.RankedTensorType(op.results[0].type)
    blocks = Blocks.of(kind.shape, format)
    reads, known = _reads(blocks, [codes, *numbers])
    shape = blocks.split_shape
    place = create("tensor.empty", sizes_for(codes), ir.RankedTensorType.get(shape, kind.element_type))
    identity = ir.AffineMap.get_identity(len(shape))

    def element(elements: list[ir.Value]) -> ir.Value:
        code, *others = _operands(elements[:-1], known)
        scale = others[0] if format.scales else None
        zero = others[-1] if format.zero_points else None
        return decodes.number(code, zero, scale, format.storage.startswith("u"), kind.element_type)

    return [_as(blocks.joined(create_generic(reads, place, identity, [False] * len(shape), element)), kind)]


def _quantize(op: ir.Operation) -> Sequence[ir.Value] | None:
    """Codes, and the tensor that is assembled of them."""
    format = _format(op.results[0])
    if format is None:
        return None
    source, *numbers = op.operands
    kind = ir.RankedTensorType(source.type)
    blocks = Blocks.of(kind.shape, format)
    reads, known = _reads(blocks, [source, *numbers])
    shape, m = blocks.split_shape, IRMath(create, element_type)
    place = create("tensor.empty", sizes_for(source), ir.RankedTensorType.get(shape, element_type(format.held)))
    dtypes = [dtype_of(kind.element_type), *(np.dtype(to_numpy(n)) for n in _numbers(format))]

    def element(elements: list[ir.Value]) -> ir.Value:
        values = zip(_operands(elements[:-1], known), dtypes, known, strict=True)
        scalars = [Scalar(m, v, dtype, None if n is None else n.value) for v, dtype, n in values]
        return quantized(m, *scalars, dtype=np.dtype(to_numpy(format.storage))).value

    identity = ir.AffineMap.get_identity(len(shape))
    codes = blocks.joined(create_generic(reads, place, identity, [False] * len(shape), element))
    whole = ir.RankedTensorType.get(kind.shape, element_type(format.held))
    return [create("sparse_tile.assemble", [_as(codes, whole), *numbers], op.results[0].type)]


def _numbers(format: Format) -> list[str]:
    """Types of scales and zero points."""
    return [name for name in (format.scales, format.zero_points) if name]


def _reads(
    blocks: Blocks, values: Sequence[ir.Value]
) -> tuple[list[tuple[ir.Value, ir.AffineMap]], list[ir.Attribute | None]]:
    """What a body reads, the tensor itself first; and for each value the number that all of it is, where one is known.

    Numbers are no operands.
    """
    whole, *others = values
    reads = [blocks.walk(whole)]
    known: list[ir.Attribute | None] = [None]
    for value in others:
        source, at = blocks.read(value, whole)
        known.append(_number(source))
        if known[-1] is None:
            reads.append((source, at))
    return reads, known


def _number(value: ir.Value) -> ir.Attribute | None:
    """The number that all elements of a constant tensor are."""
    made = maker(value)
    if made is None or made.name != "arith.constant":
        return None
    attribute = made.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    return attribute.get_splat_value()


def _operands(elements: Sequence[ir.Value], known: Sequence[ir.Attribute | None]) -> list[ir.Value]:
    """Elements and numbers in the order of the values."""
    given = iter(elements)
    return [
        next(given) if number is None else create("arith.constant", [], number.type, {"value": number})
        for number in known
    ]


_LOWERINGS = {
    "sparse_tile.quantize": _quantize,
    "sparse_tile.dequantize": _dequantize,
    "sparse_tile.parts": _parts,
}
