# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute ops of `fractal` (map, scan, fold, reduce, filter) against loops over Python lists."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dialects.fractal.values import Lists

E, X, XX = (
    "tensor<1x2xf32>",
    "!fractal.array<[?] of tensor<1x2xf32>>",
    "!fractal.array<[?, ragged] of tensor<1x2xf32>>",
)
TRIALS = 25


def tensor(rng):
    return rng.integers(-3, 4, (1, 2)).astype(np.float32)


def tensors(rng, count=None):
    return [tensor(rng) for _ in range(rng.integers(0, 6) if count is None else count)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_map_at_every_depth(depth, programs, random_lists, same):
    """The innermost function reads a value of outside, and an element of the outermost list."""

    def nest(level, name):
        if level == 0:
            return f"%s = arith.mulf {name}, %1 : {E} %y = arith.addf %s, %1 : {E}"
        inner, result = programs.type(level - 1), "%y" if level == 1 else f"%m{level - 1}"
        body = nest(level - 1, f"%x{level}")
        return f"""%m{level} = fractal.map (%x{level} = {name}) : ({programs.type(level)}) -> {programs.type(level)} {{
                   {body}
                   fractal.yield {result} : {inner} }}"""

    def mapped(lists, c):
        return [mapped(x, c) for x in lists] if isinstance(lists, list) else lists * c + c

    rng, type_ = np.random.default_rng(depth), programs.type(depth)
    text = nest(depth, "%0").replace(f"%m{depth} =", "%r0 =", 1)
    for _ in range(TRIALS):
        lists, c = random_lists(rng, depth), tensor(rng)
        (found,) = programs.run(text, [(programs.lists(lists, depth), type_), (c, E)], [type_])
        assert same(found, mapped(lists, c))


def test_map_of_several_lists_with_several_results(programs, same):
    rng = np.random.default_rng(1)
    text = f"""%r0, %r1, %r2 = fractal.map (%x = %0, %y = %1) : ({X}, {XX}) -> ({X}, {XX}, {XX}) {{
      %n = fractal.length %y : {X}
      %a = arith.addf %x, %2 : {E}
      %b = fractal.reverse %y : {X} -> {X}
      %c = fractal.repeat %x, %n : {E} -> {X}
      fractal.yield %a, %b, %c : {E}, {X}, {X} }}"""
    for _ in range(TRIALS):
        xs, c = tensors(rng), tensor(rng)
        ys = [tensors(rng) for _ in xs]
        inputs = [(programs.lists(xs, 1), X), (programs.lists(ys, 2), XX), (c, E)]
        found = programs.run(text, inputs, [X, XX, XX])
        assert same(found[0], [x + c for x in xs])
        assert same(found[1], [y[::-1] for y in ys])
        assert same(found[2], [[x for _ in y] for x, y in zip(xs, ys, strict=True)])


def walk(states, rows, right):
    """All states of h' = 2 h + x - y, k' = k + h'."""
    (h, k), seen = states, []
    for x, y in reversed(rows) if right else rows:
        h = 2 * h + x - y
        k = k + h
        seen.append((h, k))
    return seen[::-1] if right else seen


@pytest.mark.parametrize("side", ["left", "right"])
def test_scan_and_fold(side, programs, same):
    rng, right = np.random.default_rng(2), side == "right"
    body = f"""{{ %a = arith.addf %h, %h : {E} %b = arith.addf %a, %x : {E} %c = arith.subf %b, %y : {E}
                  %d = arith.addf %k, %c : {E} fractal.yield %c, %d : {E}, {E} }}"""
    given = f"{side} (%h = %2, %k = %3) over (%x = %0, %y = %1) : ({E}, {E}, {X}, {X})"
    text = f"""%r0, %r1 = fractal.scan {given} -> ({X}, {X}) {body}
               %r2, %r3 = fractal.fold {given} -> ({E}, {E}) {body}"""
    for count in [0, 1, *rng.integers(0, 7, TRIALS)]:
        xs, ys, h, k = tensors(rng, count), tensors(rng, count), tensor(rng), tensor(rng)
        inputs = [(programs.lists(xs, 1), X), (programs.lists(ys, 1), X), (h, E), (k, E)]
        found = programs.run(text, inputs, [X, X, E, E])
        states = walk((h, k), list(zip(xs, ys, strict=True)), right)
        last = states[0 if right else -1] if states else (h, k)
        assert same(found[0], [h for h, _ in states]) and same(found[1], [k for _, k in states])
        assert same(found[2], last[0]) and same(found[3], last[1])


def test_states_may_be_lists(programs, same):
    """A stack of layers: each state is the list of the last layer's outputs, scanned."""
    rng = np.random.default_rng(3)
    text = f"""%r0 = fractal.fold left (%s = %0) over (%w = %1) : ({X}, {X}) -> {X} {{
      %t = fractal.scan left (%h = %2) over (%x = %s) : ({E}, {X}) -> {X} {{
        %a = arith.mulf %x, %w : {E} %b = arith.addf %a, %h : {E} fractal.yield %b : {E} }}
      fractal.yield %t : {X} }}
    %r1 = fractal.scan right (%s = %0) over (%w = %1) : ({X}, {X}) -> {XX} {{
      %t = fractal.join %s, %s : {X}, {X} -> {X}
      fractal.yield %t : {X} }}"""
    for _ in range(TRIALS):
        xs, ws, h = tensors(rng), tensors(rng, rng.integers(0, 4)), tensor(rng)
        found = programs.run(text, [(programs.lists(xs, 1), X), (programs.lists(ws, 1), X), (h, E)], [X, XX])
        state = xs
        for w in ws:
            total, outputs = h, []
            for x in state:
                total = x * w + total
                outputs.append(total)
            state = outputs
        assert same(found[0], state)
        assert same(found[1], [xs * 2 ** (len(ws) - i) for i in range(len(ws))])


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_reduce(seed, programs, same):
    """Affine functions x -> a x + b, one after the other: associative, not commutative, neutral at (1, 0)."""
    rng = np.random.default_rng(4)
    types = f"({X}, {X}, {E}, {E}) -> ({E}, {E})"
    text = f"""%r0, %r1 = fractal.reduce (%a, %c = %0, %b, %d = %1) init (%2, %3) : {types} {{
      %e = arith.mulf %c, %a : {E} %f = arith.mulf %c, %b : {E} %g = arith.addf %f, %d : {E}
      fractal.yield %e, %g : {E}, {E} }}"""
    one, zero = np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32)
    for count in [0, 1, *rng.integers(0, 7, TRIALS)]:
        factors, terms = tensors(rng, count), tensors(rng, count)
        inputs = [(programs.lists(factors, 1), X), (programs.lists(terms, 1), X), (one, E), (zero, E)]
        found = programs.run(text, inputs, [E, E], seed=seed)
        a, b = one, zero
        for c, d in zip(factors, terms, strict=True):
            a, b = a * c, b * c + d
        assert same(found[0], a) and same(found[1], b)


def test_reduce_shows_what_is_not_neutral_with_a_seed(programs):
    text = f"""%r0 = fractal.reduce (%a, %b = %0) init (%1) : ({X}, {E}) -> {E} {{
      %c = arith.addf %a, %b : {E} fractal.yield %c : {E} }}"""
    xs, one = np.ones((3, 1, 2), np.float32), np.ones((1, 2), np.float32)
    plain, drawn = (programs.run(text, [(Lists(xs), X), (one, E)], [E], seed=seed)[0] for seed in (None, 3))
    assert plain[0, 0] == 4 and drawn[0, 0] == 5


def test_filter(programs, same):
    rng, s = np.random.default_rng(5), "tensor<f32>"
    xs_, xss_ = f"!fractal.array<[?] of {s}>", f"!fractal.array<[?, ragged] of {s}>"
    text = f"""%r0 = fractal.filter (%x = %0) : ({xs_}) -> {xs_} {{
      %y = arith.cmpf ogt, %x, %2 : {s}
      fractal.yield %y : tensor<i1> }}
    %r1 = fractal.filter (%x = %1) : ({xss_}) -> {xss_} {{
      %n = fractal.length %x : {xs_}
      %c = arith.constant 2 : index
      %y = arith.cmpi slt, %n, %c : index
      %t = tensor.from_elements %y : tensor<i1>
      fractal.yield %t : tensor<i1> }}"""
    for _ in range(TRIALS):
        xs = [np.float32(x) for x in rng.integers(-3, 4, rng.integers(0, 6))]
        xss = [xs[: rng.integers(0, 4)] for _ in range(rng.integers(0, 4))]
        least = np.asarray(rng.integers(-3, 4), np.float32)
        one, two = (Lists.of(v, d, leaf_shape=(), dtype=np.float32) for d, v in enumerate((xs, xss), 1))
        found = programs.run(text, [(one, xs_), (two, xss_), (least, s)], [xs_, xss_])
        assert same(found[0], [x for x in xs if x > least])
        assert same(found[1], [x for x in xss if len(x) < 2])


def test_lists_pass_through_control_flow_and_calls(programs, interpret):
    text = f"""
      func.func @twice(%x: {X}) -> {X} {{
        %r = fractal.join %x, %x : {X}, {X} -> {X}
        return %r : {X}
      }}
      func.func @main(%x: {X}, %n: index, %c: i1) -> ({X}, {X}) {{
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> {X} {{
          %t = func.call @twice(%s) : ({X}) -> {X}
          scf.yield %t : {X}
        }}
        %s = arith.select %c, %x, %r : {X}
        return %r, %s : {X}, {X}
      }}"""
    xs = Lists(np.arange(4, dtype=np.float32).reshape(2, 1, 2))
    for condition in (False, True):
        grown, chosen = interpret(text, xs, 2, condition)
        assert grown.flat[:, 0, 0].tolist() == [0, 2] * 4
        assert chosen == (xs if condition else grown)
