# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tools share: passes and phases to know, and leaving the process."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.core.options import CompileOptions
from tilewright.passes.base import option_specs
from tilewright.passes.pipeline import Pipeline
from tilewright.passes.registry import load_builtin_passes, load_file, registered_passes
from tilewright.targets import registry


class _LateNumpy(ModuleType):
    """Stands for numpy until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        """Import numpy proper and become it."""
        if sys.modules.get("numpy") is self:
            del sys.modules["numpy"]
            vars(self).update(vars(importlib.import_module("numpy")))
        if name not in vars(self):
            raise AttributeError(f"module 'numpy' has no attribute '{name}'")
        return vars(self)[name]


def delay_numpy() -> None:
    """Let ``import numpy`` cost nothing until numpy is used: MLIR's bindings import it, few passes need it."""
    spec = importlib.util.find_spec("numpy")
    if spec is not None and "numpy" not in sys.modules:
        sys.modules["numpy"] = late = _LateNumpy("numpy")
        late.__spec__ = spec


def builtin_pipelines() -> list[Pipeline]:
    """Return the pipeline of each kind of target."""
    machines = [cls(cls.kind) for cls in registry.known() if cls.compiles]
    return [machine.pipeline(CompileOptions()) for machine in machines if not machine.refusal]


def take_values(argv: list[str], flag: str) -> list[str]:
    """Return the values of ``--flag VALUE`` and ``--flag=VALUE`` (also with one dash), in order.

    Raises:
        TilewrightError: the last one has no value.
    """
    values = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in (f"--{flag}", f"-{flag}"):
            continue
        if not equals:
            value = next(words, "")
        if not value:
            raise TilewrightError(f"--{flag} needs a value")
        values.append(value)
    return values


def load_passes(files: list[str]) -> None:
    """Register built-in passes, the phases of all kinds of machines, and the passes of the user's files."""
    try:
        load_builtin_passes()
        for pipeline in builtin_pipelines():
            pipeline.register()
    except Exception as error:  # a broken module must not take the tool away that helps to mend it
        reason = f"{type(error).__name__}: {error}"
        print(f"warning: some Python passes or phases are missing: {reason}", file=sys.stderr)
    for file in files:
        load_file(file)


def documentation(name: str) -> str:
    """Return the full documentation of a Python pass, or the passes of a phase or pipeline with their reasons.

    Raises:
        TilewrightError: there is no Python pass, phase or pipeline of that name.
    """
    cls = registered_passes().get(name)
    if cls is not None:
        options = [f"  {spec.name}={spec.default}: {spec.help}" for spec in option_specs(cls)]
        return "\n".join([f"{name}: {inspect.getdoc(cls)}", *(["", "Options:", *options] if options else [])])
    for pipeline in builtin_pipelines():
        if name == f"tile-{pipeline.name}":
            return pipeline.describe()
        for phase in pipeline.phases:
            if name == f"tile-{pipeline.name}-{phase.name}":
                return phase.describe()
    raise TilewrightError(f"no Python pass, phase or pipeline is named '{name}' (C++ passes: see --help)")


def leave(status: int) -> None:
    """End the process at once: LLVM's static state is spent, and there is nothing left for Python to clean up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def fail(tool: str, error: BaseException) -> None:
    """Print an error that came up before the tool proper started, and leave."""
    print(f"{tool}: error: {error}", file=sys.stderr)
    leave(1)
