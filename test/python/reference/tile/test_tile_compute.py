# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile` ops on register tiles against NumPy: each inside a kernel that loads, computes and stores."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "i1": np.bool_,
    "index": np.int64,
}


def shape_text(shape, element):
    """8x32xf32."""
    return "".join(f"{n}x" for n in shape) + element


@pytest.fixture
def compute(run_kernel):
    """Run ``body``, which makes %r of %a0, %a1, ..., on whole arrays as tiles."""

    def run(body: str, arrays: list, elements: list[str], shape: tuple, element: str):
        arrays = [np.asarray(a).astype(DTYPES[e]) for a, e in zip(arrays, elements, strict=True)]
        texts = [shape_text(np.shape(a), e) for a, e in zip(arrays, elements, strict=True)]
        out = shape_text(shape, element)
        params = ", ".join([*(f"%m{i}: memref<{t}>" for i, t in enumerate(texts)), f"%out: memref<{out}>"])
        zeros = [", ".join(["%c0"] * np.ndim(a)) for a in arrays]
        loads = "\n".join(
            f"%a{i} = tile.load %m{i}[{z}] : memref<{t}>, !tile.tile<{t}>"
            for i, (t, z) in enumerate(zip(texts, zeros, strict=True))
        )
        text = f"""tile.kernel @k({params}) {{
          %c0 = arith.constant 0 : index
          {loads}
          {body}
          tile.store %r, %out[{", ".join(["%c0"] * len(shape))}] : !tile.tile<{out}>, memref<{out}>
          tile.return
        }}"""
        result = np.zeros(shape, DTYPES[element])
        run_kernel(text, "k", [*arrays, result], [])
        return result

    return run


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (8, 32, 1), (3, 5, 7), (1, 13, 4)])
@pytest.mark.parametrize(
    ("element", "total"), [("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f16", "f16")]
)
def test_mma(compute, rng, m, n, k, element, total):
    a, b, c = (rng.integers(-4, 5, shape) for shape in ((m, k), (k, n), (m, n)))
    types = [f"!tile.tile<{shape_text(s, e)}>" for s, e in (((m, k), element), ((k, n), element), ((m, n), total))]
    got = compute(
        f"%r = tile.mma %a0, %a1, %a2 : {', '.join(types)}", [a, b, c], [element, element, total], (m, n), total
    )
    np.testing.assert_array_equal(got.astype(np.int64), a @ b + c)


def test_a_product_in_the_background(compute, rng):
    """What waits for it has its value."""
    a, b, c = (rng.integers(-4, 5, (8, 8)) for _ in range(3))
    kind = "!tile.tile<8x8xf32>"
    body = f"""%p = tile.mma %a0, %a1, %a2 {{tile.pending = 1 : i64}} : {kind}, {kind}, {kind}
      %r = tile.mma_wait %p : {kind}"""
    np.testing.assert_array_equal(compute(body, [a, b, c], ["f32"] * 3, (8, 8), "f32"), a @ b + c)


def test_sparse_mma(compute, rng):
    """Kept elements of row i of group g stand at meta; 1:3 and 2:4 patterns."""
    for kept, group in ((1, 3), (2, 4)):
        values, b = rng.integers(1, 5, (4, 2 * kept)), rng.integers(-4, 5, (2 * group, 5))
        meta = np.sort(np.argsort(rng.random((4, 2, group)), -1)[..., :kept], -1).reshape(4, 2 * kept)
        dense = np.zeros((4, 2 * group))
        for i, p in np.ndindex(values.shape):
            dense[i, p // kept * group + meta[i, p]] = values[i, p]
        shapes = [f"4x{2 * kept}xf32", f"{2 * group}x5xf32", "4x5xf32", f"4x{2 * kept}xi8"]
        types = ", ".join(f"!tile.tile<{shape}>" for shape in shapes)
        body = f"%r = tile.mma %a0, %a1, %a2 meta %a3 sparsity [{kept}, {group}] : {types}"
        got = compute(body, [values, b, np.ones((4, 5)), meta], ["f32", "f32", "f32", "i8"], (4, 5), "f32")
        np.testing.assert_array_equal(got, dense @ b + 1)


def test_packed_metadata(compute, rng):
    """Eight positions of two bits in an i16, the first in the lowest bits."""
    values, b = rng.integers(1, 5, (4, 16)), rng.integers(-4, 5, (32, 5))
    meta = np.sort(np.argsort(rng.random((4, 8, 4)), -1)[..., :2], -1).reshape(4, 16)
    dense = np.zeros((4, 32))
    np.put_along_axis(dense, np.arange(16) // 2 * 4 + meta, values, 1)
    words = (meta.reshape(4, 2, 8) << 2 * np.arange(8)).sum(-1).astype(np.uint16).view(np.int16)
    types = ", ".join(f"!tile.tile<{shape}>" for shape in ("4x16xf32", "32x5xf32", "4x5xf32", "4x2xi16"))
    body = f"%r = tile.mma %a0, %a1, %a2 meta %a3 sparsity [2, 4] : {types}"
    got = compute(body, [values, b, np.ones((4, 5)), words], ["f32", "f32", "f32", "i16"], (4, 5), "f32")
    np.testing.assert_array_equal(got, dense @ b + 1)


REDUCTIONS = {
    "add": (np.add, "f32"),
    "mul": (np.multiply, "f32"),
    "max": (np.maximum, "f32"),
    "min": (np.minimum, "f32"),
    "maxnum": (np.fmax, "f32"),
    "minnum": (np.fmin, "f32"),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
def test_reduce_floats(compute, rng, kind, dims):
    a = rng.standard_normal((3, 13)).astype(np.float32)
    a[1, 4] = np.nan
    shape = tuple(1 if d in dims else n for d, n in enumerate(a.shape))
    body = f"%r = tile.reduce {kind} %a0 dims {dims} : !tile.tile<3x13xf32> -> !tile.tile<{shape_text(shape, 'f32')}>"
    got = compute(body, [a], ["f32"], shape, "f32")
    np.testing.assert_allclose(got, REDUCTIONS[kind][0].reduce(a, axis=tuple(dims), keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("add", 100 + 100 + 100 - 256), ("mul", (100**3 + 128) % 256 - 128), ("max", 100), ("and", 100), ("xor", 100)],
)
def test_reduce_i8_wraps(compute, kind, expected):
    body = f"%r = tile.reduce {kind} %a0 dims [1] : !tile.tile<1x3xi8> -> !tile.tile<1x1xi8>"
    assert compute(body, [[[100, 100, 100]]], ["i8"], (1, 1), "i8") == expected


@pytest.mark.parametrize(("kind", "expected"), [("max", 3), ("umax", -1), ("min", -1), ("umin", 2), ("or", -1)])
def test_reduce_signed_and_unsigned(compute, kind, expected):
    body = f"%r = tile.reduce {kind} %a0 dims [1] : !tile.tile<1x3xi32> -> !tile.tile<1x1xi32>"
    assert compute(body, [[[2, -1, 3]]], ["i32"], (1, 1), "i32") == expected


@pytest.mark.parametrize(("kind", "expected"), [("or", True), ("and", False), ("xor", False), ("add", False)])
def test_reduce_i1(compute, kind, expected):
    body = f"%r = tile.reduce {kind} %a0 dims [1] : !tile.tile<1x3xi1> -> !tile.tile<1x1xi1>"
    assert compute(body, [[[True, False, True]]], ["i1"], (1, 1), "i1") == expected


def test_half_precision_sums_are_rounded_once(compute):
    a = np.ones((1, 4096), np.float16)
    body = "%r = tile.reduce add %a0 dims [1] : !tile.tile<1x4096xf16> -> !tile.tile<1x1xf16>"
    assert compute(body, [a], ["f16"], (1, 1), "f16") == 4096  # f16 alone would stop at 2048


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("flags", ["", "exclusive", "reverse", "exclusive reverse"])
@pytest.mark.parametrize(("kind", "neutral"), [("add", 0), ("max", -np.inf), ("mul", 1)])
def test_scan(compute, rng, dim, flags, kind, neutral):
    a = rng.integers(1, 4, (3, 5)).astype(np.float32)
    got = compute(f"%r = tile.scan {kind} %a0 dim {dim} {flags} : !tile.tile<3x5xf32>", [a], ["f32"], (3, 5), "f32")
    lines = np.moveaxis(a, dim, 1)
    expected = np.zeros_like(lines)
    function = {"add": np.sum, "max": np.max, "mul": np.prod}[kind]
    for row, p in np.ndindex(lines.shape):
        line = lines[row]
        own = 0 if "exclusive" in flags else 1
        part = line[p + 1 - own :] if "reverse" in flags else line[: p + own]
        expected[row, p] = function(np.append(part, neutral))
    np.testing.assert_array_equal(got, np.moveaxis(expected, 1, dim))


def test_shapes(compute, rng):
    a = rng.random((4, 6)).astype(np.float32)
    tile = "!tile.tile<4x6xf32>"
    transposed = compute(f"%r = tile.transpose %a0 [1, 0] : {tile} -> !tile.tile<6x4xf32>", [a], ["f32"], (6, 4), "f32")
    np.testing.assert_array_equal(transposed, a.T)
    reshaped = compute(f"%r = tile.reshape %a0 : {tile} -> !tile.tile<3x8xf32>", [a], ["f32"], (3, 8), "f32")
    np.testing.assert_array_equal(reshaped, a.reshape(3, 8))
    part = compute(f"%r = tile.extract %a0 [1, 2] : {tile} -> !tile.tile<2x3xf32>", [a], ["f32"], (2, 3), "f32")
    np.testing.assert_array_equal(part, a[1:3, 2:5])
    body = f"%r = tile.insert %a1 into %a0 [2, 3] : !tile.tile<2x3xf32> into {tile}"
    inserted = compute(body, [a, part], ["f32", "f32"], (4, 6), "f32")
    expected = a.copy()
    expected[2:4, 3:6] = part
    np.testing.assert_array_equal(inserted, expected)


@pytest.mark.parametrize(
    ("source", "target"), [((1, 5), (3, 5)), ((3, 1), (3, 5)), ((5,), (3, 5)), ((1, 1), (2, 3, 4))]
)
def test_broadcast(compute, rng, source, target):
    a = rng.random(source).astype(np.float32)
    types = f"!tile.tile<{shape_text(source, 'f32')}> -> !tile.tile<{shape_text(target, 'f32')}>"
    got = compute(f"%r = tile.broadcast %a0 : {types}", [a], ["f32"], target, "f32")
    np.testing.assert_array_equal(got, np.broadcast_to(a, target))


def test_splat_of_an_element_iota_and_select(compute, rng):
    a = rng.random((3, 4)).astype(np.float32)
    body = """%f = tile.extract %a0 [2, 1] : !tile.tile<3x4xf32> -> f32
      %s = tile.splat %f : f32 -> !tile.tile<3x4xf32>
      %i = tile.iota dim 1 : !tile.tile<3x4xi32>
      %two = arith.constant dense<2> : !tile.tile<3x4xi32>
      %c = arith.cmpi slt, %i, %two : !tile.tile<3x4xi32>
      %r = tile.select %c, %s, %a0 : !tile.tile<3x4xi1>, !tile.tile<3x4xf32>"""
    got = compute(body, [a], ["f32"], (3, 4), "f32")
    np.testing.assert_array_equal(got, np.where(np.arange(4) < 2, a[2, 1], a))


CONVERSIONS = [
    ("i8", "f32", "", [-1, 5], [-1, 5]),
    ("i8", "f32", "unsigned", [-1, 5], [255, 5]),
    ("i8", "i32", "", [-1, 5], [-1, 5]),
    ("i8", "i32", "unsigned", [-1, 5], [255, 5]),
    ("i32", "i8", "", [300, -129], [44, 127]),
    ("i1", "i32", "", [True, False], [1, 0]),
    ("i1", "f32", "", [True, False], [1, 0]),
    ("i32", "i1", "", [2, 0], [True, False]),
    ("f32", "i1", "", [0.5, 0], [True, False]),
    ("f32", "i32", "", [-1.9, 1.9], [-1, 1]),
    ("f32", "i8", "unsigned", [200.5, 1], [-56, 1]),
    ("f32", "f16", "", [1 + 2**-11, 1 + 3 * 2**-11], [1, 1 + 2**-9]),
    ("bf16", "f32", "", [1.5, -2], [1.5, -2]),
    ("index", "i32", "", [7, -1], [7, -1]),
    ("i32", "index", "unsigned", [7, -1], [7, 2**32 - 1]),
]


@pytest.mark.parametrize(("source", "target", "flag", "x", "expected"), CONVERSIONS)
def test_convert(compute, source, target, flag, x, expected):
    body = f"%r = tile.convert %a0 {flag} : !tile.tile<2x{source}> -> !tile.tile<2x{target}>"
    np.testing.assert_array_equal(compute(body, [x], [source], (2,), target).astype(np.float64), expected)


def test_arith_and_math_on_tiles(compute, rng):
    a, b = rng.random((3, 5)).astype(np.float32), rng.random((3, 5)).astype(np.float32)
    body = """%s = arith.addf %a0, %a1 : !tile.tile<3x5xf32>
      %r = math.exp %s : !tile.tile<3x5xf32>"""
    np.testing.assert_allclose(compute(body, [a, b], ["f32", "f32"], (3, 5), "f32"), np.exp(a + b), rtol=1e-6)
