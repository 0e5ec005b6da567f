# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of lengths hold for whatever a run brings, and there are none where nothing bounds a vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir
from tilewright.plan.sparse.padding.norms import Norms, largest_norm

RNG = np.random.default_rng(3)
TOKENS, WIDTH, HEADS, SIZE = 5, 24, 2, 8

#: A normalization, two products with weights, in heads, and scores.
TEXT = """
#x = affine_map<(s, k) -> (s, k)>
#r = affine_map<(s, k) -> (s)>
#v = affine_map<(s, k) -> (k)>
#one = affine_map<(s) -> (s)>
#a = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
#q = affine_map<(h, s, t, d) -> (s, h, d)>
#k = affine_map<(h, s, t, d) -> (t, h, d)>
#s = affine_map<(h, s, t, d) -> (h, s, t)>
func.func @main(%x: tensor<5x24xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 24.0 : f32
  %small = arith.constant EPS : f32
  %scale = arith.constant SCALE : f32
  %gamma = arith.constant dense<"GAMMA"> : tensor<24xf32>
  %beta = arith.constant dense<"BETA"> : tensor<24xf32>
  %wq = arith.constant dense<"QUERY"> : tensor<24x16xf32>
  %wk = arith.constant dense<"KEY"> : tensor<24x16xf32>
  %e = tensor.empty() : tensor<5x24xf32>
  %g = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]}
      ins(SQUARED : tensor<5x24xf32>) outs(%f : tensor<5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.mulf %p, %p : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %root = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%sum : tensor<5xf32>) outs(%g : tensor<5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.divf %p, %size : f32
    %t = arith.addf %m, %small : f32
    %s = arith.mulf %t, %scale : f32
    %u = math.ROOT %s : f32
    linalg.yield %u : f32
  } -> tensor<5xf32>
  %unit = linalg.generic {indexing_maps = [#x, #r, #x], iterator_types = ["parallel", "parallel"]}
      ins(%x, %root : tensor<5x24xf32>, tensor<5xf32>) outs(%e : tensor<5x24xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.OVER %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<5x24xf32>
  %n = linalg.generic {indexing_maps = [#x, #v, #v, #x], iterator_types = ["parallel", "parallel"]}
      ins(%unit, %gamma, %beta : tensor<5x24xf32>, tensor<24xf32>, tensor<24xf32>) outs(%e : tensor<5x24xf32>) {
  ^bb0(%p: f32, %q: f32, %b: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %m, %b : f32
    linalg.yield %t : f32
  } -> tensor<5x24xf32>
  %h = tensor.empty() : tensor<5x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%h : tensor<5x16xf32>) -> tensor<5x16xf32>
  %one = linalg.generic {indexing_maps = [#a, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %wq : tensor<5x24xf32>, tensor<24x16xf32>) outs(%i : tensor<5x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<5x16xf32>
  %two = linalg.generic {indexing_maps = [#a, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %wk : tensor<5x24xf32>, tensor<24x16xf32>) outs(%i : tensor<5x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<5x16xf32>
  %qs = tensor.expand_shape %one [[0], [1, 2]] output_shape [5, 2, 8] : tensor<5x16xf32> into tensor<5x2x8xf32>
  %ks = tensor.expand_shape %two [[0], [1, 2]] output_shape [5, 2, 8] : tensor<5x16xf32> into tensor<5x2x8xf32>
  %j = tensor.empty() : tensor<2x5x5xf32>
  %l = linalg.fill ins(%zero : f32) outs(%j : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #s],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%qs, %ks : tensor<5x2x8xf32>, tensor<5x2x8xf32>) outs(%l : tensor<2x5x5xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  return %scores : tensor<2x5x5xf32>
}
"""


def written(**given: str) -> str:
    """The text with drawn weights, and with what is given in the place of words."""
    shapes = dict(GAMMA=(WIDTH,), BETA=(WIDTH,), QUERY=(WIDTH, HEADS * SIZE), KEY=(WIDTH, HEADS * SIZE))
    words = dict(EPS="1.0e-12", SCALE="1.0", SQUARED="%x", ROOT="sqrt", OVER="divf")
    words |= {name: "0x" + RNG.standard_normal(shape, np.float32).tobytes().hex() for name, shape in shapes.items()}
    text = TEXT
    for name, word in (words | given).items():
        text = text.replace(name, word)
    return text


#: The root in the body that divides, as an operator of its own is written.
BODY = """  %unit = linalg.generic {indexing_maps = [#x, #r, #x], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<5x24xf32>, tensor<5xf32>) outs(%e : tensor<5x24xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %c = arith.divf %q, %size : f32
    %t = arith.addf %c, %small : f32
    %u = math.rsqrt %t : f32
    %m = arith.mulf %u, %p : f32
    linalg.yield %m : f32
  } -> tensor<5x24xf32>
"""


def bound(module: ir.Module) -> float:
    *_, scores, _end = module.body.operations[0].regions[0].blocks[0].operations
    return Norms().product(scores.operation)


def inputs() -> list[np.ndarray]:
    """Usual ones; large, small and no numbers; one that is larger than all others."""
    usual = RNG.standard_normal((TOKENS, WIDTH)).astype(np.float32)
    one = np.eye(TOKENS, WIDTH, dtype=np.float32)
    return [usual, usual * 1e15, usual * 1e-15, usual * 1e-25, usual * 0, one * 1e10 + usual, usual * 0 + 7, one]


@pytest.mark.parametrize(("root", "over"), [("sqrt", "divf"), ("rsqrt", "mulf"), ("", "")])
def test_no_score_is_larger(root: str, over: str) -> None:
    with ir.Context(), ir.Location.unknown():
        text = written(ROOT=root, OVER=over)
        if not root:
            text = text[: text.index("  %root = ")] + BODY + text[text.index("  %n = ") :]
        module = ir.Module.parse(text)
        most = bound(module)
        found = [np.abs(reference.run(module, "main", [x])[0]).max() for x in inputs()]
    assert max(found) <= most < 100 * max(found)


def test_the_longest_query_comes_close() -> None:
    """Of one head, with the same weights for keys: the first singular vector is the longest that there is."""
    drawn = np.linalg.qr(RNG.standard_normal((WIDTH, WIDTH)))[0][:, : HEADS * SIZE].astype(np.float32) * 3
    weight, ones, zeros = (
        "0x" + a.tobytes().hex()
        for a in (np.ascontiguousarray(drawn), np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32))
    )
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(written(QUERY=weight, KEY=weight, GAMMA=ones, BETA=zeros))
        x = np.repeat(np.ascontiguousarray(drawn[:, :1].T), TOKENS, axis=0)
        found = float(np.abs(reference.run(module, "main", [x])[0]).max())
        assert found == pytest.approx(9 * WIDTH, rel=1e-3)
        assert found <= bound(module) < 1.3 * found


@pytest.mark.parametrize(
    "given",
    [
        dict(EPS="0.0"),  # of zeros: 0 / 0
        dict(EPS="-1.0e-3"),  # a root that may be zero
        dict(SQUARED="%e"),  # of other numbers than are divided
        dict(ROOT="rsqrt"),  # divided by one over the root
        dict(OVER="mulf"),
        dict(ROOT="exp"),
        dict(EPS="1.0e-12", SCALE="1.0e-30"),  # what was added is no f32 afterwards
    ],
    ids=str,
)
def test_what_is_not_normalized_has_no_bound(given: dict[str, str]) -> None:
    with ir.Context(), ir.Location.unknown():
        assert math.isinf(bound(ir.Module.parse(written(**given))))


def test_a_weight_that_is_not_finite_bounds_nothing() -> None:
    weight = np.full((WIDTH, HEADS * SIZE), np.inf, np.float32)
    with ir.Context(), ir.Location.unknown():
        assert math.isinf(bound(ir.Module.parse(written(KEY="0x" + weight.tobytes().hex()))))


def test_squares_that_are_lost_count() -> None:
    """Numbers whose squares are no f32, times a number that is large: they are divided by what was added alone."""
    text = written(EPS="1.0e-30", BETA="0x" + np.zeros(WIDTH, np.float32).tobytes().hex())
    text = text.replace("arith.divf %p, %size", "arith.mulf %p, %huge")
    text = text.replace("  %size = ", "  %huge = arith.constant 1.0e+30 : f32\n  %size = ")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        x = np.full((TOKENS, WIDTH), 1e-23, np.float32)
        assert 0 < np.abs(reference.run(module, "main", [x])[0]).max() <= bound(module)


@pytest.mark.parametrize("before", ["  %unit = ", "  %root = ", "  %n = "])
def test_a_deep_model(before: str) -> None:
    """Chains that are longer than Python's stack: what is far away has no bound."""
    source, kind, dims = {
        "  %unit = ": ("%root", "tensor<5xf32>", "#one"),
        "  %root = ": ("%sum", "tensor<5xf32>", "#one"),
        "  %n = ": ("%unit", "tensor<5x24xf32>", "#x"),
    }[before]
    loops = ", ".join(['"parallel"'] * (1 + kind.count("x24")))
    empty = "%g" if dims == "#one" else "%e"
    lines = [
        f"""  %c{at} = linalg.generic {{indexing_maps = [{dims}, {dims}], iterator_types = [{loops}]}}
      ins({f"%c{at - 1}" if at else source} : {kind}) outs({empty} : {kind}) {{
  ^bb0(%p: f32, %o: f32):
    %m = arith.addf %p, %small : f32
    linalg.yield %m : f32
  }} -> {kind}
"""
        for at in range(1500)
    ]
    first, second = (text for text in written().split(before))
    with ir.Context(), ir.Location.unknown():
        text = first + "".join(lines) + before + second.replace(source, "%c1499", 1)
        assert math.isinf(bound(ir.Module.parse(text)))


SHAPES = [(96, 130, 13), (70, 192, 96), (20, 64, 32), (20, 64, 8), (3, 512, 256), (300, 512, 256), (64, 64, 64)]


@pytest.mark.parametrize(("rows", "columns", "size"), [*SHAPES, (65, 128, 64), (1, 64, 64), (200, 24, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 0.0])
def test_norms_of_blocks_of_columns(rows: int, columns: int, size: int, scale: float) -> None:
    """No less than the norm, and little more where a block is computed as a whole."""
    matrix = RNG.standard_normal((rows, columns)) * scale
    norm = max(np.linalg.norm(matrix[:, at : at + size], 2) for at in range(0, columns, size))
    found = largest_norm(matrix, size)
    assert norm <= found <= norm * (1.03 if size <= 128 else 1.5)
    assert norm <= largest_norm(matrix.astype(np.float32), size) * (1 + 1e-6)
    matrix[0, columns - 1] = np.inf
    assert math.isinf(largest_norm(matrix, size))


@pytest.mark.parametrize("size", [4, 300])
@pytest.mark.parametrize("number", [5e-310, 1e-200, 1e200])
def test_norms_of_what_has_no_squares(number: float, size: int) -> None:
    """Of ones times a number, whose squares or reciprocal f64 does not hold."""
    norm = number * math.sqrt(4 * size)
    assert norm * 0.999 <= largest_norm(np.full((4, size), number), size) <= norm * 1.1
