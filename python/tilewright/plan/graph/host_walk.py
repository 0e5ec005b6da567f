# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run of a host function takes, by who does each launch: launches, numbers that move, arithmetic of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.plan.graph.host_costs import expected_trips
from tilewright.plan.graph.side_by_side import VIEWS

_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Rates:
    """Seconds, each.

    Attributes:
        launch: of a kernel, which is short.
        read: in which the host waits for numbers of the device.
        write: in which it gives the device some.
        operation: of the host, on one number.
    """

    launch: float
    read: float
    write: float
    operation: float


@dataclass(eq=False)
class Step:
    """What the host function does: a launch, a read or a write of a number, a copy, or steps in a loop or a branch.

    Attributes:
        kind: "launch", "read", "write", "copy", "loop" or "branch".
        read: buffers.
        written: buffers.
        op: of a launch.
        inside: steps of the regions.
        trips: of a loop, expected.
    """

    kind: str
    read: list[ir.Value] = field(default_factory=list)
    written: list[ir.Value] = field(default_factory=list)
    op: ir.Operation | None = None
    inside: list[list[Step]] = field(default_factory=list)
    trips: int = 1

    @property
    def touched(self) -> list[ir.Value]:
        """All buffers."""
        return [*self.read, *self.written]


def steps_of(block: ir.Block) -> list[Step]:
    """Return the steps of a block of the host function, in order."""
    return [step for op in block.operations if (step := _step(op.operation)) is not None]


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Each step, those in loops and branches too."""
    for step in steps:
        yield step
        for inner in step.inside:
            yield from walk(inner)


def _step(op: ir.Operation) -> Step | None:
    if op.name == "tile.launch":
        first, inputs, _ = op.attributes["operandSegmentSizes"]
        return Step(
            "launch",
            _buffers(list(op.operands)[first : first + inputs]),
            _buffers(list(op.operands)[first + inputs :]),
            op,
        )
    if op.name == "memref.load":
        return Step("read", _buffers(op.operands))
    if op.name == "memref.store":
        return Step("write", [], _buffers(list(op.operands)[1:]))
    if op.name == "memref.copy":
        return Step("copy", _buffers([op.operands[0]]), _buffers([op.operands[1]]))
    if not op.regions:
        return None
    inside = [steps_of(region.blocks[0]) if len(region.blocks) else [] for region in op.regions]
    if not any(inside):
        return None
    return Step("loop" if op.name in _LOOPS else "branch", inside=inside, trips=expected_trips(op))


def _buffers(values: Sequence[ir.Value]) -> list[ir.Value]:
    return [_buffer(value) for value in values if isinstance(value.type, ir.MemRefType)]


def _buffer(value: ir.Value) -> ir.Value:
    """The buffer behind a view; of one that a loop hands round, what it begins with."""
    while True:
        if isinstance(value, ir.BlockArgument):
            loop = value.owner.owner.operation
            own = 1 if loop.name == "scf.for" else 0
            first = 3 if loop.name == "scf.for" else 0
            if loop.name not in _LOOPS or value.arg_number - own + first >= len(loop.operands):
                return value
            value = loop.operands[value.arg_number - own + first]
        elif value.owner.name in VIEWS and not _is_of_arena(value):
            value = value.owner.operands[0]
        elif value.owner.name == "scf.for":
            value = value.owner.operands[3 + ir.OpResult(value).result_number]
        else:
            return value


def _is_of_arena(value: ir.Value) -> bool:
    return value.owner.name == "memref.view"


@dataclass(frozen=True)
class _Place:
    """Who has the numbers of a buffer."""

    device: bool = True
    host: bool = False


_ON_DEVICE = _Place()
_ON_HOST = _Place(device=False, host=True)


class Run:
    """One run of some steps, for a choice of the launches that the host does.

    Args:
        rates: of the machine.
        of_host: these launches.
    """

    def __init__(self, rates: Rates, of_host: frozenset[Step]) -> None:
        self._rates, self._of_host = rates, of_host
        self._places: dict[ir.Value, _Place] = {}

    def seconds(self, steps: Sequence[Step]) -> float:
        """Of all that moves, is launched or computed by the host, and of what is given to the device in the end."""
        total = self._all(steps)
        return total + self._rates.write * sum(not place.device for place in self._places.values())

    def _all(self, steps: Sequence[Step]) -> float:
        return sum(getattr(self, f"_{step.kind}")(step) for step in steps)

    def _need(self, buffer: ir.Value) -> float:
        """The host needs numbers of a buffer."""
        place = self._places.get(buffer, _ON_DEVICE)
        self._places[buffer] = replace(place, host=True)
        return 0.0 if place.host else self._rates.read

    def _give(self, buffers: Sequence[ir.Value]) -> float:
        """The device may read and write buffers from here on."""
        new = sum(not self._places.get(buffer, _ON_DEVICE).device for buffer in set(buffers))
        self._places |= dict.fromkeys(buffers, _ON_DEVICE)
        return self._rates.write * new

    def _launch(self, step: Step) -> float:
        if step.op is None or step not in self._of_host:
            return self._give(step.touched) + self._rates.launch
        total = sum(map(self._need, step.read))
        self._places |= dict.fromkeys(step.written, _ON_HOST)
        return total + self._rates.operation * decisions.HOST_OPERATIONS.read(step.op)

    def _read(self, step: Step) -> float:
        return sum(map(self._need, step.read))

    def _write(self, step: Step) -> float:
        self._places |= dict.fromkeys(step.written, _ON_HOST)
        return 0.0

    def _copy(self, step: Step) -> float:
        if all(self._places.get(buffer, _ON_DEVICE).host for buffer in step.read):
            return self._write(step)
        total = self._give(step.read) + self._rates.launch
        self._places |= dict.fromkeys(step.written, _ON_DEVICE)
        return total

    def _loop(self, step: Step) -> float:
        """The first iteration finds other places than the rest."""
        if step.trips < 1:
            return 0.0
        first = sum(map(self._all, step.inside))
        return first if step.trips == 1 else first + (step.trips - 1) * sum(map(self._all, step.inside))

    def _branch(self, step: Step) -> float:
        """Either side is as likely; behind it, what one of them leaves elsewhere is on the device."""
        before, total, ends = dict(self._places), 0.0, []
        for inside in step.inside:
            self._places = dict(before)
            total += self._all(inside) / len(step.inside)
            ends.append(self._places)
        same = {buffer: place for buffer, place in ends[0].items() if all(end.get(buffer) == place for end in ends)}
        self._places = dict.fromkeys({b for end in ends for b in end}, _ON_DEVICE) | same
        return total
