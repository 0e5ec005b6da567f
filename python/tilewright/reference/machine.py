# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter's core: symbols of a module, frames of values, and the walk over blocks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tilewright.mlir import ir
from tilewright.reference.code import Code
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Block, Node, Reader, where
from tilewright.reference.registry import HANDLERS, TERMINATORS


class Machine:
    """A module that is being interpreted.

    Args:
        module: an ``ir.Module`` or its operation.
        weights: arrays of the ``ml_program.global``s without an inline value, by symbol name.
        seed: where given, asynchronous copies complete at random legal moments and tasks take turns at random;
            without it both are in program order.
    """

    def __init__(
        self,
        module: ir.Module | ir.Operation,
        weights: dict[str, np.ndarray] | None = None,
        seed: int | None = None,
    ) -> None:
        self.weights = weights or {}
        self.globals: dict[str, Any] = {}
        self.random = random.Random(seed) if seed is not None else None
        self._symbols = _symbols(module)
        self._read: dict[str, Node] = {}

    def symbol(self, name: str) -> Node:
        """Return the function, kernel, program or global called ``name``.

        Raises:
            InterpreterError: the module has no such symbol.
        """
        if name not in self._read:
            if name not in self._symbols:
                raise InterpreterError(f"the module has no symbol @{name}; it has {sorted(self._symbols)}")
            self._read[name] = Reader().node(self._symbols[name])
        return self._read[name]


class Frame:
    """Values of one activation of a function or kernel; ``task`` is the running task of a grid, if any."""

    def __init__(self, machine: Machine, task: Any = None) -> None:
        self.machine = machine
        self.task = task
        self.values: dict[int, Any] = {}
        self.moves: list[tuple[np.ndarray, np.ndarray]] | None = None
        self.point: tuple[int, ...] = ()  # of the linalg op whose body runs point by point

    def move(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copy ``source`` to ``target``; inside `tile.async`, note it for later."""
        if self.moves is None:
            target[...] = source
        else:
            self.moves.append((source, target))

    def run(self, block: Block, arguments: Any = ()) -> list[Any]:
        """Run ``block`` with ``arguments``, its scalars being scalars; return the operands of its terminator."""
        if block.code is None:
            block.code = Code(block)
        return block.code(self, arguments)

    def run_arrays(self, block: Block, arguments: Any = ()) -> list[Any]:
        """Run ``block``, which has no regions, for many points at once: its scalars are arrays over them."""
        for number, value in zip(block.arguments, arguments, strict=True):
            self.values[number] = value
        return self.run_nodes(block.nodes)

    def run_nodes(self, nodes: list[Node]) -> list[Any]:
        """Run ``nodes`` one by one, their values in the frame, up to the first terminator; return its operands."""
        values = self.values
        for node in nodes:
            operands = [values[number] for number in node.operands]
            if node.name in TERMINATORS:
                return operands
            self._step(node, operands)
        return []

    def _step(self, node: Node, operands: list[Any]) -> None:
        result = execute(self, node, operands)
        if len(node.results) == 1:
            self.values[node.results[0]] = result
        elif node.results:
            for number, value in zip(node.results, result, strict=True):
                self.values[number] = value


def execute(frame: Frame, node: Node, operands: list[Any]) -> Any:
    """Return what the handler of ``node`` makes of ``operands``.

    Raises:
        InterpreterError: no handler is registered for the op, or the handler refuses; it carries name and location.
    """
    handler = node.handler
    if handler is None:
        handler = node.handler = HANDLERS.get(node.name)
        if handler is None:
            raise InterpreterError(f"the reference does not know the op '{node.name}'", location=where(node))
    try:
        return handler(frame, node, *operands)
    except InterpreterError as error:
        error.location = error.location or f"{node.name} at {where(node)}"
        raise
    except (IndexError, ValueError, TypeError, ArithmeticError) as error:
        raise InterpreterError(f"{node.name}: {error}", location=where(node), ir=str(node.op)) from error


def _symbols(module: ir.Module | ir.Operation) -> dict[str, ir.Operation]:
    operation = module.operation
    out: dict[str, ir.Operation] = {}
    for op in operation.regions[0].blocks[0].operations:
        if "sym_name" in op.operation.attributes:
            out[op.operation.attributes["sym_name"].value] = op.operation
    return out
