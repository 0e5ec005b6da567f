# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls of a graph compile it anew, with models that are made by hand. Skipped where torch is missing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from tilewright.frontend.torch.graph import Graph  # noqa: E402
from tilewright.torch.compiled_graph import CompiledGraph  # noqa: E402
from tilewright.torch.dynamo import Settings  # noqa: E402


class Scaled(CompiledGraph):
    """x * weight * number; `held` has for each compilation which arguments were constants."""

    def __init__(self, wait: Callable[[], Any] = bool) -> None:
        graph = Graph(onnx.ModelProto(), [0, 1, 2], [2], orders=[None], outputs=[lambda results, arguments: results[0]])
        super().__init__(graph, self.refuse, {1}, Settings(threads=1))
        self.held: list[tuple[int, ...]] = []
        self.wait = wait

    def refuse(self, *arguments: Any) -> Any:
        raise AssertionError("it is compiled")

    def _compiled(self, arguments: Any, held: Any) -> Any:
        constants = {n: np.array(arguments[n]) for n in held}
        self.held.append(tuple(held))
        self.wait()

        def model(*values: Any) -> Any:
            given = iter(values)
            parts = [constants[n] if n in constants else np.asarray(next(given)) for n in range(3)]
            assert next(given, None) is None, "too many inputs"
            return [np.float32(parts[0] * parts[1] * parts[2])]

        return model


def check(graph: Scaled, x: Any, weight: Any, number: int = 1) -> None:
    torch.testing.assert_close(graph(x, weight, number)[0], x * weight * number)


def test_weights_that_change_become_inputs(caplog: pytest.LogCaptureFixture) -> None:
    graph, x, weight = Scaled(), torch.ones(3), torch.ones(3)
    for _ in range(6):
        check(graph, x, weight)
        check(graph, x, weight)
        weight.add_(1)
    assert graph.held == [(1, 2)] * 3 + [(2,)]
    assert "changed 3 times; they are inputs now" in caplog.text


def test_weights_that_are_replaced_become_inputs_and_others_do_not() -> None:
    graph, x = Scaled(), torch.ones(3)
    for value in range(6):
        check(graph, x, torch.full((3,), float(value)))
    assert graph.held == [(1, 2)] * 3 + [(2,)]
    graph, layers = Scaled(), [torch.full((3,), float(value)) for value in range(6)]
    for weight in layers * 2:
        check(graph, x, weight)
    assert graph.held == [(1, 2)] * 6


def test_weights_that_do_not_count_their_changes_are_inputs(caplog: pytest.LogCaptureFixture) -> None:
    graph = Scaled()
    with torch.inference_mode():
        x, weight = torch.ones(3), torch.ones(3)
        for _ in range(3):
            check(graph, x, weight)
            weight.add_(1)
    assert graph.held == [(2,)] and "1 weights of a graph are inputs" in caplog.text


def test_numbers_become_inputs() -> None:
    graph, x, weight = Scaled(), torch.ones(3), torch.ones(3)
    for number in range(12):
        check(graph, x, weight, number)
    assert graph.held == [(1, 2)] * 8 + [(1,)]


def test_threads_that_call_while_weights_become_inputs() -> None:
    """A call uses one state: a model that holds the weights is not given them, nor the other way round."""
    graph, x, weight = Scaled(lambda: threading.Event().wait(0.01)), torch.ones(3), torch.ones(3)
    errors: list[BaseException] = []
    stop = threading.Event()

    def call() -> None:
        try:
            while not stop.is_set():
                graph(x, weight, 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        weight.add_(1)
        check(graph, x, weight)
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors and graph.held[-1] == (2,)
