# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules that every built-in Python pass keeps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.compiler import all_passes
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
    assert {name: cls.__module__ for name, cls in BUILTIN.items()} == all_passes.MODULES


def test_a_pipeline_loads_its_own_passes() -> None:
    """Passes that it names, in a nest, too; all of them where it names other pipelines."""
    code = """
import sys
from tilewright.mlir import ir
from tilewright.passes import registered_passes, run_pipeline
with ir.Context():
    module = ir.Module.parse("")
    for name in ("tile-fold-splats", "func.func(tile-generalize)"):
        run_pipeline(module, f"builtin.module(canonicalize,{name})")
    print(*sorted(registered_passes()))
    from tilewright.pipelines.cpu import PIPELINE
    PIPELINE.register()
    run_pipeline(module, "builtin.module(tile-cpu-normalize)")
    print(len(registered_passes()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "tile-fold-splats tile-generalize"
    assert int(second) == len(all_passes.MODULES)


def test_a_pass_of_the_user_stays_in_the_place_of_a_builtin_one() -> None:
    """Also where the module of the builtin one is imported later."""
    code = """
from dataclasses import dataclass
from typing import ClassVar
from tilewright.mlir import ir
from tilewright.passes import Pass, load_builtin_passes, register, run_pipeline
@register
@dataclass(frozen=True)
class Mine(Pass):
    '''Says that it ran.'''
    name: ClassVar[str] = "tile-fold-splats"
    anchor: ClassVar[str | None] = "builtin.module"
    def run(self, op):
        print("mine")
with ir.Context():
    for _ in range(2):
        run_pipeline(ir.Module.parse(""), "builtin.module(tile-fold-splats)")
        load_builtin_passes()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mine", "mine"]
