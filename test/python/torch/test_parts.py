# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs in parts, which are run as they are, not compiled. Skipped where torch is missing."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tilewright.torch.parts import Part, cut, runner  # noqa: E402

aten = torch.ops.aten


def in_parts(function: Any, *arguments: Any) -> list[Part]:
    """Trace with open sizes, cut at sines, run, and compare; returns the parts."""
    module = make_fx(lambda *given: tuple(function(*given)), tracing_mode="symbolic")(*arguments)
    outside = {node for node in module.graph.nodes if node.target is aten.sin.default}
    parts = cut(module, outside)
    for part in parts:
        part.run = part.module.forward
        inside = {node.target is aten.sin.default for node in part.nodes}
        assert part.compiled == (True not in inside)
    larger = [torch.cat([value, value]) for value in arguments]
    for given in (arguments, larger):
        torch.testing.assert_close(runner(module, parts)(*given), list(function(*given)))
    return parts


def test_parts_by_data_flow() -> None:
    def function(x: Any) -> Any:
        y = (x + 1).sin()
        z = (x * 2).sin()  # beside the first: one part of both
        return y.exp() * z, x.cos(), x

    parts = in_parts(function, torch.randn(3, 2))
    assert [part.compiled for part in parts] == [True, False, True]
    assert [len(part.inputs) for part in parts] == [1, 2, 2]
    assert all(node.op == "placeholder" or node in parts[1].done for node in parts[1].inputs)


def test_those_outside_keep_their_order() -> None:
    def function(x: Any) -> Any:
        return (x.sin() + 1).sin(), x.sin()  # the last one could be in the first part

    parts = in_parts(function, torch.randn(3))
    sines = [node for part in parts if not part.compiled for node in part.nodes]
    assert sines == sorted(sines)


def test_sizes_come_with_each_part() -> None:
    def function(x: Any) -> Any:
        rows = x.shape[0] * 2
        y = (x.reshape(-1, 1) + rows).sin()
        return y.expand(-1, rows) * rows, x.new_zeros(rows)

    parts = in_parts(function, torch.randn(3, 2))
    assert all(isinstance(node.meta["val"], torch.Tensor) for part in parts for node in part.inputs)


def test_operators_of_several_results_and_nothing_outside() -> None:
    def function(x: Any) -> Any:
        least, places = x.sin().min(0)
        return least.sin() + 1, places

    assert len(in_parts(function, torch.randn(3, 2))) == 4
    assert [part.compiled for part in in_parts(lambda x: (x + 1,), torch.randn(3))] == [True]
