# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A batch of CTAs that run in step: registers, memory, what run functions ask for. `scheduler.py` moves the lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.memory.access import Access
from tilewright.sim.ptx.memory.global_memory import GlobalMemory, Store
from tilewright.sim.ptx.memory.shared_memory import SharedMemory
from tilewright.sim.ptx.memory.transfer import Transfer
from tilewright.sim.ptx.order.grid_order import make_grid_races
from tilewright.sim.ptx.order.races import make_races
from tilewright.sim.ptx.program import Program
from tilewright.sim.ptx.sync.barriers import Barriers
from tilewright.sim.ptx.sync.scheduler import Scheduler
from tilewright.sim.ptx.sync.step import Lanes, Step
from tilewright.sim.ptx.syntax import types

if TYPE_CHECKING:
    from tilewright.sim.ptx.syntax.tree import Instruction
    from tilewright.sim.ptx.trace import Trace

#: what is checked where the caller says nothing
CHECKS = frozenset({"uninitialised", "uninitialised registers", "race", "grid race", "asynchronous"})
#: what may be checked besides
_MORE_CHECKS = frozenset({"arithmetic"})
_COMPLETIONS = (None, "late", "early", "random")


@dataclass(frozen=True)
class Options:
    """How a launch is emulated.

    Attributes:
        seed: None runs lanes in a fixed order; a number makes the order of warps, and of asynchronous completion,
            random.
        checks: optional checks: any of `CHECKS` (the default is all of these) and "arithmetic". Alignment, bounds and
            dead-lock are always checked.
        completion: when asynchronous work takes effect: "late" (when nothing else can run, or a wait asks for it),
            "early" (at once), "random" (by
            the seed); None: "late" without a seed, "random" with one.
        lanes: how many threads run in step, at most (at least one cluster).
        trace: counts what runs, see `Trace`.
        limit: instructions that a batch may issue, None = no limit. Polling without progress is found in any case.

    Raises:
        UserError: a check or a completion that there is not.
    """

    seed: int | None = None
    checks: frozenset[str] = CHECKS
    completion: str | None = None
    lanes: int = 16384
    trace: Trace | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        known = CHECKS | _MORE_CHECKS
        unknown = set(self.checks) - known
        if unknown:
            raise UserError(
                f"there are no checks {', '.join(sorted(map(str, unknown)))}; there are {', '.join(sorted(known))}"
            )
        if self.completion not in _COMPLETIONS:
            raise UserError(f"completion must be one of {_COMPLETIONS}, got {self.completion!r}")


@dataclass(frozen=True)
class Launch:
    """What a kernel is launched with; sizes are (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    parameters: bytes


class Machine:
    """The state of one batch.

    Attributes:
        registers: one array over all lanes per register, as unsigned words (bool for predicates).
        slot_of, tid_of: slot and thread of each lane.
        cta_of: (slots, 3) coordinates of each slot's CTA. rank_of: (slots,) its rank in its cluster.
        threads: threads of a CTA, rounded up to whole warps.
        issued: instructions issued so far (for a set of lanes at a time).
        state: what modules of opcodes keep for the batch. on_exit: called when lanes exit.
    """

    def __init__(
        self, program: Program, launch: Launch, ctas: np.ndarray, memory: GlobalMemory, options: Options
    ) -> None:
        self.program, self.launch, self.memory, self.options = program, launch, memory, options
        self.checks = options.checks
        self.check_memory = "uninitialised" in options.checks
        self.trace = options.trace
        self.random = np.random.default_rng(options.seed)
        self.issued = 0
        self.progress = 0
        self._shape(ctas)
        self._state()
        self.access = Access(self)
        self.load = self.access.load
        self.store = self.access.store
        self.on_exit: list[Callable[[Machine, Lanes], None]] = [lambda _, lanes: self.barriers.exited(lanes)]
        self.races = make_races(self)
        self.grid_races = make_grid_races(self)
        self.pending: list[Transfer] = []
        self.scheduler = Scheduler(self)
        self.barriers = Barriers(self)
        self.state: dict[str, Any] = {}
        self.wake = self.scheduler.wake

    def _shape(self, ctas: np.ndarray) -> None:
        x, y, z = self.launch.block
        self.block_threads = x * y * z
        self.threads = -(-self.block_threads // 32) * 32
        self.slots = len(ctas)
        self.cta_of = ctas
        self.lanes = self.slots * self.threads
        everyone = np.arange(self.lanes)
        self.slot_of = everyone // self.threads
        self.tid_of = everyone % self.threads
        cx, cy, cz = self.launch.cluster
        self.cluster_size = cx * cy * cz
        self.rank_of = np.arange(self.slots) % self.cluster_size

    def _state(self) -> None:
        program = self.program
        rows = [
            np.zeros(self.lanes, np.bool_ if kind == "pred" else types.WORDS[types.size(kind)]) for kind in program.rows
        ]
        self.registers = [rows[row] for row in program.row_of]
        self.carry = np.zeros(self.lanes, np.bool_)
        self.defined = {index: np.zeros(self.lanes, np.bool_) for index in program.tracked}
        self.shared = SharedMemory(self, program.shared_used(self.launch.shared_bytes), self.slots)
        self.local_bytes = program.local_bytes
        self.local_stride = -(-program.local_bytes // 32) * 32
        self.local = Store(max(self.local_stride * self.lanes, 1))
        self.parameters = Store(program.kernel.parameter_bytes, defined=True)
        data = np.frombuffer(self.launch.parameters, np.uint8)
        self.parameters.data[: data.size] = data

    @property
    def alive(self) -> int:
        """CTAs that have not ended."""
        return int(self.scheduler.alive.reshape(self.slots, self.threads).any(axis=1).sum())

    def run(self) -> Iterator[None]:
        """Run the batch to its end, asynchronous work included; yields where it can only poll."""
        yield from self.scheduler.run()
        while self.pending:
            self.complete_one()

    # ---- for run functions ------------------------------------------------

    def peer(self, slot: int, rank: int) -> int:
        """The slot of a rank in the cluster of a slot's CTA."""
        return slot - int(self.rank_of[slot]) + rank

    def symbol(self, step: Step, name: str) -> np.ndarray | np.int64:
        """The address of a variable or parameter, per lane or the same for all."""
        offset = self.program.shared.get(name)
        if offset is not None:
            return self.shared.window(step) + np.int64(offset)
        return np.int64(self.program.addresses(self.memory)[name])

    def require_register(self, step: Step, index: int) -> None:
        """Fail where a register is read that was never written."""
        if "uninitialised registers" not in self.checks:
            return
        defined = self.defined[index][step.sel]
        if not defined.all():
            name = self.program.kernel.register_names[index]
            step.fail("uninitialised", f"register {name} is read before anything is written to it", ~defined)

    def later(self, transfer: Transfer) -> None:
        """Take asynchronous work; it takes effect at a moment that the machine chooses."""
        if self.completion == "early":
            transfer.complete(self)
        else:
            self.pending.append(transfer)

    def finish(self, select: Callable[[Transfer], bool]) -> None:
        """Complete the work that a wait asks for, in an order of the machine's choice."""
        chosen = [transfer for transfer in self.pending if select(transfer)]
        if chosen:
            self.pending = [transfer for transfer in self.pending if not select(transfer)]
        if self.completion == "random":
            self.random.shuffle(chosen)
        for transfer in chosen:
            transfer.complete(self)

    @property
    def completion(self) -> str:
        """When asynchronous work takes effect."""
        return self.options.completion or ("late" if self.options.seed is None else "random")

    def complete_one(self) -> None:
        """Complete one piece of pending work: the oldest, or any of them where the order is random."""
        at = int(self.random.integers(len(self.pending))) if self.completion == "random" else 0
        self.progress += 1
        self.pending.pop(at).complete(self)

    def error(self, rule: str, message: str, ins: Instruction | None, lane: int | None = None) -> EmulationError:
        """An error with everything that is known of the place."""
        where = []
        cta = thread = None
        if lane is not None:
            slot = int(self.slot_of[lane])
            cta = tuple(int(c) for c in self.cta_of[slot])
            thread = int(self.tid_of[lane])
            where.append(f"CTA {cta}, thread {thread} (warp {thread // 32}, lane {thread % 32})")
        if ins is not None:
            where.append(ins.where())
        return EmulationError(
            f"{rule} in kernel '{self.program.kernel.name}': {message}",
            rule=rule,
            line=ins.line if ins else None,
            source=ins.source if ins else None,
            cta=cta,
            thread=thread,
            location=", ".join(where) or None,
            ir=ins.text if ins else None,
        )
