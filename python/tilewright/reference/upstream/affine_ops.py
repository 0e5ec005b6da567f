# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic of the `affine` dialect."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference import affine, types
from tilewright.reference.program import Node
from tilewright.reference.registry import handles


def _results(node: Node, operands: tuple[Any, ...]) -> list[Any]:
    terms = node.once("terms", lambda: affine.read_map(node.op.attributes["map"].value))
    return [affine.evaluate(term, operands) for term in terms]


@handles("affine.apply")
def apply(_frame: Any, node: Node, *operands: Any) -> Any:
    """The value of a map's single result."""
    return np.asarray(_results(node, operands)[0], np.int64)[()]


@handles("affine.min")
def minimum(_frame: Any, node: Node, *operands: Any) -> Any:
    """The least of a map's results."""
    return np.int64(min(_results(node, operands)))


@handles("affine.max")
def maximum(_frame: Any, node: Node, *operands: Any) -> Any:
    """The greatest of a map's results."""
    return np.int64(max(_results(node, operands)))


@handles("affine.delinearize_index")
def delinearize_index(_frame: Any, node: Node, linear: Any, *dynamic: Any) -> Any:
    """Digits of ``linear`` in a mixed base; without an outer bound the first digit is unbounded."""
    basis = types.fill_dynamic(types.integers(node.op.attributes["static_basis"]), dynamic)
    inner = basis if len(basis) < len(node.results) else basis[1:]
    digits: list[Any] = []
    for size in reversed(inner):
        linear, digit = divmod(int(linear), size)
        digits.insert(0, np.int64(digit))
    digits.insert(0, np.int64(linear))
    return digits[0] if len(digits) == 1 else digits


@handles("affine.linearize_index")
def linearize_index(_frame: Any, node: Node, *operands: Any) -> Any:
    """The number with the given digits in a mixed base."""
    digits, dynamic = node.groups(operands)
    basis = types.fill_dynamic(types.integers(node.op.attributes["static_basis"]), dynamic)
    total = 0
    for digit, size in zip(digits, [1] * (len(digits) - len(basis)) + basis, strict=True):
        total = total * size + int(digit)
    return np.int64(total)
