# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates and limits of a kind of device (``kinds/KIND.toml``): what passes take where a description says nothing."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

from tilewright.core.errors import InternalError

_FOLDER = Path(__file__).parent / "kinds"


@functools.cache
def rates_of_kind(kind: str) -> dict[str, float]:
    """Return the rates of all devices of a kind (``cpu``, ``gpu``) by name; none where the kind has no file."""
    return {name: float(value) for name, value in _file_of(kind).get("rates", {}).items()}


@functools.cache
def limits_of_kind(kind: str) -> dict[str, int]:
    """Return the limits of all devices of a kind by name, which C++ passes ask for."""
    return dict(_file_of(kind).get("limits", {}))


@functools.cache
def _file_of(kind: str) -> dict[str, Any]:
    path = _FOLDER / f"{kind}.toml"
    return tomllib.loads(path.read_text()) if path.is_file() else {}


def usual_rate(kind: str, *names: str) -> float:
    """Return the first of some rates that the file of a kind has.

    Raises:
        InternalError: it has none: a planner asks for what nobody declared.
    """
    return first_rate(rates_of_kind(kind), names, f"a {kind}", kind)


def first_rate(rates: Mapping[str, float], names: Sequence[str], who: str, kind: str) -> float:
    """Return the first of some rates that is known; `who` is named where none is.

    Raises:
        InternalError: none is known.
    """
    for name in names:
        if name in rates:
            return rates[name]
    raise InternalError(
        f"{who} has no rate '{names[-1]}': declare it in devices/kinds/{kind}.toml, where all rates of a kind stand"
    )


def unknown_rate(kind: str, names: Iterable[str], levels: Iterable[str]) -> str:
    """Return the first rate that nothing asks for and the nearest known one, in words; "" where all are known.

    A name may go on behind a known one (``slots.math.erf``, ``fma.6x2``), or begin with a level of the device where
    the kind says ``level`` (``l3.store``).

    Args:
        kind: of the device; of one without a file nothing is known, and everything taken.
        names: of rates.
        levels: names of the device's levels.
    """
    known = rates_of_kind(kind)
    heads, levels = {name.partition(".")[0] for name in known}, set(levels)
    for name in names if known else ():
        head, _, rest = name.partition(".")
        if name in known or (rest and head in heads) or (head in levels and f"level.{rest}" in known):
            continue
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"devices/kinds/{kind}.toml has all"
        return f"no planner asks for the rate '{name}' of a {kind}: {hint}"
    return ""
