# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of ONNX models that become constants, and the form of results: what torch.compile needs, without torch."""

from __future__ import annotations

import json

import numpy as np
import onnx

import tilewright as tw
from tilewright.compiler.models import Models
from tilewright.compiler.source import Source
from tilewright.core.options import CompileOptions
from tilewright.frontend.torch.constants import with_constants
from tilewright.runtime.structure import flat, structured
from tilewright.targets import registry

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 2), np.float32)

#: As PyTorch's front end writes it for ``{"y": x @ w, "more": (x @ w, [None])}``.
FORM = json.dumps({"dict": [["y", {"result": 0}], ["more", {"tuple": [{"result": 0}, {"list": [{"value": None}]}]}]]})


def product() -> onnx.ModelProto:
    """A product whose second operand is an input, with open rows."""
    tensor = onnx.helper.make_tensor_value_info
    inputs = [tensor("x", 1, ["rows", 3]), tensor("w", 1, [3, 2])]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "product", inputs, [tensor("y", 1, ["rows", 2])])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)


def test_an_input_becomes_a_constant() -> None:
    model = product()
    frozen = tw.compile(with_constants(model, {1: W}), threads=1)
    np.testing.assert_array_equal(frozen(X)[0], X @ W)
    np.testing.assert_array_equal(frozen(X[:1])[0], X[:1] @ W)
    assert [value.name for value in model.graph.input] == ["x", "w"]


def test_results_have_the_form_of_a_module_also_when_loaded(tmp_path) -> None:
    source = Source(with_constants(product(), {1: W}), "onnx", "product", form=FORM)
    model = Models(source, registry.parse_target("cpu"), CompileOptions(threads=1)).result()
    for each in (model, tw.load(model.save(tmp_path / "model.tw"))):
        found = each(X)
        assert list(found) == ["y", "more"] and found["more"][1] == [None]
        np.testing.assert_array_equal(found["more"][0], X @ W)
    loaded = tw.load(tmp_path / "model.tw")
    assert isinstance(loaded, tw.Model) and isinstance(flat(loaded)(X), tw.Outputs)
    out = [np.empty((2, 2), np.float32)]
    assert isinstance(loaded(X, out=out), tw.Outputs)


def test_a_class_is_a_dict_where_its_library_is_missing() -> None:
    class Pair:
        def __call__(self, *, out: object = None) -> list[int]:
            return [1, 2]

    parts = [{"result": 1}, {"result": 0}]
    form = {"torch": "[1, {}]", "module": "no_such_library", "keys": ["a", "b"], "of": parts}
    assert structured(Pair(), json.dumps(form))() == {"a": 2, "b": 1}
