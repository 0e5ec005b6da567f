# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `examples/fractal` as functions that hold their weights: what ours compiles."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

import tilewright.fractal as ft
from bench.environment import ROOT
from bench.list_programs import ListProgram


def example(name: str, leaf: tuple[int, ...]) -> ft.Function:
    """The program of that file for some leaf sizes."""
    file = ROOT / "examples" / "fractal" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program(*leaf)


def function(program: ListProgram) -> ft.Function:
    """The program as a function of its arguments alone; weights are constants."""
    whole = example(program.name, program.leaf)

    def closure(*arguments: Any) -> Any:
        return whole(**dict(zip(program.inputs, arguments, strict=True)), **program.weights)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    closure.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in program.inputs])
    closure.__annotations__ = {name: whole.parameters[name] for name in program.inputs}
    closure.__name__ = program.name
    return ft.function(closure)


def arguments(program: ListProgram, arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """What the function takes: arrays, and trees whose leaves they are."""
    return [_tree(array, program.trees[name]) if name in program.trees else array for name, array in arrays.items()]


def _tree(leaves: np.ndarray, children: np.ndarray) -> ft.Tree:
    inner = np.zeros((len(children) - len(leaves), *leaves.shape[1:]), leaves.dtype)
    return ft.Tree.from_arrays(np.concatenate([leaves, inner]), children)
