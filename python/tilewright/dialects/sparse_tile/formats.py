# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Number formats: codes, scales and zero points that stand for the elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.dtypes import bits_of, to_numpy
from tilewright.core.errors import UserError

STORAGE = ("i2", "u2", "i4", "u4", "i8", "u8", "f8e4m3fn", "f8e5m2")


@dataclass(frozen=True)
class Format:
    """An element is ``(code - zero point) * scale``; without scales an int32, the difference.

    Arrays of codes and zero points of fewer than 8 bits have a byte for each.

    Attributes:
        storage: type of codes, one of `STORAGE`.
        scales: a float type, None where there are none.
        zero_points: type of zero points, None where there are none.
        group: block of elements that share a scale, a number per dimension, None for the whole of it; () for one scale.

    Raises:
        UserError: another storage type, or codes that are floats with zero points or without scales.
    """

    storage: str
    scales: str | None = "f32"
    zero_points: str | None = None
    group: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if self.storage not in STORAGE:
            raise UserError(f"a format stores {', '.join(STORAGE)}, not {self.storage}")
        if self.is_float and self.zero_points:
            raise UserError(f"codes of type {self.storage} have no zero points")
        if self.is_float and not self.scales:
            raise UserError(f"codes of type {self.storage} have scales")

    @property
    def is_float(self) -> bool:
        """Whether codes are floats."""
        return self.storage.startswith("f")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest code of integers."""
        bits = bits_of(self.storage)
        return (0, 2**bits - 1) if self.storage.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    @property
    def numbers(self) -> int:
        """How many parts a format adds: scales and zero points."""
        return bool(self.scales) + bool(self.zero_points)

    def scale_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Sizes of the tensor of scales of a tensor of `shape`."""
        group = self.group or (None,) * len(shape)
        return tuple(1 if step is None else -(-size // step) for size, step in zip(shape, group, strict=True))

    def spread(self, per_group: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """A value per group as a value per element of `shape`."""
        if per_group.shape != self.scale_shape(shape):
            raise UserError(
                f"{per_group.shape} scales or zero points for a tensor of shape {tuple(shape)} in groups of "
                f"{self.group or 'the whole'}: {self.scale_shape(shape)} are needed"
            )
        for dim, size in enumerate(shape):
            step = self.group[dim] if self.group else None
            if step is not None:
                per_group = np.repeat(per_group, step, axis=dim)[(slice(None),) * dim + (slice(size),)]
        return np.broadcast_to(per_group, shape)

    def quantize(self, array: np.ndarray, scales: np.ndarray, zero_points: np.ndarray | None = None) -> np.ndarray:
        """Codes of an array: ``saturate(round(x / scale) + zero point)``, halves to even, NaN to the least code.

        The quotient is rounded to the type of the scales, as QuantizeLinear of ONNX has it.

        Args:
            array: floats of any shape.
            scales: one for each group, positive.
            zero_points: as many.

        Raises:
            UserError: sizes do not fit, or a scale is not positive.
        """
        if not (np.asarray(scales, np.float64) > 0).all():
            raise UserError("scales must be positive numbers")
        wide = _wide(np.asarray(scales).dtype)
        ratio = array.astype(wide) / self.spread(scales, array.shape).astype(wide)
        ratio = ratio.astype(np.asarray(scales).dtype).astype(wide)
        if self.is_float:
            top = _largest(self.storage)
            return np.clip(ratio, -top, top).astype(to_numpy(self.storage))
        low, high = self.limits
        shift = 0 if zero_points is None else self.spread(self.plain(zero_points), array.shape).astype(wide)
        codes = np.rint(ratio) + shift
        return np.clip(np.where(np.isnan(codes), low, codes), low, high).astype(self.held)

    @property
    def held(self) -> np.dtype:
        """Type of an array of codes."""
        name = self.storage if self.is_float or bits_of(self.storage) == 8 else f"{self.storage[0]}8"
        return np.dtype(to_numpy(name))

    def plain(self, numbers: np.ndarray) -> np.ndarray:
        """Codes or zero points with their sign: the IR's bytes have none."""
        if self.is_float or numbers.dtype not in (np.int8, np.uint8):
            return numbers
        return numbers.view(self.held)

    def dequantize(
        self, codes: np.ndarray, scales: np.ndarray | None, zero_points: np.ndarray | None, dtype: np.dtype
    ) -> np.ndarray:
        """Elements of codes, computed in f32 (the difference of integers exactly) and rounded to `dtype`."""
        values = self.plain(codes)
        if zero_points is not None:
            zero = self.spread(self.plain(zero_points), codes.shape)
            wide = np.int32 if zero.dtype.kind in "iu" else np.float32
            values = values.astype(wide) - zero.astype(wide)
        if scales is None:
            return values.astype(dtype)
        return (values.astype(np.float32) * self.spread(scales, codes.shape).astype(np.float32)).astype(dtype)


def _wide(dtype: np.dtype) -> np.dtype:
    """The type that elements of `dtype` are computed in."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _largest(storage: str) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(to_numpy(storage)).max)
