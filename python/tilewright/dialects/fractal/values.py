# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The value of a `!fractal.array`: nested lists of equal tensors, in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.flat_inputs import flat_inputs


class Lists:
    """Nested lists of tensors that have one shape and one element type.

    All tensors stand in one array, in the order of a walk through the lists, and offsets say which belong together. A
    value never changes: its arrays cannot be written through it, and who made them must not write them either.

    Attributes:
        flat: the tensors, one after the other: an array [tensors, *leaf_shape].
        offsets: for each inner level, the outermost first, where its lists begin among the elements of the next level,
            and where the last one ends: int64, one more than there are lists.
    """

    __slots__ = ("flat", "offsets")
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    flat: np.ndarray
    offsets: tuple[np.ndarray, ...]

    def __init__(self, flat: np.ndarray, offsets: Sequence[np.ndarray] = ()) -> None:
        """Take tensors and offsets.

        Raises:
            UserError: offsets that do not cut the elements into lists.
        """
        if np.ndim(flat) == 0:
            raise UserError("a list of tensors needs an array of at least one dimension, the list's own")
        view = np.asarray(flat).view()
        view.flags.writeable = False
        self.flat = view
        self.offsets = tuple(_sound(offset, level) for level, offset in enumerate(offsets))
        for level, offset in enumerate(self.offsets):
            inner = self.offsets[level + 1 : level + 2]
            held = len(inner[0]) - 1 if inner else len(view)
            if offset[-1] != held:
                raise UserError(f"offsets of level {level} end at {offset[-1]}, but there are {held} elements")

    # Making ------------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        nested: Sequence[Any],
        depth: int | None = None,
        *,
        leaf_shape: Sequence[int] | None = None,
        dtype: Any = None,
    ) -> Lists:
        """Make a value of nested Python lists of arrays, numbers or other ``Lists``.

        Args:
            nested: the lists; a list or a tuple is a level.
            depth: the number of levels; needed only where no list of some level has an element.
            leaf_shape: of the tensors; needed only where there are none.
            dtype: of the tensors; needed only where there are none. Others are cast to it.

        Raises:
            UserError: elements that differ in depth, shape or element type; or none, and nobody says what they would
                be.
        """
        if isinstance(nested, Lists):
            return nested
        sizes, elements = [], [nested]
        while elements and all(isinstance(element, list | tuple) for element in elements) and len(sizes) != depth:
            sizes.append([len(element) for element in elements])
            elements = [inner for element in elements for inner in element]
        if not sizes:
            raise UserError(f"expected a list of at least one level, got {type(nested).__name__} for depth {depth}")
        if elements and not isinstance(elements[0], Lists):
            elements = [_leaf(element, dtype) for element in elements]
        result = _given(elements, len(sizes), depth, leaf_shape, dtype)
        for widths in reversed(sizes[1:]):
            result = result.nest(widths)
        return result

    @classmethod
    def stack(cls, elements: Sequence[Any]) -> Lists:
        """A list of given elements, arrays of one shape or lists of one depth, at least one of them."""
        first = elements[0]
        if isinstance(first, Lists):
            return join(elements).nest([len(element) for element in elements])
        for place, element in enumerate(elements):
            if isinstance(element, Lists) or not _alike(element, first):
                raise UserError(f"element {place} is {_kind(element)}, but element 0 is {_kind(first)}")
        return cls(np.stack(elements))

    @classmethod
    def empty(cls, depth: int, leaf_shape: Sequence[int], dtype: Any) -> Lists:
        """An empty list of some depth."""
        return cls(np.zeros((0, *leaf_shape), dtype), (np.zeros(1, np.int64),) * (depth - 1))

    @classmethod
    def from_array(cls, array: np.ndarray, depth: int) -> Lists:
        """The lists that the first ``depth`` dimensions of an array are.

        Raises:
            UserError: the array has fewer dimensions, or depth is not positive.
        """
        array = np.asarray(array)
        if not 1 <= depth <= array.ndim:
            raise UserError(f"depth {depth} is none of 1..{array.ndim}, the dimensions of an array {array.shape}")
        counts = np.cumprod(array.shape[:depth], dtype=np.int64)
        offsets = [
            np.arange(lists + 1, dtype=np.int64) * size
            for lists, size in zip(counts[:-1], array.shape[1:depth], strict=True)
        ]
        return cls(array.reshape(int(counts[-1]), *array.shape[depth:]), offsets)

    # What it is --------------------------------------------------------------------------------------------------

    @property
    def leaf_shape(self) -> tuple[int, ...]:
        """The shape of each tensor."""
        return self.flat.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        """The element type of each tensor."""
        return self.flat.dtype

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.offsets) + 1

    @property
    def numel(self) -> int:
        """The number of tensors."""
        return len(self.flat)

    @property
    def lengths(self) -> tuple[Any, ...]:
        """For each level its lists' length, or the array of their lengths where they differ; 0 where it has no list."""
        inner = (np.diff(offset) for offset in self.offsets)
        same = (sizes if len(set(sizes.tolist())) > 1 else int(sizes[0]) if len(sizes) else 0 for sizes in inner)
        return (len(self), *same)

    def width_by_depth(self, depth: int) -> list[int]:
        """The length of each list that has ``depth`` levels: of the innermost lists for 1, of the whole for ``depth``.

        Raises:
            UserError: there are no such lists.
        """
        if not 1 <= depth <= self.depth:
            raise UserError(f"depth {depth} is none of 1..{self.depth}, those of the lists in this value")
        return [len(self)] if depth == self.depth else np.diff(self.offsets[self.depth - depth - 1]).tolist()

    def __len__(self) -> int:
        """The length of the outermost list."""
        return len(self.offsets[0]) - 1 if self.offsets else len(self.flat)

    def __eq__(self, other: object) -> bool:
        """Whether all lists have equal lengths, and all tensors equal types and elements (NaN equals nothing)."""
        if not isinstance(other, Lists):
            return NotImplemented
        return (
            self.depth == other.depth
            and self.dtype == other.dtype
            and all(np.array_equal(a, b) for a, b in zip(self.offsets, other.offsets, strict=True))
            and np.array_equal(self.flat, other.flat)
        )

    def __repr__(self) -> str:
        """Lengths, tensor type: ``Lists([2, ragged] of float32 (1, 512))``."""
        lengths = ", ".join("ragged" if np.ndim(length) else str(length) for length in self.lengths)
        return f"Lists([{lengths}] of {self.dtype} {self.leaf_shape})"

    # Elements ----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """One element (a tensor, or lists of one level less), or those of a slice.

        Raises:
            IndexError: there is no such element.
        """
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is outside a list of length {len(self)}")
        place %= len(self)
        if not self.offsets:
            return self.flat[place, ...]  # an array, even of rank 0
        start, end, inner = *self.offsets[0][place : place + 2], []
        for offset in self.offsets[1:]:
            inner.append(offset[start : end + 1] - offset[start])
            start, end = offset[start], offset[end]
        return Lists(self.flat[start:end], inner)

    def __iter__(self) -> Iterator[Any]:
        """The elements in order."""
        return (self[place] for place in range(len(self)))

    def to_nested(self) -> list[Any]:
        """Nested Python lists of arrays."""
        return [element.to_nested() if isinstance(element, Lists) else element for element in self]

    def array(self) -> np.ndarray:
        """All tensors in one array [*lengths, *leaf_shape].

        Raises:
            UserError: the lists of some level have different lengths.
        """
        for level, length in enumerate(self.lengths):
            if np.ndim(length):
                raise UserError(
                    f"lists of level {level} have lengths from {length.min()} to {length.max()}: an array needs equal "
                    "ones (`flat` and `offsets` hold lists of any lengths)"
                )
        return self.flat.reshape(*self.lengths, *self.leaf_shape)

    def model_inputs(self, name: str, given: Mapping[str, tuple[int, ...]]) -> list[np.ndarray]:
        """What a compiled model takes for this value, see :func:`flat_inputs`."""
        return flat_inputs(self, name, given)

    # What all access is made of ----------------------------------------------------------------------------------

    def take(self, places: Any) -> Lists:
        """The list of the elements at some places, which must be within the list."""
        places, offsets = np.asarray(places, np.int64), []
        for offset in self.offsets:
            starts, sizes = offset[places], offset[places + 1] - offset[places]
            offsets.append(_ends(sizes))
            places = np.repeat(starts - offsets[-1][:-1], sizes) + np.arange(offsets[-1][-1])
        return Lists(self.flat[places], offsets)

    def nest(self, sizes: Any) -> Lists:
        """A list of lists: the elements in order, cut into lists of these sizes, which must add up."""
        return Lists(self.flat, (_ends(np.asarray(sizes, np.int64)), *self.offsets))

    def flatten(self) -> Lists:
        """The elements of all lists of the outermost list, one after the other.

        Raises:
            UserError: the elements are tensors.
        """
        if not self.offsets:
            raise UserError("flatten needs a list of lists, this is a list of tensors")
        return Lists(self.flat, self.offsets[1:])


def join(parts: Sequence[Lists]) -> Lists:
    """The elements of at least one list, then those of the next, ...

    Raises:
        UserError: they differ in depth or tensor type.
    """
    first, offsets = parts[0], []
    for place, part in enumerate(parts):
        if not (isinstance(part, Lists) and part.depth == first.depth and _alike(part.flat[:0], first.flat[:0])):
            raise UserError(f"part {place} is {_kind(part)}, but part 0 is {_kind(first)}: joined lists have one type")
    for level in range(first.depth - 1):
        offsets.append(_ends(np.concatenate([np.diff(part.offsets[level]) for part in parts])))
    return Lists(np.concatenate([part.flat for part in parts]), offsets)


def _ends(sizes: np.ndarray) -> np.ndarray:
    """Offsets of lists of these sizes."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _sound(offset: Any, level: int) -> np.ndarray:
    """Offsets as an array; UserError where they do not start at 0 and ascend."""
    array = np.asarray(offset)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        raise UserError(f"offsets of level {level} are {array.dtype} {array.shape}: a list of at least one integer")
    array = array.astype(np.int64)
    falls = np.flatnonzero(np.diff(array) < 0)
    if array[0] != 0 or len(falls):
        found = f"{array[falls[0]]}, then {array[falls[0] + 1]}" if len(falls) else f"{array[0]} first"
        raise UserError(f"offsets of level {level} start at 0 and never fall, found {found}")
    array.flags.writeable = False
    return array


def _given(elements: list[Any], levels: int, depth: int | None, leaf_shape: Sequence[int] | None, dtype: Any) -> Lists:
    """The list of the innermost elements of nested lists of so many levels."""
    if not elements:
        if leaf_shape is None or dtype is None:
            raise UserError("there is no tensor in the lists: leaf_shape= and dtype= say what one would be")
        return Lists.empty(1 + max(0, (depth or levels) - levels), leaf_shape, dtype)
    result = Lists.stack(elements)
    if depth not in (None, levels + result.depth - 1):
        raise UserError(f"the lists have {levels + result.depth - 1} levels, depth says {depth}")
    if leaf_shape is not None and tuple(leaf_shape) != result.leaf_shape:
        raise UserError(f"the tensors have shape {result.leaf_shape}, leaf_shape says {tuple(leaf_shape)}")
    return result


def _leaf(element: Any, dtype: Any) -> Any:
    """A tensor of nested lists; UserError for a list, since its neighbours are tensors."""
    if isinstance(element, list | tuple):
        raise UserError("a list stands where its neighbours are tensors: all tensors are equally deep")
    return element if isinstance(element, Lists) else np.asarray(element, dtype)


def _alike(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype


def _kind(value: Any) -> str:
    """What a value is, for an error."""
    if isinstance(value, Lists):
        return repr(value)
    return f"a tensor of {np.asarray(value).dtype} {np.shape(value)}"
