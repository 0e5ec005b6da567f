# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small graphs as tile kernels for GPUs, in the reference interpreter, against the graphs as imported."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from gpu_plans import planned
from random_graphs import KINDS, Maker

from tilewright.bisection.entry import interpret
from tilewright.compiler.source import open_source

SEEDS = range(20, 23)


@pytest.mark.parametrize("device", ["nvidia-sm80", "nvidia-h200"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_for_a_gpu_compute_what_was_imported(kind: str, device: str) -> None:
    for seed in SEEDS:
        maker = Maker(seed)
        KINDS[kind](maker)
        model, feeds = maker.model(), maker.feeds()
        before, after = planned(model, device)
        outputs = open_source(model).load(None, True).outputs
        inputs = [feeds[name] for name in maker.inputs]
        for expected, actual in zip(interpret(before, inputs, outputs), interpret(after, inputs, outputs), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
        _check_sizes(str(after.module))


def _check_sizes(text: str) -> None:
    """All tiles have sizes that threads can share: powers of two."""
    for shape in set(re.findall(r"!tile\.tile<((?:\d+x)+)", text)):
        assert all(size & (size - 1) == 0 for size in map(int, shape.rstrip("x").split("x"))), shape


def test_attention_is_one_kernel_without_buffers() -> None:
    maker = Maker(3)
    KINDS["attention"](maker)
    text = str(planned(maker.model())[1].module)
    assert text.count("tile.kernel @") == 1
    assert "tile.alloc" not in text
    assert text.count("tile.mma") == 2


def _single(kind: str, inputs: dict[str, np.ndarray], **attributes: object) -> onnx.ModelProto:
    given = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    node = onnx.helper.make_node(kind, list(inputs), ["y"], **attributes)
    result = onnx.helper.make_tensor_value_info("y", given[0].type.tensor_type.elem_type, None)
    graph = onnx.helper.make_graph([node], "single", given, [result])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


SPLITS = {
    "product": ("MatMul", {"a": (33, 4096), "b": (4096, 40)}, {}),
    "image": ("Conv", {"x": (1, 512, 9, 7), "w": (24, 512, 3, 3)}, {"pads": [1, 1, 1, 1]}),
    "sum": ("ReduceSum", {"x": (7, 300000)}, {"keepdims": 0}),
    "maximum": ("ReduceMax", {"x": (131072,)}, {"keepdims": 0}),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_sum_with_few_tasks_is_split(name: str) -> None:
    kind, shapes, attributes = SPLITS[name]
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal(shape, np.float32) for n, shape in shapes.items()}
    model = _single(kind, inputs, **attributes)
    before, after = planned(model, "nvidia-h100")
    assert "expand_shape" in str(after.module), "the parts"
    outputs = open_source(model).load(None, True).outputs
    (expected,), (actual,) = (interpret(stage, list(inputs.values()), outputs) for stage in (before, after))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)
