# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that select, scatter and sum along an axis run on many threads of a GPU, and give the CPU's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw

ARCHS = ("sm_80", "sm_90a")
_RANDOM = np.random.default_rng(12)


def node(op: str, inputs: list[np.ndarray], known: tuple[int, ...] = (), **attributes: Any) -> onnx.ModelProto:
    """A model of one node, some of whose inputs are initializers."""
    names = [f"x{i}" for i in range(len(inputs))]
    made = helper.make_node(op, names, ["y"], name=f"the_{op}", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    weights = [numpy_helper.from_array(inputs[i], names[i]) for i in known]
    given = [info for i, info in enumerate(infos) if i not in known]
    graph = helper.make_graph([made], op, given, [helper.make_empty_tensor_value_info("y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def check(op: str, inputs: list[np.ndarray], arch: str, known: tuple[int, ...] = (), **attributes: Any) -> None:
    """The CPU's result in two orders of what may happen in any, and no loop over elements in one thread."""
    model = node(op, inputs, known, **attributes)
    given = [x for i, x in enumerate(inputs) if i not in known]
    (expected,) = tw.compile(model, threads=1)(*given)
    for seed in (1, 2):
        compiled = tw.compile(model, f"cuda:{arch}", emulate={"seed": seed})
        assert not [r for r in compiled._artifact.report()["remarks"] if "one thread" in r["message"]]
        (got,) = compiled(*given)
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def boxes(batches: int, count: int) -> np.ndarray:
    corner = _RANDOM.random((batches, count, 2), np.float32)
    return np.concatenate([corner, corner + _RANDOM.random((batches, count, 2), np.float32) * 0.3], -1)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("batches", "classes", "count", "most", "known", "center"),
    [(2, 3, 50, 5, (2, 3, 4), 0), (1, 1, 70, 70, (2, 3, 4), 0), (1, 2, 40, 40, (), 1)],
)
def test_suppression(
    batches: int, classes: int, count: int, most: int, known: tuple[int, ...], center: int, arch: str
) -> None:
    scores = _RANDOM.random((batches, classes, count), np.float32)
    limits = [np.array([most]), np.float32([0.4]), np.float32([0.3])]
    check("NonMaxSuppression", [boxes(batches, count), scores, *limits], arch, known, center_point_box=center)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("shape", "axis"), [((5, 30), 1), ((3, 4, 50), 1), ((2, 700), -1)])
def test_running_sums(shape: tuple[int, ...], axis: int, arch: str) -> None:
    check("CumSum", [_RANDOM.standard_normal(shape).astype(np.float32), np.array(axis)], arch, (1,), exclusive=1)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("shape", [(6, 7), (2100,)])
def test_places_that_are_not_zero(shape: tuple[int, ...], arch: str) -> None:
    check("NonZero", [_RANDOM.integers(0, 2, shape).astype(np.float32)], arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_compress(arch: str) -> None:
    x, chosen = _RANDOM.standard_normal((3, 20)).astype(np.float32), _RANDOM.random(20) < 0.5
    check("Compress", [x, chosen], arch, axis=1)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter(reduction: str, arch: str) -> None:
    x = _RANDOM.standard_normal((9, 20)).astype(np.float32)
    indices = np.argsort(_RANDOM.random((9, 20)), 0)[:5, :17]
    updates = _RANDOM.standard_normal(indices.shape).astype(np.float32)
    check("ScatterElements", [x, indices, updates], arch, axis=0, reduction=reduction)
    rows = _RANDOM.permutation(9)[:4].reshape(4, 1)
    check("ScatterND", [x, rows, _RANDOM.standard_normal((4, 20)).astype(np.float32)], arch, reduction=reduction)
