# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of an ONNX graph while it is imported: views of stored data.

A :class:`Tensor` has a logical shape (what ONNX says) and stored data (a NumPy array or an SSA value). The view
between them is `dims`: the logical dimension that each stored dimension holds, or None for a stored dimension of
size 1 that the logical shape does not have. Logical dimensions that are not stored have size 1. Hence Transpose,
Squeeze, Unsqueeze and every reshape that only moves ones cost nothing: their consumers' indexing maps absorb them.

Sizes are ints, or :class:`Dim`s where they are known at run time only; the data is an SSA value then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static
from tilewright.frontend.builder.limits import check_tensor
from tilewright.mlir import ir


@dataclass(frozen=True, eq=False)
class Tensor:
    """One value: dtype, logical shape, stored data and the view between them."""

    dtype: np.dtype
    shape: tuple[Size, ...]
    data: np.ndarray | ir.Value
    dims: tuple[int | None, ...]

    @staticmethod
    def known(array: np.ndarray | Sequence | int | float, dtype: np.typing.DTypeLike = None) -> Tensor:
        """A tensor whose elements are known at compile time."""
        array = np.asarray(array, dtype)
        return Tensor(array.dtype, array.shape, array, tuple(range(array.ndim)))

    @property
    def rank(self) -> int:
        """Number of logical dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known at compile time."""
        return is_static(self.shape)

    @property
    def size(self) -> Size:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_known(self) -> bool:
        """Whether the elements are known at compile time (they may still be large: a weight)."""
        return isinstance(self.data, np.ndarray)

    def numpy(self) -> np.ndarray:
        """The known elements in logical order; a view of the stored array."""
        assert isinstance(self.data, np.ndarray)
        kept = [j for j, d in enumerate(self.dims) if d is not None]
        squeezed = self.data[tuple(slice(None) if d is not None else 0 for d in self.dims)]
        position = {self.dims[j]: i for i, j in enumerate(kept)}
        moved = squeezed.transpose([position[d] for d in range(self.rank) if d in position])
        return moved[tuple(slice(None) if d in position else None for d in range(self.rank))]

    def stored_order(self) -> tuple[int, ...]:
        """The logical dimensions larger than 1, in the order in which they are stored."""
        return tuple(d for d in self.dims if d is not None and self.shape[d] != 1)

    def full_order(self) -> list[int]:
        """All logical dimensions: those of size 1, then the others in the order in which they are stored."""
        order = self.stored_order()
        return [*(d for d in range(self.rank) if d not in order), *order]

    def is_ordered(self) -> bool:
        """Whether the elements are stored in logical (row-major) order."""
        order = self.stored_order()
        return order == tuple(sorted(order))

    def transpose(self, perm: Sequence[int]) -> Tensor:
        """The view whose dimension i is this tensor's dimension perm[i]."""
        place = {d: i for i, d in enumerate(perm)}
        dims = tuple(None if d is None else place[d] for d in self.dims)
        return replace(self, shape=tuple(self.shape[d] for d in perm), dims=dims)

    def with_ones(self, shape: Sequence[Size]) -> Tensor:
        """The view with another `shape` that differs only in where its ones are."""
        old = [d for d, n in enumerate(self.shape) if n != 1]
        new = [d for d, n in enumerate(shape) if n != 1]
        if [self.shape[d] for d in old] != [shape[d] for d in new]:
            raise ValueError(f"a tensor of {self.rank} dimensions does not fit into {len(shape)}")
        place = dict(zip(old, new, strict=True))
        dims = tuple(None if d is None else place.get(d) for d in self.dims)
        return replace(self, shape=tuple(shape), dims=dims)

    def squeeze(self, axes: Sequence[int]) -> Tensor:
        """The view without the size-1 dimensions `axes`."""
        return self.with_ones([n for d, n in enumerate(self.shape) if d not in axes])

    def unsqueeze(self, axes: Sequence[int]) -> Tensor:
        """The view with size-1 dimensions at positions `axes` of the result."""
        if len({*axes}) < len(axes) or any(not 0 <= d < self.rank + len(axes) for d in axes):
            raise ValueError(f"axes {list(axes)} cannot be added to {self.rank} dimensions")
        rest = iter(self.shape)
        return self.with_ones([1 if d in axes else next(rest) for d in range(self.rank + len(axes))])


def nothing(shape: Sequence[int], dtype: np.dtype) -> Tensor:
    """The tensor of no elements: known, whatever it is computed from."""
    check_tensor(shape, np.dtype(dtype).itemsize)
    return Tensor.known(np.empty(tuple(shape), dtype))
