# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results do not depend on threads: neither on those inside a call, nor on those that call."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from tilewright.devices import detect_host

#: More threads than this machine has cores, and a number that divides nothing.
THREADS = (1, 2, 3, 5)
SMALL = sorted(name for name in models.MODELS if "_tiny" in name and "dynamic" not in name)
#: One of each kind; each is compiled four times.
ALWAYS = ("bert_tiny", "gpt_tiny_decode", "lstm_tiny", "mlp_tiny", "resnet_tiny")
OTHERS = (pytest.param(name, marks=pytest.mark.slow) for name in (*SMALL, "minilm") if name not in ALWAYS)


def outputs_by_threads(file: Path) -> list[list[bytes]]:
    """All results of a model, for each number of threads."""
    inputs = models.random_inputs(onnx.load(file))
    compiled = [tw.compile(str(file), target="cpu", threads=n) for n in THREADS]
    return [[np.asarray(y).tobytes() for y in model(*inputs.values())] for model in compiled]


@pytest.mark.parametrize("name", [*ALWAYS, *OTHERS])
def test_the_number_of_threads_does_not_change_a_bit(name: str) -> None:
    first, *others = outputs_by_threads(models.path(name))
    assert all(other == first for other in others)


def test_calls_repeat_to_the_bit() -> None:
    file = models.path("bert_tiny")
    inputs = models.random_inputs(onnx.load(file))
    compiled = tw.compile(str(file), target="cpu", threads=2)
    assert len({compiled(*inputs.values())[0].tobytes() for _ in range(20)}) == 1


def test_one_model_called_by_several_threads_at_once() -> None:
    file = models.path("bert_tiny")
    proto = onnx.load(file)
    compiled = tw.compile(str(file), target="cpu", threads=2)
    inputs = [models.random_inputs(proto, seed) for seed in range(8)]
    expected = [np.copy(compiled(*x.values())[0]) for x in inputs]

    def call(i: int) -> bool:
        results = [np.copy(compiled(*inputs[i].values())[0]) for _ in range(50)]
        return all(np.array_equal(r, expected[i]) for r in results)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(8)))


def test_two_models_called_at_once() -> None:
    names = ["resnet_tiny", "lstm_tiny"]
    files = [models.path(name) for name in names]
    inputs = [list(models.random_inputs(onnx.load(file)).values()) for file in files]
    compiled = [tw.compile(str(file), target="cpu", threads=2) for file in files]
    expected = [np.copy(model(*x)[0]) for model, x in zip(compiled, inputs, strict=True)]

    def call(i: int) -> bool:
        return all(np.array_equal(compiled[i % 2](*inputs[i % 2])[0], expected[i % 2]) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("hidden", "batch"), [(128, 2), (200, 8), (100, 1)])
def test_steps_of_a_recurrent_network_are_programs(tmp_path, hidden: int, batch: int) -> None:
    if detect_host().units.count < 2:
        pytest.skip("a program needs two cores")
    proto = models.lstm.lstm(layers=2, hidden=hidden, inputs=64, sequence=12, batch=batch)
    onnx.save(proto, tmp_path / "lstm.onnx")
    inputs = list(models.random_inputs(proto).values())
    results = []
    for threads in THREADS:
        compiled = tw.compile(str(tmp_path / "lstm.onnx"), target="cpu", threads=threads)
        assert any(name.startswith("program_") for name, *_ in compiled.profile(*inputs))
        results.append([np.copy(y) for y in compiled(*inputs)])
    assert "tile.place @product" in tw.compile(proto, target="cpu", stop_after="schedule")
    assert "@program_product" in tw.compile(proto, target="cpu:znver5", stop_after="schedule")
    reference = tw.compile(str(tmp_path / "lstm.onnx"), target="reference")(*inputs)
    for number, expected in enumerate(reference):
        assert len({result[number].tobytes() for result in results}) == 1
        np.testing.assert_allclose(results[0][number], expected, rtol=1e-4, atol=1e-5)


def test_columns_of_a_recurrent_step_are_shared_evenly_and_states_not_copied(tmp_path) -> None:
    if detect_host().units.count != 2:
        pytest.skip("what is even depends on the cores")
    onnx.save(models.lstm.lstm(layers=1, hidden=256, inputs=64, sequence=8, batch=8), tmp_path / "lstm.onnx")
    text = tw.compile(str(tmp_path / "lstm.onnx"), target="cpu", stop_after="schedule")
    shares = re.findall(r"tile.place @(\w+) tasks \[(\d+), (\d+)\] of \[(\d+)\]", text)
    assert shares
    assert {name.partition("_")[0] for name, *_ in shares} == {"product"}
    assert {2 * (int(last) - int(first)) for _, first, last, _ in shares} == {int(shares[0][3])}
