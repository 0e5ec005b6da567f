# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading a compiled model: its target's run-time does it, with neither MLIR nor the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.core.errors import UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.structure import structured
from tilewright.runtime.text import bounded
from tilewright.targets import registry


def load(path: str | Path, threads: int | None = None, emulate: bool | Mapping[str, Any] = False) -> Any:
    """Load a compiled model.

    Args:
        path: a folder or archive that :meth:`Model.save` (or ``tilewright compile``) made.
        threads: threads per call; default: TILEWRIGHT_THREADS, else all CPUs that this process may use.
        emulate: run a model for GPUs on the emulator; True, or a mapping of the emulator's options (``seed``, ...).

    Returns:
        A :class:`tilewright.Model`; for a model for GPUs a :class:`~tilewright.runtime.gpu.gpu_model.GpuModel`;
        for one with strings or maps a :class:`~tilewright.runtime.text.TextModel` around it.

    Raises:
        UserError: no such model, a damaged one, one of another version, or one that this CPU cannot run.
    """
    return bounded(load_numbers(path, threads, emulate))


def load_numbers(path: str | Path, threads: int | None = None, emulate: bool | Mapping[str, Any] = False) -> Any:
    """Load a compiled model as `load` does, without what is done in Python around its numbers."""
    artifact = Artifact(path)
    target = artifact.manifest.target
    cls = registry.find(artifact.manifest.kind)
    if cls is None:
        raise UserError(
            f"{path} is for target {target}, which is not installed here; there are {', '.join(registry.kinds())}"
        )
    if emulate and not cls.emulates:
        raise UserError(f"emulate= is for models for GPUs; {path} is for target {target}")
    return structured(cls.load(artifact, threads, emulate), artifact.manifest.compile.get("form"))
