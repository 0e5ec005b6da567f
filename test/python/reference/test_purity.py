# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference depends on nothing that it is the truth for, and has a handler per op only once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tilewright import reference

ALLOWED = (
    "__future__",
    "collections",
    "contextvars",
    "dataclasses",
    "importlib",
    "functools",
    "itertools",
    "math",
    "ml_dtypes",
    "numpy",
    "random",
    "re",
    "sys",
    "threading",
    "tilewright.core.arithmetic",
    "tilewright.core.dtypes",
    "tilewright.core.errors",
    "tilewright.core.integers",
    "tilewright.core.math_functions",
    "tilewright.dialects.coremesh",
    "tilewright.dialects.fractal",
    "tilewright.dialects.sparse_tile",
    "tilewright.mlir",
    "tilewright.reference",
    "typing",
)


def imports(path: Path) -> set[str]:
    """All modules that a file imports, those inside functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            found.add(node.module)
    return found


def test_imports_only_numpy_and_the_bindings():
    files = sorted(Path(reference.__file__).parent.glob("**/*.py"))
    assert len(files) > 20
    for path in files:
        foreign = {name for name in imports(path) if not any(f"{name}.".startswith(f"{ok}.") for ok in ALLOWED)}
        assert not foreign, f"{path.name} imports {foreign}"


def test_loads_no_planner_frontend_or_onnx():
    code = """import sys, tilewright.reference
print([name for name in sys.modules if name.split(".")[0] == "onnx" or name.startswith(
    ("tilewright.plan", "tilewright.frontend", "tilewright.normalize", "tilewright.passes", "tilewright.compiler"))])"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert found.stdout.strip() == "[]"


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(reference.__file__).parents[2])}
