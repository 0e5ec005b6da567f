# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of all shapes: odd sizes, vectors, one summand or none, deep reductions that run in blocks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

#: rows, columns, summands. The last ones overflow the L2 cache, so that their reductions run in blocks.
SIZES = [
    (1, 1, 1),
    (1, 37, 5),
    (37, 1, 11),
    (3, 5, 0),
    (7, 64, 1),
    (13, 31, 17),
    (1, 1000, 513),
    (2, 2051, 65),
    (19, 1100, 70),
    (61, 96, 67),
    (127, 131, 137),
    (12, 640, 33),
    (130, 1000, 301),
    (131, 160, 4099),
    (270, 97, 2053),
]


def product(m: int, n: int, k: int, constant: bool, after: bool) -> onnx.ModelProto:
    """x b, where b is a weight or an input; optionally with what follows products in models."""
    g = GraphBuilder("product")
    rng = np.random.default_rng(m + n + k)
    x = g.input("x", np.float32, [m, k])
    if constant:
        b = g.weight(rng.standard_normal((k, n), np.float32))
    else:
        b = g.input("b", np.float32, [k, n])
    y = g.op("MatMul", x, b)
    if after:
        y = g.op("Add", y, g.weight(rng.standard_normal(n).astype(np.float32), "bias"))
        y = g.op("Add", g.op("Relu", y), g.input("r", np.float32, [m, n]))
    g.output(y, "y", np.float32, [m, n])
    return g.model()


def expected(model: onnx.ModelProto, inputs: dict[str, np.ndarray], after: bool) -> np.ndarray:
    """The product in f64."""
    values = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer} | inputs
    matrix = next(v for name, v in values.items() if v.ndim == 2 and name not in ("x", "r"))
    y = values["x"].astype(np.float64) @ matrix
    if after:
        bias = next(v for v in values.values() if v.ndim == 1)
        y = np.maximum(y + bias, 0) + values["r"]
    return y


@pytest.mark.parametrize("after", [False, True], ids=["plain", "epilogue"])
@pytest.mark.parametrize("constant", [False, True], ids=["input", "weight"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_products(size: tuple[int, int, int], constant: bool, after: bool) -> None:
    if constant and size[2] == 0:
        pytest.skip("a weight without elements is folded")
    model = product(*size, constant, after)
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    inputs = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    one = tw.compile(model, target="cpu", threads=1)
    (y,) = one(*inputs.values())
    want = expected(model, inputs, after)
    np.testing.assert_allclose(y, want, rtol=0, atol=1e-6 * max(size[2], 8))
    (again,) = tw.compile(model, target="cpu", threads=2)(*inputs.values())
    assert np.array_equal(y, again)


def test_a_deep_reduction_runs_in_blocks_and_what_follows_after_them() -> None:
    model = product(120, 160, 4099, constant=True, after=True)
    plan = tw.compile(model, target="cpu", stop_after="plan")
    assert "block = [120, 160, " in plan
    tile = tw.compile(model, target="cpu", stop_after="tile")
    kernel = tile[tile.index("tile.kernel") :]
    assert "memref.prefetch" in kernel
    assert kernel.rindex("arith.maximumf") > kernel.rindex("tile.mma")


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
def test_tasks_of_a_thread_stream_a_matrix_in_step(rows: int, tmp_path) -> None:
    source = product(rows, 2048, 96, constant=False, after=False)
    model = tw.compile(source, threads=1, dump_ir=tmp_path)
    together = any("tile.tasks_inside" in file.read_text() for file in tmp_path.rglob("*.mlir"))
    assert together == (rows * 2048 * 4 <= 32 << 10)
    rng = np.random.default_rng(rows)
    inputs = {i.name: rng.standard_normal(i.shape, np.float32) for i in model.inputs}
    (first,) = model(**inputs)
    np.testing.assert_allclose(first, expected(source, inputs, after=False), rtol=1e-5, atol=1e-4)
    for threads in (2, 3):
        model.threads = threads
        np.testing.assert_array_equal(model(**inputs)[0], first)
