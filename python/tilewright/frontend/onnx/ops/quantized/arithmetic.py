# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators on quantized tensors share: numbers without their zero points, sums rounded to a small type."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import F32, I32, is_int
from tilewright.frontend.builder.formats import Numbers, dequantize
from tilewright.frontend.builder.rounding import saturated
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder

_WEIGHT = 256  # elements of known bytes that are worth multiplying as such
_FLOAT8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))  # that matrix units multiply


def known_one(size: Size) -> bool:
    """Whether a size is 1, whatever a run brings."""
    return isinstance(size, int) and size == 1


def may_shift(zero: Tensor) -> bool:
    """Whether a zero point may be another number than 0."""
    return not (zero.is_known and not zero.numpy().astype(np.float64).any())


def is_weight(x: Tensor) -> bool:
    """Whether it is a known matrix of elements of at most one byte, and no small one."""
    small = x.dtype in _FLOAT8 or (is_int(x.dtype) and x.dtype.itemsize == 1)
    return x.is_known and x.rank >= 2 and small and isinstance(x.size, int) and x.size >= _WEIGHT


def kept_weight(b: Builder, x: Tensor) -> Tensor:
    """Weights of one byte stay what they are: planning sees the bytes, and what follows from them alone is folded."""
    return b.stored(x) if is_weight(x) else x


def centred(b: Builder, x: Tensor, zero: Tensor | None) -> Tensor:
    """x - zero as int32; the zero point broadcasts."""
    x = kept_weight(b, x)
    zero = zero if zero is not None and may_shift(zero) else None
    if (y := dequantize(b, x, Numbers(None, zero), I32)) is not None:
        return y
    if zero is None:
        return b.cast(x, I32)
    return b.elementwise(lambda m, x, z: m.cast(x, I32) - m.cast(z, I32), x, zero, dtype=I32, shape=x.shape)


def whole(v: Tensor | None, otherwise: Callable[[Tensor], Tensor]) -> Tensor | None:
    """A parameter of the whole tensor as a scalar; another one as `otherwise` makes it broadcast."""
    if v is None:
        return None
    return v.with_ones(()) if all(known_one(n) for n in v.shape) else otherwise(v)


def by_row(v: Tensor) -> Tensor:
    """A parameter of each row of a matrix: a vector is a column."""
    return v.unsqueeze([1]) if v.rank == 1 else v


def by_column(v: Tensor) -> Tensor:
    """A parameter of each column of a matrix broadcasts as it is."""
    return v


def by_filter(v: Tensor | None, rank: int) -> Tensor | None:
    """A parameter of each filter, along the first dimension."""
    return whole(v, lambda v: v.unsqueeze(range(1, rank)))


def requantized(b: Builder, total: Tensor, scales: list[Tensor], zero: Tensor) -> Tensor:
    """round(total * x_scale * w_scale / y_scale) + zero, saturated."""

    def body(m, total, x_scale, w_scale, y_scale, zero):
        factor = m.cast(x_scale, F32) * m.cast(w_scale, F32) / m.cast(y_scale, F32)
        return saturated(m, m.round(m.cast(total, F32) * factor) + m.cast(zero, F32), dtype)

    dtype = zero.dtype
    return b.elementwise(body, total, *scales, zero, dtype=dtype, shape=total.shape)


def zero_of(x: Tensor, zero: Tensor | None) -> Tensor:
    """A zero point of the whole of `x`: 0 where it is left out."""
    return Tensor.known(np.zeros((), x.dtype)) if zero is None else one(zero)


def one(v: Tensor) -> Tensor:
    """A parameter of a whole tensor, which some files write as [1], without dimensions."""
    return v.with_ones(()) if all(known_one(n) for n in v.shape) else v


def real(m, x, scale, zero):
    """The f32 that a code stands for: (x - zero) * scale."""
    return m.cast(m.cast(x, I32) - m.cast(zero, I32), F32) * m.cast(scale, F32)
