# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strings as codes, for one call: the words of the model have theirs, other strings get one when they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError


def as_text(value: Any, name: str) -> np.ndarray:
    """A value as an array of Python strings.

    Args:
        value: strings in an array or in nested lists, or one string; bytes are UTF-8.
        name: of the input, for errors.

    Raises:
        UserError: something else than strings.
    """
    array = np.array(value, dtype=object)
    flat = [v.decode() if isinstance(v, bytes) else v for v in array.reshape(-1).tolist()]
    strange = next((v for v in flat if not isinstance(v, str)), None)
    if strange is not None:
        raise UserError(
            f"input {name} takes strings, got {type(strange).__name__} ({strange!r}); convert it with str()"
        )
    result = np.empty(len(flat), object)
    result[:] = flat
    return result.reshape(array.shape)


class Codes:
    """The codes of one call.

    Args:
        words: the strings of the model.
        known: their codes.
    """

    def __init__(self, words: Sequence[str], known: Mapping[str, int]) -> None:
        self._words = words
        self._known = known
        self._others: dict[str, int] = {}

    def encode(self, text: np.ndarray) -> np.ndarray:
        """Codes (int64) of an array of strings; equal strings have equal ones."""
        codes = [self._code(word) for word in text.reshape(-1).tolist()]
        return np.array(codes, np.int64).reshape(text.shape)

    def _code(self, word: str) -> int:
        found = self._known.get(word)
        return self._others.setdefault(word, len(self._words) + len(self._others)) if found is None else found

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The strings of an array of codes."""
        words = [*self._words, *self._others] if self._others else self._words
        result = np.empty(codes.size, object)
        result[:] = [words[code] for code in codes.reshape(-1).tolist()]
        return result.reshape(codes.shape)
