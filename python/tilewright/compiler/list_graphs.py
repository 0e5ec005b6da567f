# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report tells of a program of nested lists: its graph as traced, and in the order that was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.core.errors import UnsupportedError

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation
    from tilewright.passes.pipeline import Phase

_LAST = "tile-skew-recurrences"
"""Behind it recurrences have the order that they run in; later passes write rows out, and lists become tensors."""


def draw(work: Compilation) -> dict[str, str] | None:
    """The graph (`ft.Function.explain`) after phase `import`, or why there is none, in its place.

    Returns:
        None for a model that is no program of nested lists.
    """
    text = str(work.module) if work.source.kind == "mlir" else ""
    return {"before": _drawn(text, work.source.name)} if "fractal." in text else None


def parts(work: Compilation, phase: Phase) -> list[Phase]:
    """A phase that orders recurrences of lists in two parts, for :func:`draw_ordered` between them; others whole."""
    names = [each.name for each in phase.passes]
    if _graphs(work) is None or _LAST not in names:
        return [phase]
    cut = names.index(_LAST) + 1
    return [replace(phase, passes=some) for some in (phase.passes[:cut], phase.passes[cut:]) if some]


def draw_ordered(work: Compilation, part: Phase) -> None:
    """Draw the graph again behind the pass that orders recurrences."""
    graphs = _graphs(work)
    if graphs is not None and part.passes[-1].name == _LAST:
        graphs["after"] = _drawn(str(work.module), work.source.name)


def _graphs(work: Compilation) -> dict[str, str] | None:
    return next((entry["graphs"] for entry in work.phases if "graphs" in entry), None)


def _drawn(text: str, name: str) -> str:
    from tilewright.fractal.drawing import drawn
    from tilewright.fractal.graph import graph_of

    try:
        return drawn(graph_of(text), name)
    except UnsupportedError as error:
        return f"no graph: {error}\n"
