# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates of a kind of device (``kinds/KIND.toml``): what planners take where a description says nothing."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

from tilewright.core.errors import InternalError

_FOLDER = Path(__file__).parent / "kinds"


@functools.cache
def rates_of_kind(kind: str) -> dict[str, float]:
    """Return the rates of all devices of a kind (``cpu``, ``gpu``) by name; none where the kind has no file."""
    path = _FOLDER / f"{kind}.toml"
    if not path.is_file():
        return {}
    return {name: float(value) for name, value in tomllib.loads(path.read_text())["rates"].items()}


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
