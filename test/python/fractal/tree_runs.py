# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of several shapes, as nested tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Leaf = Callable[[], Any]  # makes the next one


def joined(left: Any, right: Any, leaf: Leaf, everywhere: bool) -> tuple:
    """An inner node."""
    return (left, right, leaf()) if everywhere else (left, right)


def complete(depth: int, leaf: Leaf, everywhere: bool = False) -> Any:
    """All leaves on one level."""
    if depth == 1:
        return leaf()
    return joined(complete(depth - 1, leaf, everywhere), complete(depth - 1, leaf, everywhere), leaf, everywhere)


def chain(depth: int, leaf: Leaf, everywhere: bool = False) -> Any:
    """Each inner node has a leaf, left and right in turn."""
    tree = leaf()
    for number in range(depth - 1):
        pair = (tree, leaf()) if number % 2 else (leaf(), tree)
        tree = joined(*pair, leaf, everywhere)
    return tree


def grown(leaves: int, leaf: Leaf, everywhere: bool = False, seed: int = 0) -> Any:
    """Neighbours are joined at random places."""
    rng = np.random.default_rng(seed)
    parts = [leaf() for _ in range(leaves)]
    while len(parts) > 1:
        at = rng.integers(len(parts) - 1)
        parts[at : at + 2] = [joined(parts[at], parts[at + 1], leaf, everywhere)]
    return parts[0]
