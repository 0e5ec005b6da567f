# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules that every built-in Python pass keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewright
from tilewright.passes import Pass, load_builtin_passes, registered_passes
from tilewright.passes.base import option_specs, summary

load_builtin_passes()
BUILTIN = {name: cls for name, cls in registered_passes().items() if cls.__module__.startswith("tilewright.")}


@pytest.mark.parametrize("name", BUILTIN)
def test_documented(name: str) -> None:
    cls: type[Pass] = BUILTIN[name]
    assert name.startswith("tile-")
    assert 10 < len(summary(cls)) < 100
    assert len((cls.__doc__ or "").splitlines()) > 3, "the docstring needs more than the summary: an example"
    assert all(spec.help for spec in option_specs(cls)), "each option needs its line of help"


def test_every_pass_is_loaded() -> None:
    """`compiler/all_passes.py` leaves none out: each file with a decorated pass has one that is registered."""
    package = Path(tilewright.__file__).parent
    files = [file for file in package.rglob("*.py") if re.search(r"^@register$", file.read_text(), re.M)]
    assert len(files) > 30
    names = {".".join(("tilewright", *file.relative_to(package).with_suffix("").parts)) for file in files}
    assert {cls.__module__ for cls in BUILTIN.values()} == names
