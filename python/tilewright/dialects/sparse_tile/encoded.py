# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The value of an encoded tensor: what the ops of `sparse_tile` mean, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.tesa import Region, Tesa


@dataclass(frozen=True)
class Encoded:
    """A tensor held as parts.

    Attributes:
        tesa: its encoding.
        shape: of the tensor.
        dtype: of its elements.
        parts: of all regions, one after the other: those of the pattern, then scales and zero points of a format.
    """

    tesa: Tesa
    shape: tuple[int, ...]
    dtype: np.dtype
    parts: tuple[np.ndarray, ...]

    @classmethod
    def pack(cls, array: np.ndarray, tesa: Tesa) -> Encoded:
        """Hold an array by an encoding of one region without a format.

        Raises:
            UserError: the array does not fit the pattern; or there are several regions, or a format.
        """
        region = _only(tesa)
        if region.format:
            raise UserError("pack changes the pattern alone: quantize comes after it")
        return cls(tesa, array.shape, array.dtype, region.pattern.pack(array))

    def regions(self) -> Iterator[tuple[Region, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]]:
        """Each region, the parts of its pattern, and its scales and zero points."""
        place = 0
        for region in self.tesa.regions:
            held = PARTS[region.pattern.kind]
            extra = region.format.numbers if region.format else 0
            if place + held + extra > len(self.parts):
                raise UserError(f"the {len(self.parts)} parts are too few for the encoding's regions")
            parts = self.parts[place : place + held + extra]
            stored = region.format.held if region.format else np.dtype(self.dtype)
            if not _same_bytes(parts[0].dtype, stored):
                raise UserError(f"the elements that the parts hold are {parts[0].dtype}, the encoding says {stored}")
            yield region, parts[:held], parts[held:]
            place += held + extra
        if place != len(self.parts):
            raise UserError(f"{len(self.parts)} parts, the encoding's regions have {place}")

    def dense(self) -> np.ndarray:
        """The tensor element by element: the sum of its regions.

        Raises:
            UserError: parts do not fit the encoding: types, sizes, positions out of range, twice or out of order; or
            the tensor is too large to be written element by element.
        """
        total: np.ndarray | None = None
        for region, parts, numbers in self.regions():
            one = self._unpacked(region, parts)
            if region.format:
                one = self._elements(region, parts, one, numbers)
            total = one if total is None else (total + one).astype(self.dtype)
        assert total is not None
        return total

    def kept(self) -> np.ndarray:
        """Which elements some region holds: bool, of the tensor's shape."""
        found = np.zeros(self.shape, bool)
        for region, parts, _ in self.regions():
            found |= self._unpacked(region, (np.ones(parts[0].shape, bool), *parts[1:]))
        return found

    def _unpacked(self, region: Region, parts: Sequence[np.ndarray]) -> np.ndarray:
        try:
            return region.pattern.unpack(parts, self.shape)
        except MemoryError:
            raise UserError(f"there is no memory for all elements of a tensor of shape {self.shape}") from None

    def quantize(self, format: Format, scales: np.ndarray, zero_points: np.ndarray | None = None) -> Encoded:
        """The tensor's only region in another number format. Elements that the pattern leaves out stay zero."""
        region = _only(self.tesa)
        if region.format:
            raise UserError("the tensor has a number format already: dequantize comes before")
        codes = format.quantize(self.dense(), scales, zero_points)
        held = self._like(region, codes)
        extra = (scales,) if zero_points is None else (scales, zero_points)
        return replace(self, tesa=Tesa.one(region.pattern, format), parts=(*held, *extra))

    def dequantize(self) -> Encoded:
        """The tensor's only region with elements as they are."""
        ((region, parts, numbers),) = self.regions()
        if region.format is None:
            raise UserError("the tensor has no number format")
        dense = self._elements(region, parts, region.pattern.unpack(parts, self.shape), numbers)
        return replace(self, tesa=Tesa.one(region.pattern), parts=self._like(region, dense))

    def _like(self, region: Region, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Parts that keep other values at the places that this tensor keeps."""
        if region.pattern.kind in ("dense", "dynamic"):
            return (values,)
        marks = np.arange(1, values.size + 1).reshape(values.shape)
        at = region.pattern.pack(np.where(self.kept(), marks, 0))[0]
        flat = np.concatenate([np.zeros(1, values.dtype), values.reshape(-1)])
        return (flat[at], *self.parts[1 : PARTS[region.pattern.kind]])

    def _elements(
        self, region: Region, parts: Sequence[np.ndarray], codes: np.ndarray, numbers: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Elements of codes; those that the pattern leaves out are zero, whatever the zero point."""
        assert region.format
        scales = numbers[0] if region.format.scales else None
        zero_points = numbers[-1] if region.format.zero_points else None
        elements = region.format.dequantize(codes, scales, zero_points, self.dtype)
        kept = region.pattern.unpack((np.ones(parts[0].shape, bool), *parts[1:]), self.shape)
        return np.where(kept, elements, np.zeros((), self.dtype))


#: How many parts hold a tensor by each kind of pattern.
PARTS = {"dense": 1, "dynamic": 1, "mask": 3, "block": 3, "nm": 2}


def _same_bytes(given: np.dtype, stored: np.dtype) -> bool:
    """Whether elements are of a type, but for their sign: integers of the IR have none, the format says it."""
    return given == stored or (given.kind + stored.kind in ("iu", "ui") and given.itemsize == stored.itemsize)


def _only(tesa: Tesa) -> Region:
    if len(tesa.regions) != 1:
        raise UserError(f"an encoding of one region is needed, this has {len(tesa.regions)}")
    return tesa.regions[0]
