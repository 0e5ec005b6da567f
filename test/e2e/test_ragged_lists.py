# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of lengths of their own, compiled: ragged batches, filters, groups of unequal lengths; against eager mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fractal_runs import declared, ragged, values

import tilewright as tw
import tilewright.fractal as ft
from tilewright.fractal.trees import flatten

LISTS, MOST = 3, 4
XS = ft.Lists(values(5, 2))
#: Lists of a batch: of any lengths, all full, all empty, all of one element; none is beyond the largest.
LENGTHS = ([3, 0, 2], [4, 4, 4], [0, 0, 0], [1, 1, 1], [0, 4, 1])


def add(a, b):
    return a + b


def total(xs):
    return ft.reduce(add, ft.zeros(2), xs)


def positive(x):
    return x[0] > 0


def step(state, x):
    return ft.tanh(state * 0.5 + x)


def attended(query, keys):
    """Of one row over a list of its own length, written with the largest score first."""
    scores = ft.map(lambda key: ft.sum(query * key), keys)
    most = ft.reduce(ft.maximum, ft.full((), -1e30), scores)
    weights = ft.map(lambda score: ft.exp(score - most), scores)
    mixed = ft.foldl(lambda sum, pair: sum + pair[0] * pair[1], ft.zeros(2), ft.zip(weights, keys))
    return mixed / (ft.reduce(add, ft.zeros(()), weights) + 1e-20)


def each(function: Callable) -> Callable:
    """A program that does something with each list of the batch."""
    return lambda xss, xs: ft.map(lambda row: function(row, xs), xss)


#: What is small enough to run everywhere, then the rest.
FIRST: dict[str, Callable] = {
    "leaves": lambda xss, xs: ft.forall(lambda x: ft.tanh(x) * 2.0, xss),
    "sums": each(lambda row, xs: total(row)),
    "states": each(lambda row, xs: (ft.scanl(step, ft.zeros(2), row), ft.foldr(step, ft.zeros(2), row))),
    "attention": each(lambda row, xs: attended(xs[0], row)),
    "filter": lambda xss, xs: (total(ft.filter(positive, xs)), ft.length(ft.filter(positive, xs))),
    "dilated": lambda xss, xs: ft.dilated_map(lambda group: ft.scanl(step, ft.zeros(2), group), xs, 3),
}
PROGRAMS = FIRST | {
    "largest": each(lambda row, xs: ft.reduce(ft.maximum, ft.full((2,), -1e9), row)),
    "products": each(lambda row, xs: ft.reduce(lambda a, b: a * b + a, ft.zeros(2), row)),
    "right": each(lambda row, xs: ft.scanr(step, ft.zeros(2), row)),
    "two_states": each(lambda row, xs: ft.foldl(lambda s, x: (s[0] + x, s[1] * s[0] + x), (xs[0], xs[1]), row)),
    "pairs": each(lambda row, xs: ft.map(lambda a, b: ft.map(add, a, b), *ft.product(row, row))),
    "products_with_all": each(lambda row, xs: ft.product(row, xs)),
    "nested_maps": each(lambda row, xs: ft.map(lambda x: ft.map(lambda y: x * y, row), row)),
    "fold_of_lists": lambda xss, xs: ft.foldl(lambda state, row: state + total(row), ft.zeros(2), xss),
    "beside": lambda xss, xs: ft.map(lambda row, x: ft.map(lambda y: x * y, row), xss, xs[:LISTS]),
    "reads": each(lambda row, xs: (ft.reverse(row), row[1:], row[::-2], row[:2])),
    "places_kept": each(lambda row, xs: ft.enumerate(ft.filter(positive, row))[0]),
    "kept_and_places": each(lambda row, xs: ft.map(
        lambda i, x: ft.cast(i, "f32") * x, *ft.enumerate(ft.filter(positive, row)))),
    "lengths": each(lambda row, xs: (ft.enumerate(row)[0], ft.cast(ft.length(row), "f32"))),
    "windows": each(lambda row, xs: (ft.window(row, 2), ft.window(row, 3, stride=2, padding=1, fill=0.5))),
    "windows_of_lists": lambda xss, xs: ft.window(xss, 2),
    "shifts": each(lambda row, xs: (ft.shift(row, 1, fill=xs[0]), ft.shift(row, -1, wrap=True))),
    "joined": each(lambda row, xs: (ft.join(row, xs), ft.join(xs, row, xs[:1], row))),
    "flat": lambda xss, xs: (ft.flatten(xss), total(ft.flatten(xss)), ft.flatten(each(ft.join)(xss, xs))),
    "gathered": lambda xss, xs: (ft.gather(xss, [2, 0, 2]), ft.map(lambda row: row, xss[1:])),
    "groups": each(lambda row, xs: (ft.interleave(row, 3), ft.deinterleave(ft.interleave(row, 3)))),
    "dilated_rows": each(lambda row, xs: ft.dilated_map(lambda group: ft.scanl(add, ft.zeros(2), group), row, 2)),
    "groups_of_five": lambda xss, xs: (ft.interleave(xs, 2), ft.interleave(xs, 8)),
    "groups_and_back": lambda xss, xs: ft.deinterleave(ft.interleave(xs, 4)),
    "kept_lists": lambda xss, xs: ft.filter(lambda row: total(row)[0] > 0, xss),
    "kept": lambda xss, xs: (ft.filter(positive, xs), ft.scanl(step, ft.zeros(2), ft.filter(positive, xs))),
    "kept_twice": lambda xss, xs: ft.reverse(ft.filter(lambda x: x[1] > -0.5, ft.filter(positive, xs)))[1:],
    "kept_of_rows": each(lambda row, xs: (ft.filter(positive, row), ft.length(ft.filter(positive, row)))),
    "kept_and_folded": each(lambda row, xs: ft.foldl(step, ft.zeros(2), ft.filter(positive, row))),
    "layers": each(lambda row, xs: ft.foldl(
        lambda ys, w: ft.scanl(lambda s, y: ft.tanh(s * 0.5 + y * w), ft.zeros(2), ys), row, xs)),
    "layers_at_once": lambda xss, xs: ft.scanl(lambda yss, w: ft.forall(lambda y: y * w, yss), xss, xs),
    "places_of_rows": lambda xss, xs: each(lambda row, xs: ft.gather(xs, row))(ft.map(
        lambda row: ft.map(lambda x: ft.cast(x[0] > 0, "i64"), row), xss), xs),
    "chosen": lambda xss, xs: ft.map(lambda at: ft.gather(xs, at), ft.Lists.from_array(np.array([[0, 4], [2, 2]]), 2)),
    "written": each(lambda row, xs: ft.scatter(xs, ft.reverse(ft.enumerate(row)[0]), row)),
    "written_by_data": each(lambda row, xs: ft.scatter(xs, ft.map(lambda x: ft.cast(x[0] > 0, "i64"), row), row)),
    "written_into_rows": each(lambda row, xs: ft.scatter(
        row, ft.enumerate(ft.filter(positive, row))[0], ft.map(lambda x: -x, ft.filter(positive, row)))),
    "written_rows": lambda xss, xs: ft.scatter(xss, [2, 0, 2], ft.map(lambda row: ft.reverse(row), xss)),
    "written_here_and_there": lambda xss, xs: ft.map(
        lambda at: ft.scatter(xs, at, xs[1:3]), ft.Lists.from_array(np.array([[0, 4], [2, 2]]), 2)),
    "last": each(lambda row, xs: ft.last(ft.join(xs, row))),
    "kept_pairs": lambda xss, xs: ft.filter(lambda pair: positive(pair[1]), ft.zip(xs, ft.map(lambda x: -x, xs))),
}  # fmt: skip
NOTHING_KEPT = ft.Lists(-np.abs(XS.flat) - 0.25)


@functools.cache
def compiled(name: str, target: str) -> Any:
    function = declared(PROGRAMS[name], ragged([1] * LISTS, 2), XS)
    emulate = {"emulate": True} if target.startswith("cuda") else {}
    shapes = {"xss": (LISTS, ("ragged", MOST)), "xs": (len(XS),)}
    return function, tw.compile(function, target, shapes=shapes, threads=2, **emulate)


def near(found: Any, expected: Any) -> None:
    """Offsets exactly, elements nearly."""
    if not isinstance(expected, ft.Lists):
        return np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if not isinstance(found, ft.Lists):  # of lengths that are known
        return np.testing.assert_allclose(found, expected.array(), rtol=1e-5, atol=1e-6)
    assert len(found.offsets) == len(expected.offsets)
    for ours, theirs in zip(found.offsets, expected.offsets, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return np.testing.assert_allclose(found.flat, expected.flat, rtol=1e-5, atol=1e-6)


def check(name: str, target: str, lengths: Sequence[int], xs: ft.Lists = XS) -> None:
    function, model = compiled(name, target)
    xss = ragged(lengths, 2)
    expected, _ = flatten(function(xss, xs))
    for ours, theirs in zip(ft.unpacked(model(xss, xs)), expected, strict=True):
        near(ours, theirs)


def check_all(name: str, target: str) -> None:
    """All batches, by one model: nothing stays from the call before."""
    for lengths in LENGTHS:
        check(name, target, lengths)
    if "kept" in name or "filter" in name:
        check(name, target, LENGTHS[0], NOTHING_KEPT)


@pytest.mark.parametrize("name", FIRST)
def test_on_the_cpu(name: str):
    check_all(name, "cpu")


@pytest.mark.parametrize(("name", "target"), [("states", "cuda:sm_80"), ("filter", "cuda:sm_90a")])
def test_on_the_emulator(name: str, target: str):
    check(name, target, LENGTHS[0])
    check(name, target, LENGTHS[2])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "cuda:sm_80"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_everywhere(name: str, target: str):
    check_all(name, target)


@pytest.mark.parametrize("name", ["sums", "kept_of_rows"])
def test_by_the_interpreter(name: str):
    """The reference target takes and gives the same flat lists and offsets."""
    check_all(name, "reference")


def compare(python: Callable, shapes: dict[str, Any], *arguments: ft.Lists, target: str = "cpu") -> None:
    """A program compiled for these lengths, against eager mode."""
    function = declared(python, *arguments)
    model = tw.compile(function, target, shapes=shapes, threads=2)
    expected, _ = flatten(function(*arguments))
    for ours, theirs in zip(ft.unpacked(model(*arguments)), expected, strict=True):
        near(ours, theirs)


DEEP = ragged([2, 0, 3, 1], 2).nest([3, 0, 1])


DEEP_PROGRAMS: list[Callable] = [
    lambda xsss: (ft.forall(lambda x: x * 2.0, xsss), ft.map(lambda xss: ft.map(total, xss), xsss), ft.flatten(xsss)),
    lambda xsss: ft.map(lambda xss: ft.filter(lambda xs: total(xs)[0] > 0, xss), xsss),
    lambda xsss: (ft.map(lambda xss: ft.flatten(xss), xsss), ft.map(lambda xss: xss[::-1], xsss)[::2]),
    lambda xsss: (ft.map(total, ft.flatten(xsss)), ft.deinterleave(ft.interleave(xsss, 2))),
    lambda xsss: ft.map(lambda xss: ft.map(lambda xs: ft.map(total, xs), ft.interleave(xss, 2)), xsss),
    lambda xsss: ft.map(lambda xss: ft.scanl(lambda state, xs: state + total(xs), ft.zeros(2), xss), xsss),
]
SLOWER = [pytest.param(program, marks=pytest.mark.slow) for program in DEEP_PROGRAMS[2:]]


@pytest.mark.parametrize("program", [*DEEP_PROGRAMS[:2], *SLOWER])
def test_three_levels(program: Callable):
    compare(program, {"xsss": (3, ("ragged", 3), ("ragged", 4))}, DEEP)


def test_a_level_of_known_length_below():
    """It is the largest one then: offsets say what each list has."""
    pairs = ft.Lists.from_array(values(4, 3, 2), 2).nest([3, 0, 1])
    compare(lambda xsss: ft.map(lambda xss: ft.map(total, xss), xsss), {"xsss": (3, ("ragged", 5), 3)}, pairs)


def test_fewer_than_a_number_beside_ragged_lists():
    shapes, total_of = {"xsss": (2, ("ragged", 2), 3)}, lambda xsss: ft.map(lambda xss: ft.map(total, xss), xsss)
    compare(total_of, shapes, ft.Lists(values(6, 2), [np.array([0, 1, 1, 4, 6])]).nest([2, 2]))


@pytest.mark.parametrize("length", [pytest.param(33, marks=pytest.mark.slow), 101])
def test_long_lists(length: int):
    """Sums along more elements than are compared in pairs."""
    compare(lambda xs: (ft.filter(positive, xs), ft.filter(lambda x: x[0] > 2, xs)), {"xs": (length,)},
            ft.Lists(values(length, 2)))  # fmt: skip
    lengths = np.random.default_rng(length).integers(0, length + 1, 5)
    compare(lambda xss: (ft.flatten(xss), ft.map(lambda row: ft.filter(positive, row), xss)),
            {"xss": (5, ("ragged", length))}, ragged(lengths, 2))  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 0), (0, 4)])
def test_no_room(shape: tuple[int, int]):
    """Lists that are all empty whatever the batch is, and a batch of none."""
    lists, most = shape
    compare(lambda xss: (ft.map(total, xss), ft.forall(lambda x: -x, xss), ft.flatten(xss)),
            {"xss": (lists, ("ragged", most))}, ragged([0] * lists, 2))  # fmt: skip


SELDOM = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in (np.float16, np.int64, np.int8)]


@pytest.mark.parametrize("dtype", [np.float64, np.int32, *SELDOM])
def test_element_types(dtype: Any):
    xss = ft.Lists((values(6, 3) * 9).astype(dtype)).nest([4, 0, 2])

    def program(xss):
        zero = np.zeros(3, dtype)
        sums = ft.map(lambda xs: ft.reduce(add, zero, xs), xss)
        return sums, ft.map(lambda xs: ft.scanl(add, zero, xs), xss), ft.map(lambda xs: ft.length(xs), xss)

    compare(program, {"xss": (3, ("ragged", 5))}, xss)


def test_numbers_as_leaves():
    xss = ft.Lists(values(7)).nest([3, 4, 0])
    compare(lambda xss: ft.map(lambda xs: (ft.reduce(ft.maximum, -9.0, xs), ft.filter(lambda x: x > 0, xs)), xss),
            {"xss": (3, ("ragged", 4))}, xss)  # fmt: skip


def test_arrays_in_place_of_lists():
    """By position and by name, what a list is as arrays; what stands behind the last offset is no element."""
    _, model = compiled("sums", "cpu")
    xss, xs = ragged([1, 4, 0], 2), XS.array()
    flat, offsets = xss.model_inputs("xss", {spec.name: spec.shape for spec in model.inputs[:2]})
    flat[len(xss.flat) :] = np.nan
    (expected,) = model(xss, xs)
    named = {"xss": flat, "xss.offsets0": offsets, "xs": xs}
    for found in (model(flat, offsets, xs), model(xs=xs, xss=xss), model(**named)):
        np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("seed", range(3))
def test_offsets_of_no_lists_read_nothing_outside(seed: int):
    """The emulator checks each access; what the results are, nobody says."""
    _, model = compiled("states", "cuda:sm_80")
    offsets = np.random.default_rng(seed).integers(-(2**40) if seed else -9, 2**40 if seed else 20, LISTS + 1)
    results = model(values(LISTS * MOST, 2), offsets, XS.array())
    assert results[0].shape == (LISTS * MOST, 2)
