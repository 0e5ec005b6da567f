# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows that are stored beside the exponentials of the next one: the same bits as rows on their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright import devices

#: Small caches, so that small results go past them.
CACHES = {"bytes = 524288": "bytes = 8192", "bytes = 16777216": "bytes = 16384"}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A processor with caches of a few kilobytes."""
    text = (Path(devices.__file__).parent / "host-generic-avx2.toml").read_text()
    for old, new in CACHES.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path_factory.mktemp("device") / "small.toml"
    file.write_text(text)
    return f"cpu:{file}"


def softmax(shape: list[int]) -> onnx.ModelProto:
    """A model of one operator."""
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    return helper.make_model(helper.make_graph([node], "rows", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("shape", [[2048, 96], [997, 512], [64, 7]])
def test_rows_on_their_own(shape: list[int], target: str) -> None:
    """Tasks that do not divide the rows, and rows of one step: no plan for them, and no remark."""
    model = tw.compile(softmax(shape), target=target)
    assert not model.report_data()["remarks"]
    assert "tile.overlap" not in str(tw.compile(softmax(shape), target=target, stop_after="tile"))


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param([512, 512], id="whole steps"),
        pytest.param([256, 1003], id="ragged rows"),
        pytest.param([4, 96, 384], id="two dimensions of rows"),
        pytest.param([2048, 256], id="several rows in a task"),
    ],
)
def test_rows_beside_each_other(shape: list[int], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = softmax(shape)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * 4
    text = str(tw.compile(file, target=target, stop_after="tile"))
    assert "tile.overlap" in text
    model = tw.compile(file, target=target, threads=2)
    assert not model.report_data()["remarks"], "the decision was not carried out"
    (y,) = model(x)
    with monkeypatch.context() as patch:
        patch.setattr("tilewright.plan.cpu.plan_tiles.mark_overlap", lambda *_: None)
        patch.setenv("TILEWRIGHT_CACHE", "0")
        (apart,) = tw.compile(file, target=target, threads=1)(x)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(apart))
    wide = x.astype(np.float64)
    exact = np.exp(wide - wide.max(-1, keepdims=True))
    np.testing.assert_allclose(np.asarray(y), exact / exact.sum(-1, keepdims=True), rtol=3e-6)
