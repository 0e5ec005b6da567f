# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`!fractal.array` in Python, and what the maps of access ops say, place by place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from tilewright.dialects.fractal import DYNAMIC, RAGGED, ArrayType, SplitOp, access_map
from tilewright.mlir import ir

LIST = "!fractal.array<[8] of tensor<f32>>"
OPEN = "!fractal.array<[?] of tensor<f32>>"
NESTED = "!fractal.array<[2, 4] of tensor<f32>>"
PLACES = np.arange(8)
FIRST = re.compile(r"!fractal\.array<.*?>>|tensor<.*?>")


@pytest.fixture
def context() -> Iterator[ir.Context]:
    with ir.Context() as made, ir.Location.unknown():
        yield made


@pytest.mark.usefixtures("context")
class TestArrayType:
    def test_parts(self):
        leaf = ir.Type.parse("tensor<1x8xf32>")
        kind = ArrayType.get([4, DYNAMIC, RAGGED], leaf)
        assert str(kind) == "!fractal.array<[4, ?, ragged] of tensor<1x8xf32>>"
        assert (kind.lengths, kind.depth, kind.leaf) == ([4, DYNAMIC, RAGGED], 3, leaf)
        assert ir.Type.parse(str(kind)) == kind
        assert isinstance(ir.Type.parse(str(kind)), ArrayType)

    def test_element(self):
        kind = ir.Type.parse("!fractal.array<[4, ragged] of tensor<8xf32>>")
        assert isinstance(kind, ArrayType)
        assert str(kind.element) == "!fractal.array<[?] of tensor<8xf32>>"
        assert str(kind.element.element) == "tensor<8xf32>"

    @pytest.mark.parametrize(
        ("one", "other", "fits"),
        [
            ("[4, 2] of tensor<8xf32>", "[?, ragged] of tensor<8xf32>", True),
            ("[4, ?] of tensor<8xf32>", "[4, ragged] of tensor<8xf32>", True),
            ("[4, 2] of tensor<8xf32>", "[4, 3] of tensor<8xf32>", False),
            ("[4] of tensor<8xf32>", "[4, 1] of tensor<8xf32>", False),
            ("[4] of tensor<8xf32>", "[4] of tensor<8xf16>", False),
        ],
    )
    def test_compatible(self, one: str, other: str, fits: bool):
        kind, second = (ir.Type.parse(f"!fractal.array<{text}>") for text in (one, other))
        assert isinstance(kind, ArrayType)
        assert kind.is_compatible(second) == fits

    @pytest.mark.parametrize(
        ("lengths", "leaf", "message"),
        [
            ([], "tensor<8xf32>", "at least one level"),
            ([RAGGED], "tensor<8xf32>", "first level is one list"),
            ([4, -1], "tensor<8xf32>", "a length is a number from 0 on"),
            ([4], "tensor<?xf32>", "tensor of static shape, not 'tensor<\\?xf32>'"),
            ([4], "f32", "tensor of static shape, not 'f32'"),
        ],
    )
    def test_refused(self, lengths: list[int], leaf: str, message: str):
        with pytest.raises(ValueError, match=message):
            ArrayType.get(lengths, ir.Type.parse(leaf))


@pytest.mark.usefixtures("context")
def test_ops_are_made_in_python():
    module = ir.Module.parse(f"func.func private @f({LIST})")
    kind = ir.Type.parse(LIST)
    block = ir.Block.create_at_start(ir.Operation.create("scf.execute_region", regions=1).regions[0], [kind])
    with ir.InsertionPoint(block):
        made = SplitOp(ArrayType.get([2, 4], ir.Type.parse("tensor<f32>")), block.arguments[0], into=2)
    assert module.operation.verify()
    assert "fractal.split" in str(made) and str(made.result.type) == NESTED


def map_of(op: str, kinds: str) -> ir.AffineMap | None:
    """The access map of an op on `%xs`, whose type is the first of `kinds`, `%v`, `%i` and `%n`."""
    source = FIRST.match(kinds)
    assert source is not None
    head = f"func.func @f(%xs: {source.group()}, %v: tensor<f32>, %i: index, %n: index)"
    module = ir.Module.parse(f"{head} {{\n  %r = fractal.{op} : {kinds}\n  return\n}}")
    (body,) = module.body.operations[0].regions[0].blocks
    return access_map(body.operations[0].operation)


def read(op: str, kinds: str, shape: tuple[int, ...], symbols: list[int], source: np.ndarray) -> np.ndarray:
    """What the map of an op reads of `source` at each index of the result; -1 where that is outside."""
    found = map_of(op, kinds)
    assert found is not None
    assert (found.n_dims, found.n_symbols) == (len(shape), len(symbols))
    names = {f"s{number}": value for number, value in enumerate(symbols)}
    results = [str(expr).replace("floordiv", "//").replace("mod", "%") for expr in found.results]
    places = np.full(shape, -1)
    for index in np.ndindex(*shape):
        here = names | {f"d{number}": value for number, value in enumerate(index)}
        at = tuple(eval(expr, {}, here) for expr in results)
        if all(0 <= place < size for place, size in zip(at, source.shape, strict=False)):
            places[index] = source[at]
    return places


@pytest.mark.usefixtures("context")
class TestAccessMaps:
    @pytest.mark.parametrize(
        ("op", "kinds", "symbols", "expected"),
        [
            ("at %xs[%i]", f"{LIST} -> tensor<f32>", [5], np.array(5)),
            ("slice %xs [1] [3] [2]", f"{LIST} -> {OPEN}", [], [1, 3, 5]),
            ("slice %xs [%i] [%n] [-2]", f"{LIST} -> {OPEN}", [7, 3], [7, 5, 3]),
            ("slice %xs [6] [%n] [-3]", f"{LIST} -> {OPEN}", [3], [6, 3, 0]),
            ("reverse %xs", f"{LIST} -> {LIST}", [8], PLACES[::-1]),
            ("shift %xs by 3 fill %v", f"{LIST}, tensor<f32> -> {LIST}", [], [3, 4, 5, 6, 7, -1, -1, -1]),
            ("shift %xs by -2 wrap", f"{LIST} -> {LIST}", [8], np.roll(PLACES, 2)),
            ("interleave %xs by 2", f"{LIST} -> {NESTED}", [], PLACES.reshape(4, 2).T),
            ("split %xs into 2", f"{LIST} -> {NESTED}", [8], PLACES.reshape(2, 4)),
            (
                "window %xs size 3 stride 2 dilation 2 padding [1, 1] fill %v",
                f"{LIST}, tensor<f32> -> !fractal.array<[3, 3] of tensor<f32>>",
                [],
                [[-1, 1, 3], [1, 3, 5], [3, 5, 7]],
            ),
            (
                "window %xs size 3 stride 4 dilation 1 padding [1, 1] wrap",
                f"{LIST} -> !fractal.array<[2, 3] of tensor<f32>>",
                [8],
                [[7, 0, 1], [3, 4, 5]],
            ),
        ],
    )
    def test_of_a_list(self, op: str, kinds: str, symbols: list[int], expected: np.ndarray):
        expected = np.asarray(expected)
        np.testing.assert_array_equal(read(op, kinds, expected.shape, symbols, PLACES), expected)

    @pytest.mark.parametrize(
        ("op", "symbols", "expected"),
        [("flatten %xs", [], PLACES), ("deinterleave %xs", [2], PLACES.reshape(2, 4).T.reshape(-1))],
    )
    def test_of_lists(self, op: str, symbols: list[int], expected: np.ndarray):
        places = read(op, f"{NESTED} -> {LIST}", (8,), symbols, PLACES.reshape(2, 4))
        np.testing.assert_array_equal(places, expected)

    def test_of_what_is_read_whole(self):
        whole = np.array(3)
        assert read("repeat %xs, %n", f"tensor<f32> -> {OPEN}", (4,), [4], whole).tolist() == [3] * 4
        assert read("repeat %xs times 2", f"tensor<f32> -> {OPEN}", (2,), [], whole).tolist() == [3] * 2
        assert read("cast %xs", f"{LIST} -> {OPEN}", (), [], whole) == 3

    @pytest.mark.parametrize(
        ("op", "kinds"),
        [
            ("flatten %xs", f"!fractal.array<[2, ?] of tensor<f32>> -> {OPEN}"),
            ("join %xs, %xs", f"{LIST}, {LIST} -> {OPEN}"),
        ],
    )
    def test_none(self, op: str, kinds: str):
        assert map_of(op, kinds) is None
