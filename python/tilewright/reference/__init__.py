# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every op means: an interpreter of Tilewright's IR in NumPy, slow, exact and obvious.

It interprets all layers (tensor programs, tile graphs, tile programs, task programs) and is the truth that lowerings
are tested against; the weights that a model computes once (`@init`) run through it at compile time. It knows nothing of
planning, of front ends or of the compiler's library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.dialects.fractal.values import Lists
from tilewright.dialects.sparse_tile.encoded import Encoded
from tilewright.mlir import ir
from tilewright.reference import coremesh, fractal, sparse_tile, tile, upstream
from tilewright.reference.errors import AssertionFailedError, InterpreterError
from tilewright.reference.machine import Frame, Machine
from tilewright.reference.registry import HANDLERS
from tilewright.reference.tile.program import start
from tilewright.reference.upstream.func_ops import checked

__all__ = [
    "HANDLERS",
    "AssertionFailedError",
    "InterpreterError",
    "coremesh",
    "fractal",
    "run",
    "run_kernel",
    "sparse_tile",
    "tile",
    "upstream",
]


def run(
    module: ir.Module | ir.Operation,
    function: str,
    args: Sequence[Any],
    weights: dict[str, np.ndarray] | None = None,
    *,
    seed: int | None = None,
) -> list[Any]:
    """Run a function of ``module`` and return its results.

    Args:
        module: IR of any layer.
        function: its name, without @.
        args: one array (tensor, memref), `Lists` (fractal array) or scalar per argument, of exactly the argument's
            dtype; memrefs are written.
        weights: values of external `ml_program.global`s by name.
        seed: see :func:`run_kernel`; `fractal.reduce` combines elements in a bracketing drawn with it.

    Raises:
        InterpreterError: unknown op (with name and location), bad argument, undefined behaviour, deadlock.
    """
    machine = Machine(module, weights, seed)
    node = machine.symbol(function)
    with np.errstate(all="ignore"):
        results = Frame(machine).run(node.body, _arguments(node, function, args))
    return [_result(result) for result in results]


def run_kernel(
    module: ir.Module | ir.Operation,
    kernel: str,
    args: Sequence[Any],
    grid: Sequence[int],
    *,
    seed: int | None = None,
) -> None:
    """Run all tasks of a `tile.kernel` (or a `tile.program`), which write into the arrays of ``args``.

    Args:
        module: IR that holds the kernel.
        kernel: its name, without @.
        args: one array per memref and one scalar per scalar of the kernel.
        grid: the number of tasks along each grid dimension; none for a program.
        seed: asynchronous copies complete, and tasks that wait for each other take turns, in an order drawn with this
            seed; without it copies complete at their await and tasks run in grid order.

    Raises:
        InterpreterError: unknown op (with name and location), bad argument, undefined behaviour, deadlock.
    """
    machine = Machine(module, None, seed)
    node = machine.symbol(kernel)
    inputs = len(node.body.arguments) - len(grid)
    with np.errstate(all="ignore"):
        start(machine, kernel, _arguments(node, kernel, args, inputs), grid)


def _result(value: Any) -> Any:
    """A result as the caller gets it: an array; an encoded tensor and lists as they are."""
    if isinstance(value, Encoded | Lists):
        return value
    return np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)


def _arguments(node: Any, name: str, args: Sequence[Any], count: int | None = None) -> list[Any]:
    types = [argument.type for argument in node.op.regions[0].blocks[0].arguments][:count]
    if len(types) != len(args):
        raise InterpreterError(f"@{name} takes {len(types)} arguments, got {len(args)}")
    pairs = enumerate(zip(args, types, strict=True))
    return [checked(arg, type_, f"argument {i} of @{name}") for i, (arg, type_) in pairs]
