# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of a program of nested lists holds its graph, before and after its recurrences are ordered."""

from __future__ import annotations

import html

from examples.fractal import grid_rnn

import tilewright as tw
import tilewright.fractal as ft

LAYERS, WORDS, HIDDEN = 3, 5, 7


def test_before_and_after() -> None:
    """The graph as traced is that of `ft.Function.explain`; diagonals of layers and rows are a scan over maps."""
    program = grid_rnn.program(HIDDEN)
    words = {name: (2, WORDS) for name in ("sources", "targets")}
    lengths = {name: words.get(name, (LAYERS,)) for name in program.parameters}
    model = tw.compile(program, target="cpu", shapes=lengths)
    graphs = model.report_data()["phases"][0]["graphs"]
    assert graphs["before"] == program.explain(lengths)
    assert f"scan left d1 < {LAYERS + WORDS - 1}, map d2 < {LAYERS}" in graphs["after"]
    text = html.unescape(model.explain(measure=False))
    assert all(graph in text for graph in graphs.values())


def test_no_list_no_graph() -> None:
    """Why there is none is said; a program without lists has no section."""

    @ft.function
    def leaf(x: ft.Tensor[3, 4]) -> ft.Tensor[3, 4]:
        return ft.tanh(x)

    assert "graphs" not in tw.compile(leaf, target="cpu").report_data()["phases"][0]
