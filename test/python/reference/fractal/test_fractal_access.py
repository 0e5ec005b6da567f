# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Access ops of `fractal` against list comprehensions, on random lists; and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

TRIALS = 12
CASES = {}


class Case:
    """One op on random lists: its text, further arguments and expected results; %0 is the list, of type ``x``."""

    def __init__(self, programs, rng, lists, depth):
        self.rng, self.xs, self.depth, self.type = rng, lists, depth, programs.type
        self.x, self.e, self.xx = (programs.type(depth + more) for more in (0, -1, 1))
        self.inputs = [(programs.lists(lists, depth), self.x)]
        self.text, self.results, self.expected = "", [], []

    def pick(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def more(self, value, type_):
        self.inputs.append((value, type_))
        return f"%{len(self.inputs) - 1}"

    def gives(self, text, *pairs):
        self.text, self.results = text, [type_ for type_, _ in pairs]
        self.expected = [expected for _, expected in pairs]


def case(function):
    CASES[function.__name__] = function
    return function


@case
def at(case, random_lists, programs):
    if not case.xs:
        case.xs.append(random_lists(case.rng, case.depth - 1))
        case.inputs = [(programs.lists(case.xs, case.depth), case.x)]
    i = case.pick(0, len(case.xs) - 1)
    case.gives(f"%r0 = fractal.at %0[{case.more(i, 'index')}] : {case.x} -> {case.e}", (case.e, case.xs[i]))


@case
def slice_static(case, *_):
    low, stride = case.pick(0, len(case.xs)), case.pick(1, 3)
    places = list(range(low, len(case.xs), stride))[: case.pick(0, 4)]
    if case.pick(0, 1):
        places, stride = places[::-1], -stride
    offset = places[0] if places else 0
    text = f"%r0 = fractal.slice %0 [{offset}] [{len(places)}] [{stride}] : {case.x} -> {case.x}"
    case.gives(text, (case.x, [case.xs[j] for j in places]))


@case
def slice_dynamic(case, *_):
    low, high = sorted([case.pick(0, len(case.xs)), case.pick(0, len(case.xs))])
    offset, size = case.more(low, "index"), case.more(high - low, "index")
    text = f"%r0 = fractal.slice %0 [{offset}] [{size}] [1] : {case.x} -> {case.x}"
    case.gives(text, (case.x, case.xs[low:high]))


@case
def reverse(case, *_):
    case.gives(f"%r0 = fractal.reverse %0 : {case.x} -> {case.x}", (case.x, [*reversed(case.xs)]))


@case
def shift_fill(case, random_lists, programs):
    v, k, n = random_lists(case.rng, case.depth - 1), case.pick(-4, 4), len(case.xs)
    fill = case.more(programs.lists(v, case.depth - 1) if case.depth > 1 else v, case.e)
    text = f"%r0 = fractal.shift %0 by {k} fill {fill} : {case.x}, {case.e} -> {case.x}"
    case.gives(text, (case.x, [case.xs[i + k] if 0 <= i + k < n else v for i in range(n)]))


@case
def shift_wrap(case, *_):
    k, n = case.pick(-9, 9), len(case.xs)
    text = f"%r0 = fractal.shift %0 by {k} wrap : {case.x} -> {case.x}"
    case.gives(text, (case.x, [case.xs[(i + k) % n] for i in range(n)]))


def windows(case, padding, read):
    """The attributes of random windows, and what is read at each place."""
    (low, high), size, stride, dilation = padding, case.pick(1, 4), case.pick(1, 3), case.pick(1, 2)
    room = len(case.xs) + low + high
    starts = [start for start in range(0, 99, stride) if start + dilation * (size - 1) < room]
    expected = [[read(start + dilation * u - low) for u in range(size)] for start in starts]
    return f"size {size} stride {stride} dilation {dilation} padding [{low}, {high}]", expected


@case
def window_plain(case, *_):
    text, expected = windows(case, (0, 0), lambda j: case.xs[j])
    case.gives(f"%r0 = fractal.window %0 {text} : {case.x} -> {case.xx}", (case.xx, expected))


@case
def window_fill(case, random_lists, programs):
    v = random_lists(case.rng, case.depth - 1)
    fill = case.more(programs.lists(v, case.depth - 1) if case.depth > 1 else v, case.e)
    padding = case.pick(0, 3), case.pick(0, 3)
    text, expected = windows(case, padding, lambda j: case.xs[j] if 0 <= j < len(case.xs) else v)
    case.gives(f"%r0 = fractal.window %0 {text} fill {fill} : {case.x}, {case.e} -> {case.xx}", (case.xx, expected))


@case
def window_wrap(case, *_):
    padding = (case.pick(0, 9), case.pick(0, 9)) if case.xs else (0, 0)
    text, expected = windows(case, padding, lambda j: case.xs[j % len(case.xs)])
    case.gives(f"%r0 = fractal.window %0 {text} wrap : {case.x} -> {case.xx}", (case.xx, expected))


@case
def interleave(case, *_):
    d = case.pick(1, 7)
    groups = [case.xs[g::d] for g in range(min(d, len(case.xs)))]
    text = f"""%r0 = fractal.interleave %0 by {d} : {case.x} -> {case.xx}
               %r1 = fractal.deinterleave %r0 : {case.xx} -> {case.x}"""
    case.gives(text, (case.xx, groups), (case.x, case.xs))


@case
def product(case, random_lists, programs):
    ys, y, yy = random_lists(case.rng, 2), case.type(2), case.type(3)
    text = f"%r0, %r1 = fractal.product %0, {case.more(programs.lists(ys, 2), y)} : {case.x}, {y} -> {case.xx}, {yy}"
    case.gives(text, (case.xx, [[x for _ in ys] for x in case.xs]), (yy, [list(ys) for _ in case.xs]))


@case
def repeat(case, *_):
    n, leaf = case.pick(0, 3), np.full((1, 2), 7, np.float32)
    number, x = case.more(n, "index"), case.more(leaf, case.type(0))
    text = f"""%r0 = fractal.repeat %0, {number} : {case.x} -> {case.xx}
               %r1 = fractal.repeat %0 times {n} : {case.x} -> {case.xx}
               %r2 = fractal.repeat {x}, {number} : {case.type(0)} -> {case.type(1)}"""
    case.gives(text, (case.xx, [case.xs] * n), (case.xx, [case.xs] * n), (case.type(1), [leaf] * n))


@case
def join(case, random_lists, programs):
    parts = [random_lists(case.rng, case.depth) for _ in range(case.pick(0, 2))]
    names = "".join(f", {case.more(programs.lists(part, case.depth), case.x)}" for part in parts)
    text = f"%r0 = fractal.join %0{names} : {', '.join([case.x] * (1 + len(parts)))} -> {case.x}"
    case.gives(text, (case.x, case.xs + [x for part in parts for x in part]))


@case
def gather(case, *_):
    width = ("i32", "i64")[case.pick(0, 1)]
    places = case.rng.integers(0, len(case.xs), case.pick(0, 5)) if case.xs else np.zeros(0)
    type_ = f"tensor<?x{width}>"
    index = case.more(places.astype(f"int{width[1:]}"), type_)
    text = f"%r0 = fractal.gather %0[{index}] : {case.x}, {type_} -> {case.x}"
    case.gives(text, (case.x, [case.xs[j] for j in places.astype(int)]))


@case
def scatter(case, random_lists, programs):
    into = random_lists(case.rng, case.depth)
    places = [int(j) for j in case.rng.integers(0, len(into), len(case.xs))] if into else []
    xs = case.xs if into else []
    source = case.more(programs.lists(xs, case.depth), case.x)
    dest = case.more(programs.lists(into, case.depth), case.x)
    index = case.more(np.array(places, np.int64), "tensor<?xi64>")
    text = f"%r0 = fractal.scatter {source} into {dest}[{index}] : {case.x}, {case.x}, tensor<?xi64> -> {case.x}"
    expected = list(into)
    for j, x in zip(places, xs, strict=True):
        expected[j] = x
    case.gives(text, (case.x, expected))


@case
def flatten(case, random_lists, programs):
    xss = random_lists(case.rng, case.depth + 1)
    text = f"%r0 = fractal.flatten {case.more(programs.lists(xss, case.depth + 1), case.xx)} : {case.xx} -> {case.x}"
    case.gives(text, (case.x, [x for xs in xss for x in xs]))


@case
def split(case, *_):
    n = len(case.xs)
    into = [d for d in range(1, 9) if n % d == 0][case.pick(0, 1) - 1]
    text = f"%r0 = fractal.split %0 into {into} : {case.x} -> {case.xx}"
    case.gives(text, (case.xx, [case.xs[g * n // into : (g + 1) * n // into] for g in range(into)]))


@case
def cast(case, *_):
    text = f"""%c = fractal.cast %0 : {case.x} -> {case.x.replace("?", str(len(case.xs)), 1)}
               %r0 = fractal.cast %c : {case.x.replace("?", str(len(case.xs)), 1)} -> {case.x}"""
    case.gives(text, (case.x, case.xs))


@case
def length(case, *_):
    case.gives(f"%r0 = fractal.length %0 : {case.x}", ("index", np.int64(len(case.xs))))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_access(name, depth, programs, random_lists, same):
    rng = np.random.default_rng(depth)
    for _ in range(TRIALS):
        one = Case(programs, rng, random_lists(rng, depth), depth)
        CASES[name](one, random_lists, programs)
        found = programs.run(one.text, one.inputs, one.results)
        assert len(found) == len(one.expected) and all(map(same, found, one.expected)), one.text
