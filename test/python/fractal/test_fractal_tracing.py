# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tracing emits: text that parses and verifies, lines, weights; and what cannot be traced."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from fractal_runs import agree, declared, line_of, ragged, run, same, values

import tilewright.fractal as ft
from tilewright.mlir import ir

XS = ft.Lists(values(5, 2))
XSS = ft.Lists.from_array(values(3, 4, 2), 2)
ROW = values(2)


def locations(text: str, name: str) -> list[str]:
    """Lines of all ops of a name, as `file:line`."""
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            file, line = re.findall(r'loc\("(.*)":(\d+):', str(op.location))[0]
            found.append(f"{file}:{line}")
        return ir.WalkResult.ADVANCE

    with ir.Context():
        ir.Module.parse(text).operation.walk(visit)
    return found


@ft.function
def rnn(xss: ft.Array[2, (1, 8)], w: ft.Tensor[8, 8], u: ft.Tensor[8, 8]) -> ft.Array[2, (1, 8)]:
    def cell(h, x):
        return ft.tanh(x @ w + h @ u)

    return ft.map(lambda xs: ft.scanl(cell, ft.zeros(1, 8), xs), xss)


def test_the_text_of_a_small_program():
    traced = rnn.trace(lengths={"xss": (3, "ragged")})
    array = "!fractal.array<[3, ragged] of tensor<1x8xf32>>"
    lines = [
        f"func.func @main(%arg0: {array} {{tile.name = \"xss\"}}",
        "arith.constant dense<0.000000e+00> : tensor<1x8xf32>",
        f"fractal.map (%x = %arg0) : ({array}) -> {array}",
        "fractal.scan left (%s = %cst) over (%x_0 = %x) : (tensor<1x8xf32>, !fractal.array<[?] of tensor<1x8xf32>>)",
        "linalg.matmul ins(%x_0, %arg1 : tensor<1x8xf32>, tensor<8x8xf32>)",
        "math.tanh %in : f32",
        "fractal.yield",
    ]  # fmt: skip
    places = [traced.module_text.index(line) for line in lines]
    assert places == sorted(places)
    assert traced.weights == {} and traced.name == "rnn"
    assert [(s.name, s.kind, s.shape, s.dtype, s.lengths) for s in traced.inputs] == [
        ("xss", "list", (1, 8), np.float32, (3, "ragged")),
        ("w", "tensor", (8, 8), np.float32, ()),
        ("u", "tensor", (8, 8), np.float32, ()),
    ]
    assert [(s.name, s.kind, s.shape, s.lengths) for s in traced.outputs] == [
        ("output0", "list", (1, 8), (3, "ragged"))
    ]
    assert rnn.trace(lengths={"xss": (3, "ragged")}).module_text == traced.module_text


def test_ops_have_the_users_line():
    text = rnn.trace().module_text
    python = rnn.__wrapped__
    cell, scan = line_of(python, "x @ w"), line_of(python, "ft.scanl")
    for name in ("linalg.matmul", "linalg.generic", "math.tanh", "tensor.empty"):
        assert set(locations(text, name)) == {cell}
    assert locations(text, "fractal.map") == locations(text, "fractal.scan") == [scan]
    assert locations(text, "func.func")[0].rpartition(":")[0] == __file__


def test_large_arrays_are_weights_and_equal_ones_are_one():
    table = values(16, 16)
    again, other = table.copy(), values(16, 16, seed=1)

    def program(x):
        return x @ table + x @ again - x @ other + np.float32(1) * x

    function = declared(program, values(1, 16))
    traced = function.trace()
    assert sorted(w.tobytes() for w in traced.weights.values()) == sorted([table.tobytes(), other.tobytes()])
    for name in traced.weights:
        assert f"ml_program.global private @{name}(#" in traced.module_text
        assert traced.module_text.count(f"ml_program.global_load_const @{name} ") == 1
    same(run(traced, values(1, 16))[0], function(values(1, 16)))


def test_small_arrays_and_numbers_stand_in_the_text():
    traced = declared(lambda x: x * 2 + ROW + ft.full((1, 2), 0.25), ROW).trace()
    assert traced.weights == {}
    assert "arith.constant dense<[" in traced.module_text
    assert "arith.constant 2.000000e+00 : f32" in traced.module_text
    assert "arith.constant 2.500000e-01 : f32" in traced.module_text


@pytest.mark.parametrize("held", [
    [values(2, seed=i) for i in range(5)], ft.Lists(values(5, 2, seed=3)), values(5, 2, seed=4),
    ft.Lists(values(5, 40)[:, :2]),
])  # fmt: skip
def test_lists_that_the_program_holds(held):
    elements = list(held)
    same(agree(lambda xs: ft.map(lambda x, y: x + y, xs, held), XS), ft.Lists(XS.flat + np.stack(elements)))


def test_ragged_lists_that_the_program_holds():
    held = ragged([3, 0, 40], 2)
    totals = np.stack([row.flat.sum(0) for row in held])
    same(agree(lambda x: ft.map(lambda row: ft.reduce(lambda a, b: a + b, x * 0, row), held), ROW), ft.Lists(totals))


def test_closures_partial_functions_and_keywords():
    def scale(x, *, by, plus=0.0):
        return x * by + plus

    def program(xs, w):
        first = ft.map(functools.partial(scale, by=w), xs)
        return ft.map(lambda x, k=3: scale(x, by=k, plus=xs[0]), first)

    same(agree(program, XS, ROW), ft.Lists(XS.flat * ROW * 3 + XS.flat[0]))


def test_results_in_nested_tuples():
    found = agree(lambda xs, w: ((xs[0], (xs, w)), 1.5, [w, w]), XS, ROW)
    same(found, ((XS.flat[0], (XS, ROW)), np.asarray(1.5, np.float32), ft.Lists(np.stack([ROW, ROW]))))


def test_lists_in_loops_of_python():
    """A list of known length is iterated like one of Python's: the loop is unrolled."""

    def program(xs, ys):
        total = ft.zeros(2)
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            total = total + x * y * i
        return total, len(xs)

    function = declared(program, XS, XS)
    traced = function.trace({"xs": 5, "ys": 5})
    same(traced.structured(run(traced, XS, XS)), (function(XS, XS)[0], np.asarray(5)))


def test_attributes_are_those_of_eager_values():
    seen = []

    def program(xss, w):
        seen.append((xss.depth, xss.leaf_shape, xss.dtype, w.shape, w.dtype, w.ndim, len(w)))
        return w

    function = declared(program, XSS, ROW)
    function(XSS, ROW)
    function.trace()
    assert seen[0] == seen[1] == (2, (2,), np.float32, (2,), np.float32, 1, 2)


def test_no_op_of_a_traced_program_is_left_behind():
    """Regions are traced before their op; those of states may be traced more than once."""
    falling = ragged([4, 3, 1], 2)

    def program(xss, init):
        return ft.scanl(lambda s, xs: ft.map(lambda a, b: a + b, s[: ft.length(xs)], xs), init, xss)

    text = declared(program, falling, falling[0]).trace({"xss": (3, "ragged")}).module_text
    assert text.count("fractal.scan") == text.count("fractal.map") == 1
    assert text.count("builtin.module") == 0 and text.count("module {") == 1


def test_examples_name_their_own_files():
    from fractal_oracles import example

    text = example("b2b_gemm").program(2, 3, 4, 5).trace().module_text
    assert {Path(place.rpartition(":")[0]).name for place in locations(text, "linalg.matmul")} == {"b2b_gemm.py"}
