# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention to slices of keys and values that are put together: tasks read them where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import GraphBuilder

Span = tuple[int, int]

#: Batch, queries, keys that there are, their size, and which of these are put together.
CASES: dict[str, tuple[int, int, int, int, Sequence[Span]]] = {
    "ends of a sequence": (29, 32, 300, 64, [(0, 64), (236, 300), (100, 228)]),
    "parts of unlike sizes": (71, 17, 251, 67, [(0, 5), (130, 251), (3, 8), (250, 251)]),
    "one part twice": (37, 16, 200, 64, [(7, 135), (7, 135)]),
    "blocks of one row": (1, 64, 4099, 80, [(4098, 4099), (0, 4096), (1, 2)]),
}


def attention(batch: int, queries: int, keys: int, size: int, spans: Sequence[Span], dtype: type) -> onnx.ModelProto:
    """`q`, `k`, `v` -> `y`: a softmax over the keys of the spans, in their order."""
    g = GraphBuilder("joined")
    q, k, v = (
        g.input(n, np.float32, [batch, rows, size]) for n, rows in zip("qkv", (queries, keys, keys), strict=True)
    )
    joined = []
    for x in (k, v):
        cut = [g.op("Slice", x, g.const([a]), g.const([b]), g.const([1])) for a, b in spans]
        joined.append(g.op("Concat", *cut, axis=1))
    scores = g.op("MatMul", q, g.op("Transpose", joined[0], perm=[0, 2, 1]))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), joined[1]), "y", np.float32, [batch, queries, size])
    model = g.model()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
    """The same by NumPy, in f64."""
    keys, values = (np.concatenate([x[:, a:b] for a, b in spans], 1).astype(np.float64) for x in (k, v))
    scores = q.astype(np.float64) @ keys.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


def inputs(batch: int, queries: int, keys: int, size: int, dtype: type) -> list[np.ndarray]:
    """Keys and values from a normal distribution; scores have a variance of one."""
    rng = np.random.default_rng(3)
    shapes = [(batch, rows, size) for rows in (queries, keys, keys)]
    q, k, v = (rng.standard_normal(shape) for shape in shapes)
    return [x.astype(dtype) for x in (q / size**0.5, k, v)]


RUNS = [
    *((case, np.float32, "cpu") for case in CASES),
    *(("parts of unlike sizes", dtype, "cpu") for dtype in (np.float16, np.float64)),
    ("parts of unlike sizes", np.float32, "cpu:x86-64-v3"),
]


@pytest.mark.parametrize(("case", "dtype", "target"), RUNS)
def test_equals_numpy(case: str, dtype: type, target: str):
    batch, queries, keys, size, spans = CASES[case]
    model = tw.compile(attention(batch, queries, keys, size, spans, dtype), target=target, threads=2)
    arrays = inputs(batch, queries, keys, size, dtype)
    close = 2e-3 if dtype is np.float16 else 1e-4
    q, k, v = arrays
    np.testing.assert_allclose(model(q, k, v)[0], expected(q, k, v, spans), rtol=close, atol=close)


def test_no_join_is_in_memory():
    batch, queries, keys, size, spans = CASES["ends of a sequence"]
    model = tw.compile(attention(batch, queries, keys, size, spans, np.float32), target="cpu", threads=2)
    joined = batch * sum(b - a for a, b in spans) * size * 4
    assert model.held_bytes["arena"] < joined
    assert not any("copy" in kernel.name for kernel in model.kernels)


def test_parts_of_two_tensors_are_put_together():
    """Where no one tensor is behind them, the join is made first, as before."""
    g = GraphBuilder("two")
    q, k, v = (g.input(n, np.float32, [4, rows, 64]) for n, rows in zip("qkv", (16, 300, 500), strict=True))
    joined = g.op("Concat", k, g.op("Slice", v, g.const([1]), g.const([490]), g.const([1])), axis=1)
    g.output(g.op("MatMul", q, g.op("Transpose", joined, perm=[0, 2, 1])), "y", np.float32, [4, 16, 789])
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((4, rows, 64)).astype(np.float32) for rows in (16, 300, 500)]
    y = arrays[0] @ np.concatenate([arrays[1], arrays[2][:, 1:490]], 1).transpose(0, 2, 1)
    np.testing.assert_allclose(tw.compile(g.model(), target="cpu")(*arrays)[0], y, rtol=1e-4, atol=1e-4)
