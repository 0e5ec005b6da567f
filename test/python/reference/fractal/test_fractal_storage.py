# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists as tensors (from_tensor, to_tensor) and as leaves with offsets (from_ragged, to_ragged)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dialects.fractal.values import Lists
from tilewright.reference import InterpreterError


@pytest.mark.parametrize("lengths", [(4,), (3, 2), (2, 3, 2), (2, 0, 3), (0, 4), (0,)])
@pytest.mark.parametrize("known", [False, True])
def test_tensors_and_back(lengths, known, programs, rng):
    array = rng.random((*lengths, 1, 2)).astype(np.float32)
    words = [str(length) if known else "?" for length in lengths]
    tensor, lists = f"tensor<{'x'.join(words)}x1x2xf32>", f"!fractal.array<[{', '.join(words)}] of tensor<1x2xf32>>"
    text = f"""%r0 = fractal.from_tensor %0 : {tensor} -> {lists}
               %r1 = fractal.to_tensor %r0 : {lists} -> {tensor}"""
    value, back = programs.run(text, [(array, tensor)], [lists, tensor])
    assert value == Lists.from_array(array, len(lengths))
    if array.size or known:
        np.testing.assert_array_equal(back, array, strict=True)
    else:  # what no list tells is 0
        first = lengths.index(0)
        assert back.shape == (*lengths[: first + 1], *[0] * (len(lengths) - first - 1), 1, 2)


def test_scalars_in_lists(programs):
    tensor, lists = "tensor<2x3xi32>", "!fractal.array<[2, 3] of tensor<i32>>"
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    value, back = programs.run(
        f"""%r0 = fractal.from_tensor %0 : {tensor} -> {lists}
            %r1 = fractal.to_tensor %r0 : {lists} -> {tensor}""",
        [(array, tensor)],
        [lists, tensor],
    )
    assert value == Lists.of(array.tolist(), dtype=np.int32)
    np.testing.assert_array_equal(back, array, strict=True)


def test_a_tensor_of_another_size_than_claimed(programs):
    lists = "!fractal.array<[?] of tensor<1x2xf32>>"
    with pytest.raises(InterpreterError, match=r"has no tensor<3x1x2xf32>") as caught:
        value = Lists(np.zeros((2, 1, 2), np.float32))
        programs.run(
            f"%r0 = fractal.to_tensor %0 : {lists} -> tensor<3x1x2xf32>", [(value, lists)], ["tensor<3x1x2xf32>"]
        )
    assert "fractal.to_tensor at loc(" in str(caught.value)
    with pytest.raises(InterpreterError, match="lists of length 2 at level 0"):
        programs.run(
            f"%r0 = fractal.from_tensor %0 : tensor<?x1x2xf32> -> {lists.replace('?', '3')}",
            [(np.zeros((2, 1, 2), np.float32), "tensor<?x1x2xf32>")],
            [lists.replace("?", "3")],
        )


def walked(lists, depth):
    """Leaves and offsets of nested Python lists, by a walk."""
    if depth == 1:
        return lists, []
    inner, offsets = [], [0]
    for part in lists:
        inner.extend(part)
        offsets.append(len(inner))
    leaves, rest = walked(inner, depth - 1)
    return leaves, [offsets, *rest]


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_ragged_and_back(depth, programs, random_lists, same):
    rng = np.random.default_rng(depth)
    flat, lists = programs.type(1), programs.type(depth)
    types = [flat, *["tensor<?xi64>"] * (depth - 1)]
    names = [f"%r{number}" for number in range(depth)]
    text = f"""{", ".join(names)} = fractal.to_ragged %0 : {lists} -> {", ".join(types)}
               %r{depth} = fractal.from_ragged {", ".join(names)} : {", ".join(types)} -> {lists}"""
    for _ in range(15):
        nested = random_lists(rng, depth)
        found, *offsets, back = programs.run(text, [(programs.lists(nested, depth), lists)], [*types, lists])
        leaves, expected = walked(nested, depth)
        assert same(found, leaves) and same(back, nested)
        assert [offset.tolist() for offset in offsets] == expected
        assert all(offset.dtype == np.int64 for offset in offsets)


def test_offsets_of_another_number_than_claimed(programs):
    lists, flat = programs.type(2), programs.type(1)
    value = programs.lists([[], []], 2)
    with pytest.raises(InterpreterError, match="result 1 has 3 offsets, but is tensor<5xi64>"):
        text = f"%r0, %r1 = fractal.to_ragged %0 : {lists} -> {flat}, tensor<5xi64>"
        programs.run(text, [(value, lists)], [flat, "tensor<5xi64>"])


def test_room_behind_the_last_leaf(programs):
    """Flat lists and offsets may have more room than the lists need, in both directions."""
    lists, flat = programs.type(3), programs.type(1)
    wide = flat.replace("?", "9")
    kinds = [wide, "tensor<3xi64>", "tensor<8xi64>"]
    one = np.ones((1, 2), np.float32)
    value = programs.lists([[[one, 2 * one], []], [[3 * one]]], 3)
    names = "%r0, %r1, %r2"
    text = f"""{names} = fractal.to_ragged %0 : {lists} -> {", ".join(kinds)}
               %r3 = fractal.from_ragged {names} most [2, 2] : {", ".join(kinds)} -> {lists}"""
    stored, first, second, back = programs.run(text, [(value, lists)], [*kinds, lists])
    assert len(stored) == 9 and not stored.flat[3:].any()
    assert first.tolist() == [0, 2, 3] and second.tolist() == [0, 2, 2, 3, 3, 3, 3, 3]
    assert back == value


def test_more_leaves_than_there_is_room_for(programs):
    lists, flat, one = programs.type(2), programs.type(1).replace("?", "2"), np.ones((1, 2), np.float32)
    with pytest.raises(InterpreterError, match="the lists have 3 tensors, but result 0 is"):
        text = f"%r0, %r1 = fractal.to_ragged %0 : {lists} -> {flat}, tensor<?xi64>"
        programs.run(text, [(programs.lists([[one, one], [one]], 2), lists)], [flat, "tensor<?xi64>"])
