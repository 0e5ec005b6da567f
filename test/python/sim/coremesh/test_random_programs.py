# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs: `functional` against plain NumPy, and the wavelet simulator ends, or says why it cannot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from python.sim.coremesh.mesh_programs import P, X, Y, add, mod, times
from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Const, Expr
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Instruction,
    Order,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)
from tilewright.sim.coremesh.ring import ring_positions
from tilewright.sim.coremesh.wavelets import simulate

#: Numbers of every size; sums and products of the small ones wrap around.
NUMBERS = ("int8", "int16", "int32", "int64")
COMBINE = {
    None: lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "umax": lambda old, new: np.maximum(_unsigned(old), _unsigned(new)).view(old.dtype),
}


def _unsigned(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(array.dtype.str.replace("i", "u"))


def _picked(table: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Elements by index; 0 where a core has none of this index."""
    size = table.shape[-1]
    return np.where(
        (at >= 0) & (at < size), np.take_along_axis(table, at.clip(0, size - 1), axis=-1), table.dtype.type(0)
    )


@dataclass
class Writer:
    """Makes a program of random phases and, beside it, what it computes: [height, width, size] after each phase.

    Each phase copies a slot that is complete, and changes the copy by what comes from other cores; it may be waited for
    at once or later. ``careless``: sends are waited for before anything is received, so that queues must hold them.
    """

    rng: np.random.Generator
    height: int
    width: int
    size: int
    phases: int
    careless: bool = False
    body: list[Instruction] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    complete: list[int] = field(default_factory=lambda: [0])
    pending: list[tuple[str, int]] = field(default_factory=list)
    indices: dict[str, np.ndarray] = field(default_factory=dict)

    def write(self) -> tuple[Program, dict[str, np.ndarray], list[np.ndarray]]:
        """The program, its inputs, and the contents of each slot at its end."""
        number = np.dtype(self.rng.choice(NUMBERS))
        start = self.rng.integers(-50, 50, (self.height, self.width, self.size)).astype(number)
        self.values = [start]
        for phase in range(1, self.phases + 1):
            self.phase(phase)
        self._wait(len(self.pending))
        whole = self.height, self.width * self.size
        places = [Place(f"v{slot}", whole, Slot("v", Const(slot)), (Y, X)) for slot in range(self.phases + 1)]
        picks = [Buffer(name, (1, self.size), array.dtype) for name, array in self.indices.items()]
        program = Program(
            "random",
            self.height,
            self.width,
            (Buffer("v", (1, self.size), number, self.phases + 1), *picks),
            tuple(self.routes),
            (places[0], *(Place(name, whole, Slot(name), (Y, X)) for name in self.indices)),
            tuple(places),
            tuple(self.body),
        )
        inputs = {"v0": start, **self.indices}
        flat = {name: array.reshape(whole) for name, array in inputs.items()}
        return program, flat, [value.reshape(whole) for value in self.values]

    def phase(self, phase: int) -> None:
        """One of the kinds of phases."""
        here, there = Slot("v", Const(int(self.rng.choice(self.complete)))), Slot("v", Const(phase))
        copy = Compute(Cores(), "copy", (here,), (there,), Cost(elements=int(self.rng.integers(200))), lambda v: (v,))
        self.body.append(copy)
        kinds = self.shift, self.spread, self.chain, self.gather, self.pick
        kind = kinds[self.rng.integers(len(kinds))]
        self.values.append(kind(phase, here, there, self.values[here.index(())]))
        self.pending.append((f"t{phase}", phase))
        self._wait(int(self.rng.integers(len(self.pending) + 1)))

    def shift(self, phase: int, here: Slot, there: Slot, old: np.ndarray) -> np.ndarray:
        """Around a row or column, any distance; or not around, and those without a source keep what they have."""
        axis, length = self._axis()
        order: Order = self.rng.choice(["linear", "ring"])  # type: ignore[assignment]
        by, around = int(self.rng.integers(length)), bool(self.rng.integers(2))
        how = self.rng.choice(np.array(list(COMBINE)))
        source = mod(add(P, length - by), length) if around else add(P, -by)
        place = X if axis == "x" else Y
        has_next = () if around else (add(times(place, -1), length - 1 - by),)
        has_source = () if around else (add(place, -by),)
        self._route(phase, axis, source, order)
        self._exchange(
            phase,
            [Send(Cores(at_least_zero=has_next, order=order), f"r{phase}", here, f"t{phase}")],
            [Recv(Cores(at_least_zero=has_source, order=order), f"r{phase}", there, f"t{phase}", combine=how)],
        )
        at = ring_positions(length) if order == "ring" else np.arange(length)
        index = 1 if axis == "x" else 0
        stands = np.argsort(at)
        from_place = stands[(at - by) % length]
        moved = COMBINE[how](old, old.take(from_place, axis=index))
        keeps = ((at < by) & (not around)).reshape((1, -1, 1) if index else (-1, 1, 1))
        return np.where(keeps, old, moved)

    def spread(self, phase: int, here: Slot, there: Slot, old: np.ndarray) -> np.ndarray:
        """One core of each row or column to those on one side, or on both."""
        axis, length = self._axis()
        root, place = int(self.rng.integers(length)), X if axis == "x" else Y
        how = self.rng.choice(np.array([None, "add", "mul"]))
        after, before = (
            Cores(at_least_zero=(add(place, -root - 1),)),
            Cores(at_least_zero=(add(times(place, -1), root - 1),)),
        )
        self._route(phase, axis, Const(root))
        sides = [cores for cores, some in ((after, root < length - 1), (before, root > 0)) if some]
        takes = [Recv(side, f"r{phase}", there, f"t{phase}", combine=how) for side in sides]
        sends = [Send(Cores(zero=(add(place, -root),)), f"r{phase}", here, f"t{phase}")] if takes else []
        self._exchange(phase, sends, takes)
        index = 1 if axis == "x" else 0
        new = COMBINE[how](old, old.take([root], axis=index).repeat(length, axis=index))
        at_root = (np.arange(length) == root).reshape((1, -1, 1) if index else (-1, 1, 1))
        return np.where(at_root, old, new)

    def chain(self, phase: int, here: Slot, there: Slot, old: np.ndarray) -> np.ndarray:
        """Sums stream from the first core of each row or column to the last."""
        return self._summed(phase, here, there, old, self._axis()[0])

    def _summed(self, phase: int, here: Slot, there: Slot, old: np.ndarray, axis: str) -> np.ndarray:
        place, index, length = (X, 1, self.width) if axis == "x" else (Y, 0, self.height)
        if length == 1:
            return old
        self._route(phase, axis, add(P, -1))
        between = Cores(at_least_zero=(add(place, -1), add(times(place, -1), length - 2)))
        self._exchange(
            phase,
            [
                Send(Cores(zero=(place,)), f"r{phase}", here, f"t{phase}"),
                Relay(between, f"r{phase}", f"r{phase}", here, f"t{phase}"),
            ],
            [Recv(Cores(zero=(add(place, 1 - length),)), f"r{phase}", there, f"t{phase}", combine="add")],
        )
        new = old.copy()
        np.moveaxis(new, index, 0)[-1] = np.moveaxis(old, index, 0).sum(axis=0, dtype=old.dtype)
        return new

    def gather(self, phase: int, here: Slot, there: Slot, old: np.ndarray) -> np.ndarray:
        """The largest, or the sum, of some neighbours, into one slot in turn."""
        axis, length = self._axis()
        place, index = (X, 1) if axis == "x" else (Y, 0)
        steps = [int(step) for step in self.rng.integers(-2, 3, 3) if step and abs(step) < length]
        how, new = self.rng.choice(["add", "max", "min"]), old.copy()
        sends, takes = [], []
        for number, step in enumerate(steps):
            name = f"r{phase}_{number}"
            self.routes.append(Route(name, axis, add(P, -step)))
            goes = add(times(place, -1), length - 1 - step) if step > 0 else add(place, step)
            comes = add(place, -step) if step > 0 else add(times(place, -1), length - 1 + step)
            sends.append(Send(Cores(at_least_zero=(goes,)), name, here, f"t{phase}"))
            takes.append(Recv(Cores(at_least_zero=(comes,)), name, there, f"t{phase}", combine=how))
            source = np.arange(length) - step
            inside = (source >= 0) & (source < length)
            part = COMBINE[how](new, old.take(np.where(inside, source, 0), axis=index))
            new = np.where(inside.reshape((1, -1, 1) if index else (-1, 1, 1)), part, new)
        self._exchange(phase, sends, takes)
        return new

    def pick(self, phase: int, here: Slot, there: Slot, old: np.ndarray) -> np.ndarray:
        """Elements of a whole row or column by index: each core picks what it has, the last one has the sum."""
        axis, length = self._axis()
        index = 1 if axis == "x" else 0
        lines = old.shape[1 - index]
        kind = self.rng.choice(["int32", "int64"])
        wanted = self.rng.integers(0, self.size * length, (lines, self.size)).astype(kind)
        first = np.arange(length).reshape(-1, 1, 1) * self.size
        own = np.moveaxis(wanted - first.astype(wanted.dtype), 0, index)
        self.indices[f"at{phase}"] = np.ascontiguousarray(own)
        cost = Cost(elements=self.size, dtype_bits=8 * old.itemsize)
        reads = there, Slot(f"at{phase}")
        self.body.append(Compute(Cores(), "pick", reads, (there,), cost, lambda v, at: (_picked(v, at),)))
        new = self._summed(phase, there, there, _picked(old, own), axis)
        table = np.moveaxis(old, index, 1).reshape(lines, -1)
        np.moveaxis(new, index, 0)[-1] = np.take_along_axis(table, wanted, axis=1)
        return new

    def _axis(self) -> tuple[str, int]:
        return ("x", self.width) if self.rng.integers(2) else ("y", self.height)

    def _route(self, phase: int, axis: str, source: Expr, order: Order = "linear") -> None:
        self.routes.append(Route(f"r{phase}", axis, source, order))  # type: ignore[arg-type]

    def _exchange(self, phase: int, sends: list[Instruction], takes: list[Instruction]) -> None:
        if not self.careless and self.rng.integers(2):
            sends, takes = takes, sends
        self.body += [*sends, *([Wait((f"t{phase}",))] if self.careless else []), *takes]

    def _wait(self, count: int) -> None:
        for token, slot in self.pending[:count]:
            self.body.append(Wait((token,)))
            self.complete.append(slot)
        del self.pending[:count]


def written(seed: int, *, careless: bool = False) -> tuple[Program, dict[str, np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    height, width = (int(size) for size in rng.integers(1, 8, 2))
    size = int(rng.choice([1, 3, 16, 70]))
    return Writer(rng, height, width, size, phases=int(rng.integers(1, 9)), careless=careless).write()


def check_values(program: Program, inputs: dict[str, np.ndarray], values: list[np.ndarray]) -> None:
    found = run(program, inputs)
    for slot, value in enumerate(values):
        np.testing.assert_array_equal(found[f"v{slot}"], value, err_msg=f"slot {slot}")


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int):
    """Nothing waits for a message that was not started before: both simulators come to the end."""
    program, inputs, values = written(seed)
    check_values(program, inputs, values)
    found = simulate(program, machine("toy8x8"), limit=200_000)
    assert found.finish.min() >= 0
    assert found.digest() == simulate(program, machine("toy8x8"), limit=200_000).digest()


def test_random_careless_programs():
    """Sends are waited for first: queues without an end do; those of a machine may not, and then it says so."""
    ends = {True: 0, False: 0}
    for seed in range(60):
        try:
            check_values(*written(seed, careless=True))
        except UserError as error:
            assert "Deadlock" in str(error)  # relays wait for what comes after
            continue
        program = written(seed, careless=True)[0]
        try:
            simulate(program, machine("toy8x8"), limit=200_000)
            ends[True] += 1
        except UserError as error:
            assert "Deadlock" in str(error) and "waits for room" in str(error), error
            ends[False] += 1
        simulate(program, machine("toy8x8", queue_depth=1000), limit=200_000)
    assert min(ends.values()) >= 3, ends
