# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of programs that run one after the other on a mesh: a page, sections of one, plain values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UserError
from tilewright.report.document import cards, document
from tilewright.report.html import Raw, join, quantity, seconds, tag
from tilewright.report.plot import short
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.profile.program_profile import ProgramProfile, conditions, profile
from tilewright.sim.coremesh.profile.sections import cycles_section, maps_section, plmr_section
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import Sync
from tilewright.sim.coremesh.timing.result import Split


@dataclass(frozen=True)
class MeshReport:
    """Programs that run one after the other, each its number of times.

    Attributes:
        title: of the page.
        profiles: at least one, all of one machine and semantics.
    """

    title: str
    profiles: tuple[ProgramProfile, ...]

    @property
    def cycles(self) -> float:
        """Of all."""
        return sum(one.timing.cycles * one.times for one in self.profiles)

    @property
    def split(self) -> Split:
        """What they go to, along the critical path of each program."""
        names = [field.name for field in dataclasses.fields(Split)]
        return Split(**{n: sum(getattr(one.timing.split, n) * one.times for one in self.profiles) for n in names})

    @property
    def machine(self) -> Machine:
        """Whose cycles they are."""
        return self.profiles[0].timing.machine

    @property
    def seconds(self) -> float:
        """Of all, at the machine's clock."""
        return self.machine.seconds(self.cycles)

    @property
    def joules(self) -> float | None:
        """Nominal energy: time by the power of the whole machine; None where that is not known."""
        return self.seconds * self.machine.mesh.watts if self.machine.mesh.watts else None

    @property
    def extrapolated(self) -> bool:
        """Whether a loop of any was left early because it repeated itself."""
        return any(one.timing.extrapolated for one in self.profiles)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of all, for JSON."""
        return {
            "title": self.title,
            **conditions(self.profiles[0].timing),
            "extrapolated": self.extrapolated,
            "cycles": self.cycles,
            "seconds": self.seconds,
            "split": dataclasses.asdict(self.split),
            "joules": self.joules,
            "watts": self.machine.mesh.watts or None,
            "programs": [one.to_dict() for one in self.profiles],
        }

    def json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)

    def told(self) -> str:
        """What the numbers hold for, in one line."""
        return told(conditions(self.profiles[0].timing) | {"extrapolated": self.extrapolated})

    def head(self) -> Raw:
        """The cards of the whole, under what they hold for."""
        fullest = max(self.profiles, key=lambda one: one.plmr.classes[0].peak).plmr
        joules = f"{short(self.joules)}J" if self.joules is not None else "not known"
        figures = [
            (f"{self.cycles:,.0f}", "cycles, simulated"),
            (seconds(self.seconds), f"at {self.machine.clock / 1e9:g} GHz"),
            (joules, f"nominal energy, {self.machine.mesh.watts:g} W" if self.machine.mesh.watts else "energy"),
            (quantity(fullest.classes[0].peak, "B"), f"of {quantity(fullest.capacity, 'B')} at the fullest core"),
            (quantity(sum(one.timing.byte_hops * one.times for one in self.profiles), "B"), "× hops over links"),
        ]
        return join([tag("p", self.told(), cls="sub"), cards(figures)])

    def sections(self) -> list[Raw]:
        """The sections about cycles, links and memory, and routes, for a page."""
        return [cycles_section(self.profiles), maps_section(self.profiles), plmr_section(self.profiles)]

    def html(self, more: Sequence[Raw | None] = ()) -> str:
        """The page.

        Args:
            more: sections after its own, such as plots of studies.
        """
        head = tag("header", join([tag("h1", self.title), self.head()]))
        return document(f"{self.title} – Tilewright mesh report", [head, *self.sections(), *more])


def told(values: dict[str, Any]) -> str:
    """What simulated numbers hold for, in one line; `values` as of `conditions`."""
    entries = values["fabric_entries"]
    held = "any number of" if entries is None else str(entries)
    return (
        f"Simulated on {values['machine']}, preset {values['preset']}, {values['clock'] / 1e9:g} GHz, "
        f"{values['sync']}, {held} wavelets in the fabric per hop, tier {values['tier']}, "
        f"{'extrapolated from loops that repeat' if values['extrapolated'] else 'not extrapolated'}."
    )


def mesh_report(
    programs: Sequence[Program],
    machine: Machine,
    *,
    times: Sequence[int] = (),
    where: Sequence[str] = (),
    sync: Sync = "dataflow",
    fabric_entries: int | None = None,
    title: str = "",
) -> MeshReport:
    """Check and time programs that run one after the other.

    Args:
        programs: with colors and addresses (`plan.mesh.fit_program`).
        times: how often each runs in one call; empty: once.
        where: what of a model each computes; empty: not known.
        sync, fabric_entries: see `time_program`.
        title: by default the programs' names.

    Raises:
        UserError: there is no program, as many times or names as programs are not given, or one breaks a rule of the
            machine.
    """
    if not programs:
        raise UserError("a report of a mesh needs at least one program")
    for what, given in (("numbers of times", times), ("names of what they compute", where)):
        if given and len(given) != len(programs):
            raise UserError(f"there are {len(programs)} programs and {len(given)} {what}: give one for each")
    counts, parts = tuple(times) or (1,) * len(programs), tuple(where) or ("",) * len(programs)
    profiles = tuple(
        profile(program, machine, sync=sync, fabric_entries=fabric_entries, times=count, where=part)
        for program, count, part in zip(programs, counts, parts, strict=True)
    )
    names = ", ".join(dict.fromkeys(program.name for program in programs))
    return MeshReport(title or f"{names} on {machine.name}", profiles)
