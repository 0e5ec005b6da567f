# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules that every built-in Python pass keeps."""

from __future__ import annotations

import pytest

from tilewright.passes import Pass, load_builtin_passes, registered_passes
from tilewright.passes.base import option_specs, summary
from tilewright.passes.registry import BUILTIN_MODULES

load_builtin_passes()
BUILTIN = {name: cls for name, cls in registered_passes().items() if cls.__module__ in BUILTIN_MODULES}


@pytest.mark.parametrize("name", BUILTIN)
def test_documented(name: str) -> None:
    cls: type[Pass] = BUILTIN[name]
    assert name.startswith("tile-")
    assert 10 < len(summary(cls)) < 100
    assert len((cls.__doc__ or "").splitlines()) > 3, "the docstring needs more than the summary: an example"
    assert all(spec.help for spec in option_specs(cls)), "each option needs its line of help"


def test_every_module_has_a_pass() -> None:
    assert {cls.__module__ for cls in BUILTIN.values()} == set(BUILTIN_MODULES)
