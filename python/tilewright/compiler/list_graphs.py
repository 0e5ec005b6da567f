# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report tells of a program of nested lists: its graph as traced, and in the order that was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.core.errors import TilewrightError, UnsupportedError

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation
    from tilewright.passes.pipeline import Phase

_LAST = "tile-skew-recurrences"
"""Behind it recurrences have the order that they run in; later passes write rows out, and lists become tensors."""


def graphs(work: Compilation, normalize: Phase) -> dict[str, str] | None:
    """The graph (`ft.Function.explain`) before and after recurrences are ordered; why there is none, in its place.

    Args:
        work: after phase `import`; its module is not changed.
        normalize: the phase that orders recurrences.

    Returns:
        None for a model that is no program of nested lists.
    """
    text = str(work.module) if work.source.kind == "mlir" else ""
    if "fractal." not in text:
        return None
    from tilewright.mlir import ir
    from tilewright.passes import run_pipeline

    names = [each.name for each in normalize.passes]
    found = {"before": _drawn(text, work.source.name)}
    if _LAST not in names:
        return found
    with work.module.context:
        copy = ir.Module.parse(text)
    part = replace(normalize, passes=normalize.passes[: names.index(_LAST) + 1])
    try:
        run_pipeline(copy.operation, str(part), weights=work.weights, replay=False)
    except TilewrightError:
        return found  # the same passes fail on the module itself, with all that can be said about it
    return {**found, "after": _drawn(str(copy), work.source.name)}


def _drawn(text: str, name: str) -> str:
    from tilewright.fractal.drawing import drawn
    from tilewright.fractal.graph import graph_of

    try:
        return drawn(graph_of(text), name)
    except UnsupportedError as error:
        return f"no graph: {error}\n"
