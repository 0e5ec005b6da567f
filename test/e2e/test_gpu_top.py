# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TopK on GPUs: every row is ranked by many threads, and what is not says so."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

ARCHS = ("sm_80", "sm_90a")


def top(shape: tuple[int, ...], k: int, largest: int = 1) -> onnx.ModelProto:
    """The first k along the last axis."""
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], largest=largest, name="top")
    known = [numpy_helper.from_array(np.array([k]), "k")]
    ends = [*shape[:-1], k]
    infos = [
        helper.make_tensor_value_info(name, kind, size)
        for name, kind, size in [
            ("x", TensorProto.FLOAT, shape),
            ("v", TensorProto.FLOAT, ends),
            ("i", TensorProto.INT64, ends),
        ]
    ]
    graph = helper.make_graph([node], "top", infos[:1], infos[1:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("shape", "k", "largest"), [((3, 50), 5, 1), ((70,), 70, 0), ((2, 2100), 4, 1)])
def test_ranks(shape: tuple[int, ...], k: int, largest: int, arch: str) -> None:
    x = np.random.default_rng(3).integers(-50, 50, shape).astype(np.float32)
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[..., :k]
    for seed in (1, 2):
        model = tw.compile(top(shape, k, largest), f"cuda:{arch}", emulate={"seed": seed})
        values, places = model(x)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
        assert all((kernel.tasks or 0) >= 1 for kernel in model._manifest.kernels)


def test_a_heap_says_that_it_is_serial() -> None:
    """Where a large part of a long row is kept."""
    model = tw.compile(top((3, 4000), 2000), "cuda:sm_80", emulate=True)
    assert any("one thread" in remark["message"] for remark in model._artifact.report()["remarks"])
