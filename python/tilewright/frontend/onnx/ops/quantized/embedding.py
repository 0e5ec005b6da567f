# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of quantized rows that indices pick from (com.microsoft)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dtypes import F32, I32, is_int
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.bounds import check_indices
from tilewright.frontend.onnx.ops.nn.normalization import standardize
from tilewright.frontend.onnx.ops.quantized.arithmetic import one, real
from tilewright.frontend.onnx.ops.quantized.elementwise import MS
from tilewright.frontend.onnx.ops.quantized.packing import unpacked
from tilewright.frontend.onnx.registry import Builder, Node, op


@dataclass(frozen=True)
class _Table:
    """Codes with a byte each, scales and zero points of blocks along one axis, whose last block is whole."""

    codes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    axis: int
    block: int


@op("GatherBlockQuantized", domain=MS)
def gather_block_quantized(
    b: Builder, node: Node, data: Tensor, indices: Tensor, scales: Tensor, zeros: Tensor | None = None
) -> Tensor:
    """Gather from codes, whose blocks along an axis share a scale: only what is picked becomes floats."""
    table = _table(node, data, scales, zeros)
    axis = node.axis(node.attr("gather_axis", 0), table.codes.ndim)
    extent = int(data.shape[axis])
    check_indices(b, node, indices, extent, axis)
    indices = b.elementwise(lambda m, i: m.where(i < 0, i + extent, i), indices)
    blocks = indices
    if axis == table.axis:
        blocks = b.elementwise(lambda m, i: m.div(i, table.block), indices)
    codes = b.gather(b.stored(Tensor.known(table.codes)), indices, axis)
    numbers = [b.gather(Tensor.known(v), blocks, axis) for v in (table.scales, table.zeros) if v is not None]
    return _floats(b, codes, numbers, table, axis, indices.rank, _size(node, data, table.axis))


def _size(node: Node, data: Tensor, axis: int) -> int:
    """How many codes a table has along an axis, several of which a byte may hold."""
    packed = data.dtype == np.uint8 and axis == data.rank - 1
    return int(data.shape[axis]) * (8 // node.attr("bits", 4) if packed else 1)


def _table(node: Node, data: Tensor, scales: Tensor, zeros: Tensor | None) -> _Table:
    """The table as its attributes describe it, padded to whole blocks."""
    codes, scale = node.array(data, "the table"), node.array(scales, "its scales")
    bits = node.attr("bits", 4)
    points = None if zeros is None else node.array(zeros, "its zero points")
    axis = node.axis(node.attr("quantize_axis", 1), codes.ndim)
    if codes.dtype == np.uint8:
        if bits not in (2, 4, 8):
            node.wrong(f"codes of {bits} bits; bits are 2, 4 or 8")
        codes = unpacked(codes, bits, codes.shape[-1] * (8 // bits))
        if points is None:
            points = np.full(scale.shape, 1 << bits - 1, np.uint8)
        elif points.shape != scale.shape:
            points = unpacked(points, bits, scale.shape[-1])
    block = node.attr("block_size", 128) or codes.shape[axis]
    wanted = tuple(-(-n // block) if d == axis else n for d, n in enumerate(codes.shape))
    fits = len(scale.shape) == len(wanted) and all(s in (n, 1) for s, n in zip(scale.shape, wanted, strict=True))
    if not fits or (points is not None and points.shape != scale.shape):
        node.wrong(f"scales {list(scale.shape)} do not fit blocks of {block} along axis {axis} of {list(codes.shape)}")
    scale = np.broadcast_to(scale, wanted)
    points = None if points is None else np.broadcast_to(points, wanted)
    missing = [(0, wanted[d] * block - n if d == axis else 0) for d, n in enumerate(codes.shape)]
    return _Table(np.pad(codes, missing), scale, points, axis, block)


def _floats(b: Builder, codes: Tensor, numbers: list[Tensor], table: _Table, axis: int, rank: int, size: int) -> Tensor:
    """Picked codes by the scales picked beside them: (code - zero) * scale, in the scale's type."""
    dtype = numbers[0].dtype
    wide = I32 if is_int(codes.dtype) else F32

    def body(m, code, scale, *zero):
        value = m.cast(code, wide)
        for z in zero:
            value = value - m.cast(z, wide)
        return m.cast(m.cast(value, F32) * m.cast(scale, F32), dtype)

    if axis == table.axis:  # a scale for each code
        return b.elementwise(body, codes, *numbers, dtype=dtype)
    along = table.axis + rank - 1 if table.axis > axis else table.axis
    shape = codes.shape
    split = (*shape[:along], shape[along] // table.block, table.block, *shape[along + 1 :])
    given = [v.unsqueeze([along + 1]) for v in numbers]
    y = b.reshape(b.elementwise(body, b.reshape(codes, split), *given, dtype=dtype), shape)
    return b.slice(y, [0] * y.rank, [size if d == along else n for d, n in enumerate(shape)], [1] * y.rank)


@op("QEmbedLayerNormalization", domain=MS)
def qembed_layer_norm(b: Builder, node: Node, ids: Tensor, segments: Tensor | None, *rest: Tensor | None) -> list:
    """The sum of the rows of words, positions and segments, normalized; and how many tokens the mask leaves."""
    words, positions, segment, gamma, beta, mask, *numbers = rest
    scales, zeros = numbers[:5], numbers[5:]
    if any(v is None for v in (words, positions, gamma, beta, *scales[:2], *scales[3:])) or len(zeros) != 5:
        node.wrong("tables, scales and zero points are missing; only those of the segments, and the mask, are optional")
    places = b.positions(ids.shape[1]).unsqueeze([0])
    total = None
    for number, (table, indices) in enumerate(((words, ids), (positions, places), (segment, segments))):
        if table is None or indices is None:
            continue
        check_indices(b, node, indices, table.shape[0], 0)
        row = b.gather(b.stored(table), indices, 0)
        row = b.elementwise(real, row, one(scales[number]), one(zeros[number]), dtype=F32)
        total = row if total is None else b.elementwise(lambda m, x, y: x + y, total, row)
    assert total is not None
    factor, offset = (
        b.elementwise(real, v, one(scales[n]), one(zeros[n]), dtype=F32) for v, n in ((gamma, 3), (beta, 4))
    )
    epsilon = node.attr("epsilon", 1e-12)
    y, _, _ = standardize(b, total, [2], epsilon, lambda m, x, f, o: x * f + o, factor, offset)
    return [y, _kept(b, ids, mask)]


def _kept(b: Builder, ids: Tensor, mask: Tensor | None) -> Tensor:
    """How many tokens of each row the mask leaves; 0 without a mask."""
    if mask is None:
        return b.broadcast(Tensor.known(np.zeros(1, np.int32)), [ids.shape[0]])
    return b.reduce("sum", b.elementwise(lambda m, v: m.where(m.eq(v, 1), m.scalar(1, I32), 0), mask), [1], False)
