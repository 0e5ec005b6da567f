# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What sampled cores do when, as a trace that Perfetto and chrome://tracing open.

Times are those of the wavelet simulator (tier T2), which has every wavelet of every engine; so programs are of its
size, up to about 64 x 64 cores. One process per core; in it a row for its thread, and one per route and direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Compute, Program, Wait
from tilewright.sim.coremesh.steps import incoming, outgoing
from tilewright.sim.coremesh.wavelets.events import Event
from tilewright.sim.coremesh.wavelets.outcome import Outcome
from tilewright.sim.coremesh.wavelets.simulate import LIMIT, simulate


def sampled_cores(program: Program) -> tuple[tuple[int, int], ...]:
    """Corners, the middle of the northern edge and of the western one, and the middle: (y, x), without repetition."""
    rows = (0, program.height // 2, program.height - 1)
    columns = (0, program.width // 2, program.width - 1)
    places = [(0, 0), (1, 1), (0, 1), (1, 0), (0, 2), (2, 0), (2, 2)]
    return tuple(dict.fromkeys((rows[y], columns[x]) for y, x in places))


def trace(
    programs: Sequence[Program],
    machine: Machine,
    *,
    cores: Sequence[tuple[int, int]] = (),
    limit: int = LIMIT,
) -> dict[str, Any]:
    """Return the events of programs that run one after the other, in the JSON object format of Chrome's traces.

    Args:
        programs: with colors and addresses.
        cores: (y, x) of those whose events are wanted; empty: `sampled_cores` of each program.
        limit: cycles after which a program is given up.

    Returns:
        ``traceEvents`` in microseconds of the machine's clock (in ``args`` in cycles), and in ``otherData`` what they
        hold for.

    Raises:
        UserError: there is no program, a core is not there, or the wavelet simulator does not take it: see `simulate`.
    """
    if not programs:
        raise UserError("a trace of a mesh needs at least one program")
    events: list[dict[str, Any]] = []
    tracks: dict[tuple[tuple[int, int], str], int] = {}
    begin, ran = 0, []
    for program in programs:
        outcome = simulate(program, machine, limit, tuple(cores) or sampled_cores(program))
        events += _events(outcome, begin, machine, tracks)
        ran.append({"program": program.name, "begin": begin, "cycles": outcome.cycles})
        begin += outcome.cycles
    about = {
        "simulated": True,
        "machine": machine.name,
        "preset": machine.preset,
        "clock": machine.clock,
        "sync": "dataflow",
        "fabric_entries": machine.mesh.queue_depth,
        "tier": "T2",
        "extrapolated": False,
        "programs": ran,
    }
    return {"traceEvents": [*_names(tracks), *events], "displayTimeUnit": "ns", "otherData": about}


def _events(
    outcome: Outcome, shift: int, machine: Machine, tracks: dict[tuple[tuple[int, int], str], int]
) -> Iterator[dict[str, Any]]:
    microseconds = 1e6 / machine.clock
    for event in outcome.events:
        if event.begin == event.end:
            continue
        track = _track(event)
        yield {
            "name": _name(event),
            "cat": event.what if event.engine == "thread" else event.engine,
            "ph": "X",
            "ts": (shift + event.begin) * microseconds,
            "dur": (event.end - event.begin) * microseconds,
            "pid": _process(event.core),
            "tid": tracks.setdefault((event.core, track), _number(tracks, event.core, track)),
            "args": {
                "program": outcome.program,
                "instruction": str(event.step),
                "started": shift + event.started,
                "begin": shift + event.begin,
                "cycles": event.end - event.begin,
            },
        }


def _track(event: Event) -> str:
    """The row: engines of one route and direction are one, whichever program uses them."""
    if event.engine == "thread":
        return "thread"
    route = incoming(event.step.instruction) if event.engine == "in" else outgoing(event.step.instruction)
    return f"{'receives' if event.engine == 'in' else 'sends'} {route}"


def _name(event: Event) -> str:
    instruction = event.step.instruction
    if isinstance(instruction, Compute):
        return instruction.name
    if isinstance(instruction, Wait):
        return event.what if event.what == "wait" else f"{instruction.overhead} overhead"
    return _track(event)


def _process(core: tuple[int, int]) -> int:
    """A number of its own for each core, from 1 on: those of a grid of 65536 columns."""
    return core[0] * 65536 + core[1] + 1


def _number(tracks: dict[tuple[tuple[int, int], str], int], core: tuple[int, int], track: str) -> int:
    """The thread is the first row; the others come as they first end."""
    if track == "thread":
        return 0
    return 1 + sum(owner == core and name != "thread" for owner, name in tracks)


def _names(tracks: dict[tuple[tuple[int, int], str], int]) -> Iterator[dict[str, Any]]:
    for core in sorted({core for core, _ in tracks}):
        name = f"core (y={core[0]}, x={core[1]})"
        yield {"name": "process_name", "ph": "M", "pid": _process(core), "args": {"name": name}}
    for (core, track), number in tracks.items():
        about = {"pid": _process(core), "tid": number}
        yield {"name": "thread_name", "ph": "M", **about, "args": {"name": track}}
        yield {"name": "thread_sort_index", "ph": "M", **about, "args": {"sort_index": number}}
