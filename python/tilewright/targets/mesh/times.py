# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a compiled model takes on its machine (tier T1): each program, and what passes the edge of the grid."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from tilewright.core.dtypes import of_mlir
from tilewright.ir.constants import trip_count
from tilewright.ir.generics import ancestors, maker, walk
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.timing import Timing, time_program
from tilewright.sim.coremesh_ir.read import read_program, text_of
from tilewright.targets.mesh.attributes import (
    AHEAD,
    COLORS,
    ELEMENT,
    FETCHED,
    FIXED,
    MEMORY,
    OUTSIDE,
    STREAMED,
    Fixed,
)
from tilewright.targets.mesh.control.loops import CONTROL, in_order, repeats

_SPENT = ("cycles", "compute", "communication", "overhead", "idle", "hidden")


@dataclass(frozen=True)
class Step:
    """One thing that takes time in a call, in cycles.

    Attributes:
        name: the program's, or ``distribute``, ``stream``, ``assemble``.
        where: the node of the model.
        height, width: of the grid.
        compute, communication, overhead, idle: what the longest way to the end is made of.
        memory: bytes of the fullest core.
        colors: that one router knows.
        sizes: of the tensors that are read and made.
        times: how often it runs in a call; all cycles are those of the call.
        hidden: cycles besides, that pass while the program before runs.
        is_known: False where a run decides how often: it is counted as if each such loop ran once.
    """

    name: str
    where: str
    height: int
    width: int
    cycles: float
    compute: float = 0.0
    communication: float = 0.0
    overhead: float = 0.0
    idle: float = 0.0
    memory: int = 0
    colors: int = 0
    sizes: str = ""
    times: int = 1
    hidden: float = 0.0
    is_known: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)


def steps_of(block: ir.Block, machines: dict[str, Machine]) -> dict[str, list[Step]]:
    """The time of each program and transfer of a function, in order, on each of the machines.

    Programs run one after the other; data that pass the edge do so at the machine's rate, while nothing else runs, but
    for what comes in ahead: it takes what is longer than the program before.

    Raises:
        UserError: a program cannot be timed.
    """
    known: dict[str, dict[str, Timing]] = {}
    found: dict[str, list[Step]] = {name: [] for name in machines}
    left = dict.fromkeys(machines, 0.0)  # cycles of the last program in which nothing passes the edge
    for op in in_order(block):
        times, is_known = repeats(op)
        turns = times, is_known and not _decides(op)
        for name, step in _steps(op, machines, known).items():
            if op.name == "coremesh.program":
                left[name] = step.cycles
            elif AHEAD in op.attributes:
                hidden = min(step.cycles, left[name])
                left[name] -= hidden
                shown = step.cycles - hidden
                step = replace(step, cycles=shown, communication=shown, hidden=hidden)
            found[name].append(_repeated(step, *turns))
    return found


def _steps(op: ir.Operation, machines: dict[str, Machine], known: dict[str, dict[str, Timing]]) -> dict[str, Step]:
    """The step that an op is, by machine; none: it takes no time."""
    if op.name == "coremesh.program":
        key = text_of(op)
        if key not in known:
            program = read_program(op)
            known[key] = {name: time_program(program, machine, loads=False) for name, machine in machines.items()}
        return {name: _program(op, timing) for name, timing in known[key].items()}
    if op.name == "coremesh.assemble":
        return {name: _edge("assemble", op, op.operands[0], machine) for name, machine in machines.items()}
    if op.name == "coremesh.distribute" and (FIXED not in op.attributes or STREAMED in op.attributes):
        kind = "stream" if STREAMED in op.attributes else "distribute"
        return {name: _edge(kind, op, op.results[0], machine) for name, machine in machines.items()}
    return {}


def _decides(op: ir.Operation) -> bool:
    """Whether cores run loops of which only a run knows how often."""
    if op.name != "coremesh.program":
        return False
    return bool(walk(op, "scf.while")) or any(trip_count(loop) is None for loop in walk(op, "scf.for"))


def _repeated(step: Step, times: int, is_known: bool) -> Step:
    spent = {name: getattr(step, name) * times for name in _SPENT}
    return replace(step, times=times, is_known=is_known, **spent)


def _program(op: ir.Operation, timing: Timing) -> Step:
    return Step(
        ir.StringAttr(op.attributes["name"]).value,
        where(op),
        ir.IntegerAttr(op.attributes["height"]).value,
        ir.IntegerAttr(op.attributes["width"]).value,
        timing.cycles,
        timing.split.compute,
        timing.split.communication,
        timing.split.overhead,
        timing.split.idle,
        ir.IntegerAttr(op.attributes[MEMORY]).value,
        ir.IntegerAttr(op.attributes[COLORS]).value,
        f"{', '.join(map(_sizes, op.operands))} -> {', '.join(map(_sizes, op.results))}",
    )


def _edge(name: str, op: ir.Operation, laid: ir.Value, machine: Machine) -> Step:
    kind = ir.RankedTensorType(laid.type)
    count = prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize
    rate = machine.mesh.offchip_bytes_per_cycle
    cycles = count / rate if rate else 0.0
    return Step(name, where(op), 0, 0, cycles, communication=cycles, sizes=_sizes(laid))


def outside_of(block: ir.Block) -> list[str]:
    """Names of the nodes that are interpreted outside of the grid in each call."""
    fixed, found = Fixed(), []
    for op in in_order(block):
        if _computes(op) and list(op.results) and not any(map(fixed.of, [op, *_loops(op)])):
            found.append(where(op))
    return list(dict.fromkeys(found))


def _computes(op: ir.Operation) -> bool:
    """Whether an op that is left for the interpreter makes new numbers; loops do by what is in them."""
    if OUTSIDE in op.attributes and ir.StringAttr(op.attributes[OUTSIDE]).value == FETCHED:
        return False
    if op.name == ELEMENT:
        return bool(_loops(op))  # alone it puts a number that there is where it belongs
    return op.name.partition(".")[0] in ("linalg", "scf", "sparse_tile") and op.name not in ("linalg.fill", *CONTROL)


def _loops(op: ir.Operation) -> list[ir.Operation]:
    """The loops and branches around an op."""
    return [above for above in ancestors(op) if above.name in CONTROL]


def where(op: ir.Operation) -> str:
    """The node of the model that an op comes from, as its location tells."""
    made = maker(op.operands[0]) if list(op.operands) else None
    if "unknown" in str(op.location) and made is not None:
        return where(made)
    text = str(op.location)
    return text.removeprefix('loc("').removesuffix('")') if text.startswith('loc("') else text


def _sizes(value: ir.Value) -> str:
    kind = ir.RankedTensorType(value.type)
    return "x".join([*map(str, kind.shape), str(kind.element_type)])
