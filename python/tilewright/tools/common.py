# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tools share: passes and phases to know, and leaving the process."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pkgutil import iter_modules

from tilewright import pipelines
from tilewright.errors import TilewrightError
from tilewright.passes.base import option_specs
from tilewright.passes.registry import load_builtin_passes, load_file, registered_passes
from tilewright.pipelines.pipeline import Pipeline


def builtin_pipelines() -> list[Pipeline]:
    """Return the pipeline of each module in ``tilewright.pipelines`` that has a function ``pipeline()``."""
    modules = [importlib.import_module(info.name) for info in iter_modules(pipelines.__path__, "tilewright.pipelines.")]
    return [module.pipeline() for module in modules if hasattr(module, "pipeline")]


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
    """Register built-in passes, built-in phases, and those of the user's files."""
    load_builtin_passes()
    for pipeline in builtin_pipelines():
        pipeline.register()
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
