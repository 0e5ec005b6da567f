# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a module of the llvm dialect: object code, a library, and one call of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bisection.stages import Stage
from tilewright.compiler.driver import Compilation, build
from tilewright.compiler.source import Imported
from tilewright.core.options import CompileOptions
from tilewright.passes.pipeline import Pipeline
from tilewright.runtime.manifest import TensorSpec
from tilewright.targets.base import Target
from tilewright.targets.loading import load


@dataclass(frozen=True)
class _Lowered:
    """A state in the place of a model: nothing is left to be imported."""

    stage: Stage
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    name: str = "bisect"
    kind: str = "state"
    form: str = ""

    def load(self, _shapes: Any, _symbolic: Any = (), _many_threads: bool = False) -> Imported:
        """Return the module of the state (a copy)."""
        copy = self.stage.module.clone(ip=False)
        module: Any = _Module(copy)
        return Imported(module, dict(self.stage.weights), self.inputs, self.outputs)


class _Module:
    """An operation that is used like an ``ir.Module``."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation
        self.body = operation.regions[0].blocks[0]
        self.context = operation.context

    def __str__(self) -> str:
        """Return the text."""
        return str(self.operation)


def execute(
    stage: Stage,
    target: Target,
    inputs: Sequence[np.ndarray],
    signature: tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]],
) -> list[np.ndarray]:
    """Compile a lowered state and call it once.

    Raises:
        InternalError: LLVM or the linker refuses it.
        UserError: the code itself refuses its inputs.
    """
    source: Any = _Lowered(stage, *signature)
    work = Compilation(source, target, CompileOptions(pipeline=Pipeline("rest")))
    with tempfile.TemporaryDirectory(prefix="tilewright-bisect-") as folder:
        path = Path(folder) / "model"
        path.mkdir()
        build(work, path)
        return [np.array(value) for value in load(path)(*inputs)]
