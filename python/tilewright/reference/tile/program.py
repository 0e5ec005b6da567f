# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer 4: `tile.program`, tasks of several kernels placed on execution units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.machine import Frame, Machine, execute
from tilewright.reference.program import Node, where
from tilewright.reference.registry import handles
from tilewright.reference.tile.tasks import run_grid

_STEPS = ("tile.place", "tile.signal", "tile.wait")


def start(machine: Machine, name: str, arguments: Sequence[Any], grid: Sequence[int]) -> None:
    """Run a kernel over ``grid``, or a program.

    Raises:
        InterpreterError: ``name`` is neither, or its tasks or units deadlock.
    """
    node = machine.symbol(name)
    if node.name == "tile.kernel":
        run_grid(machine, node, arguments, grid)
    elif node.name == "tile.program":
        run_program(machine, node, arguments)
    else:
        raise InterpreterError(f"@{name} is a {node.name}, neither kernel nor program", location=where(node))


def run_program(machine: Machine, program: Node, arguments: Sequence[Any]) -> None:
    """Run the script of each unit, taking turns; a unit that waits is passed over.

    Units take turns step by step; with a seed the next unit is drawn at random.

    Raises:
        InterpreterError: every unit that has not finished waits (deadlock).
    """
    frame = Frame(machine)
    frame.values.update(zip(program.body.arguments, arguments, strict=True))
    frame.run_nodes([node for node in program.body.nodes if node.name not in _STEPS])
    scripts: dict[int, list[Node]] = {}
    for node in program.body.nodes:
        if node.name in _STEPS:
            scripts.setdefault(_number(node, "unit"), []).append(node)
    counts: dict[int, int] = {}
    frame.task = counts
    while scripts:
        able = [unit for unit, script in sorted(scripts.items()) if _may_go_on(script[0], counts)]
        if not able:
            waits = "; ".join(f"unit {unit} waits: {script[0].op}" for unit, script in sorted(scripts.items()))
            raise InterpreterError(f"deadlock: {waits}", location=where(program))
        for unit in able if machine.random is None else [machine.random.choice(able)]:
            step = scripts[unit].pop(0)
            execute(frame, step, [frame.values[number] for number in step.operands])
            if not scripts[unit]:
                del scripts[unit]


def _number(node: Node, name: str) -> int:
    return node.once(name, lambda: node.op.attributes[name].value)


def _may_go_on(node: Node, counts: dict[int, int]) -> bool:
    return node.name != "tile.wait" or counts.get(_number(node, "event"), 0) >= _number(node, "count")


@handles("tile.place")
def place(frame: Any, node: Node, *arguments: Any) -> None:
    """Run a range of a kernel's tasks."""
    kernel = frame.machine.symbol(node.op.attributes["kernel"].value)
    first, last = types.integers(node.op.attributes["tasks"])
    run_grid(frame.machine, kernel, arguments, types.integers(node.op.attributes["grid"]), slice(first, last))


@handles("tile.signal")
def signal(frame: Any, node: Node) -> None:
    """Count one more for the event."""
    event = _number(node, "event")
    frame.task[event] = frame.task.get(event, 0) + 1


@handles("tile.wait")
def wait(_frame: Any, _node: Node) -> None:
    """Nothing to do: the program runs it only once the event's count is reached."""
