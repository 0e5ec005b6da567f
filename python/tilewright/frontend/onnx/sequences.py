# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences and optionals: structures of the compile time, whose leaves are tensors.

How many tensors a sequence holds, and whether an optional holds anything, is known while the model is imported; the
compiled program knows tensors only. An optional that is present *is* its value; `Absent` stands for an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.tensor import Tensor


@dataclass(frozen=True)
class TensorList:
    """An ONNX sequence of tensors.

    Attributes:
        items: its tensors.
        dtype: of its tensors; None where nothing says so.
    """

    items: tuple[Tensor, ...]
    dtype: np.dtype | None = None

    def __len__(self) -> int:
        """How many tensors."""
        return len(self.items)

    def __iter__(self) -> Iterator[Tensor]:
        """The tensors in order."""
        return iter(self.items)


@dataclass(frozen=True)
class Absent:
    """An ONNX optional that holds nothing."""


@dataclass(frozen=True)
class Lost:
    """A result that cannot be computed, where the import goes on all the same: see collector.py."""


Value = Tensor | TensorList | Absent | Lost


def leaves(values: Iterable[Value | None]) -> list[Tensor]:
    """All tensors of the values, in order."""
    flat: list[Tensor] = []
    for value in values:
        flat += [value] if isinstance(value, Tensor) else list(value) if isinstance(value, TensorList) else []
    return flat


def structure(values: Iterable[Value | None]) -> list[str]:
    """What each value is, in words."""
    return [_structure(v) for v in values]


def _structure(value: Value | None) -> str:
    if isinstance(value, TensorList):
        return f"a sequence of {len(value)}"
    return "a tensor" if isinstance(value, Tensor) else "nothing"


def rebuild(like: Iterable[Value | None], tensors: Iterable[Tensor]) -> list[Value | None]:
    """The inverse of `leaves`: values of the structure of `like` with other tensors."""
    rest = iter(tensors)
    result: list[Value | None] = []
    for value in like:
        if isinstance(value, TensorList):
            result.append(TensorList(tuple(next(rest) for _ in value.items), value.dtype))
        else:
            result.append(next(rest) if isinstance(value, Tensor) else value)
    return result
