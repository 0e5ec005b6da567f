# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of values in both modes, and the annotations `ft.Array` and `ft.Tensor` that declare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.core.dtypes import from_numpy, to_numpy
from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists

RAGGED = "ragged"


class Own(str):
    """Each list of the level has its own length: the text "ragged", which also knows the largest.

    Attributes:
        most: the largest length; None where that is not known.
    """

    __slots__ = ("most",)

    def __new__(cls, most: int | None) -> Own:
        """Make one."""
        self = super().__new__(cls, RAGGED)
        self.most = most
        return self


class Length:
    """A length that only a run knows: two of them are equal only where they are one object.

    Attributes:
        scope: number of the region whose runs have one each; 0: the program has one.
        most: the largest that it may be; None where that is not known.
    """

    __slots__ = ("most", "scope")

    def __init__(self, scope: int = 0, most: int | None = None) -> None:
        self.scope, self.most = scope, most

    def __repr__(self) -> str:
        return "?"


Size = int | Length | str  # the text is RAGGED


def most_of(length: Size) -> int | None:
    """The largest number that a length may be; None where that is not known."""
    return length if isinstance(length, int) else getattr(length, "most", None)


def most_in(lengths: Sequence[Size]) -> int | None:
    """How many elements nested lists of these lengths have at most; None where that is not known."""
    known = [most for most in map(most_of, lengths) if most is not None]
    return prod(known) if len(known) == len(lengths) else None


def longest(*lengths: Size) -> int | None:
    """The largest that any of them may be; None where that is not known."""
    known = [most for most in map(most_of, lengths) if most is not None]
    return max(known) if len(known) == len(lengths) else None


@dataclass(frozen=True)
class TensorType:
    """A leaf: shape and element type."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"a tensor {from_numpy(self.dtype)}{list(self.shape)}"


@dataclass(frozen=True)
class ListType:
    """Nested lists of equal leaves, the outermost length first."""

    lengths: tuple[Size, ...]
    leaf: TensorType

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.lengths)

    def __str__(self) -> str:
        lengths = ", ".join(str(length) for length in self.lengths)
        return f"lists [{lengths}] of {from_numpy(self.leaf.dtype)}{list(self.leaf.shape)}"

    def element(self, scope: int) -> Type:
        """What indexing gives; the length of one list of many is one of the region `scope`."""
        if self.depth == 1:
            return self.leaf
        inner = self.lengths[1]
        first = Length(scope, most_of(inner)) if inner == RAGGED else inner
        return ListType((first, *self.lengths[2:]), self.leaf)


Type = TensorType | ListType


def list_of(length: Size, element: Type) -> ListType:
    """A list of equal elements."""
    if isinstance(element, TensorType):
        return ListType((length,), element)
    return ListType((length, *element.lengths), element.leaf)


def type_of(value: Any) -> Type:
    """The type of a tensor or of lists, in either mode."""
    if isinstance(value, Lists):
        lengths = (Own(int(length.max())) if np.ndim(length) else int(length) for length in value.lengths)
        return ListType(tuple(lengths), TensorType(value.leaf_shape, value.dtype))
    if isinstance(value, np.ndarray | np.generic):
        return TensorType(value.shape, value.dtype)
    return value.type


def alike(a: Type, b: Type) -> bool:
    """Whether the types differ in lengths at most."""
    if isinstance(a, TensorType) or isinstance(b, TensorType):
        return a == b
    return a.depth == b.depth and a.leaf == b.leaf


def dtype_of(dtype: Any) -> np.dtype:
    """A NumPy dtype by our name (`"f16"`) or as NumPy takes it."""
    return to_numpy(dtype) if isinstance(dtype, str) else np.dtype(dtype)


def number_dtype(*numbers: Any) -> np.dtype:
    """The element type of a tensor that Python numbers become."""
    whole = all(isinstance(number, int) for number in numbers)
    return np.dtype(
        np.bool_ if all(isinstance(number, bool) for number in numbers) else np.int64 if whole else np.float32
    )


def is_number(value: Any) -> bool:
    """Whether it is a number of Python, none of NumPy."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


# Annotations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """Annotation of nested lists: ``Array[depth, leaf_shape]`` or ``Array[depth, leaf_shape, dtype]``, f32 if not said.

    Attributes:
        depth: number of levels.
        leaf: the tensors.
    """

    depth: int
    leaf: TensorType

    def __class_getitem__(cls, items: Any) -> Array:
        items = items if isinstance(items, tuple) else (items,)
        if len(items) not in (2, 3) or not isinstance(items[0], int) or items[0] < 1:
            raise UserError(
                f"ft.Array{list(items)}: expected ft.Array[depth, leaf shape] or [depth, leaf shape, dtype]"
            )
        shape = items[1] if isinstance(items[1], tuple) else (items[1],)
        return cls(items[0], TensorType(_sizes(shape), dtype_of(items[2] if len(items) == 3 else "f32")))

    def __str__(self) -> str:
        return f"{self.depth} levels of lists of {self.leaf}"


@dataclass(frozen=True)
class Tensor:
    """Annotation of a tensor: ``Tensor[512, 512]`` or ``Tensor[512, 512, "f16"]``; ``Tensor[()]`` has rank 0."""

    type: TensorType

    def __class_getitem__(cls, items: Any) -> Tensor:
        items = items if isinstance(items, tuple) else (items,)
        named = bool(items) and not isinstance(items[-1], int | tuple)
        shape, dtype = (items[:-1], items[-1]) if named else (items, "f32")
        if len(shape) == 1 and isinstance(shape[0], tuple):
            shape = shape[0]
        return cls(TensorType(_sizes(shape), dtype_of(dtype)))

    def __str__(self) -> str:
        return str(self.type)


def _sizes(shape: Any) -> tuple[int, ...]:
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape):
        raise UserError(f"the shape {shape} of a leaf has a size that is no number: leaves have static shapes")
    return tuple(shape)
