# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exporters of transformers write for open sizes: each pattern is one artifact for all sizes, without slow loops.

Graphs by hand, after those of torch.onnx.export (dynamo and the old exporter) for BERT, GPT-2, T5 and ViT.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._weights import Weights
from models.compare import assert_close, onnxruntime_outputs
from tilewright.demo.graph import GraphBuilder

F, N, SIZES = np.float32, np.int64, ((1, 1), (2, 1), (1, 5), (3, 17), (2, 64))


def _size(g: GraphBuilder, x: str, axis: int) -> str:
    """One size, as a number without dimensions."""
    return g.op("Gather", g.op("Shape", x), g.const(axis), axis=0)


def _sizes(g: GraphBuilder, *sizes: str | int) -> str:
    """A vector of sizes."""
    parts = [g.op("Unsqueeze", n, g.const([0])) if isinstance(n, str) else g.const([n]) for n in sizes]
    return g.op("Concat", *parts, axis=0)


def positions(g: GraphBuilder) -> None:
    """Cast(Range(0, Shape(x)[1])) meets the tokens and a table: the old exporter's position_ids."""
    x = g.input("x", N, ["batch", "sequence"])
    numbers = g.op("Range", g.const(0), _size(g, x, 1), g.const(1))
    steps = g.op("Cast", g.op("Unsqueeze", numbers, g.const([0])), to=onnx.TensorProto.FLOAT)
    y = g.op("Mul", g.op("Cast", x, to=onnx.TensorProto.FLOAT), steps)
    g.output(y, "y", F, ["batch", "sequence"])


def mask_by_coordinates(g: GraphBuilder) -> None:
    """GatherND of a mask by coordinates that Max, Shape and Expand make: the new exporter's `mask[b, k]`."""
    x = g.input("x", N, ["batch", "sequence"])
    mask = g.op("Cast", x, to=onnx.TensorProto.BOOL)
    rows = g.op("Range", g.const(0), _size(g, x, 0), g.const(1))
    columns = g.op("Range", g.const(0), _size(g, x, 1), g.const(1))
    rows = g.op("Unsqueeze", rows, g.const([1, 2, 3]))
    columns = g.op("Unsqueeze", columns, g.const([0, 1, 2]))
    shape = g.op("Shape", g.op("Max", rows, columns))
    places = [g.op("Unsqueeze", g.op("Expand", n, shape), g.const([-1])) for n in (rows, columns)]
    kept = g.op("GatherND", mask, g.op("Concat", *places, axis=-1))
    g.output(g.op("Where", kept, g.f32(0.0), g.f32(-1e9)), "y", F, ["batch", 1, 1, "sequence"])


def embedded_types(g: GraphBuilder) -> None:
    """GatherElements of a buffer by a slice as long as the sequence, expanded: token types that are not given."""
    x = g.input("x", N, ["batch", "sequence"])
    buffer, numbers = g.weight(np.zeros((1, 64), N), "types"), g.weight(np.arange(64).reshape(1, 64), "positions")
    first = g.op("Slice", numbers, g.const([0]), _sizes(g, _size(g, x, 1)), g.const([1]), g.const([1]))
    types = g.op("Expand", g.op("GatherElements", buffer, first, axis=1), g.op("Shape", x))
    w = Weights(0)
    rows = [g.op("Gather", g.weight(w.normal(*shape), "table"), ids) for shape, ids in (((2, 8), types), ((64, 8), x))]
    g.output(g.op("Add", *rows), "y", F, ["batch", "sequence", 8])


def scores(g: GraphBuilder) -> None:
    """Keys flattened by Reshape to [-1, tokens, 8] and back around a transpose: the new exporter's attention."""
    x = g.input("x", F, ["batch", "sequence", 32])
    w = Weights(0)
    heads = _sizes(g, _size(g, x, 0), _size(g, x, 1), -1, 8)
    query, key, value = (
        g.op("Transpose", g.op("Reshape", g.op("MatMul", x, g.weight(w.linear(32, 32))), heads), perm=[0, 2, 1, 3])
        for _ in range(3)
    )
    shape = g.op("Shape", key)
    last, tokens, front = (
        g.op("Slice", shape, g.const([low]), g.const([high])) for low, high in ((-1, 2**62), (-2, -1), (-(2**62), -2))
    )
    flat = g.op("Reshape", key, g.op("Concat", g.const([-1]), tokens, last, axis=0))
    turned = g.op("Transpose", flat, perm=[0, 2, 1])
    turned = g.op("Reshape", turned, g.op("Concat", front, last, tokens, axis=0))
    weights = g.op("Softmax", g.op("MatMul", query, turned), axis=-1)
    joined = g.op("Transpose", g.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    y = g.op("Add", g.op("Reshape", joined, _sizes(g, _size(g, x, 0), _size(g, x, 1), -1)), x)
    g.output(y, "y", F, ["batch", "sequence", 32])


def sizes_that_may_be_1(g: GraphBuilder) -> None:
    """A bias, rows and a batched product whose sizes have other names: each may be 1, and then repeats."""
    x, y = g.input("x", F, ["batch", "sequence", 32]), g.input("y", F, ["other", "rows", 1])
    z = g.input("z", F, ["third", 32, 32])
    g.output(g.op("MatMul", g.op("Add", x, y), z), "t", F, ["out", "sequence", 32])


def relative_bias(g: GraphBuilder) -> None:
    """A table of biases by clipped distances of two ranges, added to what a mask of them leaves: T5, GPT-2."""
    x = g.input("x", F, ["batch", "sequence", "sequence"])
    numbers = g.op("Range", g.const(0), _size(g, x, 1), g.const(1))
    queries, keys = (g.op("Unsqueeze", numbers, g.const([axis])) for axis in (1, 0))
    distance = g.op("Min", g.op("Max", g.op("Sub", queries, keys), g.const(0)), g.const(7))
    bias = g.op("Gather", g.weight(Weights(0).normal(8, 4), "table"), distance)
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.const([0]))
    causal = g.op("Where", g.op("LessOrEqual", keys, queries), g.f32(0.0), g.f32(-1e4))
    y = g.op("Add", g.op("Unsqueeze", x, g.const([1])), g.op("Add", bias, causal))
    g.output(g.op("Softmax", y, axis=-1), "y", F, ["batch", 4, "sequence", "sequence"])


PATTERNS = (
    positions,
    mask_by_coordinates,
    embedded_types,
    scores,
    sizes_that_may_be_1,
    relative_bias,
)


def build(pattern: Callable[[GraphBuilder], None]) -> onnx.ModelProto:
    g = GraphBuilder(pattern.__name__)
    pattern(g)
    return g.model()


def inputs_of(model: onnx.ModelProto, batch: int, sequence: int) -> dict[str, np.ndarray]:
    """Random inputs; `other` and `rows` are the batch and the sequence, or 1 in every second case."""
    random = np.random.default_rng(batch * sequence)
    sizes = {"batch": batch, "sequence": sequence, "other": batch, "rows": sequence, "third": batch}
    sizes |= {"rows": 1, "third": 1} if sequence % 2 else {"other": 1}
    made = {}
    for info in model.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in info.type.tensor_type.shape.dim]
        is_float = info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        made[info.name] = random.normal(size=shape).astype(F) if is_float else random.integers(0, 2, shape)
    return made


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_one_artifact_for_all_sizes(pattern: Callable[[GraphBuilder], None], tmp_path: Path) -> None:
    model = build(pattern)
    compiled = tw.compile(model, sizes="general")
    assert not [r for r in compiled.report_data()["remarks"] if "on the host" in r["message"]]
    saved = tw.load(compiled.save(tmp_path / "model.tw"))
    for batch, sequence in SIZES:
        inputs = inputs_of(model, batch, sequence)
        assert_close(saved(**inputs), onnxruntime_outputs(model.SerializeToString(), inputs))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_one_artifact_on_a_gpu(pattern: Callable[[GraphBuilder], None], target: str) -> None:
    model = build(pattern)
    compiled = tw.compile(model, target, sizes="general", emulate=True)
    for batch, sequence in SIZES[1:4]:
        inputs = inputs_of(model, batch, sequence)
        assert_close(compiled(**inputs), onnxruntime_outputs(model.SerializeToString(), inputs))
