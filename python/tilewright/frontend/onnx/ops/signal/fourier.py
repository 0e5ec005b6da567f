# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms as matrix products with tables of twiddle factors.

Complex numbers are pairs in the last dimension, so one real product over (sample, part) does a transform of any kind:
of real or complex input, to all or half of the frequencies, and back to real. Lengths that are known and composite are
split into factors of at most RADIX, each a small product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static, minimum
from tilewright.frontend.builder.dtypes import F64, promoted
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import sum_of_products
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder

RADIX = 64  # the longest transform that is one product, if its length can be split
_TABLE_ELEMENTS = 1 << 22  # larger tables are computed where they are read


@dataclass(frozen=True)
class Transform:
    """A transform of `length` samples.

    Attributes:
        length: of the whole signal, padded or cut.
        inverse: with the other sign, and divided by the length.
        onesided: forward, only the frequencies up to the half; inverse, from those to a real signal.
    """

    length: Size
    inverse: bool = False
    onesided: bool = False

    @property
    def to_real(self) -> bool:
        """Whether the result has no imaginary part."""
        return self.inverse and self.onesided

    @property
    def inputs(self) -> Size:
        """How many samples or frequencies it reads."""
        return self.length // 2 + 1 if self.to_real else self.length

    @property
    def outputs(self) -> Size:
        """How many it gives."""
        return self.length // 2 + 1 if self.onesided and not self.inverse else self.length

    def table(self, b: Builder, rows: Size, parts: int, dtype: np.dtype) -> Tensor:
        """[rows, parts of the input, outputs, parts of the output]."""
        shape = (rows, parts, self.outputs, 1 if self.to_real else 2)
        if is_static(shape) and isinstance(self.length, int) and math.prod(shape) <= _TABLE_ELEMENTS:
            j, c, k, d = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
            return Tensor.known(self._entries(j, c, k, d, self.length).astype(dtype))
        lengths = [b.size_tensor(self.length), b.size_tensor(self.inputs)]
        number = [b.positions(n).unsqueeze([e for e in range(4) if e != d]) for d, n in enumerate(shape)]
        return b.cast(b.elementwise(self._body, *number, *lengths, dtype=F64), dtype)

    def _entries(self, j: np.ndarray, c: np.ndarray, k: np.ndarray, d: np.ndarray, length: int) -> np.ndarray:
        angle = (j * k % length) * (2 * math.pi / length)
        sign = 1.0 if self.inverse else -1.0
        value = np.where(c == d, np.cos(angle), np.where(d == 0, -sign, sign) * np.sin(angle))
        if self.to_real:
            value = value * np.where((j == 0) | (2 * j == length), 1.0, 2.0)
        return value / length if self.inverse else value

    def _body(self, m, j, c, k, d, length, limit):
        turns = m.cast(m.rem(j * k, length), F64) / m.cast(length, F64)
        angle, sign = turns * (2 * math.pi), 1.0 if self.inverse else -1.0
        sine = m.sin(angle)
        value = m.where(m.eq(c, d), m.cos(angle), m.where(m.eq(d, 0), sine * -sign, sine * sign))
        value = m.where(j < limit, value, 0.0)
        if self.to_real:
            value = value * m.where(m.logical_or(m.eq(j, 0), m.eq(j * 2, length)), turns * 0.0 + 1.0, 2.0)
        return value / m.cast(length, F64) if self.inverse else value


def transform(b: Builder, x: Tensor, kind: Transform) -> Tensor:
    """[..., samples, parts] to [..., outputs, parts], computed in float32 or float64."""
    dtype = promoted(x.dtype)
    factor = _factor(kind.length)
    if factor is None:
        return _direct(b, _fitted(b, x, kind.inputs), kind, dtype)
    if kind.to_real:
        x = _mirrored(b, b.cast(_fitted(b, x, kind.inputs, pad=True), dtype), kind.length)
    x = b.cast(_fitted(b, x, kind.length, pad=True), dtype)
    y = _split(b, x, replace(kind, onesided=False), factor)
    if kind.to_real:
        return part(b, y, y.rank - 1, 0, 1)
    return _fitted(b, y, kind.outputs, axis=y.rank - 2)


def _factor(length: Size) -> int | None:
    """The largest divisor up to RADIX of a length that is worth splitting."""
    if not isinstance(length, int) or length <= RADIX:
        return None
    return max((n for n in range(2, RADIX + 1) if length % n == 0), default=None)


def _fitted(b: Builder, x: Tensor, size: Size, pad: bool = False, axis: int | None = None) -> Tensor:
    """The first `size` samples; with zeros behind them where asked for."""
    axis = x.rank - 2 if axis is None else axis
    have = x.shape[axis]
    if isinstance(have, int) and isinstance(size, int) and have < size:
        high = [size - have if d == axis else 0 for d in range(x.rank)]
        return b.pad(x, [0] * x.rank, high, 0.0) if pad else x
    return part(b, x, axis, 0, minimum(have, size))


def _direct(b: Builder, x: Tensor, kind: Transform, dtype: np.dtype) -> Tensor:
    """One product."""
    table = kind.table(b, x.shape[-2], _parts(x), dtype)
    lead = x.rank - 2
    sizes = [*x.shape[:lead], *table.shape[2:], *x.shape[lead:]]
    space = Space(sizes, frozenset([lead + 2, lead + 3]))
    operands = [(x, [*range(lead), lead + 2, lead + 3]), (table, [lead + 2, lead + 3, lead, lead + 1])]
    return sum_of_products(b, space, operands, range(lead + 2), dtype)


def _parts(x: Tensor) -> int:
    parts = x.shape[-1]
    if parts not in (1, 2):
        raise ValueError(f"the last dimension of {list(x.shape)} does not hold real (1) or complex (2) numbers")
    return int(parts)


def _split(b: Builder, x: Tensor, kind: Transform, factor: int) -> Tensor:
    """Cooley and Tukey: columns of `factor` samples, twiddle factors, then the rows."""
    length, lead = kind.length, x.rank - 2
    assert isinstance(length, int)
    rest = length // factor
    columns = b.reshape(x, (*x.shape[:lead], factor, rest, x.shape[-1]))
    place = [*range(lead), lead + 1, lead, lead + 2]
    y = _direct(b, columns.transpose(place), Transform(factor, kind.inverse), x.dtype)  # [..., rest, factor, 2]
    y = _twisted(b, y, kind)
    inner = Transform(rest, kind.inverse)
    y = transform(b, y.transpose(place), inner)  # [..., factor, rest, 2]
    return b.reshape(y.transpose(place), (*x.shape[:lead], length, 2))


def _twisted(b: Builder, y: Tensor, kind: Transform) -> Tensor:
    """[..., row, column, part] times the twiddle factors of row * column."""
    lead, (rows, columns) = y.rank - 3, y.shape[-3:-1]
    assert isinstance(rows, int) and isinstance(columns, int) and isinstance(kind.length, int)
    check_known(rows, columns, 4)
    angle = np.outer(np.arange(rows), np.arange(columns)) * (2 * math.pi / kind.length)
    cos, sin = np.cos(angle), np.sin(angle) if kind.inverse else -np.sin(angle)
    table = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], -2)  # [row, column, part, part]
    space = Space([*y.shape[:-1], 2, 2], frozenset([lead + 3]))
    operands = [
        (y, [*range(lead + 2), lead + 3]),
        (Tensor.known(table.astype(y.dtype)), [lead, lead + 1, lead + 3, lead + 2]),
    ]
    return sum_of_products(b, space, operands, range(lead + 3))


def _mirrored(b: Builder, x: Tensor, length: Size) -> Tensor:
    """All frequencies of a real signal from those up to the half."""
    half, lead = x.shape[-2], x.rank - 2
    assert isinstance(half, int) and isinstance(length, int)
    signs = Tensor.known(np.array([1.0, -1.0], x.dtype))
    check_known(half, 2)
    edge = np.ones((half, 2), x.dtype)
    edge[0, 1] = 0.0
    if length % 2 == 0:
        edge[-1, 1] = 0.0
    x = b.elementwise(lambda m, x, e: x * e, x, Tensor.known(edge))
    starts = [0] * lead + [length - half, 0]
    sizes = [*x.shape[:lead], length - half, 2]
    back = b.slice(x, starts, sizes, [1] * lead + [-1, 1])
    return b.concat([x, b.elementwise(lambda m, x, s: x * s, back, signs)], lead)
