# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of `!fractal.array`: what a type says of them, and whether that is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.dialects.fractal import DYNAMIC, RAGGED, ArrayType, Lists
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError


@dataclass(frozen=True)
class Kind:
    """What an array type says: the length of each level (a number, DYNAMIC, RAGGED), and what tensors are in it."""

    text: str
    lengths: tuple[int, ...]
    leaf_shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, type_: ir.Type) -> Kind | None:
        """What a type says; None where it is no array."""
        if not isinstance(type_, ArrayType):
            return None
        return cls(str(type_), tuple(type_.lengths), types.shape_of(type_.leaf), types.dtype_of(type_.leaf))

    def empty(self) -> Lists:
        """The value that has no elements."""
        return Lists.empty(len(self.lengths), self.leaf_shape, self.dtype)

    def check(self, value: Any, what: str) -> None:
        """Pass a value of which this is true.

        Raises:
            InterpreterError: tensors of another type, or lists of another depth or length.
        """
        if not isinstance(value, Lists):
            raise InterpreterError(f"{what} is a {type(value).__name__}: {self.text} needs Lists")
        held = value.depth, value.leaf_shape, value.dtype
        if held != (len(self.lengths), self.leaf_shape, self.dtype):
            raise InterpreterError(f"{what} is {value!r}, which is no {self.text}")
        for level, said in enumerate(self.lengths):
            lists = [len(value)] if level == 0 else np.diff(value.offsets[level - 1])
            if said != RAGGED and len(lists) and not _of_length(lists, said):
                found = " and ".join(map(str, np.unique(lists)[:2]))
                raise InterpreterError(f"{what} has lists of length {found} at level {level}, but is {self.text}")


def _of_length(lists: Any, said: int) -> bool:
    """Whether lists have the length that a type says, or all the same where it leaves that open."""
    return bool(np.all(np.asarray(lists) == (lists[0] if said == DYNAMIC else said)))
