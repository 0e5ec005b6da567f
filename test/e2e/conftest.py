# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models, compiled and run. Full-size ones are marked `slow`: `pytest -m "not slow"` leaves them out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.model.gpu import Gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run child.py's job in a fresh process with given environment; returns what it reports."""

    def run(job: str, *arguments: object, **environment: str) -> dict[str, Any]:
        command = [sys.executable, str(Path(__file__).with_name("child.py")), job, *map(str, arguments)]
        folders = [str(ROOT / "python"), str(ROOT / "test/conformance"), os.environ.get("PYTHONPATH", "")]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **environment}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture
def warpgroups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shapes of warpgroups, wherever there are some: small images take the way of large ones. Nothing is cached."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    every = gemm_time.shapes

    def only(problem: Problem, gpu: Gpu) -> Sequence[Shape]:
        found = list(every(problem, gpu))
        return [shape for shape in found if shape.wgmma] or found

    monkeypatch.setattr(gemm_time, "shapes", only)
