# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in memory that are too large for one message of protobuf."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.compiler import large_models


def test_weights_go_to_a_file_which_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor_value_info
    weights = onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "product", [tensor("x", 1, ["n", 3])], [tensor("y", 1, ["n", 3])], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    bytes_before = model.SerializeToString(deterministic=True)

    monkeypatch.setattr(large_models, "LIMIT", 36)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    compiled = tw.compile(model, threads=1)
    np.testing.assert_array_equal(compiled(x)[0], x)
    assert list(tmp_path.glob("tilewright-*/weights"))
    assert model.SerializeToString(deterministic=True) == bytes_before
    del compiled
    gc.collect()
    assert not list(tmp_path.glob("tilewright-*/weights"))

    monkeypatch.setattr(large_models, "LIMIT", 37)
    assert large_models.in_file(model) is None
