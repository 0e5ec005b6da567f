# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over nested lists as text, random lists for them, and what they give as nested Python lists."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import reference
from tilewright.dialects.fractal.values import Lists
from tilewright.mlir import ir

LEAF = "tensor<1x2xf32>"


class Programs:
    """Runs functions whose arguments and results are tensors [1, 2] in lists of any depth."""

    def __init__(self) -> None:
        self.context = ir.Context()

    @staticmethod
    def type(depth: int) -> str:
        """The type of lists of some depth: an inner list has any length."""
        levels = ", ".join(["?"] + ["ragged"] * (depth - 1))
        return f"!fractal.array<[{levels}] of {LEAF}>" if depth else LEAF

    def lists(self, nested: list, depth: int) -> Lists:
        """A value of nested Python lists."""
        return Lists.of(nested, depth, leaf_shape=(1, 2), dtype=np.float32)

    def run(self, body: str, inputs: list, results: list[str], **options) -> list:
        """Run ops on arguments %0, %1, ... given as (value, type); return the values that they call %r0, %r1, ..."""
        arguments = ", ".join(f"%{number}: {type_}" for number, (_, type_) in enumerate(inputs))
        names = ", ".join(f"%r{number}" for number in range(len(results)))
        types = ", ".join(results)
        returned = f"return {names} : {types}" if results else "return"
        text = f"func.func @main({arguments}) -> ({types}) {{\n{body}\n{returned}\n}}"
        with self.context, ir.Location.unknown():
            return reference.run(ir.Module.parse(text), "main", [value for value, _ in inputs], **options)


@pytest.fixture(scope="session")
def programs():
    """Runs programs over lists."""
    return Programs()


def random_lists(rng, depth: int):
    """Nested Python lists of small whole numbers: ragged, and some of them empty."""
    if depth == 0:
        return rng.integers(-3, 4, (1, 2)).astype(np.float32)
    return [random_lists(rng, depth - 1) for _ in range(rng.integers(0, 6 if depth == 1 else 4))]


@pytest.fixture(name="random_lists", scope="session")
def random_lists_fixture():
    """Makes random nested Python lists."""
    return random_lists


def same(value, expected) -> bool:
    """Whether a value holds what nested Python lists hold, and all of it has the right type."""
    if isinstance(expected, list):
        return isinstance(value, Lists) and len(value) == len(expected) and all(map(same, value, expected))
    return value.dtype == expected.dtype and np.array_equal(value, expected)


@pytest.fixture(name="same", scope="session")
def same_fixture():
    """Compares a value with nested Python lists."""
    return same
