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


CONVOLUTIONS = [
    # op, input, filter, output, and the positions: (input, filter, output) of n, y, x, f, c, i, j
    ("conv_2d_nhwc_hwcf", (2, 7, 8, 3), (3, 2, 3, 4), "n y x c", "i j c f", "n y x f"),
    ("conv_2d_nchw_fchw", (2, 3, 7, 8), (4, 3, 3, 2), "n c y x", "f c i j", "n f y x"),
    ("depthwise_conv_2d_nhwc_hwc", (2, 7, 8, 3), (3, 2, 3), "n y x c", "i j c", "n y x c"),
]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=[case[0] for case in CONVOLUTIONS])
def test_convolutions(interpret, rng, case, stride, dilation):
    op, in_shape, filter_shape, *names = case
    in_names, filter_names, out_names = (name.split() for name in names)
    size = {**dict(zip(in_names, in_shape, strict=True)), **dict(zip(filter_names, filter_shape, strict=True))}
    for axis, tap in (("y", "i"), ("x", "j")):
        size[axis] = (size[axis] - (size[tap] - 1) * dilation - 1) // stride + 1
    shapes = [in_shape, filter_shape, tuple(size[n] for n in out_names)]
    x, w, o = integers(rng, *shapes)
    attributes = f"{{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}"
    (got,) = interpret(text_of(op, shapes, attributes), x, w, o)
    for point in itertools.product(*map(range, size.values())):
        at = dict(zip(size, point, strict=True))
        source = {**at, "y": at["y"] * stride + at["i"] * dilation, "x": at["x"] * stride + at["j"] * dilation}
        product = x[tuple(source[n] for n in in_names)] * w[tuple(at[n] for n in filter_names)]
        o[tuple(at[n] for n in out_names)] += product
    np.testing.assert_array_equal(got, o)


@pytest.mark.parametrize(("op", "function", "start"), [("max", max, -9), ("min", min, 9), ("sum", sum, 0)])
def test_pooling(interpret, rng, op, function, start):
    shapes = [(1, 6, 7, 2), (2, 3), (1, 3, 5, 2)]
    x, window, _ = integers(rng, *shapes)
    attributes = "{strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}"
    out = np.full(shapes[2], start, np.float32)
    (got,) = interpret(text_of(f"pooling_nhwc_{op}", shapes, attributes), x, window, out)
    for y, z, c in itertools.product(range(3), range(5), range(2)):
        values = x[0, 2 * y : 2 * y + 2, z : z + 3, c].ravel().tolist()
        assert got[0, y, z, c] == function([start, *values])


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
      %c = complex.constant [1.0 : f32, 2.0 : f32] : complex<f32> loc("here")
      return %o : tensor<4xf32> }"""
    with pytest.raises(InterpreterError, match=r"does not know the op 'complex.constant'(.|\n)*here"):
        interpret(text, 1, np.zeros(4, np.float32))
