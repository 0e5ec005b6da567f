# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds on what a model may ask of the importer: a damaged file can name any number."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.core.errors import UnsupportedError

KNOWN_ELEMENTS = 1 << 28  # of tensors computed while a model is imported; weights of the model may be larger
RANK = 64  # dimensions of a tensor
UNROLLED = 1 << 12  # copies of code for one node
_BYTES = 1 << 62  # of a tensor: positions in it must fit in 64 bits
_WORD = 1 << 63


def check_known(*sizes: int) -> None:
    """Raises UnsupportedError for a tensor too large to be computed by the importer."""
    if prod(sizes) > KNOWN_ELEMENTS:
        raise UnsupportedError(
            f"a constant of {' x '.join(map(str, sizes))} elements is too large to be computed at compile time "
            f"(at most {KNOWN_ELEMENTS})"
        )


def check_tensor(shape: Sequence[int], itemsize: int) -> None:
    """Raises UnsupportedError for a tensor that no memory can hold. Sizes of 0 do not make the others smaller."""
    if len(shape) > RANK:
        raise UnsupportedError(f"a tensor of {len(shape)} dimensions: at most {RANK} are possible")
    if prod(max(n, 1) for n in shape) * max(itemsize, 1) > _BYTES:
        raise UnsupportedError(f"a tensor of shape {list(shape)} is larger than any memory")


def check_copies(count: int, what: str) -> None:
    """Raises UnsupportedError for a node that would become too much code."""
    if count > UNROLLED:
        raise UnsupportedError(f"{count} {what} would each become code of their own: at most {UNROLLED} are possible")


def check_word(*numbers: int) -> None:
    """Raises UnsupportedError for sizes and positions that do not fit in 64 bits."""
    for n in numbers:
        if not -_WORD <= n < _WORD:
            raise UnsupportedError(f"the size or position {n} does not fit in 64 bits")
