# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: quantization, and types of 8 and 4 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .families import numpy_type
from .graphs import FLOATS, SIGNED, UNSIGNED, Graph, Value

FLOATS_8 = (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ)
NIBBLES = (TensorProto.INT4, TensorProto.UINT4)
BYTES = (TensorProto.INT8, TensorProto.UINT8)
_SCALES = (0.05, 0.125, 0.3, 1.0, 2.0)


def _scale(g: Graph, dtype: int, shape: tuple[int, ...]) -> Value:
    count = int(np.prod(shape))
    numbers = [g.choose.choice(_SCALES) for _ in range(count)]
    return g.parameter(np.array(numbers, numpy_type(dtype)).reshape(shape))


def _zero(g: Graph, dtype: int, shape: tuple[int, ...]) -> Value:
    kind = numpy_type(dtype)
    low = -3 if dtype in (*SIGNED, TensorProto.INT4) else 0
    high = 0 if dtype in FLOATS_8 else 4
    numbers = [g.choose.randint(min(low, high), high) for _ in range(int(np.prod(shape)))]
    return g.constant(np.array(numbers, np.float32).astype(kind).reshape(shape), dtype)


def _parameters(g: Graph, x: Value) -> tuple[int, tuple[int, ...]]:
    """An axis, and the shape of scales: for the tensor or along the axis."""
    if x.rank == 0 or g.choose.random() < 0.5:
        return 0, ()
    axis = g.axis(x)
    return axis, (x.shape[axis],)


def quantize(g: Graph) -> None:
    """Floats to integers or small floats, by a scale and a zero point."""
    x = g.pick((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16), lambda v: v.exact)
    axis, shape = _parameters(g, x)
    zero = _zero(
        g, g.choose.choice((*BYTES, *BYTES, TensorProto.INT16, TensorProto.UINT16, *FLOATS_8, *NIBBLES)), shape
    )
    g.apply("QuantizeLinear", [x, _scale(g, x.dtype, shape), zero], axis=axis, exact=True)


def dequantize(g: Graph) -> None:
    """Integers or small floats to floats."""
    x = g.pick((*BYTES, TensorProto.INT16, TensorProto.INT32, *FLOATS_8, *NIBBLES))
    axis, shape = _parameters(g, x)
    zero = [_zero(g, x.dtype, shape)] if x.dtype not in (*FLOATS_8, TensorProto.INT32) else []
    dtype = g.choose.choice((TensorProto.FLOAT, TensorProto.FLOAT16))
    g.apply("DequantizeLinear", [x, _scale(g, dtype, shape), *zero], axis=axis, exact=False)


def dynamic(g: Graph) -> None:
    """Bytes by the range of the tensor."""
    x = g.pick((TensorProto.FLOAT,), lambda v: v.given and 0 not in v.shape)
    g.apply("DynamicQuantizeLinear", [x], outputs=3, exact=True)


def narrow(g: Graph) -> None:
    """To types of 8 or 4 bits."""
    if g.choose.random() < 0.6:
        x = g.pick(FLOATS, lambda v: v.exact)
        g.apply("Cast", [x], to=g.choose.choice(FLOATS_8), saturate=g.choose.randint(0, 1), exact=True)
    else:
        g.apply("Cast", [g.pick((*SIGNED, *UNSIGNED))], to=g.choose.choice(NIBBLES), exact=True)


def widen(g: Graph) -> None:
    """Back from types of 8 or 4 bits."""
    x = g.pick((*FLOATS_8, *NIBBLES))
    g.apply("Cast", [x], to=g.choose.choice((*FLOATS, *(SIGNED if x.dtype in NIBBLES else ()))), exact=True)


def integer_product(g: Graph) -> None:
    """MatMulInteger of any ranks, with zero points or not."""
    x = g.pick(BYTES, low=1)
    w = g.new(g.choose.choice(BYTES), (*g.broadcastable(x.shape[:-2]), x.shape[-1], g.choose.choice((1, 3, 16, 17))))
    zeros = [_zero(g, v.dtype, ()) for v in (x, w)][: g.choose.randint(0, 2)]
    g.apply("MatMulInteger", [x, w, *zeros], exact=True)


def integer_convolution(g: Graph) -> None:
    """ConvInteger, padded by the zero point."""
    x = g.new(g.choose.choice(BYTES), (g.choose.choice((1, 2)), 3, 7, g.choose.choice((5, 8))))
    w = g.new(g.choose.choice(BYTES), (g.choose.choice((1, 4)), 3, g.choose.choice((1, 3)), 2))
    zeros = [_zero(g, v.dtype, ()) for v in (x, w)][: g.choose.randint(0, 2)]
    pads = [g.choose.choice((0, 1)) for _ in range(4)]
    g.apply("ConvInteger", [x, w, *zeros], pads=pads, strides=[g.choose.choice((1, 2)), 1], exact=True)


def quantized_product(g: Graph) -> None:
    """QLinearMatMul."""
    x = g.pick(BYTES, lambda v: v.rank >= 2, low=2)
    w = g.new(g.choose.choice(BYTES), (x.shape[-1], g.choose.choice((1, 5, 16))))
    out = g.choose.choice(BYTES)
    sides = [t for v in (x, w) for t in (v, _scale(g, 1, ()), _zero(g, v.dtype, ()))]
    g.apply("QLinearMatMul", [*sides, _scale(g, 1, ()), _zero(g, out, ())], exact=True)


PRECISION: tuple[Callable[[Graph], None], ...] = (
    quantize, dequantize, dynamic, narrow, widen, integer_product, integer_convolution, quantized_product,
)  # fmt: skip
