# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``tiles``, of a package of its own: the IR after phase `tile`, run by the interpreter.

A model for it is an artifact like any other. `tile_interpreter-1.0.dist-info` beside this file is what an installer
would leave: the entry point by which Tilewright finds the class.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from tilewright import devices
from tilewright.runtime.artifact import write_files
from tilewright.runtime.compiled import CompiledModel
from tilewright.targets.base import Target
from tilewright.targets.reference.model import Interpreted

FILE = "code/kernels.mlir"


class TilesModel(Interpreted, CompiledModel):
    """Kernels and the function that launches them, interpreted."""

    def __init__(self, artifact) -> None:
        from tilewright.mlir import ir

        super().__init__(artifact)
        with ir.Context():
            self._module = ir.Module.parse(artifact.read(FILE).decode())
        self._weights = artifact.weights()

    def profile(self, *args, out=None, **named) -> list[tuple[str, int, int]]:
        """The interpreter has no clock that says anything about a machine."""
        return []


class TilesTarget(Target):
    """A machine whose instructions are those of the tile dialect."""

    kind = "tiles"
    forms = ("tiles (the tile dialect, interpreted)",)
    runs_apart = False

    @property
    def device(self):
        """The machine that tiles are sized for."""
        return devices.get("cpu:x86-64-v3")

    def pipeline(self, options):
        """Phases normalize, plan and tile of a CPU, and a pass of this package."""
        from outside_pass import SPEC

        from tilewright.passes.pipeline import Phase, Pipeline
        from tilewright.pipelines import cpu

        phases = cpu.PIPELINE.upto("tile").phases
        return Pipeline("tiles", [*phases, Phase("lower", [SPEC], summary="what a machine of tiles needs beyond them")])

    def emit(self, work, folder) -> None:
        """Write the module as text, and the weights that its globals name."""
        from tilewright.targets import emitting

        text = str(work.module).encode()
        kernels = emitting.top_symbols(work.module, "tile.kernel")
        weights = {name: emitting.weight(work, name) for name in emitting.top_symbols(work.module, "ml_program.global")}
        manifest = emitting.manifest_of(work, kernels, dict(zip(kernels, kernels, strict=True)), weights)
        manifest = replace(manifest, code_files=(FILE,), code_sha256=hashlib.sha256(text).hexdigest())
        write_files(folder, manifest, {FILE: text}, weights, emitting.report(work))

    @classmethod
    def load(cls, artifact, threads, emulate):
        """Return the model, which needs MLIR to run."""
        return TilesModel(artifact)
