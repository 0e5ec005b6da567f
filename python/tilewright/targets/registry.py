# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which targets there are: the folders beside this file, and entry points of the group ``tilewright.targets``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.targets.base import Target

GROUP = __name__.rpartition(".")[0]


def builtin_kinds() -> list[str]:
    """Return the kinds of this package, sorted."""
    return sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]) if info.ispkg)


def kinds() -> list[str]:
    """Return all kinds: those of this package, then those of others."""
    own = builtin_kinds()
    return [*own, *sorted({entry.name for entry in _entry_points()} - {*own})]


def find(kind: str) -> type[Target] | None:
    """Return the class of targets of a kind; None where there is no such kind.

    Raises:
        UserError: two packages have a target of that kind, or its class cannot be imported.
    """
    if kind in builtin_kinds():
        return _class(importlib.import_module(f"tilewright.targets.{kind}.target"), kind)
    found = [entry for entry in _entry_points() if entry.name == kind]
    values = {entry.value for entry in found}
    if not values:
        return None
    if len(values) > 1:
        raise UserError(f"several packages have a target {kind!r} ({', '.join(sorted(values))}): uninstall all but one")
    try:
        cls = found[0].load()
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"target {kind!r}: cannot import {values.pop()} ({error}); install its package again"
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, Target) and cls.kind == kind):
        raise UserError(f"target {kind!r}: {values.pop()} is no tilewright.targets.Target of kind {kind!r}")
    return cls


def _entry_points() -> Sequence[Any]:
    """What other packages name, found on Python's path."""
    import importlib.metadata  # takes as long as all else here, and few strings need it

    return tuple(importlib.metadata.entry_points(group=GROUP))


def _class(module: Any, kind: str) -> type[Target]:
    """The class of a module of this package: the only one of that kind."""
    return next(c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Target) and c.kind == kind)


def known() -> Iterator[type[Target]]:
    """Yield the classes of all targets."""
    for kind in kinds():
        cls = find(kind)
        if cls is not None:
            yield cls


def forms() -> str:
    """Return how target strings look, for messages and help."""
    return ", ".join(form for cls in known() for form in cls.forms)


def named(text: Any) -> Target:
    """Return the target that a string names, without looking at this machine.

    Raises:
        UserError: there is no such target.
    """
    if isinstance(text, Target):
        return text
    cls = find(text.partition(":")[0]) if isinstance(text, str) and text else None
    if cls is None:
        raise UserError(f"unknown target {text!r}; this version has {forms()}")
    return cls(text)


def checked(text: Any) -> Target:
    """Return the target that a string names, if models are compiled for it.

    Raises:
        UserError: there is no such target.
        UnsupportedError: models are not compiled for it.
    """
    target = named(text)
    if target.refusal:
        raise UnsupportedError(target.refusal.format(t=target))
    return target


def parse_target(text: Any) -> Target:
    """Return the target that a string means on this machine.

    Raises:
        UserError: there is no such target, or no such processor here.
        UnsupportedError: models are not compiled for it.
    """
    return checked(text).here()
