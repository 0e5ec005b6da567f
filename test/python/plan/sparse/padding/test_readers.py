# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding that nothing reads is left out without an option; results are those of the model that computes all."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from models import bert
from models._graph import Graph
from tilewright.core.options import CompileOptions
from tilewright.targets import registry

SIZES = dict(layers=2, hidden=32, heads=2, intermediate=48, vocabulary=100, style="export")
#: Sentences beside others, and one whose batch has no loop.
BATCHES = [(8, 32), (1, 256)]


def first_token(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with what the first token of each sentence has as its result."""
    kept = model.graph.output[0]
    batch, _, hidden = (dim.dim_value for dim in kept.type.tensor_type.shape.dim)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0), "first"))
    model.graph.node.append(helper.make_node("Gather", [kept.name, "first"], ["token"], axis=1))
    model.graph.output.remove(kept)
    model.graph.output.append(helper.make_tensor_value_info("token", onnx.TensorProto.FLOAT, [batch, hidden]))
    return model


def lowest_is(model: onnx.ModelProto, number: float) -> onnx.ModelProto:
    """The model with another number where its mask hides."""
    constants = [a.t for node in model.graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    for tensor in [*model.graph.initializer, *constants]:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size == 1 and array.min() < -1e38:
            tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, number), tensor.name))
    return model


def is_packed(compiled: Any) -> bool:
    return any(kernel.name.startswith("product") and "_nx" in kernel.name for kernel in compiled.kernels)


def masks(batch: int, longest: int) -> list[np.ndarray]:
    """Sentences of any number of tokens, of all, of none beside others, padded on the left, with holes."""
    rng = np.random.default_rng(1)
    places, some = np.arange(longest), rng.integers(1, longest + 1, batch)[:, None]
    none = np.where(np.arange(batch) % 2, longest // 2, 0)[:, None]
    made = [places < some, np.ones((batch, longest)), places < none, places >= longest - some]
    return [*(one.astype(np.int64) for one in made), rng.integers(0, 2, (batch, longest))]


def inputs(mask: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(0, 100, mask.shape),
        "attention_mask": mask,
        "token_type_ids": rng.integers(0, 2, mask.shape),
    }


@pytest.mark.parametrize(("batch", "longest", "pooled"), [(8, 32, True), (16, 16, False), (1, 256, True)])
def test_results_of_sentences(batch: int, longest: int, pooled: bool) -> None:
    """Means over tokens, and the first token: whole sentences of padding, too, are as they were."""
    model = bert.bert(batch=batch, sequence=longest, pooled=pooled, **SIZES)
    model = model if pooled else first_token(model)
    packed = tw.compile(model, threads=2)
    pipeline = registry.parse_target("cpu").here().pipeline(CompileOptions()).without("tile-skip-padding")
    whole = tw.compile(model, threads=2, pipeline=pipeline)
    assert is_packed(packed) and not is_packed(whole)
    for mask in masks(batch, longest):
        found, wanted = packed(**inputs(mask))[0], whole(**inputs(mask))[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert np.abs(wanted).max() > 0.1 or not mask.any()


@pytest.mark.parametrize(("batch", "longest"), BATCHES)
def test_an_infinite_mask(batch: int, longest: int) -> None:
    """What is hidden by -inf is hidden; a sentence of padding alone is NaN in both."""
    model = lowest_is(bert.bert(batch=batch, sequence=longest, pooled=True, **SIZES), -np.inf)
    assert is_packed(tw.compile(model))


def test_a_mask_below_what_scores_can_be() -> None:
    """-1e4 hides where norms of weights behind a normalization bound scores; sentences of padding alone, too."""
    model = lowest_is(bert.bert(batch=8, sequence=32, pooled=True, **SIZES), -1e4)
    packed = tw.compile(model, threads=2)
    pipeline = registry.parse_target("cpu").here().pipeline(CompileOptions()).without("tile-skip-padding")
    whole = tw.compile(model, threads=2, pipeline=pipeline)
    assert is_packed(packed) and not is_packed(whole)
    for mask in masks(8, 32):
        np.testing.assert_allclose(packed(**inputs(mask))[0], whole(**inputs(mask))[0], rtol=1e-4, atol=1e-5)


def with_long_queries(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with queries and keys so long that scores may lie further apart than 1e4."""
    for tensor in model.graph.initializer:
        if tensor.name.endswith(("self.query", "self.key")):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 30, tensor.name))
    return model


@pytest.mark.parametrize(("batch", "longest"), BATCHES)
@pytest.mark.parametrize(
    ("number", "pooled", "why"),
    [(-1e4, True, "what its mask adds to scores, -1e+04, hides none for sure"), (-3e38, False, "a result has it")],
)
def test_what_may_be_read_is_computed(batch: int, longest: int, number: float, pooled: bool, why: str) -> None:
    """Scores may lie further apart than the mask's number; results at padding are results."""
    changed = lowest_is(bert.bert(batch=batch, sequence=longest, pooled=pooled, **SIZES), number)
    model = tw.compile(with_long_queries(changed))
    assert not is_packed(model)
    told = [remark["message"] for remark in model.report_data()["remarks"]]
    assert any(f"padding by 'attention_mask' is computed like tokens: {why}" in message for message in told)


def with_mask(model: onnx.ModelProto, how: str) -> onnx.ModelProto:
    """The model with a mask that is causal, too, or that is the logarithm of 1 and 0."""
    nodes = list(model.graph.node)
    seen = next(node for node in nodes if node.op_type == "Cast" and "mask" in "".join(_sources(nodes, node)))
    lowered = next(node for node in nodes if node.op_type == "Where" and seen.output[0] in _sources(nodes, node))
    at = nodes.index(lowered)
    if how == "log":
        made = [helper.make_node("Log", [seen.output[0]], ["lowered"])]
    else:
        causal = numpy_helper.from_array(np.tril(np.ones((32, 32), np.float32)), "causal")
        model.graph.initializer.append(causal)
        made = [
            helper.make_node("Mul", [seen.output[0], "causal"], ["both"]),
            helper.make_node("Log", ["both"], ["lowered"]),
        ]
    for node in nodes:
        node.input[:] = ["lowered" if name == lowered.output[0] else name for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:at], *made, *nodes[at + 1 :]])
    return model


def _sources(nodes: list[onnx.NodeProto], node: onnx.NodeProto) -> set[str]:
    """What a node is made of."""
    made = {name: one for one in nodes for name in one.output}
    found = set(node.input)
    for name in node.input:
        found |= _sources(nodes, made[name]) if name in made else set()
    return found


def test_the_logarithm_of_a_mask() -> None:
    model = with_mask(bert.bert(batch=8, sequence=32, pooled=True, **SIZES), "log")
    assert is_packed(tw.compile(model))


def test_a_second_condition_is_told() -> None:
    """Left-padded, the first query of a causal mask sees no token."""
    model = tw.compile(with_mask(bert.bert(batch=8, sequence=32, pooled=True, **SIZES), "causal"))
    told = [remark["message"] for remark in model.report_data()["remarks"]]
    assert not is_packed(model)
    assert any("computed like tokens: its mask has a condition beside padding" in message for message in told)


def test_numbers_that_are_no_mask_are_not_told_of() -> None:
    """A series that is standardized is below zero where it is 0; nothing hides that, and nothing says that it would."""
    random, f32 = np.random.default_rng(0), np.float32
    g = Graph("series", 17)
    x = g.op("Sub", g.input("x", f32, [8, 32]), g.const(5.0, f32))
    rows = g.op("MatMul", g.op("Unsqueeze", x, g.const([2])), g.weight(random.random((1, 16), f32)))
    query, key = (g.op("MatMul", rows, g.weight(random.random((16, 16), f32))) for _ in range(2))
    share = g.op("Softmax", g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1])), axis=-1)
    g.output(g.op("MatMul", share, rows), "y", f32, [8, 32, 16])
    told = [remark["message"] for remark in tw.compile(g.model()).report_data()["remarks"]]
    assert not any("padding" in message for message in told)
