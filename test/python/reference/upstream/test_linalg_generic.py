# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`linalg.generic` against plain NumPy: maps of every kind, reductions, products, gathers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError


def generic(maps: str, iterators: str, types: list[str], out: str, body: str, element="f32", prologue="") -> str:
    """A function around one generic whose output starts from argument ``%o``."""
    params = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types)) + (", " if types else "") + f"%o: {out}"
    ins = f"ins({', '.join(f'%a{i}' for i in range(len(types)))} : {', '.join(types)})" if types else ""
    kinds = ", ".join(f'"{ {"p": "parallel", "r": "reduction"}[k] }"' for k in iterators)
    elements = [t.rstrip(">").split("x")[-1] if "x" in t else t for t in types]
    arguments = ", ".join(f"%i{i}: {e}" for i, e in enumerate(elements)) + (", " if types else "") + f"%acc: {element}"
    return f"""func.func @main({params}) -> {out} {{
      {prologue}
      %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins} outs(%o : {out}) {{
      ^bb0({arguments}):
        {body}
      }} -> {out}
      return %r : {out} }}"""


ADD = "%s = arith.addf %i0, %i1 : f32 linalg.yield %s : f32"
COPY = "linalg.yield %i0 : f32"
SUM = "%s = arith.addf %acc, %i0 : f32 linalg.yield %s : f32"
MAC = "%p = arith.mulf %i0, %i1 : f32 %s = arith.addf %acc, %p : f32 linalg.yield %s : f32"


def test_broadcast_and_transpose(interpret, rng):
    a, b = rng.random((3, 1), np.float32), rng.random((4, 3), np.float32)
    maps = "affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>"
    text = generic(maps, "pp", ["tensor<3x1xf32>", "tensor<4x3xf32>"], "tensor<3x4xf32>", ADD)
    (got,) = interpret(text, a, b, np.zeros((3, 4), np.float32))
    np.testing.assert_array_equal(got, a + b.T)


def test_transposed_output(interpret, rng):
    a = rng.random((3, 4), np.float32)
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>"
    text = generic(maps, "pp", ["tensor<3x4xf32>"], "tensor<4x3xf32>", COPY)
    np.testing.assert_array_equal(interpret(text, a, np.zeros((4, 3), np.float32))[0], a.T)


PACK = "affine_map<(p, k, n) -> (k, p * 4 + n)>"
UNPACK = "affine_map<(k, j) -> (j floordiv 4, k, j mod 4)>"


def test_packing_with_products_of_loops(interpret, rng):
    a = rng.random((5, 12), np.float32)
    maps = f"{PACK}, affine_map<(p, k, n) -> (p, k, n)>"
    text = generic(maps, "ppp", ["tensor<5x12xf32>"], "tensor<3x5x4xf32>", COPY)
    (got,) = interpret(text, a, np.zeros((3, 5, 4), np.float32))
    np.testing.assert_array_equal(got, a.reshape(5, 3, 4).transpose(1, 0, 2))


@pytest.mark.parametrize("columns", [12, 10])
def test_unpacking_with_floordiv_and_mod(interpret, rng, columns):
    """12 columns divide into panels of 4; 10 do not, and go through index arrays."""
    packed = rng.random((3, 5, 4), np.float32)
    maps = f"{UNPACK}, affine_map<(k, j) -> (k, j)>"
    text = generic(maps, "pp", ["tensor<3x5x4xf32>"], f"tensor<5x{columns}xf32>", COPY)
    (got,) = interpret(text, packed, np.zeros((5, columns), np.float32))
    np.testing.assert_array_equal(got, packed.transpose(1, 0, 2).reshape(5, 12)[:, :columns])


def test_only_one_half_of_a_split_loop_is_used(interpret, rng):
    a = rng.random(3, np.float32)
    maps = "affine_map<(i) -> (i floordiv 4)>, affine_map<(i) -> (i)>"
    text = generic(maps, "p", ["tensor<3xf32>"], "tensor<12xf32>", COPY)
    np.testing.assert_array_equal(interpret(text, a, np.zeros(12, np.float32))[0], np.repeat(a, 4))


def test_scatter_through_the_output_map(interpret, rng):
    a = rng.random((5, 12), np.float32)
    maps = f"affine_map<(k, j) -> (k, j)>, {UNPACK}"
    text = generic(maps, "pp", ["tensor<5x12xf32>"], "tensor<3x5x4xf32>", COPY)
    (got,) = interpret(text, a, np.zeros((3, 5, 4), np.float32))
    np.testing.assert_array_equal(got, a.reshape(5, 3, 4).transpose(1, 0, 2))


def test_shifted_map(interpret):
    maps = "affine_map<(i) -> (i + 1)>, affine_map<(i) -> (i)>"
    text = generic(maps, "p", ["tensor<5xf32>"], "tensor<4xf32>", COPY)
    np.testing.assert_array_equal(
        interpret(text, np.arange(5, dtype=np.float32), np.zeros(4, np.float32))[0], [1, 2, 3, 4]
    )


REDUCE = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>"


@pytest.mark.parametrize(
    ("op", "function"),
    [("addf", np.add), ("mulf", np.multiply), ("maximumf", np.maximum), ("minimumf", np.minimum), ("maxnumf", np.fmax)],
)
def test_reductions_start_from_the_output(interpret, rng, op, function):
    a, o = rng.standard_normal((3, 7)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    a[1, 2] = np.nan
    body = f"%s = arith.{op} %i0, %acc : f32 linalg.yield %s : f32"
    (got,) = interpret(generic(REDUCE, "pr", ["tensor<3x7xf32>"], "tensor<3xf32>", body), a, o)
    np.testing.assert_allclose(got, function(o, function.reduce(a, axis=1)), rtol=1e-6)


@pytest.mark.parametrize("op", ["addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"])
@pytest.mark.parametrize("type_", ["i8", "i1"])
def test_integer_reductions_one_by_one(interpret, rng, op, type_):
    """The same as folding with the scalar op: no widening, true is -1."""
    dtype = np.int8 if type_ == "i8" else np.bool_
    a = rng.integers(-100, 100, (2, 5)).astype(np.int8)
    a = (a & 1).astype(bool) if type_ == "i1" else a
    o = np.array([1, 0]).astype(dtype)
    body = f"%s = arith.{op} %acc, %i0 : {type_} linalg.yield %s : {type_}"
    types = [f"tensor<2x5x{type_}>"]
    (got,) = interpret(generic(REDUCE, "pr", types, f"tensor<2x{type_}>", body, type_), a, o)
    fold = f"""func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{
      %r = arith.{op} %a, %b : {type_}
      return %r : {type_} }}"""
    for row in range(2):
        value = o[row]
        for column in range(5):
            value = interpret(fold, value, a[row, column])[0]
        assert got[row] == value


def test_empty_reduction_gives_the_output(interpret):
    text = generic(REDUCE, "pr", ["tensor<3x0xf32>"], "tensor<3xf32>", SUM)
    assert interpret(text, np.zeros((3, 0), np.float32), np.float32([1, 2, 3]))[0].tolist() == [1, 2, 3]
    text = generic(REDUCE, "pr", ["tensor<0x3xf32>"], "tensor<0xf32>", SUM)
    assert interpret(text, np.zeros((0, 3), np.float32), np.zeros(0, np.float32))[0].shape == (0,)


def test_arg_max_runs_point_by_point(interpret, rng):
    a = rng.standard_normal((4, 6)).astype(np.float32)
    text = """func.func @main(%a: tensor<4x6xf32>, %m: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xi32> {
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<4x6xf32>) outs(%m, %k : tensor<4xf32>, tensor<4xi32>) {
      ^bb0(%x: f32, %best: f32, %at: i32):
        %j = linalg.index 1 : index
        %ji = arith.index_cast %j : index to i32
        %more = arith.cmpf ogt, %x, %best : f32
        %b = arith.select %more, %x, %best : f32
        %n = arith.select %more, %ji, %at : i32
        linalg.yield %b, %n : f32, i32
      } -> (tensor<4xf32>, tensor<4xi32>)
      return %r#1 : tensor<4xi32> }"""
    (got,) = interpret(text, a, np.full(4, -np.inf, np.float32), np.zeros(4, np.int32))
    assert got.tolist() == a.argmax(1).tolist()


def test_gather_with_linalg_index(interpret, rng):
    table, ids = rng.random((9, 4), np.float32), np.int64([[3, 0], [8, 3]])
    text = """func.func @main(%t: tensor<9x4xf32>, %ids: tensor<2x2xi64>, %o: tensor<2x2x4xf32>) -> tensor<2x2x4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(b, s, d) -> (b, s)>, affine_map<(b, s, d) -> (b, s, d)>],
          iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%ids : tensor<2x2xi64>) outs(%o : tensor<2x2x4xf32>) {
      ^bb0(%id: i64, %acc: f32):
        %row = arith.index_cast %id : i64 to index
        %d = linalg.index 2 : index
        %v = tensor.extract %t[%row, %d] : tensor<9x4xf32>
        linalg.yield %v : f32
      } -> tensor<2x2x4xf32>
      return %r : tensor<2x2x4xf32> }"""
    zero = np.zeros((2, 2, 4), np.float32)
    np.testing.assert_array_equal(interpret(text, table, ids, zero)[0], table[ids])
    with pytest.raises(InterpreterError, match="outside dimension 0 of size 9"):
        interpret(text, table, ids + 1, zero)


CONTRACTIONS = [
    ("mk,kn->mn", {"m": 5, "n": 7, "k": 6}),
    ("km,nk->nm", {"m": 5, "n": 7, "k": 6}),
    ("bhmk,bhnk->bhmn", {"b": 2, "h": 3, "m": 4, "n": 5, "k": 6}),
    ("bmhk,bnhk->bhmn", {"b": 2, "h": 3, "m": 4, "n": 5, "k": 6}),
    ("k,k->", {"k": 9}),
    ("mk,k->m", {"m": 4, "k": 9}),
    ("mkl,nlk->mn", {"m": 4, "n": 3, "k": 5, "l": 2}),
    ("mk,n->mn", {"m": 4, "n": 3, "k": 5}),
    ("mk,kn->mn", {"m": 1, "n": 1, "k": 1}),
    ("mk,kn->mn", {"m": 3, "n": 0, "k": 4}),
    ("mk,kn->mn", {"m": 3, "n": 2, "k": 0}),
]


@pytest.mark.parametrize(("formula", "sizes"), CONTRACTIONS)
def test_contractions(interpret, rng, formula, sizes):
    inputs, output = formula.split("->")
    left, right = inputs.split(",")
    loops = sorted(sizes, key=lambda name: (name not in output, name))
    shapes = [[sizes[name] for name in names] for names in (left, right, output)]
    arrays = [np.asarray(rng.standard_normal(shape), np.float32) for shape in shapes]
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(names)})>" for names in (left, right, output))
    types = ["tensor<" + "".join(f"{n}x" for n in shape) + "f32>" for shape in shapes]
    kinds = "".join("p" if name in output else "r" for name in loops)
    (got,) = interpret(generic(maps, kinds, types[:2], types[2], MAC), *arrays)
    expected = arrays[2] + np.einsum(formula, *(a.astype(np.float64) for a in arrays[:2]))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_half_precision_product_is_summed_in_the_output_type(interpret, rng):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((4, 64), (64, 3)))
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>"
    body = """%x = arith.extf %i0 : f16 to f32 %y = arith.extf %i1 : f16 to f32
              %p = arith.mulf %x, %y : f32 %s = arith.addf %acc, %p : f32 linalg.yield %s : f32"""
    text = generic(maps, "ppr", ["tensor<4x64xf16>", "tensor<64x3xf16>"], "tensor<4x3xf32>", body)
    (got,) = interpret(text, a, b, np.zeros((4, 3), np.float32))
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_convolution_windows(interpret, rng, stride, dilation):
    size, taps, channels, filters = 13, 3, 4, 5
    out = (size - (taps - 1) * dilation - 1) // stride + 1
    x, w = rng.standard_normal((2, size, channels)), rng.standard_normal((taps, channels, filters))
    maps = f"""affine_map<(n, o, f, t, c) -> (n, o * {stride} + t * {dilation}, c)>,
               affine_map<(n, o, f, t, c) -> (t, c, f)>, affine_map<(n, o, f, t, c) -> (n, o, f)>"""
    types = [f"tensor<2x{size}x{channels}xf32>", f"tensor<{taps}x{channels}x{filters}xf32>"]
    text = generic(maps, "ppprr", types, f"tensor<2x{out}x{filters}xf32>", MAC)
    zero = np.zeros((2, out, filters), np.float32)
    (got,) = interpret(text, x.astype(np.float32), w.astype(np.float32), zero)
    rows = [np.einsum("ntc,tcf->nf", x[:, o * stride : o * stride + taps * dilation : dilation], w) for o in range(out)]
    np.testing.assert_allclose(got, np.stack(rows, 1), rtol=1e-4, atol=1e-4)


def test_memref_form_writes_in_place(interpret, rng):
    a, o = rng.random((2, 3), np.float32), np.zeros((2, 3), np.float32)
    text = """func.func @main(%a: memref<2x3xf32>, %o: memref<2x3xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%a : memref<2x3xf32>) outs(%o : memref<2x3xf32>) {
      ^bb0(%x: f32, %y: f32):
        %n = arith.negf %x : f32
        linalg.yield %n : f32
      }
      return }"""
    interpret(text, a, o)
    np.testing.assert_array_equal(o, -a)


def test_operands_of_different_sizes_are_reported(interpret):
    maps = "affine_map<(i) -> (i)>, affine_map<(i) -> (i)>"
    text = generic(maps, "p", ["tensor<?xf32>"], "tensor<?xf32>", COPY)
    with pytest.raises(InterpreterError, match="loop 0 has sizes 3 and 4"):
        interpret(text, np.zeros(3, np.float32), np.zeros(4, np.float32))
