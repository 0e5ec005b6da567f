# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of a mesh compute what the tensors say, wherever these lie."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import reference
from tilewright.core.dtypes import of_mlir
from tilewright.mlir import ir
from tilewright.reference import InterpreterError
from tilewright.sim.coremesh_ir import execute

assert "coremesh.program" in reference.HANDLERS, execute


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    with ir.Context():
        return reference.run(ir.Module.parse(text), "f", inputs)


def numbers(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


MOVES = """
#a = #coremesh.layout<grid(3, 2), [y, x]>
#b = #coremesh.layout<grid(3, 2), [x ring, y ring rotate 2]>
#c = #coremesh.layout<grid(3, 2), [x ring, y ring]>
#d = #coremesh.layout<grid(5, 1), [y uneven [1, 0, 3, 2, 1], *]>
func.func @f(%a: tensor<7x4x{t}>) -> tensor<7x4x{t}> {{
  %0 = coremesh.distribute %a : tensor<7x4x{t}> to tensor<7x4x{t}, #a>
  %1 = coremesh.relayout %0 : tensor<7x4x{t}, #a> to tensor<7x4x{t}, #b>
  %2 = coremesh.shift %1 along y by -2 : tensor<7x4x{t}, #b> to tensor<7x4x{t}, #c>
  %3 = coremesh.reshape_grid %2 : tensor<7x4x{t}, #c> to tensor<7x4x{t}, #d>
  %4 = coremesh.assemble %3 : tensor<7x4x{t}, #d> to tensor<7x4x{t}>
  return %4 : tensor<7x4x{t}>
}}
"""


@pytest.mark.parametrize("t", ["f32", "bf16", "f8E5M2", "i8", "i64"])
def test_what_moves_stays_what_it_is(t):
    a = numbers((7, 4), of_mlir(t))
    np.testing.assert_array_equal(run(MOVES.format(t=t), a)[0], a)


HALO = """
#a = #coremesh.layout<grid(3, 2), [*, y ring]>
func.func @f(%a: tensor<2x7x{t}, #a>) -> tensor<2x12x{t}, #a> {{
  %0 = coremesh.halo %a dim 1 from -1 step 3 of 4 fill {fill} : {t} : tensor<2x7x{t}, #a> to tensor<2x12x{t}, #a>
  return %0 : tensor<2x12x{t}, #a>
}}
"""


@pytest.mark.parametrize(("t", "fill"), [("f32", "5.0"), ("bf16", "-2.0"), ("i8", "3"), ("f16", "0.0")])
def test_borders(t, fill):
    """Parts overlap, one every three elements; outside of the tensor is what is filled in."""
    a = numbers((2, 7), of_mlir(t))
    outside = np.full((2, 1), float(fill)).astype(a.dtype)
    wanted = np.concatenate([outside, a[:, :3], a[:, 2:6], a[:, 5:], outside, outside], axis=1)
    np.testing.assert_array_equal(run(HALO.format(t=t, fill=fill), a)[0], wanted)


REDUCE = """
#parts = #coremesh.layout<grid(3, 5), [y, x]>
#root = #coremesh.layout<grid(3, 5), [y], at x = 2>
#all = #coremesh.layout<grid(3, 5), [y]>
#columns = #coremesh.layout<grid(3, 5), [x]>
func.func @f(%a: tensor<7x11x{t}, #parts>) -> (tensor<7x{t}, #all>, tensor<11x{t}, #columns>) {{
  %0 = coremesh.reduce {how} %a dim 1 by two_phase : tensor<7x11x{t}, #parts> to tensor<7x{t}, #root>
  %1 = coremesh.multicast %0 along x : tensor<7x{t}, #root> to tensor<7x{t}, #all>
  %2 = coremesh.allreduce {how} %a dim 0 by ring : tensor<7x11x{t}, #parts> to tensor<11x{t}, #columns>
  return %1, %2 : tensor<7x{t}, #all>, tensor<11x{t}, #columns>
}}
"""


@pytest.mark.parametrize("t", ["f32", "f16", "bf16", "i32"])
@pytest.mark.parametrize(("how", "function"), [("add", np.sum), ("max", np.max)])
def test_reductions(t, how, function):
    a = numbers((7, 11), of_mlir(t))
    rows, columns = run(REDUCE.format(t=t, how=how), a)
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(rows, function(wide, 1).astype(a.dtype))
    np.testing.assert_array_equal(columns, function(wide, 0).astype(a.dtype))


PRODUCT = """
#t = #coremesh.layout<grid({h}, {w}), [y{ring}, x{ring}]>
func.func @f(%a: tensor<{m}x{k}x{t}, #t>, %b: tensor<{b}x{t}, #t>) -> tensor<{m}x{n}x{o}, #t> {{
  %0 = coremesh.{op} : tensor<{m}x{k}x{t}, #t>, tensor<{b}x{t}, #t> to tensor<{m}x{n}x{o}, #t>
  return %0 : tensor<{m}x{n}x{o}, #t>
}}
"""
TYPES = [("f32", "f32"), ("f16", "f16"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("i8", "i8"), ("f64", "f64")]


@pytest.mark.parametrize(("t", "o"), TYPES)
@pytest.mark.parametrize("op", ["meshgemm", "cannon", "summa", "allgather", "gemm_t"])
@pytest.mark.parametrize(("h", "w", "m", "k", "n"), [(1, 1, 1, 1, 1), (3, 3, 7, 11, 5), (2, 5, 1, 13, 4)])
def test_products(h, w, m, k, n, op, t, o):
    is_transposed = op == "gemm_t"
    ring = " ring" if op in ("meshgemm", "gemm_t") else ""
    text = "gemm_t %a, %b" if is_transposed else f"gemm %a, %b by {op}"
    shape = (n, k) if is_transposed else (k, n)
    a, b = numbers((m, k), of_mlir(t)), numbers(shape, of_mlir(t), 1)
    source = PRODUCT.format(h=h, w=w, m=m, k=k, n=n, t=t, o=o, ring=ring, op=text, b=f"{shape[0]}x{shape[1]}")
    (out,) = run(source, a, b)
    exact = a.astype(np.float64) @ (b.T if is_transposed else b).astype(np.float64)
    assert out.dtype == of_mlir(o)
    if o[0] == "i":
        exact = exact.astype(np.int64)  # wraps
    np.testing.assert_array_equal(out, exact.astype(of_mlir(o)))


BLOCKS = """
#t = #coremesh.layout<grid(2, 2), [y ring, x ring]>
#w = #coremesh.layout<grid(2, 2), [y ring{skew}, x ring]>
#s = #coremesh.layout<grid(2, 2), [x ring]>
func.func @f(%a: tensor<3x4xf32, #t>, %w: tensor<4x6xi8, #w>, %s: tensor<6xf32, #s>) -> tensor<3x6xf32, #t> {{
  %0 = coremesh.block_gemm (%x = %a, %c = %w, %g = %s) sums %t
      : (tensor<3x4xf32, #t>, tensor<4x6xi8, #w>, tensor<6xf32, #s>) -> tensor<3x6xf32, #t> {{
    %e = tensor.empty() : tensor<2x3xf32>
    %d = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        ins(%c, %g : tensor<2x3xi8>, tensor<3xf32>) outs(%e : tensor<2x3xf32>) {{
    ^bb0(%code: i8, %scale: f32, %out: f32):
      %v = arith.sitofp %code : i8 to f32
      %p = arith.mulf %v, %scale : f32
      linalg.yield %p : f32
    }} -> tensor<2x3xf32>
    %m = linalg.matmul ins(%x, %d : tensor<2x2xf32>, tensor<2x3xf32>) outs(%t : tensor<2x3xf32>) -> tensor<2x3xf32>
    coremesh.yield %m : tensor<2x3xf32>
  }}
  return %0 : tensor<3x6xf32, #t>
}}
"""


@pytest.mark.parametrize("skew", ["", " skew"])
def test_products_of_blocks(skew):
    """`block_gemm`: blocks of codes meet blocks of rows, wherever the layout has them begin."""
    a, w, s = numbers((3, 4), np.dtype("f4")), numbers((4, 6), np.dtype("i1"), 1), numbers((6,), np.dtype("f4"), 2)
    (out,) = run(BLOCKS.format(skew=skew), a, w, s)
    np.testing.assert_array_equal(out, a @ (w * s))


GEMV = """
#x = #coremesh.layout<grid(3, 4), [{k}]>
#a = #coremesh.layout<grid(3, 4), [{k}, {n}]>
#y = #coremesh.layout<grid(3, 4), [{n}]>
func.func @f(%v: tensor<11xbf16, #x>, %w: tensor<11x7xbf16, #a>) -> tensor<7xf32, #y> {{
  %0 = coremesh.gemv %v, %w by k_tree : tensor<11xbf16, #x>, tensor<11x7xbf16, #a> to tensor<7xf32, #y>
  return %0 : tensor<7xf32, #y>
}}
"""


@pytest.mark.parametrize(("k", "n"), ["yx", "xy"])
def test_vectors(k, n):
    v, w = numbers((11,), np.dtype(ml_dtypes.bfloat16)), numbers((11, 7), np.dtype(ml_dtypes.bfloat16), 1)
    (out,) = run(GEMV.format(k=k, n=n), v, w)
    np.testing.assert_array_equal(out, v.astype(np.float32) @ w.astype(np.float32))


def test_several_vectors():
    v, w = numbers((3, 11), np.dtype("f4")), numbers((11, 7), np.dtype("f4"), 1)
    text = GEMV.format(k="y", n="x").replace("[y]>", "[*, y]>").replace("[x]>", "[*, x]>").replace("bf16", "f32")
    (out,) = run(text.replace("tensor<11xf32", "tensor<3x11xf32").replace("tensor<7xf32", "tensor<3x7xf32"), v, w)
    np.testing.assert_array_equal(out, v @ w)


CACHE = """
#c = #coremesh.layout<grid(3, 2), [y{deal}, x]>
#r = #coremesh.layout<grid(3, 2), [x]>
func.func @f(%c: tensor<7x5xf16, #c>, %r: tensor<5xf16, #r>, %n: index) -> tensor<7x5xf16, #c> {{
  %0 = coremesh.kv_append %r to %c[%n] by {policy} : tensor<5xf16, #r>, tensor<7x5xf16, #c>
  return %0 : tensor<7x5xf16, #c>
}}
"""
POLICIES = [("", "concat"), (" uneven [1, 1, 5]", "concat"), (" balanced", "shift"), (" cyclic", "round_robin")]


@pytest.mark.parametrize(("deal", "policy"), POLICIES)
def test_all_policies_give_one_cache(deal, policy):
    text = CACHE.format(deal=deal, policy=policy)
    cache, rows = np.zeros((7, 5), np.float16), numbers((7, 5), np.dtype(np.float16))
    for number, row in enumerate(rows):
        before = cache
        (cache,) = run(text, cache, row, np.int64(number))
        assert not before[number].any()
    np.testing.assert_array_equal(cache, rows)
    for full in (7, -1):
        with pytest.raises(InterpreterError, match=f"a cache of 7 tokens that holds {full} cannot take another"):
            run(text, cache, rows[0], np.int64(full))


LOCAL = """
#t = #coremesh.layout<grid(3, 2), [y ring, x]>
#r = #coremesh.layout<grid(3, 2), [y ring]>
#o = #coremesh.layout<grid(3, 2), [{out}]>
func.func @f(%a: tensor<7x5xf32, #t>, %s: tensor<7xf32, #r>) -> (tensor<7x5xf32, #t>, tensor<7x2xf32, #o>) {{
  %0:2 = coremesh.local (%x = %a, %y = %s)
      : (tensor<7x5xf32, #t>, tensor<7xf32, #r>) -> (tensor<7x5xf32, #t>, tensor<7x2xf32, #o>) {{
    %e = tensor.empty() : tensor<3x3xf32>
    %b = linalg.broadcast ins(%y : tensor<3xf32>) outs(%e : tensor<3x3xf32>) dimensions = [1]
    %p = arith.mulf %x, %b : tensor<3x3xf32>
    %z = arith.constant dense<0.0> : tensor<3xf32>
    %q = linalg.reduce {{ arith.addf }} ins(%p : tensor<3x3xf32>) outs(%z : tensor<3xf32>) dimensions = [1]
    %r = tensor.expand_shape %q [[0, 1]] output_shape [3, 1] : tensor<3xf32> into tensor<3x1xf32>
    {widen}
    coremesh.yield %p, %w : tensor<3x3xf32>, tensor<3x{columns}xf32>
  }}
  return %0#0, %0#1 : tensor<7x5xf32, #t>, tensor<7x2xf32, #o>
}}
"""
ONE = "%w = tensor.cast %r : tensor<3x1xf32> to tensor<3x1xf32>"
TWO = "%w = tensor.concat dim(1) %r, %r : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>"


def test_what_cores_compute_alone():
    """Rows scaled, and partial sums of rows: a column of them per column of cores."""
    a, s = numbers((7, 5), np.dtype(np.float32)), numbers((7,), np.dtype(np.float32), 1)
    scaled, parts = run(LOCAL.format(out="y ring, x", widen=ONE, columns=1), a, s)
    np.testing.assert_array_equal(scaled, a * s[:, None])
    np.testing.assert_array_equal(parts, np.stack([scaled[:, :3].sum(1), scaled[:, 3:].sum(1)], 1))


def test_copies_that_differ():
    a, s = numbers((7, 5), np.dtype(np.float32)), numbers((7,), np.dtype(np.float32), 1)
    with pytest.raises(InterpreterError, match="coremesh.local: core .* has another copy of a tensor"):
        run(LOCAL.format(out="y ring, *", widen=TWO, columns=2), a, s)


PROGRAM = """
func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %r = coremesh.program "around" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
    coremesh.buffer @A : tensor<2x3xf32> slots 2
    coremesh.route @left along x from (p + 1) mod 3
    coremesh.place %in in @A block(y, x) : tensor<4x9xf32>
    coremesh.loop COUNT {
      %s = coremesh.send @A[i mod 2] on @left
      %t = coremesh.recv @A[(i + 1) mod 2] from @left
      coremesh.wait round %s, %t
    }
    %out = coremesh.collect @A[1] block(y, x) : tensor<4x9xf32>
    coremesh.yield %out : tensor<4x9xf32>
  }
  return %r : tensor<4x9xf32>
}
"""


@pytest.mark.parametrize("count", [1, 3, 5])
def test_programs(count):
    a = numbers((4, 9), np.dtype(np.float32))
    (out,) = run(PROGRAM.replace("COUNT", str(count)), a)
    np.testing.assert_array_equal(out, np.roll(a, -3 * count, 1))


def test_a_program_that_breaks_a_rule():
    broken = PROGRAM.replace("COUNT", "1").replace("recv @A[(i + 1) mod 2] from @left", "recv @A[i] from @left")
    with pytest.raises(InterpreterError, match="coremesh.program around: "):
        run(broken, np.zeros((4, 9), np.float32))
