# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named `linalg` ops against scalar loops over their definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.reference import InterpreterError


def text_of(op: str, shapes: list[tuple[int, ...]], attributes: str = "", element: str = "f32") -> str:
    """A function around one named op; the last shape is the output's."""
    types = ["tensor<" + "".join(f"{n}x" for n in shape) + f"{element}>" for shape in shapes]
    params = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    *ins, out = [f"%{i}" for i in range(len(types))]
    inputs = f"ins({', '.join(ins)} : {', '.join(types[:-1])})"
    return f"""func.func @main({params}) -> {types[-1]} {{
      %r = linalg.{op} {attributes} {inputs} outs({out} : {types[-1]}) -> {types[-1]}
      return %r : {types[-1]} }}"""


def integers(rng, *shapes):
    """Small whole numbers as f32, so that sums are exact in any order."""
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


MATMULS = [
    ("matmul", [(3, 5), (5, 4), (3, 4)], "mk kn mn"),
    ("batch_matmul", [(2, 3, 5), (2, 5, 4), (2, 3, 4)], "bmk bkn bmn"),
    ("matvec", [(3, 5), (5,), (3,)], "mk k m"),
    ("vecmat", [(5,), (5, 4), (4,)], "k kn n"),
    ("dot", [(5,), (5,), ()], "k k "),
    ("batch_matvec", [(2, 3, 5), (2, 5), (2, 3)], "bmk bk bm"),
    ("batch_reduce_matmul", [(2, 3, 5), (2, 5, 4), (3, 4)], "bmk bkn mn"),
    ("mmt4d", [(2, 3, 4, 2), (5, 3, 6, 2), (2, 5, 4, 6)], "MKmk NKnk MNmn"),
    ("batch_mmt4d", [(2, 2, 3, 4, 2), (2, 5, 3, 6, 2), (2, 2, 5, 4, 6)], "bMKmk bNKnk bMNmn"),
    ("batch_vecmat", [(2, 5), (2, 5, 4), (2, 4)], "bk bkn bn"),
]


def loops(names: list[str], arrays: list[np.ndarray]) -> np.ndarray:
    """out += a * b, one scalar at a time."""
    sizes = {n: s for name, array in zip(names, arrays, strict=True) for n, s in zip(name, array.shape, strict=True)}
    a, b, out = arrays[0], arrays[1], arrays[2].copy()
    for point in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, point, strict=True))
        i, j, k = (tuple(at[n] for n in name) for name in names)
        out[k] += a[i] * b[j]
    return out


@pytest.mark.parametrize(("op", "shapes", "formula"), MATMULS, ids=[case[0] for case in MATMULS])
def test_products(interpret, rng, op, shapes, formula):
    arrays = integers(rng, *shapes)
    (got,) = interpret(text_of(op, shapes), *arrays)
    np.testing.assert_array_equal(got, loops(formula.split(" "), arrays))


@pytest.mark.parametrize(
    ("op", "function", "count"),
    [
        ("add", np.add, 2),
        ("sub", np.subtract, 2),
        ("mul", np.multiply, 2),
        ("div", np.divide, 2),
        ("max", np.maximum, 2),
    ]
    + [
        ("exp", np.exp, 1),
        ("abs", np.abs, 1),
        ("negf", np.negative, 1),
        ("floor", np.floor, 1),
        ("square", np.square, 1),
        ("reciprocal", np.reciprocal, 1),
    ],
)
def test_elementwise(interpret, rng, op, function, count):
    arrays = [rng.random((3, 4), np.float32) + 1 for _ in range(count)]
    (got,) = interpret(text_of(op, [(3, 4)] * (count + 1)), *arrays, np.zeros((3, 4), np.float32))
    np.testing.assert_allclose(got, function(*arrays), rtol=1e-6)


def test_fill_transpose_broadcast_reduce_map_copy(interpret, rng):
    text = """func.func @main(%a: tensor<2x3xf32>, %v: f32) ->
        (tensor<4xf32>, tensor<3x2xf32>, tensor<2x5x3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %e1 = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e1 : tensor<3x2xf32>) permutation = [1, 0]
      %e2 = tensor.empty() : tensor<2x5x3xf32>
      %b = linalg.broadcast ins(%a : tensor<2x3xf32>) outs(%e2 : tensor<2x5x3xf32>) dimensions = [1]
      %e3 = tensor.empty() : tensor<3xf32>
      %z = linalg.fill ins(%v : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
      %r = linalg.reduce ins(%a : tensor<2x3xf32>) outs(%z : tensor<3xf32>) dimensions = [0]
        (%x: f32, %acc: f32) { %s = arith.addf %x, %acc : f32 linalg.yield %s : f32 }
      %e4 = tensor.empty() : tensor<2x3xf32>
      %c = linalg.copy ins(%a : tensor<2x3xf32>) outs(%e4 : tensor<2x3xf32>) -> tensor<2x3xf32>
      %m = linalg.map { math.exp } ins(%a : tensor<2x3xf32>) outs(%e4 : tensor<2x3xf32>)
      return %f, %t, %b, %r, %c, %m : tensor<4xf32>, tensor<3x2xf32>, tensor<2x5x3xf32>, tensor<3xf32>,
        tensor<2x3xf32>, tensor<2x3xf32> }"""
    a = rng.random((2, 3), np.float32)
    fill, transposed, broadcast, reduced, copied, mapped = interpret(text, a, 2.5)
    assert fill.tolist() == [2.5] * 4
    np.testing.assert_array_equal(transposed, a.T)
    np.testing.assert_array_equal(broadcast, np.stack([a] * 5, 1))
    np.testing.assert_allclose(reduced, 2.5 + a.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(copied, a)
    np.testing.assert_allclose(mapped, np.exp(a), rtol=1e-6)


def test_unknown_op_names_itself_and_its_place(interpret):
    text = """func.func @main(%s: i32, %o: tensor<4xf32>) -> tensor<4xf32> {
      %c = vector.broadcast %s : i32 to vector<4xi32> loc("here")
      return %o : tensor<4xf32> }"""
    with pytest.raises(InterpreterError, match=r"does not know the op 'vector.broadcast'(.|\n)*here"):
        interpret(text, 1, np.zeros(4, np.float32))


def test_contract_with_given_maps(interpret, rng):
    text = """func.func @main(%a: tensor<5x3xf32>, %b: tensor<4x5xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
        affine_map<(m, n, k) -> (n, m)>] ins(%a, %b : tensor<5x3xf32>, tensor<4x5xf32>) outs(%c : tensor<4x3xf32>)
        -> tensor<4x3xf32>
      return %r : tensor<4x3xf32> }"""
    a, b, c = integers(rng, (5, 3), (4, 5), (4, 3))
    np.testing.assert_array_equal(interpret(text, a, b, c)[0], c + b @ a)


@pytest.mark.parametrize("batch", [False, True])
def test_quantized_products_subtract_zero_points(interpret, rng, batch):
    lead = "2x" if batch else ""
    op = "quantized_batch_matmul" if batch else "quantized_matmul"
    a_type, b_type, c_type = (f"tensor<{lead}{t}>" for t in ("3x5xi8", "5x4xi8", "3x4xi32"))
    text = f"""func.func @main(%a: {a_type}, %b: {b_type}, %za: i32, %zb: i32, %c: {c_type}) -> {c_type} {{
      %r = linalg.{op} ins(%a, %b, %za, %zb : {a_type}, {b_type}, i32, i32) outs(%c : {c_type}) -> {c_type}
      return %r : {c_type} }}"""
    shapes = [(2, *shape) if batch else shape for shape in ((3, 5), (5, 4), (3, 4))]
    a, b, c = (rng.integers(-128, 128, shape) for shape in shapes)
    (got,) = interpret(text, a.astype(np.int8), b.astype(np.int8), 7, -3, c.astype(np.int32))
    np.testing.assert_array_equal(got, (a - 7) @ (b + 3) + c)


def test_unsigned_division(interpret):
    a, b = np.array([[-2, 7]], np.int32), np.array([[3, -1]], np.int32)
    (got,) = interpret(text_of("div_unsigned", [(1, 2)] * 3, element="i32"), a, b, np.zeros((1, 2), np.int32))
    assert got.tolist() == [[(2**32 - 2) // 3, 0]]
