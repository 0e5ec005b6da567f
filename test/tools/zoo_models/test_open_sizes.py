# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of sizes for a model with open dimensions: drawn as its calls relate them, run from one artifact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

from zoo_models.export.storing import Made, store
from zoo_models.running.open_sizes import open_sizes, sums


def test_a_size_that_is_the_sum_of_others_is_seen() -> None:
    known = [{"batch": 2, "past": 5, "new": 3, "total": 8}, {"batch": 1, "past": 9, "new": 1, "total": 10}]
    assert sums(known) == {"total": ("new", "past")}
    assert sums([]) == {}


def test_sets_of_sizes_of_one_artifact(tmp_path: Path) -> None:
    """The mask is as long as a past and new ones together; integers stay in the range of the calls."""
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, ["batch", name]) for name in ("past", "new")]
    inputs.append(info("mask", TensorProto.INT64, ["batch", "total"]))
    nodes = [
        helper.make_node("Concat", ["past", "new"], ["all"], axis=1, name="all"),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT, name="kept"),
        helper.make_node("Mul", ["all", "kept"], ["y"], name="y"),
    ]
    graph = helper.make_graph(nodes, "past", inputs, [info("y", TensorProto.FLOAT, None)])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "model.onnx")
    made = []
    for past, new in ((5, 3), (9, 1)):
        given = {"past": np.ones((2, past), np.float32), "new": np.ones((2, new), np.float32)}
        result = {"y": np.ones((2, past + new), np.float32)}
        made.append((given | {"mask": np.ones((2, past + new), np.int64)}, result))
    store(tmp_path, Made(made, 1e-6, "hand"))
    found = open_sizes(tmp_path, sets=4)
    assert found["error"] == 0 and found["compiled"] == 0
    assert len(found["sizes"]) == 4 and all(s["total"] == s["past"] + s["new"] for s in found["sizes"])
    assert found["names"]["y"][0] == "batch"
