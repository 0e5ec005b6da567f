# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of what lowers, in the README of the target, is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

README = Path(tw.__file__).parent / "targets" / "mesh" / "README.md"
Make = Callable[[GraphBuilder], tuple[str, list[int]]]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def product(rows: int, transposed: bool) -> Make:
    def make(g: GraphBuilder) -> tuple[str, list[int]]:
        x, w = g.input("x", np.float32, [rows, 24]), g.weight(drawn(9, 24) if transposed else drawn(24, 9))
        return g.op("Gemm", x, w, g.weight(drawn(9)), transB=int(transposed)), [rows, 9]

    return make


def left_turned(g: GraphBuilder) -> tuple[str, list[int]]:
    """Of an input, which cores turn."""
    return g.op("Gemm", g.input("x", np.float32, [24, 32]), g.input("b", np.float32, [24, 9]), transA=1), [32, 9]


def batched(g: GraphBuilder) -> tuple[str, list[int]]:
    x, y = (g.input(name, np.float32, [2, 24, 24]) for name in "ab")
    return g.op("MatMul", x, y), [2, 24, 24]


def convolved(channels: int, made: int) -> Make:
    def make(g: GraphBuilder) -> tuple[str, list[int]]:
        x = g.input("x", np.float32, [1, channels, 9, 7])
        return g.op("Conv", x, g.weight(drawn(made, channels, 3, 3)), pads=[1, 1, 1, 1]), [1, made, 9, 7]

    return make


def pooled(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.input("x", np.float32, [1, 3, 9, 8])
    return g.op("MaxPool", x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]), [1, 3, 5, 4]


def elementwise(g: GraphBuilder) -> tuple[str, list[int]]:
    return g.op("Mul", g.input("x", np.float32, [7, 5]), g.input("b", np.float32, [5])), [7, 5]


def reduced(kind: str) -> Make:
    return lambda g: (g.op(kind, g.input("x", np.float32, [7, 5]), axes=[1], keepdims=0), [7])


def normalized(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.op("Softmax", g.input("x", np.float32, [7, 5]), axis=-1)
    return g.op("LayerNormalization", x, g.weight(drawn(5)), axis=-1), [7, 5]


def unit(g: GraphBuilder) -> tuple[str, list[int]]:
    return g.op("Unsqueeze", g.op("Exp", g.input("x", np.float32, [7, 5])), g.const([0])), [1, 7, 5]


def moved(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.op("MatMul", g.input("x", np.float32, [24, 8]), g.weight(drawn(8, 6)))
    return g.op("Reshape", x, g.const([12, 12])), [12, 12]


def turned(g: GraphBuilder) -> tuple[str, list[int]]:
    """Heads are taken apart, and put together in another order."""
    x = g.op("MatMul", g.input("x", np.float32, [3, 8]), g.weight(drawn(8, 20)))
    return g.op("Exp", g.op("Transpose", g.op("Reshape", x, g.const([3, 5, 4])), perm=[1, 0, 2])), [5, 3, 4]


def sliced(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.op("Exp", g.input("x", np.float32, [7, 5]))
    first, second = (g.op("Slice", x, g.const([at]), g.const([at + 3]), g.const([1])) for at in (0, 2))
    return g.op("Concat", g.op("Exp", second), first, axis=1), [7, 6]


def gathered(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.op("Exp", g.input("x", np.float32, [7, 5]))
    return g.op("Exp", g.op("Gather", x, g.input("at", np.int64, [3]))), [3, 5]


def picked(g: GraphBuilder) -> tuple[str, list[int]]:
    return g.op("Gather", g.weight(drawn(20000, 9)), g.input("at", np.int64, [3])), [3, 9]


def fetched(g: GraphBuilder) -> tuple[str, list[int]]:
    return g.op("Exp", g.op("Gather", g.weight(drawn(200000, 9)), g.input("at", np.int64, [3]))), [3, 9]


def masked(g: GraphBuilder) -> tuple[str, list[int]]:
    """A place, compared with another; truths choose."""
    x, at = g.input("x", np.float32, [7, 5]), g.input("at", np.int64, [7, 5])
    above = g.op("Less", g.op("Add", at, g.const([1])), g.input("to", np.int64, [5]))
    return g.op("Where", above, g.op("Trilu", x, upper=0), x), [7, 5]


def pruned(g: GraphBuilder) -> tuple[str, list[int]]:
    w = drawn(64, 40) * (drawn(40, 64).T > 0.8)
    return g.op("MatMul", g.input("x", np.float32, [3, 64]), g.weight(w)), [3, 40]


def coded(g: GraphBuilder) -> tuple[str, list[int]]:
    codes, scales = (drawn(64, 40) * 30).astype(np.int8), np.abs(drawn(40))
    w = g.op("DequantizeLinear", g.weight(codes), g.weight(scales), axis=1)
    return g.op("MatMul", g.input("x", np.float32, [20, 64]), w), [20, 40]


def pruned_of_many_rows(g: GraphBuilder) -> tuple[str, list[int]]:
    w = drawn(256, 192) * (np.arange(256)[:, None] % 8 == np.arange(192) % 8)
    return g.op("MatMul", g.input("x", np.float32, [256, 256]), g.weight(w)), [256, 192]


def quantized(g: GraphBuilder) -> tuple[str, list[int]]:
    """By a weight of bytes, which cores hold as such."""
    x, w = g.input("x", np.int8, [24, 64]), g.weight((drawn(64, 40) * 30).astype(np.int8))
    made = g.op("MatMulInteger", x, w, g.weight(np.array(3, np.int8)), g.weight(np.array(-2, np.int8)))
    return g.op("Cast", made, to=1), [24, 40]


def of_integers(g: GraphBuilder) -> tuple[str, list[int]]:
    x, y = (g.input(name, np.int32, [24, 24]) for name in "ab")
    return g.op("Cast", g.op("MatMul", x, y), to=1), [24, 24]


def filtered_integers(g: GraphBuilder) -> tuple[str, list[int]]:
    x, w = g.input("x", np.int8, [1, 3, 9, 7]), g.weight((drawn(5, 3, 3, 3) * 30).astype(np.int8))
    made = g.op("ConvInteger", x, w, g.weight(np.array(3, np.int8)), pads=[1, 1, 1, 1])
    return g.op("Cast", made, to=1), [1, 5, 9, 7]


def scanned(g: GraphBuilder) -> tuple[str, list[int]]:
    return g.op("CumSum", g.input("x", np.float32, [7, 5]), g.weight(np.array(1, np.int64))), [7, 5]


def converted(g: GraphBuilder) -> tuple[str, list[int]]:
    """To floats of 8 bits, which cores hold, and back."""
    return g.op("Cast", g.op("Cast", g.input("x", np.float32, [7, 5]), to=17), to=1), [7, 5]


def cut(g: GraphBuilder) -> tuple[str, list[int]]:
    """As many rows as a run says."""
    rows = g.op("Slice", g.input("x", np.float32, [7, 5]), g.const([0]), g.input("n", np.int64, [1]), g.const([0]))
    return g.op("ReduceMax", g.op("Exp", rows), axes=[0], keepdims=0), [5]


def repeated(g: GraphBuilder) -> tuple[str, list[int]]:
    x, w, r = g.input("x", np.float32, [4, 2, 6]), g.weight(drawn(1, 5, 6)), g.weight(drawn(1, 5, 5))
    return g.op("RNN", x, w, r, hidden_size=5), [4, 1, 2, 5]


#: Per row of the table: a model, ops that it becomes, ops that stay outside.
ROWS: dict[str, tuple[tuple[Make, set[str], set[str]], ...]] = {
    "product, few rows": ((product(2, False), {"gemv", "local"}, set()),),
    "product": (
        (product(24, False), {"gemm", "local"}, set()),
        (left_turned, {"gemm", "local"}, set()),
        (batched, {"gemm", "local"}, set()),
    ),
    "product, transposed right operand": ((product(24, True), {"gemm_t", "local"}, set()),),
    "product with a pruned weight": ((pruned, {"allreduce", "local"}, set()),),
    "product with a weight of codes": ((coded, {"allreduce", "local"}, set()),),
    "product of many rows with either": ((pruned_of_many_rows, {"block_gemm"}, set()),),
    "product of integers, with zero points": (
        (of_integers, {"gemm", "local"}, set()),
        (quantized, {"allreduce", "local"}, set()),
        (filtered_integers, {"halo", "local"}, set()),
    ),
    "convolution, pooling": (
        (convolved(3, 5), {"halo", "local"}, set()),
        (convolved(40, 48), {"halo", "gemm", "local"}, {"linalg.generic", "tensor.collapse_shape"}),  # filters, once
        (pooled, {"halo", "local"}, set()),
    ),
    "elementwise, broadcasts": ((elementwise, {"local"}, set()), (converted, {"local"}, set())),
    "sum, product, maximum, minimum": (
        (reduced("ReduceMean"), {"allreduce", "local"}, set()),
        (reduced("ReduceMax"), {"allreduce"}, set()),
        (reduced("ReduceProd"), {"allreduce"}, set()),
    ),
    "softmax, layer normalization": ((normalized, {"allreduce", "local"}, set()),),
    "reshape, slice, concatenation, transposition of what the grid made": (
        (unit, {"local"}, set()),
        (moved, {"gemm", "local"}, set()),
        (turned, {"gemv", "local"}, set()),
        (sliced, {"local"}, set()),
    ),
    "loop, branch": ((repeated, {"gemv", "gemm_t", "relayout", "local"}, {"linalg.generic"}),),
    "gather": ((gathered, {"local"}, {"tensor.extract"}),),  # the host checks indices
    "gather of a large table": (
        (picked, {"local", "allreduce"}, {"tensor.extract"}),
        (fetched, {"local"}, {"linalg.generic", "tensor.extract"}),
    ),
    "integers, comparisons, indices": ((masked, {"local"}, set()),),
    "sizes of a run: slices, padding, elements that hold": (
        (cut, {"allreduce", "local"}, {"tensor.extract", "tensor.from_elements"}),  # the host says how many
    ),
    "loops that write single elements: scatter, scan, sort": ((scanned, {"local"}, set()),),
}
CASES = [(row, number) for row, cases in ROWS.items() for number in range(len(cases))]


@pytest.mark.parametrize(("row", "number"), CASES)
def test_a_row(row: str, number: int) -> None:
    make, wanted, outside = ROWS[row][number]
    g = GraphBuilder("row")
    result, shape = make(g)
    g.output(result, "y", np.float32, shape)
    text = tw.compile(g.model(), "mesh:toy8x8", stop_after="tile")
    assert {*re.findall(r"= coremesh\.([a-z_]+) %?", text)} - {"distribute", "assemble"} == wanted
    top = re.findall(r"^    (?:%\S+ = )?(linalg\.generic|tensor\.\w+)", text, re.M)
    assert {*top} - {"tensor.empty", "tensor.expand_shape"} == outside


def test_all_rows() -> None:
    table = README.read_text().partition("## What lowers")[2].partition("*Outside*")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows[1:] == [*ROWS]
