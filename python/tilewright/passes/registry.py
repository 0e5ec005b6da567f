# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which Python passes exist."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path
from typing import TypeVar

from tilewright.core import plugins
from tilewright.core.errors import UserError
from tilewright.passes.base import Pass, make_callable, option_specs, summary

P = TypeVar("P", bound=type[Pass])

_passes: dict[str, type[Pass]] = plugins.PASSES


def register(cls: P) -> P:
    """Make a pass class known to ``tile-opt`` and to textual pipelines (a class decorator).

    Registering a name again replaces the earlier Python pass of that name; one of this package, whose module may be
    imported at any time, never takes the place of a user's.

    Raises:
        TypeError: the class is not a well-formed pass.
        ValueError: a C++ pass has the name, or a dialect is unknown.
    """
    from tilewright.mlir._mlir_libs import _tilewright

    if not (isinstance(cls, type) and issubclass(cls, Pass)):
        raise TypeError(f"@register takes a subclass of tilewright.passes.Pass, not {cls!r}")
    if not cls.name:
        raise TypeError(f"pass '{cls.__name__}' has no name: set name: ClassVar[str]")
    options = [tuple(spec) for spec in option_specs(cls)]
    if _is_own(cls) and not _is_own(_passes.get(cls.name, cls)):
        return cls
    _tilewright.register_pass(cls.name, summary(cls), cls.anchor, list(cls.dialects), options, make_callable(cls))
    _passes[cls.name] = cls
    return cls


def registered_passes() -> dict[str, type[Pass]]:
    """Return the Python passes registered so far, by name."""
    return dict(_passes)


def _is_own(cls: type[Pass]) -> bool:
    """Whether a pass is of this package."""
    return cls.__module__.startswith("tilewright.")


def has_user_passes(pipeline: str) -> bool:
    """Whether a pipeline names a Python pass that is not of this package."""
    others = {name for name, cls in _passes.items() if not _is_own(cls)}
    return bool(others) and not others.isdisjoint(_names(pipeline))


def _names(pipeline: str) -> frozenset[str]:
    """All words of a pipeline."""
    return frozenset(re.findall(r"[\w.-]+", pipeline))


def load_builtin_passes(pipeline: str | None = None) -> None:
    """Import every module of built-in passes (once); with a pipeline, those of passes that it names."""
    names = None if pipeline is None else _names(pipeline)
    for load in plugins.LOADERS:
        load(names)


def load_file(path: str | Path) -> None:
    """Import a Python file that registers passes.

    Raises:
        UserError: there is no such file. What the file itself raises comes out as it is.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise UserError(f"cannot load passes from '{path}': no such file")
    name = f"tilewright_user_{path.stem}_{abs(hash(str(path))):x}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"cannot load passes from '{path}': not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def source_file(cls: type[Pass]) -> str | None:
    """Return the file to give to ``--load-python`` for a pass; None where tile-opt knows it anyway."""
    if _is_own(cls):
        return None
    try:
        return inspect.getsourcefile(cls)
    except TypeError:  # defined in a console
        return None
