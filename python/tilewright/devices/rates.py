# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates of a kind of device (``kinds/KIND.toml``): what planners take where a description says nothing."""

from __future__ import annotations

import functools
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

_FOLDER = Path(__file__).parent / "kinds"


@functools.cache
def rates_of_kind(kind: str) -> dict[str, float]:
    """Return the rates of all devices of a kind (``cpu``, ``gpu``) by name; none where the kind has no file."""
    path = _FOLDER / f"{kind}.toml"
    if not path.is_file():
        return {}
    return {name: float(value) for name, value in tomllib.loads(path.read_text())["rates"].items()}
