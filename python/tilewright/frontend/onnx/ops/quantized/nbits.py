# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of a few bits, as ONNX Runtime's tools write them (com.microsoft)."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dtypes import F32, I32, is_float
from tilewright.frontend.builder.formats import Numbers, dequantize
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import matmul
from tilewright.frontend.onnx.ops.quantized.arithmetic import kept_weight
from tilewright.frontend.onnx.ops.quantized.packing import unpacked
from tilewright.frontend.onnx.registry import Builder, Node, op

_BITS = (2, 4, 8)


@op("MatMulNBits", domain="com.microsoft")
def matmul_nbits(
    b: Builder,
    node: Node,
    x: Tensor,
    packed: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    group: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """x [..., k] times the transpose of weights [n, k] of `bits` bits, `block_size` along k sharing a scale; + bias.

    Zero points are packed as the weights are, or of x's type; without them it is half of the range.
    """
    bits, block = node.attr("bits", 4), node.attr("block_size", 0)
    columns, depth = node.attr("N", 0), node.attr("K", 0)
    if bits not in _BITS or block < 1 or columns < 1 or depth < 1:
        node.unsupported(f"weights of {bits} bits in blocks of {block}; bits are 2, 4 or 8, K, N and block_size given")
    blocks = -(-depth // block)
    steps = known_array(node, packed, columns * blocks * (block * bits // 8), "bytes of weights").reshape(columns, -1)
    steps = unpacked(steps, bits, blocks * block)
    scale = Tensor.known(known_array(node, scales, columns * blocks, "scales").reshape(columns, blocks))
    zero = None
    if zeros is None:
        steps = (steps.astype(np.int16) - (1 << bits - 1)).astype(np.int8)
    elif is_float(zeros.dtype):
        zero = Tensor.known(known_array(node, zeros, columns * blocks, "zero points").reshape(columns, blocks))
    else:
        size = columns * -(-blocks * bits // 8)
        packed_zeros = known_array(node, zeros, size, "bytes of zero points").reshape(columns, -1)
        zero = Tensor.known(unpacked(packed_zeros, bits, blocks))
    steps = steps[:, :depth]
    rows = x.unsqueeze([0]) if x.rank == 1 else x
    if group is not None:
        order = _order_of_groups(node, group, block, depth)
        steps, rows = steps[:, order], b.gather(rows, Tensor.known(order), rows.rank - 1)
    weights = Tensor.known(np.ascontiguousarray(steps))
    factor = _dequantized(b, weights, Numbers(scale, zero, {1: block}, bits), x.dtype)
    result = matmul(b, rows, factor.transpose([1, 0]))
    result = result.squeeze([0]) if x.rank == 1 else result
    return result if bias is None else b.elementwise(lambda m, y, z: y + z, result, bias)


def _order_of_groups(node: Node, group: Tensor, block: int, depth: int) -> np.ndarray:
    """The order of the inputs in which those of one group lie side by side, so that they share a block's scale."""
    found = node.array(group, "the group of each input (g_idx)").reshape(-1)[:depth]
    order = np.argsort(found, kind="stable")
    if len(found) != depth or not np.array_equal(found[order], np.arange(depth) // block):
        node.unsupported(
            f"groups (g_idx) of other sizes than the blocks of {block}; quantize again with groups of block_size inputs"
        )
    return order


def known_array(node: Node, v: Tensor, size: int, what: str) -> np.ndarray:
    """The elements of an input that must be known at compile time."""
    if not v.is_known:
        node.unsupported(f"{what} that are not known at compile time")
    if v.numpy().size != size:
        node.wrong(f"{v.numpy().size} {what}; its sizes (K, N, bits, block_size) want {size}")
    return v.numpy()


def _dequantized(b: Builder, weights: Tensor, numbers: Numbers, dtype: np.dtype) -> Tensor:
    """Weights [n, k] as floats: encoded, or computed here where they are few."""
    if (y := dequantize(b, kept_weight(b, weights), numbers, dtype)) is not None:
        return y
    block, depth = (numbers.blocks or {1: 1})[1], int(weights.shape[1])
    given = [b.repeat(v, block, 1, depth) for v in (numbers.scale, numbers.zero) if v is not None]

    def body(m, step, scale, *zero):
        for z in zero:
            wide = F32 if is_float(z.dtype) else I32
            step = m.cast(step, wide) - m.cast(z, wide)
        return m.cast(m.cast(step, F32) * m.cast(scale, F32), dtype)

    return b.elementwise(body, kept_weight(b, weights), *given, dtype=dtype, shape=weights.shape)
