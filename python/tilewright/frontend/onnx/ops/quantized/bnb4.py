# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights in 4-bit tables of floats, as bitsandbytes has them (com.microsoft)."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import matmul
from tilewright.frontend.onnx.ops.quantized.elementwise import MS
from tilewright.frontend.onnx.ops.quantized.nbits import known_array
from tilewright.frontend.onnx.registry import Builder, Node, op

# What the 16 codes stand for, as shares of a block's largest magnitude: a sign, 2 bits of exponent and one of mantissa;
# and quantiles of the normal distribution (QLoRA, https://arxiv.org/abs/2305.14314, appendix E).
_HALF_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_FP4 = (*_HALF_FP4, *(-v for v in _HALF_FP4))
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)


@op("MatMulBnb4", domain=MS)
def matmul_bnb4(b: Builder, node: Node, x: Tensor, packed: Tensor, largest: Tensor) -> Tensor:
    """x [..., k] times the transpose of weights [n, k] (transB=0: x [..., n] times them), 4 bits each, in blocks.

    Codes go through all weights in row-major order, the first of a pair in a byte's high half; each block has its
    largest magnitude. The weights become floats at compile time: no number format has tables.
    """
    columns, depth, block = node.attr("N", 0), node.attr("K", 0), node.attr("block_size", 0)
    if columns < 1 or depth < 1 or block < 1 or node.attr("quant_type", 0) not in (0, 1):
        node.wrong("K, N and block_size must be given, and quant_type be 0 (FP4) or 1 (NF4)")
    count = columns * depth
    codes = known_array(node, packed, -(-count // 2), "bytes of weights").reshape(-1)
    codes = np.stack([codes >> 4, codes & 15], 1).reshape(-1)[:count]
    scale = known_array(node, largest, -(-count // block), "largest magnitudes").reshape(-1)
    table = np.array(_NF4 if node.attr("quant_type", 0) else _FP4, np.float32)
    values = table[codes] * scale.astype(np.float32).repeat(block)[:count]
    b.remark(
        f"weights of 4 bits with a table become floats ({count * x.dtype.itemsize} bytes); MatMulNBits keeps them small"
    )
    weights = Tensor.known(values.astype(x.dtype).reshape(columns, depth))
    rows = x.unsqueeze([0]) if x.rank == 1 else x
    result = matmul(b, rows, weights.transpose([1, 0]) if node.attr("transB", 1) else weights)
    return result.squeeze([0]) if x.rank == 1 else result
