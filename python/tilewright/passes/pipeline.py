# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines as values: phases of passes, each with its reason.

``str()`` of any of them is text that ``tile-opt`` accepts::

    plan = Phase("plan", [PassSpec("canonicalize", reason="plan sees one form of each op")])
    cpu = Pipeline("cpu", [plan])
    str(cpu)            # builtin.module(canonicalize)
    cpu.register()      # tile-opt --tile-cpu-plan, --tile-cpu
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.core.errors import UserError

OptionValue = bool | int | float | str | tuple


@dataclass(frozen=True)
class PassSpec:
    """One pass with its options, and why it stands where it stands.

    Attributes:
        name: the pass's name in text.
        reason: one sentence for the reader of the pipeline; must not be empty.
        options: option names (dashes) and values; a mapping is accepted.
        on: the op to nest it in, e.g. ``func.func``; None: the pipeline's own op.
    """

    name: str
    reason: str
    options: tuple[tuple[str, OptionValue], ...] | Mapping[str, OptionValue] = ()
    on: str | None = None

    def __post_init__(self) -> None:
        """Check the reason and make the options hashable."""
        if not self.reason.strip():
            raise ValueError(f"pass '{self.name}' in a pipeline needs a reason")
        if isinstance(self.options, Mapping):
            object.__setattr__(self, "options", tuple(self.options.items()))

    def __str__(self) -> str:
        """Return e.g. ``func.func(my-pass{x=1 sizes=2,4})``."""
        text = self.name
        if self.options:
            text += "{" + " ".join(f"{name}={_format(value)}" for name, value in self.options) + "}"
        return f"{self.on}({text})" if self.on else text


@dataclass(frozen=True)
class Phase:
    """A named list of passes between two borders where something is known to hold.

    Attributes:
        name: e.g. ``plan``; used by the command line, dumps and reports.
        passes: any iterable of :class:`PassSpec`.
        summary: what the phase does, in one line.
        anchor: the op that the passes run on.
    """

    name: str
    passes: tuple[PassSpec, ...]
    summary: str = ""
    anchor: str = "builtin.module"

    def __post_init__(self) -> None:
        """Make the passes a tuple."""
        object.__setattr__(self, "passes", tuple(self.passes))

    @property
    def text(self) -> str:
        """The passes without the anchor, e.g. ``canonicalize,cse``."""
        return ",".join(str(spec) for spec in self.passes)

    def __str__(self) -> str:
        """Return the phase as a pipeline, e.g. ``builtin.module(canonicalize,cse)``."""
        return f"{self.anchor}({self.text})"

    def describe(self) -> str:
        """Return the phase's summary and its numbered passes with their reasons, a line each."""
        head = f"{self.name}: {self.summary}" if self.summary else f"{self.name}:"
        lines = [f"  {number:2}. {spec}: {spec.reason}" for number, spec in enumerate(self.passes, 1)]
        return "\n".join([head, *lines])


@dataclass(frozen=True)
class Pipeline:
    """Phases in order.

    Attributes:
        name: e.g. ``cpu``.
        phases: any iterable of :class:`Phase`, with names that differ and one anchor.
        summary: what it makes of what, in one line.
    """

    name: str = "pipeline"
    phases: tuple[Phase, ...] = ()
    summary: str = ""

    def __post_init__(self) -> None:
        """Make the phases a tuple and check their names."""
        object.__setattr__(self, "phases", tuple(self.phases))
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"pipeline '{self.name}' has two phases of one name: {', '.join(self.names)}")
        if len({phase.anchor for phase in self.phases}) > 1:
            raise ValueError(f"the phases of pipeline '{self.name}' run on different ops")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the phases, in order."""
        return tuple(phase.name for phase in self.phases)

    def phase(self, name: str) -> Phase:
        """Return the phase of that name.

        Raises:
            UserError: there is none.
        """
        return self.phases[self._index(name)]

    def upto(self, name: str) -> Pipeline:
        """Return the pipeline from its start to the end of phase ``name``."""
        return dataclasses.replace(self, phases=self.phases[: self._index(name) + 1])

    def after(self, name: str) -> Pipeline:
        """Return what follows phase ``name``."""
        return dataclasses.replace(self, phases=self.phases[self._index(name) + 1 :])

    def without(self, *names: str) -> Pipeline:
        """Return the pipeline without the passes of these names, wherever they stand.

        Raises:
            UserError: it has none of such a name.
        """
        known = {spec.name for phase in self.phases for spec in phase.passes}
        for name in names:
            if name not in known:
                raise UserError(f"pipeline '{self.name}' has no pass '{name}' to leave out")
        phases = (
            dataclasses.replace(phase, passes=tuple(spec for spec in phase.passes if spec.name not in names))
            for phase in self.phases
        )
        return dataclasses.replace(self, phases=tuple(phases))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise UserError(f"pipeline '{self.name}' has no phase '{name}': choose one of {', '.join(self.names)}")
        return self.names.index(name)

    def __str__(self) -> str:
        """Return all phases as one textual pipeline."""
        anchor = self.phases[0].anchor if self.phases else "builtin.module"
        return f"{anchor}({','.join(phase.text for phase in self.phases if phase.passes)})"

    def describe(self) -> str:
        """Return every phase with its numbered passes and their reasons."""
        head = f"{self.name}: {self.summary}" if self.summary else f"{self.name}:"
        return "\n\n".join([head, *(phase.describe() for phase in self.phases)])

    def register(self) -> None:
        """Let ``tile-opt`` and textual pipelines know ``tile-NAME-PHASE`` for each phase, and ``tile-NAME`` for all."""
        from tilewright.mlir._mlir_libs import _tilewright

        for phase in self.phases:
            summary = phase.summary or f"phase {phase.name} of pipeline {self.name}"
            _tilewright.register_pipeline(f"tile-{self.name}-{phase.name}", summary, phase.text)
        text = ",".join(phase.text for phase in self.phases if phase.passes)
        _tilewright.register_pipeline(f"tile-{self.name}", self.summary or f"all phases of {self.name}", text)


def _format(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(_format(element) for element in value)
    text = str(value)
    return "{" + text + "}" if " " in text else text
