# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports run downward only, and never in a circle: between modules, and between folders at each level."""

from __future__ import annotations

import pytest
from imports import cycles, import_graph, siblings, sources

#: What stands in `python/tilewright`, from the lowest to the highest. A module imports from its own folder and from
#: those before it. "tilewright" is the package's own `__init__`, which hands out the public names.
LAYERS = (
    "core",  # errors, dtypes, environment, cache, worker processes
    "dialects",  # upstream's bindings and ours under one name
    "devices",  # descriptions of machines, and what a module says of its own
    "ir",  # reading and building IR: what every pass needs
    "passes",  # what a Python pass is; running pipelines of textual passes
    "reference",  # the meaning of every op, in NumPy
    "report",  # the page about a compiled model, of what its artifact says
    "runtime",  # loads and runs artifacts, with no compiler at hand
    "sim",  # stands in for a machine behind the run-time's interface
    "frontend",  # ONNX, torch -> IR
    "fractal",  # programs on nested lists in Python -> IR
    "normalize",  # one form of each op
    "plan",  # decides: fusion, tiles, orders, number formats
    "pipelines",  # passes of a machine, in order, with reasons
    "targets",  # a machine as one object: match, pipeline, emit, load
    "kernels",  # one kernel, called from Python
    "compiler",  # from a model to an artifact
    "generation",  # text from a decoder, step by step
    "torch",  # torch.compile
    "bisection",  # which pass broke it
    "tilewright",
    "tools",  # tile-opt and its kin
    "cli",  # the command
    "demo",
    "__main__",
)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph()


def layer(module: str) -> str:
    """The folder of `python/tilewright` that a module stands in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def test_every_folder_has_a_layer():
    assert {layer(module) for module in sources()} == set(LAYERS)


def test_imports_run_downward(graph: dict[str, set[str]]):
    rank = {name: number for number, name in enumerate(LAYERS)}
    upward = [
        f"{module} -> {other}"
        for module, imported in graph.items()
        for other in sorted(imported)
        if rank[layer(other)] > rank[layer(module)]
    ]
    assert upward == []


def test_no_circle(graph: dict[str, set[str]]):
    """Neither modules, nor folders beside each other: each folder could be a library of its own."""
    levels = siblings(graph)
    found = {level: [group for group in cycles(arrows)] for level, arrows in levels.items()}
    assert {level: groups for level, groups in found.items() if groups} == {}


def test_the_measure_sees_what_it_should(graph: dict[str, set[str]]):
    """Lazy imports, strings and whole packages are arrows; what types alone need is none."""
    assert "tilewright.compiler.api" in graph["tilewright"]  # by a string
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    level = siblings({"t.x.one": {"t.y.two"}, "t.y.three": {"t.x.four"}, "t.x": {"t.x.one"}})
    assert cycles(level["t"]) == [["t.x", "t.y"]]
    assert level["t.x"] == {"t.x": {"t.x.one"}}
