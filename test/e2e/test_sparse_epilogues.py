# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What follows a product with a pruned weight is computed in its tasks, and gives the masked dense model's numbers."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from models.sparse_programs import SparseProduct

F32 = np.dtype(np.float32)
_SIZE = 256


def kept(name: str) -> np.ndarray:
    """Which elements of [256, 256] a pattern keeps."""
    rng = np.random.default_rng(3)

    def windows(n: int, m: int, columns: int) -> np.ndarray:
        flags = np.broadcast_to(np.arange(m)[None, :, None] < n, (_SIZE // m, m, _SIZE // columns))
        return rng.permuted(flags, axis=1).reshape(_SIZE, -1).repeat(columns, 1)

    blocks = (np.eye(8, dtype=bool) | (rng.random((8, 8)) < 0.05)).repeat(32, 0).repeat(32, 1)
    scattered = rng.random((_SIZE, _SIZE)) < 0.05
    if name == "mixture":
        return (rng.random((8, 8)) < 0.3).repeat(32, 0).repeat(32, 1) | (rng.random((_SIZE, _SIZE)) < 0.01)
    return {"2:4": windows(2, 4, 1), "vectors": windows(3, 32, 32), "blocks": blocks, "scattered": scattered}[name]


def weight(name: str) -> np.ndarray:
    rng = np.random.default_rng(4)
    return (rng.standard_normal((_SIZE, _SIZE)) * kept(name) / 8).astype(F32)


def layer(w: np.ndarray, rows: int | str) -> onnx.ModelProto:
    """gelu(x @ w + b) * column + x: a row, a column and a matrix behind a product."""
    g, rng = Graph("layer", 17), np.random.default_rng(5)
    x, column = g.input("x", F32, [rows, _SIZE]), g.input("column", F32, [rows, 1])
    y = g.op("Add", g.op("MatMul", x, g.weight(w, "w")), g.weight(_bias(rng), "b"))
    root, half, one = (g.weight(np.array(c, F32), n) for c, n in ((2**0.5, "root"), (0.5, "half"), (1, "one")))
    grown = g.op("Add", g.op("Erf", g.op("Div", y, root)), one)
    gelu = g.op("Mul", g.op("Mul", y, grown), half)
    g.output(g.op("Add", g.op("Mul", gelu, column), x), "y", F32, [rows, _SIZE])
    return g.model()


def _bias(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(_SIZE).astype(F32)


def reference(w: np.ndarray, x: np.ndarray, column: np.ndarray) -> np.ndarray:
    y = x.astype(np.float64) @ w + _bias(np.random.default_rng(5))
    return y * (np.vectorize(erf)(y / 2**0.5) + 1) * 0.5 * column + x


def first(outputs: Any) -> np.ndarray:
    return outputs[0] if isinstance(outputs, list | tuple) else outputs


def given(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    return rng.standard_normal((rows, _SIZE)).astype(F32), rng.standard_normal((rows, 1)).astype(F32)


@pytest.mark.parametrize("rows", [117, 128])
@pytest.mark.parametrize("name", ["2:4", "vectors", "blocks", "scattered", "mixture"])
def test_patterns(name: str, rows: int) -> None:
    """One kernel multiplies, and nothing else touches the result; elements that nobody multiplies are left out before.

    The second number of rows is one of whole tiles.
    """
    w = weight(name)
    compiled = tw.compile(layer(w, rows), "cpu:x86-64-v3")
    x, column = given(rows)
    np.testing.assert_allclose(first(compiled(x, column)), reference(w, x, column), rtol=1e-4, atol=1e-5)
    assert {entry["kernels"][0] for entry in compiled.report_data()["sparsity"]}.isdisjoint({"dense"})
    names = [kernel.name for kernel in compiled.kernels]
    assert any(one.startswith("sparse_") and one.endswith("erf") for one in names), names
    assert all(one.startswith(("sparse_", "map_gather")) for one in names), names


def test_open_rows() -> None:
    w = weight("2:4")
    compiled = tw.compile(layer(w, "n"), "cpu")
    for rows in (1, 7, 300):
        x, column = given(rows)
        np.testing.assert_allclose(first(compiled(x, column)), reference(w, x, column), rtol=1e-4, atol=1e-5)


def test_more_readers() -> None:
    """What two others read is in memory as it is: the chain ends there."""
    g, w = Graph("readers", 17), weight("2:4")
    x = g.input("x", F32, [128, _SIZE])
    y = g.op("Relu", g.op("MatMul", x, g.weight(w, "w")))
    g.output(g.op("Exp", g.op("Neg", y)), "a", F32, [128, _SIZE])
    g.output(g.op("ReduceSum", y, keepdims=0), "b", F32, [])
    compiled = tw.compile(g.model(), "cpu")
    x, _ = given(128)
    a, b = compiled(x)
    expected = np.maximum(x @ w, 0)
    np.testing.assert_allclose(a, np.exp(-expected), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, expected.sum(), rtol=1e-4)


def test_bytes() -> None:
    """A quantized result is stored as bytes by the product's own tasks."""
    g, w = Graph("bytes", 17), weight("2:4")
    x = g.input("x", F32, [128, _SIZE])
    scale, zero = g.weight(np.array(0.05, F32), "scale"), g.weight(np.array(3, np.int8), "zero")
    product = g.op("MatMul", x, g.weight(w, "w"))
    g.output(g.op("QuantizeLinear", product, scale, zero), "y", np.dtype(np.int8), [128, _SIZE])
    compiled = tw.compile(g.model(), "cpu")
    x, _ = given(128)
    expected = np.clip(np.round(x @ w / np.float32(0.05)) + 3, -128, 127)
    assert np.abs(first(compiled(x)).astype(int) - expected).max() <= 1
    names = [kernel.name for kernel in compiled.kernels]
    assert all(name.startswith("sparse_") for name in names), names


def test_batches() -> None:
    """What goes over [batch, rows, elements] behind a product of [batch * rows, elements] does so in its tasks, too."""
    g, w = Graph("batches", 17), weight("2:4")
    x = g.input("x", F32, [2, 64, _SIZE])
    y = g.op("Add", g.op("MatMul", x, g.weight(w, "w")), g.weight(_bias(np.random.default_rng(5)), "b"))
    swish = g.op("Add", g.op("Mul", y, g.op("Sigmoid", y)), x)
    g.output(g.op("LayerNormalization", swish, g.weight(np.ones(_SIZE, F32), "g")), "y", F32, [2, 64, _SIZE])
    compiled = tw.compile(g.model(), "cpu")
    x = np.random.default_rng(1).standard_normal((2, 64, _SIZE)).astype(F32)
    y = x @ w + _bias(np.random.default_rng(5))
    expected = y / (1 + np.exp(-y)) + x
    expected -= expected.mean(-1, keepdims=True)
    expected /= np.sqrt((expected**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(first(compiled(x)), expected, rtol=1e-3, atol=1e-4)
    names = {kernel.name.partition("_")[0] for kernel in compiled.kernels}
    assert names == {"sparse", "reduce"}, [kernel.name for kernel in compiled.kernels]


@pytest.mark.parametrize("gated", [0, 1])
def test_gates(gated: int) -> None:
    """A gate follows from two products: one of them computes it, the other what comes before it."""
    g, w = Graph("gates", 17), [weight("2:4"), -weight("2:4")]
    x = g.input("x", F32, [128, _SIZE])
    made = [g.op("MatMul", x, g.weight(one, f"w{number}")) for number, one in enumerate(w)]
    made[gated] = g.op("Tanh", made[gated])
    g.output(g.op("Mul", *made), "y", F32, [128, _SIZE])
    compiled = tw.compile(g.model(), "cpu:x86-64-v3")
    x, _ = given(128)
    expected = [x @ one for one in w]
    expected[gated] = np.tanh(expected[gated])
    np.testing.assert_allclose(first(compiled(x)), expected[0] * expected[1], rtol=1e-4, atol=1e-5)
    names = [kernel.name for kernel in compiled.kernels]
    assert all(name.startswith("sparse_") for name in names), names


def test_residuals_in_a_row() -> None:
    """What one product's tasks add to is read by the next product, and added to its result."""
    g, w = Graph("residuals", 17), weight("2:4")
    x = g.input("x", F32, [128, _SIZE])
    y = x
    for number in range(3):
        y = g.op("Add", g.op("Relu", g.op("MatMul", y, g.weight(w * (number + 1), f"w{number}"))), y)
    g.output(y, "y", F32, [128, _SIZE])
    compiled = tw.compile(g.model(), "cpu:x86-64-v3")
    x, _ = given(128)
    expected = x
    for number in range(3):
        expected = np.maximum(expected @ (w * (number + 1)), 0) + expected
    np.testing.assert_allclose(first(compiled(x)), expected, rtol=1e-3, atol=1e-4)
    names = [kernel.name for kernel in compiled.kernels]
    assert all(name.startswith("sparse_") for name in names), names


@pytest.mark.parametrize("batches", [1, 2])
def test_columns_of_batches(batches: int) -> None:
    """A column that each batch has of its own."""
    g, w, sizes = Graph("columns", 17), weight("2:4"), [batches, 128 // batches]
    x, column = g.input("x", F32, [*sizes, _SIZE]), g.input("column", F32, [*sizes, 1])
    g.output(g.op("Mul", g.op("MatMul", x, g.weight(w, "w")), column), "y", F32, [*sizes, _SIZE])
    compiled = tw.compile(g.model(), "cpu:x86-64-v3")
    x, column = (one.reshape(*sizes, -1) for one in given(128))
    np.testing.assert_allclose(first(compiled(x, column)), x @ w * column, rtol=1e-4, atol=1e-5)
    names = [kernel.name for kernel in compiled.kernels]
    assert all(name.startswith("sparse_") for name in names), names


NM24 = "nm<2 : 4, axis = 1>"
FORMS = {
    "gemv": (SparseProduct("gemv", "nm<2 : 4, axis = 0>", (96, 64), 2, False, ("f32", "f32")), "cpu:x86-64-v3"),
    "left": (SparseProduct("rows_in_lanes", NM24, (70, 96), 33, types=("f32", "f32"), init=True), "cpu"),
    "half": (SparseProduct("gpu_mma_sp", NM24, (70, 130), 33, init=True), "cuda:sm_80"),
    "half_90": (SparseProduct("gpu_mma_sp", NM24, (64, 128), 64), "cuda:sm_90a"),
    "blocks": (SparseProduct("gpu_blocks", "block<[32, 32]>", (96, 128), 80, left=False), "cuda:sm_80"),
    "shared": (SparseProduct("gpu_nm", "nm<8 : 32, axis = 1, unit = [32, 1]>", (64, 112), 48), "cuda:sm_80"),
    "own": (SparseProduct("gpu_nm", "nm<2 : 4, axis = 0>", (96, 70), 40, False, ("f32", "f32")), "cuda:sm_80"),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    """A maximum with zero of a sum with a row and a column, behind each family of kernels that there is."""
    case, target = FORMS[name]
    options = {"emulate": True} if target.startswith("cuda") else {}
    model = tw.compile(_with_sum(case), target=target, weights={"w": case.weight()}, **options)
    inputs = case.inputs()
    product = case.expected(inputs)
    row, column = (np.arange(size, dtype=F32) % 7 - 3 for size in product.shape[::-1])
    expected = np.maximum(product + row + column[:, None], 0)
    np.testing.assert_array_equal(first(model(*inputs, row, column)), expected)
    names = [kernel.name for kernel in model.kernels]
    assert any(one.startswith("sparse_") and one.endswith("_add") for one in names), names
    assert not any(one.startswith("map") for one in names), names


def _with_sum(case: SparseProduct) -> str:
    """The program of a product, and what follows it."""
    rows, columns = case.expected(case.inputs()).shape
    y, sizes = f"tensor<{rows}x{columns}xf32>", f", %row: tensor<{columns}xf32>, %column: tensor<{rows}xf32>)"
    head, _, tail = case.text().partition(") -> ")
    maps = ", ".join(f"affine_map<(i, j) -> ({read})>" for read in ("i, j", "j", "i", "i, j"))
    following = f"""
  %none = arith.constant 0.0 : f32
  %place = tensor.empty() : {y}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%y, %row, %column : {y}, tensor<{columns}xf32>, tensor<{rows}xf32>) outs(%place : {y}) {{
  ^bb0(%f: f32, %g: f32, %h: f32, %o: f32):
    %t = arith.addf %f, %g : f32
    %u = arith.addf %t, %h : f32
    %m = arith.maximumf %u, %none : f32
    linalg.yield %m : f32
  }} -> {y}
  return %r"""
    return f"{head}{sizes} -> {tail}".replace("\n  return %y", following)
