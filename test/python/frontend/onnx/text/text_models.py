# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models with strings and maps, and their results beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import tilewright as tw

ML, MS = "ai.onnx.ml", "com.microsoft"
STRING, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, kind: int, *shape: int | str | None) -> onnx.ValueInfoProto:
    """A tensor's name, type and shape."""
    return helper.make_tensor_value_info(name, kind, list(shape))


def words(*values: str) -> np.ndarray:
    """Strings as ONNX Runtime takes them."""
    return np.array(values, object)


def rows_of_maps(name: str, key: int) -> onnx.ValueInfoProto:
    """What ZipMap gives."""
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, None))
    return helper.make_value_info(name, helper.make_sequence_type_proto(kind))


def one_map(name: str, key: int, entry: int) -> onnx.ValueInfoProto:
    """A map from keys to numbers or strings."""
    return helper.make_value_info(name, helper.make_map_type_proto(key, helper.make_tensor_type_proto(entry, None)))


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Sequence[onnx.TensorProto] = (),
    opset: int = 20,
    ml: int = 3,
) -> onnx.ModelProto:
    """A model with all domains."""
    made = helper.make_graph(list(nodes), "text", list(inputs), list(outputs), list(constants))
    domains = [helper.make_opsetid("", opset), helper.make_opsetid(ML, ml), helper.make_opsetid(MS, 1)]
    return helper.make_model(made, opset_imports=domains, ir_version=9)


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by blanks."""
    return helper.make_node(
        op, inputs.split(), outputs.split(), name=f"the_{op}_{outputs.split()[0]}", domain=domain, **attributes
    )


def same(mine: Any, theirs: Any) -> None:
    """Strings, labels and dicts exactly, floats to 1e-5."""
    if isinstance(theirs, list):
        assert [set(row) for row in mine] == [set(row) for row in theirs]
        mine, theirs = ([[row[key] for key in sorted(row)] for row in rows] for rows in (mine, theirs))
        mine, theirs = np.float32(mine), np.float32(theirs)
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape
    if theirs.dtype.kind == "f":
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    else:
        assert mine.tolist() == theirs.tolist()


def check(model: onnx.ModelProto, *inputs: Any, want: Sequence[Any] | None = None, **options: Any) -> Any:
    """The model beside ONNX Runtime, or beside what is wanted; interpreted where `options` name no target."""
    if want is None:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        want = session.run(None, dict(zip([i.name for i in model.graph.input], inputs, strict=True)))
    shapes = {i.name: np.shape(x) for i, x in zip(model.graph.input, inputs, strict=True) if not isinstance(x, dict)}
    compiled = tw.compile(model, **({"target": "reference", "shapes": shapes} | options))
    results = compiled(*inputs)
    for mine, theirs in zip(results, want, strict=True):
        same(mine, theirs)
    return compiled
