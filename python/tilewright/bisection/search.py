# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which states to run, so that the first pass that moved a result is found with few runs.

States that the interpreter knows are searched by halves. Machine code exists of the last state only; where the fault
lies behind the last state that can be interpreted, passes are left out one at a time: the one without which the results
are right is the one. Passes that the user added are looked at first, and machine code is made without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from tilewright.bisection import native
from tilewright.bisection.compare import Difference, differences
from tilewright.bisection.entry import can_interpret, interpret
from tilewright.bisection.stages import Run, Stage, Step, run_steps
from tilewright.core.errors import TilewrightError, UserError


@dataclass(frozen=True)
class Verdict:
    """What running one state showed: how it was run, the outputs' differences, or the error."""

    how: str
    differences: tuple[Difference, ...] = ()
    error: str = ""

    @property
    def moved(self) -> bool:
        """True where a result is beyond the tolerance, or there is none."""
        return bool(self.error) or any(d.moved for d in self.differences)

    @property
    def worst(self) -> Difference | None:
        """The output that moved the most."""
        return max(self.differences, key=lambda d: (bool(d.note), d.share), default=None)

    def __str__(self) -> str:
        """Return it in one line."""
        return self.error or str(self.worst)


@dataclass
class Case:
    """What does not change in a search: target, signature, inputs, the baseline's outputs, the tolerance."""

    target: Any
    signature: Any
    inputs: list[Any]
    baseline: list[Any]
    tolerance: float | None
    tell: Callable[[str], Any] = lambda _: None

    def interpreted(self, stage: Stage) -> Verdict:
        """Run a state in the interpreter and compare."""
        return self._verdict("interpreter", lambda: interpret(stage, self.inputs, self.signature[1]))

    def executed(self, stage: Stage) -> Verdict:
        """Compile a lowered state, run it and compare."""
        return self._verdict("machine code", lambda: native.execute(stage, self.target, self.inputs, self.signature))

    def _verdict(self, how: str, run: Callable[[], Any]) -> Verdict:
        try:
            outputs = run()
        except TilewrightError as error:
            return Verdict(how, error=f"{type(error).__name__}: {error}")
        names = [spec.name for spec in self.signature[1]]
        return Verdict(how, tuple(differences(names, self.baseline, outputs, self.tolerance)))


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        positions: of the passes of which one moved the result (one, where it could be told), counted from 1; empty
            where nothing moved.
        before: what running the last good state showed.
        after: what running the first bad one showed.
        runs: how many states were run.
    """

    positions: tuple[int, ...] = ()
    before: Verdict | None = None
    after: Verdict | None = None
    runs: int = 0


@dataclass
class Search:
    """One search over the states of ``run``; ``suspects`` are names of passes that the user added."""

    case: Case
    run: Run
    suspects: Collection[str] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def find(self) -> Found:
        """Search.

        Raises:
            UserError: the baseline cannot be interpreted.
        """
        stages = self.run.stages
        if not can_interpret(stages[0]):
            raise UserError("the module holds operations that the interpreter does not know; there is no baseline")
        known = [stage for stage in stages if can_interpret(stage)]
        last = known[-1]
        for position in self._suspected(last.position):
            if self._verdict(stages[position]).moved and not self._verdict(stages[position - 1]).moved:
                return self._found((position,), stages[position - 1], stages[position])
        if self._verdict(last).moved:
            return self._halves(known)
        return self._behind(last)

    def _verdict(self, stage: Stage) -> Verdict:
        if stage.digest not in self.verdicts:
            lowered = self._can_run(stage)
            name = str(self.run.steps[stage.position - 1]) if stage.position else "import"
            verdict = self.case.executed(stage) if lowered else self.case.interpreted(stage)
            self.verdicts[stage.digest] = verdict
            self.case.tell(f"after {name}: {'MOVED' if verdict.moved else 'same'} ({verdict.how})")
        return self.verdicts[stage.digest]

    def _can_run(self, stage: Stage) -> bool:
        return self.case.target.executes(stage.module)

    def _found(self, positions: tuple[int, ...], before: Stage, after: Stage) -> Found:
        return Found(positions, self._verdict(before), self._verdict(after), len(self.verdicts))

    def _suspected(self, end: int) -> list[int]:
        steps = enumerate(self.run.steps[:end], 1)
        return [position for position, step in steps if step.name in self.suspects]

    def _halves(self, stages: list[Stage]) -> Found:
        """The first state is good and the last one bad: halve what is between. Equal states count as one."""
        distinct: list[Stage] = []
        for stage in stages:
            if not distinct or distinct[-1].digest != stage.digest:
                distinct.append(stage)
        low, high = 0, len(distinct) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._verdict(distinct[middle]).moved else (middle, high)
        good, bad, stages = distinct[low], distinct[high], self.run.stages
        between = range(good.position + 1, bad.position + 1)  # more than one where the interpreter knows no state
        guilty = tuple(p for p in between if stages[p].digest != stages[p - 1].digest)
        return self._found(guilty, good, bad)

    def _behind(self, last: Stage) -> Found:
        """All states that the interpreter knows are good; look at the machine code."""
        end = self.run.stages[-1]
        if end is last or not self._can_run(end) or not self._verdict(end).moved:
            return Found(runs=len(self.verdicts))
        candidates = range(last.position + 1, end.position + 1)
        order = sorted(candidates, key=lambda position: self.run.steps[position - 1].name not in self.suspects)
        for position in order:
            if self._right_without(position, last):
                return self._found((position,), last, end)
        return self._found(tuple(candidates), last, end)

    def _right_without(self, position: int, last: Stage) -> bool:
        """True where the machine code is right when one pass is left out."""
        if self.run.stages[position].digest == self.run.stages[position - 1].digest:
            return False
        tail = run_steps(self.run.stages[position - 1], self.run.steps[position:])
        end = tail.stages[-1]
        if tail.error is not None or not self._can_run(end) or end.digest == self.run.stages[-1].digest:
            return False
        if end.digest not in self.verdicts:
            self.verdicts[end.digest] = self.case.executed(end)
        verdict = self.verdicts[end.digest]
        self.case.tell(f"without {self.run.steps[position - 1]}: {'MOVED' if verdict.moved else 'same'}")
        return not verdict.moved


def steps_text(steps: list[Step]) -> str:
    """Return passes as one pipeline."""
    return f"builtin.module({','.join(step.text for step in steps)})"
