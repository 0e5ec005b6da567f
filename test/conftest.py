"""For all tests: helper modules beside a test can be imported, and each test draws random numbers of its own.

Files are collected by path, so that their names may repeat. ``--slow=sample`` runs a tenth of the slow tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sampling

HERE = Path(__file__).resolve().parent

#: In tests a pass that leaves wrong IR fails itself, not its phase; processes that tests start know it, too.
os.environ.setdefault("TILEWRIGHT_VERIFY", "1")
SKIPPED = {"__pycache__", "Inputs", "models"}

for folder in sorted({file.parent for file in HERE.rglob("*.py")} - {HERE}):
    if not SKIPPED & set(folder.relative_to(HERE).parts):
        sys.path.append(str(folder))

#: how many slow tests were left out
_LEFT = pytest.StashKey[int]()

#: generators of test modules, with the state in which collecting the tests left them
_GENERATORS: list[tuple[np.random.Generator, Any]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which of the tests marked slow run."""
    group = parser.getgroup("tilewright")
    group.addoption("--slow", choices=["all", "sample", "none"], default="all", help="tests marked slow: which run")
    group.addoption("--seed", type=int, default=None, help="which tenth --slow=sample takes (default: the day's)")


def _seed(config: pytest.Config) -> int:
    given = config.getoption("--seed")
    return sampling.default_seed() if given is None else given


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out slow tests as --slow says."""
    which = config.getoption("--slow")
    if which == "all":
        return
    marked = [(item, item.nodeid, item.get_closest_marker("slow") is not None) for item in items]
    items[:], left = sampling.split(marked, None if which == "none" else _seed(config))
    config.hook.pytest_deselected(items=left)
    config.stash[_LEFT] = len(left)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The processes of pytest-xdist collect, all the same: the first one's word is taken."""
    node.config.stash.setdefault(_LEFT, getattr(node, "workeroutput", {}).get("slow_left_out", 0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands on what a process of pytest-xdist left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["slow_left_out"] = session.config.stash.get(_LEFT, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The line that tells how many slow tests were left out, and how to run them."""
    if left := config.stash.get(_LEFT, 0):
        seed = _seed(config) if config.getoption("--slow") == "sample" else None
        terminalreporter.write_line(sampling.note(left, seed))


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
