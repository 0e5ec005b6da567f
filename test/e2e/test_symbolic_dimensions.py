# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic batch and sequence dimensions: one compilation serves all sizes, in kernels."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._weights import Weights
from models.bert import bert, encoder_inputs
from models.compare import assert_close, onnxruntime_outputs
from models.mlp import mlp
from tilewright.demo.graph import GraphBuilder
from tilewright.devices import detect_host

# One; below, at and above vectors, row tiles and the tiles of tasks; many.
BATCHES = (1, 2, 3, 7, 8, 13, 14, 15, 16, 17, 33, 127, 128, 129, 300)


def check(compiled: tw.Model, model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> None:
    """Equal to ONNX Runtime, and to itself with another number of threads."""
    compiled.threads = 1
    ours = compiled(**inputs)
    assert_close(ours, onnxruntime_outputs(model.SerializeToString(), inputs))
    compiled.threads = 2
    for once, again in zip(ours, compiled(**inputs), strict=True):
        np.testing.assert_array_equal(once, again)


def compile_once(model: onnx.ModelProto) -> tw.Model:
    """The model for all sizes; nothing of it may run in scalar loops."""
    general = tw.compile(model).general
    assert general is not None
    assert not [r for r in general.report_data()["remarks"] if "host" in r["message"]]
    return general


def test_multi_layer_perceptron() -> None:
    model = mlp((64, 96, 32, 10), batch="batch")  # type: ignore[arg-type]
    compiled = compile_once(model)
    for batch in BATCHES:
        check(compiled, model, {"x": np.random.default_rng(batch).normal(size=(batch, 64)).astype(np.float32)})
    assert compiled(np.zeros((0, 64), np.float32))[0].shape == (0, 10)


@pytest.fixture(scope="module")
def encoder() -> tuple[onnx.ModelProto, tw.Model]:
    sizes = {"layers": 1, "hidden": 64, "heads": 4, "intermediate": 96, "vocabulary": 100, "positions": 300}
    model = bert(**sizes, style="export", dynamic=True)
    return model, compile_once(model)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_encoder_with_symbolic_batch_and_sequence(encoder: tuple[onnx.ModelProto, tw.Model], batch: int) -> None:
    model, compiled = encoder
    assert compiled.ranges == {"batch": (0, None), "sequence": (0, 300)}
    for sequence in (1, 2, 5, 15, 16, 17, 31, 100, 128, 131, 300):
        check(compiled, model, encoder_inputs(batch, sequence, 100, seed=sequence))


def cnn(size: int = 16) -> onnx.ModelProto:
    """Convolutions (dense, depthwise, strided pointwise), pooling, a classifier; the batch is symbolic."""
    g, w = GraphBuilder("cnn"), Weights(0)

    def conv(x: str, filters: int, channels: int, kernel: int, **attributes: object) -> str:
        weight = g.weight(w.normal(filters, channels, kernel, kernel, scale=0.2), "weight")
        return g.op("Conv", x, weight, g.weight(w.normal(filters), "bias"), **attributes)

    x = g.input("x", np.float32, ["batch", 3, size, size])
    y = g.op("Relu", conv(x, 16, 3, 3, pads=[1, 1, 1, 1]))
    y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = g.op("Relu", conv(y, 16, 1, 3, pads=[1, 1, 1, 1], group=16))
    y = g.op("Flatten", g.op("GlobalAveragePool", conv(y, 24, 16, 1, strides=[2, 2])))
    y = g.op("Gemm", y, g.weight(w.linear(10, 24), "weight"), g.weight(w.normal(10), "bias"), transB=1)
    g.output(y, "y", np.float32, ["batch", 10])
    return g.model()


def test_convolutional_net() -> None:
    model = cnn()
    compiled = compile_once(model)
    for batch in (1, 2, 3, 8, 17, 33):
        inputs = np.random.default_rng(batch).normal(size=(batch, 3, 16, 16)).astype(np.float32)
        check(compiled, model, {"x": inputs})


def residual_net() -> onnx.ModelProto:
    """Strided convolutions of other windows and borders meet in a residual; height and width are symbolic."""
    g, w = GraphBuilder("residual"), Weights(0)

    def conv(x: str, filters: int, channels: int, kernel: int, stride: int = 1) -> str:
        weight = g.weight(w.normal(filters, channels, kernel, kernel, scale=0.1), "weight")
        return g.op("Conv", x, weight, pads=[kernel // 2] * 4, strides=[stride] * 2)

    x = g.input("x", np.float32, [1, 16, "height", "width"])
    y = conv(g.op("Relu", conv(x, 32, 16, 3)), 32, 32, 3, stride=2)
    y = g.op("Relu", g.op("Add", y, conv(x, 32, 16, 1, stride=2)))
    y = g.op("Add", conv(y, 32, 32, 3), y)
    g.output(y, "y", np.float32, [1, 32, "rows", "columns"])
    return g.model()


def test_residuals_of_symbolic_images() -> None:
    model = residual_net()
    compiled = compile_once(model)
    for height, width in ((32, 48), (33, 47), (7, 9), (1, 1), (2, 100)):
        inputs = np.random.default_rng(height).normal(size=(1, 16, height, width)).astype(np.float32)
        check(compiled, model, {"x": inputs})


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, "batch"])
def test_recurrence_of_symbolic_length(batch: int | str) -> None:
    """Programs do whole numbers of their steps, launches the rest; a step is one kernel, of an open batch too."""
    g, w = GraphBuilder("recurrent"), Weights(0)
    x = g.input("x", np.float32, ["sequence", batch, 64])
    weights = [g.weight(w.normal(1, 1024, n, scale=0.1), "weight") for n in (64, 256)]
    y, h, c = g.ops("LSTM", x, *weights, outputs=3, hidden_size=256)
    g.output(y, "y", np.float32, ["sequence", 1, batch, 256])
    g.output(h, "h", np.float32, [1, batch, 256])
    g.output(c, "c", np.float32, [1, batch, 256])
    model = g.model()
    compiled = compile_once(model)
    for sequence in (1, 2, 15, 16, 17, 31, 32, 67):
        rows = 1 if batch == 1 else sequence % 9 + 1
        inputs = np.random.default_rng(sequence).normal(size=(sequence, rows, 64)).astype(np.float32)
        check(compiled, model, {"x": inputs})
    launched = [name for name, *_ in compiled.profile(inputs)]
    programs = [name for name in launched if name.startswith("program_product")]
    assert len(launched) < (30 if programs else 72)  # one a step, and some before and behind
    assert bool(programs) == (batch == 1 and detect_host().units.count > 1)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("rows", [["rows", "depth"], [1, "rows", "depth"]])
def test_inner_sizes_of_products_are_one(rows: list, target: str) -> None:
    """What one operand says of the depth holds for the other one; each run checks it. A weight's was not believed."""
    g, w = GraphBuilder("products"), Weights(0)
    x, y = g.input("x", np.float32, rows), g.input("y", np.float32, ["inner", 5])
    known = g.op("MatMul", x, g.weight(w.normal(64, 33), "w"))
    g.output(g.op("MatMul", known, y), "z", np.float32, [*rows[:-1], 5])
    model = g.model()
    compiled = tw.compile(model, target=target, emulate=target != "cpu").general
    data = np.random.default_rng(0)
    inputs = {"x": data.standard_normal((*[1] * (len(rows) - 2), 17, 64)), "y": data.standard_normal((33, 5))}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    assert_close(compiled(**inputs), onnxruntime_outputs(model.SerializeToString(), inputs))
    for name, cut in (("x", inputs["x"][..., :63]), ("y", inputs["y"][:32])):
        changed = {**inputs, name: np.ascontiguousarray(cut)}
        got = ", ".join(f"{n} {list(array.shape)}" for n, array in changed.items())
        with pytest.raises(tw.UserError, match="inner dimensions of a matrix product differ; got " + re.escape(got)):
            compiled(**changed)


def test_products_of_no_rows() -> None:
    """Rows are joined where their sizes are open; where one size is 0, MLIR refused the joined ones."""
    g = GraphBuilder("nothing")
    x = g.input("x", np.float32, ["images", 0, "rows", 64])
    g.output(g.op("MatMul", x, g.weight(Weights(0).normal(64, 16), "w")), "y", np.float32, ["images", 0, "rows", 16])
    compiled = tw.compile(g.model()).general
    assert compiled(np.zeros((3, 0, 8, 64), np.float32))[0].shape == (3, 0, 8, 16)
