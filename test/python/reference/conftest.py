# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for the tests of the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir


def interpret(text: str, *args, function: str = "main", **options):
    """Parse a module and run one of its functions."""
    with ir.Context(), ir.Location.unknown():
        return reference.run(ir.Module.parse(text), function, list(args), **options)


@pytest.fixture(name="interpret")
def interpret_fixture():
    """Run a function of a module given as text."""
    return interpret


@pytest.fixture
def run_kernel():
    """Run a kernel of a module given as text."""

    def run(text: str, kernel: str, args, grid, **options):
        with ir.Context(), ir.Location.unknown():
            reference.run_kernel(ir.Module.parse(text), kernel, args, grid, **options)

    return run


@pytest.fixture
def elementwise():
    """Run one op on one element type, as scalars inside a function over tensors of the operands' shape."""

    def run(op: str, types: list[str], result: str, *args):
        shape = "x".join(map(str, np.shape(args[0])))
        tensors = [f"tensor<{shape}x{t}>" for t in types]
        params = ", ".join(f"%{i}: {t}" for i, t in enumerate(tensors))
        operands = ", ".join(f"%{i}" for i in range(len(types)))
        line = op.format(operands, types=tensors, result=f"tensor<{shape}x{result}>")
        returned = f"tensor<{shape}x{result}>"
        body = f"{{ %r = {line} return %r : {returned} }}"
        return interpret(f"func.func @main({params}) -> {returned} {body}", *args)[0]

    return run


@pytest.fixture
def rng():
    """A seeded generator."""
    return np.random.default_rng(7)
