# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images with a border that is not in memory: a `tensor.pad` with `tile.implicit_padding`, and how it is made."""

from __future__ import annotations

from tilewright.ir import decisions
from tilewright.ir.generics import create, maker
from tilewright.ir.structure import LinalgOp, index_terms
from tilewright.ir.views import groups_of
from tilewright.mlir import ir

_RESHAPE = "tensor.expand_shape"
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def is_implicitly_padded(value: ir.Value) -> bool:
    """Whether a tensor is an image with a border that is not in memory."""
    made = maker(value)
    return made is not None and made.name == "tensor.pad" and decisions.IMPLICIT_PADDING.on(made)


def expand_inside(padded: ir.Value, kind: ir.RankedTensorType, attributes: dict) -> ir.Value:
    """A `tensor.expand_shape` of an image with a border, as the border around the image in that shape.

    Args:
        padded: the image with its border; dimensions that have one keep their shape.
        kind: the type of the result.
        attributes: those of the reshape of `padded`.
    """
    pad = maker(padded)
    assert pad is not None
    groups = groups_of(attributes["reassociation"])
    image, shape = pad.operands[0], []
    sizes = ir.RankedTensorType(image.type).shape
    low, high = (list(ir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    lows, highs = [0] * kind.rank, [0] * kind.rank
    for dim, group in enumerate(groups):
        shape += [sizes[dim]] if len(group) == 1 else [kind.shape[d] for d in group]
        lows[group[0]], highs[group[0]] = low[dim], high[dim]
    inner = ir.RankedTensorType.get(shape, kind.element_type)
    reshaped = create(_RESHAPE, [image], inner, {**attributes, "static_output_shape": ir.DenseI64ArrayAttr.get(shape)})
    block = pad.regions[0].blocks[0]
    filler = block.operations[len(block.operations) - 1].operands[0]
    return surround(reshaped, kind, lows, highs, filler)


def bound_windows(product: LinalgOp) -> None:
    """Let what a product reads through windows end where the image does, not where the last window of a tile would.

    Rows of a tile behind the last one read elements that no one needs; those outside of the image are then zeros, as
    in a border, and a box of the image needs no bounds of its own. Where channels are summed, that is: elsewhere no
    box is read.
    """
    for number, access in enumerate(product.inputs):
        kind = ir.RankedTensorType(access.value.type)
        dims = [d for d, expr in enumerate(access.map.results) if _moves(expr)]
        channels = product.reductions & {d for d in access.dims if d in product.inputs[1 - number].dims}
        if not dims or not channels or is_implicitly_padded(access.value):
            continue
        high = [int(d in dims) for d in range(kind.rank)]
        shape = [n if n == _DYNAMIC else n + h for n, h in zip(kind.shape, high, strict=True)]
        larger = ir.RankedTensorType.get(shape, kind.element_type)
        with product.op.location, ir.InsertionPoint(product.op):
            zero = create("arith.constant", [], kind.element_type, {"value": _zero(kind.element_type)})
            product.op.operands[number] = surround(access.value, larger, [0] * kind.rank, high, zero)


def _moves(expr: ir.AffineExpr) -> bool:
    """Whether an index is that of a window: a sum of loops, or in steps."""
    terms = index_terms(expr)
    return terms is not None and (len(terms) > 1 or any(step != 1 for step in terms.values()))


def _zero(element: ir.Type) -> ir.Attribute:
    return ir.FloatAttr.get(element, 0.0) if "f" in str(element) else ir.IntegerAttr.get(element, 0)


def surround(image: ir.Value, kind: ir.Type, low: list[int], high: list[int], filler: ir.Value) -> ir.Value:
    """An image with a border that is not in memory, at the current insertion point.

    Args:
        image: the image.
        kind: the type of the result.
        low: how wide the border is before each dimension.
        high: and behind it.
        filler: a constant zero.
    """
    op = ir.Operation.create(
        "tensor.pad",
        results=[kind],
        operands=[image],
        attributes={
            "static_low": ir.DenseI64ArrayAttr.get(low),
            "static_high": ir.DenseI64ArrayAttr.get(high),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
            decisions.IMPLICIT_PADDING: ir.UnitAttr.get(),
        },
        regions=1,
    )
    index = ir.IndexType.get()
    block = ir.Block.create_at_start(op.regions[0], [index] * ir.RankedTensorType(kind).rank)
    with ir.InsertionPoint(block):
        ir.Operation.create("tensor.yield", operands=[filler])
    return op.result
