# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers that nothing has written: arithmetic hands the state on; addresses, branches, stores and matrix units fail.

LLVM computes with values that are undefined on some path and discarded on it (the accumulator before the first step of
a loop), so an undefined operand is no error as such. What an undefined value decides, or what leaves the thread, is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.syntax.flow import operand_uses
from tilewright.sim.ptx.syntax.tree import Instruction, Register, Vector

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step, Wait
    from tilewright.sim.ptx.syntax.registry import Run

    State = Callable[[Step], np.ndarray]


def spreading(ins: Instruction, run: Run, tracked: frozenset[int]) -> Run:
    """The run function of an instruction that is a function of its operands, with the state of its results.

    A result is undefined where an operand is; a packed value where all its parts are; a selected one where the chosen
    one is.
    """
    reads, writes = operand_uses(ins)
    watched, targets = sorted(reads & tracked), sorted(writes & tracked)
    if not targets:  # what it reads is watched, then its results are too
        return run
    state = _state(ins, watched, tracked)

    def spread(step: Step) -> Wait | None:
        known = state(step) if watched else True
        run(step)
        for index in targets:
            step.machine.defined[index][step.sel] = known

    return spread


def _state(ins: Instruction, watched: list[int], tracked: frozenset[int]) -> State:
    if ins.parts[0] == "selp":
        return _selected(ins, tracked)
    some = ins.parts[0] == "mov" and len(ins.args) > 1 and isinstance(ins.args[1], Vector)
    if some and any(not isinstance(item, Register) or item.index not in tracked for item in ins.args[1].items):
        return lambda step: np.ones(step.n, np.bool_)
    join = np.logical_or if some else np.logical_and

    def state(step: Step) -> np.ndarray:
        defined = step.machine.defined
        known = defined[watched[0]][step.sel].copy()
        for index in watched[1:]:
            join(known, defined[index][step.sel], out=known)
        return known

    return state


def _selected(ins: Instruction, tracked: frozenset[int]) -> State:
    def of(step: Step, position: int) -> np.ndarray:
        operand = ins.args[position]
        if isinstance(operand, Register) and operand.index in tracked:
            return step.machine.defined[operand.index][step.sel]
        return np.ones(step.n, np.bool_)

    def state(step: Step) -> np.ndarray:
        chosen = ins.args[3]
        if not isinstance(chosen, Register):
            return of(step, 1) & of(step, 2)
        first = step.registers[chosen.index][step.sel] ^ chosen.negated
        return np.where(first, of(step, 1), of(step, 2)) & of(step, 3)

    return state
