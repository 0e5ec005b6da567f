"""For all tests: helper modules beside a test can be imported, and each test draws random numbers of its own.

Files are collected by path, so that their names may repeat.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
SKIPPED = {"__pycache__", "Inputs", "models"}

for folder in sorted({file.parent for file in HERE.rglob("*.py")} - {HERE}):
    if not SKIPPED & set(folder.relative_to(HERE).parts):
        sys.path.append(str(folder))

#: generators of test modules, with the state in which collecting the tests left them
_GENERATORS: list[tuple[np.random.Generator, Any]] = []


def pytest_collection_finish(session: pytest.Session) -> None:
    """Notes the generators of all modules, before any test has drawn from one."""
    modules = {id(module): module for item in session.items if (module := getattr(item, "module", None))}
    found = {id(v): v for m in modules.values() for v in vars(m).values() if isinstance(v, np.random.Generator)}
    _GENERATORS.extend((generator, generator.bit_generator.state) for generator in found.values())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test draws the same numbers whichever tests ran before it: one that fails does so alone, too."""
    for generator, state in _GENERATORS:
        generator.bit_generator.state = state
