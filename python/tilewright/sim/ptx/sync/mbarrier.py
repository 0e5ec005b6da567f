# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mbarrier objects: phases, pending arrivals, transaction counts. The state is the 8 bytes in shared memory themselves.

Bits: 0-19 pending arrivals, 20-39 expected arrivals, 40-61 transaction count (two's complement), 62 tag of an
initialised object, 63 phase.
PTX leaves them opaque.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.tree import Instruction

_COUNT = np.uint64(0xFFFFF)
_EXPECTED, _TX, _TAG, _PHASE = (np.uint64(shift) for shift in (20, 40, 62, 63))
#: the largest transaction count that PTX allows
_TX_LIMIT = (1 << 20) - 1


def _words(machine: Machine) -> np.ndarray:
    return machine.shared.rows(8, 1)


def initialise(step: Step, flat: np.ndarray, counts: np.ndarray) -> None:
    """Make objects that expect so many arrivals per phase. flat: byte index into shared memory, (n,)."""
    bad = (counts < 1) | (counts > _TX_LIMIT)
    if bad.any():
        step.fail("barrier", f"an mbarrier for {int(counts[bad][0])} arrivals; 1 to {_TX_LIMIT} are possible", bad)
    count = counts.astype(np.uint64)
    step.machine.races.mbarrier_init(step, flat)
    _words(step.machine)[flat // 8] = count | count << _EXPECTED | np.uint64(1) << _TAG
    step.machine.shared.mark(flat, 8)
    step.machine.progress += 1


def invalidate(step: Step, flat: np.ndarray) -> None:
    """The 8 bytes are ordinary memory again."""
    states(step, flat)
    _words(step.machine)[flat // 8] = 0
    step.machine.shared.defined.reshape(-1, 8)[flat // 8] = False


def states(step: Step, flat: np.ndarray) -> np.ndarray:
    """The words of objects, uint64 (n,).

    Raises:
        EmulationError: there is none, or something wrote over it.
    """
    bad = step.machine.shared.undefined(flat, 8)
    words = _words(step.machine)[flat // 8]
    missing = words >> _TAG & np.uint64(1) == 0
    if bad is not None:
        missing |= bad
    if missing.any():
        at = int(flat[missing][0]) % step.machine.shared.stride
        step.fail("barrier", f"no mbarrier has been initialised at offset {at} of shared memory", missing)
    return words


def phase(machine: Machine, flat: np.ndarray) -> np.ndarray:
    """Number of the phase that is under way, modulo 2: uint64 (n,)."""
    return _words(machine)[flat // 8] >> _PHASE


def arrive(
    step: Step, flat: np.ndarray, count: np.ndarray | int = 1, expect: np.ndarray | int = 0, drop: bool = False
) -> np.ndarray:
    """Expect bytes, then arrive. Returns the states before, uint64 (n,): what try_wait takes.

    Args:
        step: the lanes (their clocks are released to those that wait).
        flat: byte index of each lane's object.
        count: arrivals of each lane.
        expect: bytes that each lane adds to the transaction count first.
        drop: whether later phases expect these arrivals no more.
    """
    before = states(step, flat)
    counts = np.broadcast_to(np.asarray(count, np.int64), step.n)
    expects = np.broadcast_to(np.asarray(expect, np.int64), step.n)
    places, owner = np.unique(flat, return_inverse=True)
    for number, place in enumerate(places):
        part = step if len(places) == 1 else step.narrowed(owner == number)
        step.machine.races.release(part, ("mbarrier", int(place)))
    arrivals = np.bincount(owner, counts, len(places)).astype(np.int64)
    bytes_ = np.bincount(owner, expects, len(places)).astype(np.int64)
    for place, coming, nbytes in zip(places, arrivals, bytes_, strict=True):
        text = _change(step.machine, int(place), int(coming), int(nbytes), drop)
        if text:
            step.fail("barrier", text, flat == place)
    return before


def expect_tx(step: Step, flat: np.ndarray, nbytes: np.ndarray) -> None:
    """Add bytes to transaction counts without arriving."""
    states(step, flat)
    step.machine.races.uses(step, flat)
    for place, more in zip(flat, nbytes, strict=True):
        text = _change(step.machine, int(place), 0, int(more))
        if text:
            step.fail("barrier", text, flat == place)


def add_pending(machine: Machine, flat: np.ndarray, count: int, ins: Instruction | None = None) -> None:
    """Wait for `count` more arrivals of each lane in the phase under way (fewer if negative)."""
    for place, lanes in zip(*np.unique(flat, return_counts=True), strict=True):
        text = _change(machine, int(place), -count * int(lanes), 0)
        if text:
            raise machine.error("barrier", text, ins)


def complete_tx(machine: Machine, flat: int, nbytes: int, ins: Instruction | None = None) -> None:
    """Asynchronous work, issued by `ins`, has moved bytes."""
    word = int(_words(machine)[flat // 8])
    text = (
        _change(machine, flat, 0, -nbytes) if word >> 62 & 1 else "bytes arrive at an mbarrier that is not initialised"
    )
    if text:
        raise machine.error("barrier", text, ins)


def _change(machine: Machine, flat: int, arrivals: int, nbytes: int, drop: bool = False) -> str | None:
    """Change one object; complete its phase if nothing is pending. Returns what is wrong, if anything is."""
    words = _words(machine)
    word = int(words[flat // 8])
    pending, expected, tx, side = word & 0xFFFFF, word >> 20 & 0xFFFFF, word >> 40 & 0x3FFFFF, word >> 63
    tx = tx - (1 << 22) if tx >> 21 else tx
    if arrivals > pending:
        return f"{arrivals} arrivals at an mbarrier that waits for {pending} more in this phase"
    pending, tx = pending - arrivals, tx + nbytes
    expected -= arrivals if drop else 0
    if abs(tx) > _TX_LIMIT:
        return f"the transaction count of an mbarrier would be {tx}; at most {_TX_LIMIT} is possible"
    done = pending == 0 and tx == 0
    if done:
        pending, side = expected, side ^ 1
    words[flat // 8] = np.uint64(pending | expected << 20 | (tx & 0x3FFFFF) << 40 | 1 << 62 | side << 63)
    machine.progress += 1
    if done:
        machine.races.phase(("mbarrier", flat))
        machine.wake(("mbarrier", flat))
    return None


def describe(machine: Machine, flat: int) -> str:
    """What an object still waits for, for messages."""
    word = int(_words(machine)[flat // 8])
    tx = word >> 40 & 0x3FFFFF
    tx = tx - (1 << 22) if tx >> 21 else tx
    text = f"mbarrier at offset {flat % machine.shared.stride}: parity {word >> 63} is under way, "
    return text + f"{word & 0xFFFFF} of {word >> 20 & 0xFFFFF} arrivals and {tx} bytes are missing"


def pending(words: np.ndarray) -> np.ndarray:
    """Arrivals that states still wait for: uint32 (n,)."""
    return (words & _COUNT).astype(np.uint32)


def passed(step: Step, flat: np.ndarray, parity: np.ndarray) -> np.ndarray:
    """Whether the phase with a parity is over, per lane; lanes that pass see what was released to the object."""
    states(step, flat)
    step.machine.races.uses(step, flat)
    over = phase(step.machine, flat) != (parity.astype(np.uint64) & np.uint64(1))
    if over.any():
        warps = step.warps
        for place in np.unique(flat[over]):
            step.machine.races.acquire(np.unique(warps[over & (flat == place)]), ("mbarrier", int(place)))
    return over
