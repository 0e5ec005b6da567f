# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model for a mesh, ready to be called: the functional simulator runs its programs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tilewright.core.errors import UserError
from tilewright.dialects import tile  # noqa: F401  (its attributes stand in the module)
from tilewright.mlir import ir
from tilewright.report.document import check_page
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.compiled import CompiledModel
from tilewright.sim.coremesh_ir import execute  # noqa: F401  (lets the interpreter run programs)
from tilewright.targets.mesh.emit import MODULE
from tilewright.targets.mesh.explain import explain, page
from tilewright.targets.reference.model import Interpreted


class MeshModel(Interpreted, CompiledModel):
    """A compiled model for a mesh of cores. It is called like :class:`tilewright.Model`.

    Calls run on the functional simulator: what each core computes and sends, without a clock; a rule of the machine
    that is broken is an error.

    Args:
        artifact: the compiled model.

    Raises:
        UserError: the artifact is damaged.
    """

    def __init__(self, artifact: Artifact) -> None:
        CompiledModel.__init__(self, artifact)
        code = artifact.read(MODULE)
        if hashlib.sha256(code).hexdigest() != artifact.manifest.code_sha256:
            raise UserError(f"{artifact.path}/{MODULE} is damaged (its hash differs): compile the model again")
        with ir.Context():
            self._module = ir.Module.parse(code)
        self._weights = artifact.weights()

    @property
    def runs_on(self) -> str:
        """What runs a call, in words."""
        return "on the functional simulator of a mesh"

    @property
    def module(self) -> ir.Module:
        """The programs, for simulators."""
        return self._module

    @property
    def shares(self) -> dict[str, int]:
        """How many programs of the grid, and how many nodes outside of it, compute a call."""
        programs = sum(kernel.details["height"] > 0 for kernel in self._manifest.kernels)
        return {"programs": programs, "outside": len(self._manifest.compile["mesh"]["outside"])}

    def explain(self, path: str | Path | None = None, *, measure: bool = True) -> str:
        """Return a text about the model: per step algorithm, grid, cycles, memory, colors.

        Args:
            path: a file to write: a page with that text, the split of cycles, maps of links and memory, and routes; or,
                where its name ends in ``.txt``, the text alone.
            measure: nothing here is measured: times are simulated.

        Raises:
            UserError: the ending of `path` is another.
        """
        told = path is not None and Path(path).suffix.lower() == ".txt"
        if path is not None and not told:
            check_page(path)
        text = explain(self._manifest, self.report_data())
        if path is not None:
            shown = text if told else page(text, self._module, self._manifest)
            Path(path).write_text(shown, encoding="utf-8")
        return text
