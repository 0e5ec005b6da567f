# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``mesh:MACHINE``: a grid of cores with private memories, which the simulator runs and times."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.targets.base import Target

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device
    from tilewright.passes.pipeline import Pipeline


class MeshTarget(Target):
    """A mesh by the name of its description, e.g. ``mesh:toy8x8``, or a description's file."""

    kind = "mesh"
    forms = ("mesh:NAME (a mesh of cores, simulated)",)
    runs_apart = False
    has_residents = True

    def check_name(self) -> None:
        """Refuse names of no mesh; the kind alone is what phases are made for."""
        name = self.name.partition(":")[2]
        if self.name != self.kind and not name.endswith(".toml"):
            from tilewright.sim.coremesh.machine import mesh_names

            if name not in mesh_names():
                raise _unknown(self.name)

    def here(self) -> Target:
        """Refuse the kind alone: no mesh is this machine's own."""
        if self.name == self.kind:
            raise _unknown(self.name)
        return self

    @functools.cached_property
    def device(self) -> Device:
        """The description that planning sees."""
        from tilewright import devices

        found = devices.get(self.name.partition(":")[2])
        if found.mesh is None:
            raise UserError(f"target {self.name!r}: '{found.name}' describes no mesh of cores but a {found.kind}")
        return found

    def pipeline(self, options: CompileOptions) -> Pipeline:
        """Return layer 1 to programs of single cores."""
        from tilewright.targets.mesh.pipeline import PIPELINE

        return PIPELINE

    def states(self) -> Pipeline:
        """Return all passes: after each the interpreter runs the IR, programs of cores by the functional simulator."""
        from tilewright.sim.coremesh_ir import execute  # noqa: F401  (lets the interpreter run programs)

        return super().states()

    def emit(self, work: Any, folder: Path) -> Any:
        """Write programs, weights and simulated times."""
        from tilewright.targets.mesh.emit import emit

        return emit(work, folder)

    @classmethod
    def load(cls, artifact: Any, threads: int | None, emulate: bool | Mapping[str, Any]) -> Any:
        """Return a :class:`~tilewright.targets.mesh.model.MeshModel`."""
        from tilewright.targets.mesh.model import MeshModel

        return MeshModel(artifact)


def _unknown(name: str) -> UserError:
    from tilewright.sim.coremesh.machine import mesh_names

    known = ", ".join(f"mesh:{one}" for one in mesh_names())
    return UserError(f"unknown mesh {name!r}: use one of {known}, or mesh:FILE.toml with a description")
