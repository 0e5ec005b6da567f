# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of pruning: what their text means, what they keep beside loops in plain Python; products of a graph."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile import NM, Block, Encoded, Mask, Tesa
from tilewright.frontend.pruning.choice import choose
from tilewright.frontend.pruning.products import Products, Weights
from tilewright.frontend.pruning.requests import Share, Windows, parse


def scores(*shape, seed=0):
    return np.random.default_rng(seed).random(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2:4", Windows("2:4", 2, 4)),
        (" 8:32/32", Windows(" 8:32/32", 8, 32, 1, 32)),
        ("2:4/4x8", Windows("2:4/4x8", 2, 4, 4, 8)),
        ("block:32x16@0.9", Share("block:32x16@0.9", "block", 0.9, 32, 16)),
        ("Unstructured@95%", Share("Unstructured@95%", "unstructured", 0.95)),
        ("channels@.5", Share("channels@.5", "channels", 0.5)),
        ("heads:12@0.7", Share("heads:12@0.7", "heads", 0.7, heads=12)),
    ],
)
def test_patterns_are_read(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2:1", "2 of 1 cannot stay"),
        ("0:4", "0 of 4 cannot stay"),
        ("2:40000", "at most 32768"),
        ("2:4/0", "1 x 0"),
        ("block:0x4@0.5", "0 x 4"),
        ("block:99999999999x4@0.5", "below 2\\^31"),
        ("unstructured@1", "below 1, not 1"),
        ("unstructured@1.2.3", "'1.2.3' is no number"),
        ("unstructured@100%", "not 100%"),
        ("unstructured", "no pattern has this form"),
        ("heads@0.5", "no pattern has this form"),
        ("-2:4", "no pattern has this form"),
        ("", "no pattern has this form"),
        (2, "a text is needed, not int"),
    ],
)
def test_what_is_no_pattern_is_told_with_the_grammar(text, message):
    with pytest.raises(UserError, match=message) as caught:
        parse(text)
    assert repr(text) in str(caught.value) and "N of M neighbouring inputs stay" in str(caught.value)


@pytest.mark.parametrize("text", ["2:4", "1:4/3", "3:8/2x2", "3:5", "2:3/4x1", "4:4"])
@pytest.mark.parametrize("shape", [(1, 24, 12), (2, 23, 7), (1, 1, 1), (1, 3, 5), (1, 0, 4), (1, 4, 0)])
def test_windows_keep_their_largest_units(text, shape):
    request, given = parse(text), scores(*shape)
    kept = request.keep(given)
    assert kept.shape == shape and kept.dtype == bool
    step, width = request.depth, request.width
    for p in range(shape[0]):
        for column in range(0, shape[2], width):
            for window in range(0, shape[1], request.m * step):
                starts = range(window, min(window + request.m * step, shape[1]), step)
                sums = {k: given[p, k : k + step, column : column + width].sum() for k in starts}
                best = sorted(sums, key=sums.get, reverse=True)[: request.n]
                for k in starts:
                    assert (kept[p, k : k + step, column : column + width] == (k in best)).all()
        if given.size:
            Encoded.pack(np.where(kept[p], given[p] + 1, 0), Tesa.one(request.pattern))  # UserError where it fits not


def test_of_equal_scores_the_first_stay():
    kept = parse("2:4").keep(np.ones((1, 8, 2), np.float32))
    np.testing.assert_array_equal(kept[0, :, 0], [1, 1, 0, 0, 1, 1, 0, 0])


@pytest.mark.parametrize("shape", [(1, 24, 12), (2, 23, 7), (1, 1, 1)])
def test_blocks_of_the_smallest_scores_go(shape):
    kept, given = parse("block:4x3@0.6").keep(scores(*shape)), scores(*shape)
    blocks = [(p, k, n) for p in range(shape[0]) for k in range(0, shape[1], 4) for n in range(0, shape[2], 3)]
    sums = {at: given[at[0], at[1] : at[1] + 4, at[2] : at[2] + 3].sum() for at in blocks}
    gone = sorted(sums, key=sums.get)[: round(0.6 * len(blocks))]
    for p, k, n in blocks:
        assert (kept[p, k : k + 4, n : n + 3] == ((p, k, n) not in gone)).all()


def test_unstructured_compares_all_or_within_an_output():
    given = scores(2, 10, 6) * np.arange(1, 7)
    for by_output in (False, True):
        kept = parse("unstructured@0.75").keep(given, by_output)
        assert kept.sum() == 30
        assert (kept.sum(axis=(0, 1)) == 5).all() == by_output
    assert given[parse("unstructured@0.75").keep(given)].min() >= given[~parse("unstructured@0.75").keep(given)].max()


def test_channels_and_heads_are_whole():
    given = scores(3, 12, 5)
    kept = parse("channels@0.5").keep(given)
    rows = kept.all(axis=(0, 2))
    assert (kept == rows[None, :, None]).all() and rows.sum() == 6
    sums = given.sum(axis=(0, 2))
    assert sums[rows].min() >= sums[~rows].max()
    heads = parse("heads:4@0.5").keep(given)[0, :, 0].reshape(4, 3)
    assert (heads.all(axis=1) == heads.any(axis=1)).all() and heads.all(axis=1).sum() == 2
    with pytest.raises(UserError, match="12 inputs cannot be cut into 5 groups"):
        parse("heads:5@0.5").keep(given)


def test_patterns_of_the_dialect():
    assert parse("2:4").pattern == NM(2, 4, 0)
    assert parse("2:4/4x8").pattern == NM(2, 4, 0, (4, 8))
    assert parse("block:4x8@0.5").pattern == Block((4, 8))
    assert parse("unstructured@0.5").pattern == Mask()


def graph_of(nodes, arrays, inputs=("x",), outputs=("y",)):
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)  # noqa: E731
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    return helper.make_model(
        helper.make_graph(nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs], weights)
    )


def products_of(model):
    return Products(model.graph, Weights(model, ""))


def node(op, *inputs, y="y", **attributes):
    return helper.make_node(op, list(inputs), [y], name=f"the_{op}", **attributes)


RNG = np.random.default_rng(3)
W = RNG.standard_normal((6, 4)).astype(np.float32)
FILTER = RNG.standard_normal((6, 2, 3, 2)).astype(np.float32)

# A node, its weight, and the weight of input i and output o in group g at position p.
CASES = {
    "MatMul": (node("MatMul", "x", "w"), W, lambda g, p, i, o: W[i, o]),
    "MatMul, left": (node("MatMul", "w", "x"), W, lambda g, p, i, o: W[o, i]),
    "MatMul, experts": (node("MatMul", "x", "w"), FILTER, lambda g, p, i, o: FILTER[g // 2, g % 2, i, o]),
    "Gemm": (node("Gemm", "x", "w"), W, lambda g, p, i, o: W[i, o]),
    "Gemm, transB": (node("Gemm", "x", "w", transB=1), W, lambda g, p, i, o: W[o, i]),
    "Gemm, left": (node("Gemm", "w", "x", transB=1), W, lambda g, p, i, o: W[o, i]),
    "Gemm, left, transA": (node("Gemm", "w", "x", transA=1), W, lambda g, p, i, o: W[i, o]),
    "Conv": (node("Conv", "x", "w"), FILTER, lambda g, p, i, o: FILTER[o, i, p // 2, p % 2]),
    "Conv, groups": (node("Conv", "x", "w", group=3), FILTER, lambda g, p, i, o: FILTER[2 * g + o, i, p // 2, p % 2]),
    "ConvTranspose": (
        node("ConvTranspose", "x", "w", group=2),
        FILTER,
        lambda g, p, i, o: FILTER[3 * g + i, o, p // 2, p % 2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_seen_as_products(name):
    made, weight, element = CASES[name]
    model = graph_of([made], {"w": weight})
    (use,) = products_of(model).found["w"]
    seen = use.view.apply(weight)
    assert seen.shape == use.view.sizes and seen.size == weight.size
    for at in np.ndindex(seen.shape):
        assert seen[at] == element(*at)
    np.testing.assert_array_equal(use.view.undo(seen, weight.shape), weight)


def test_a_weight_is_found_behind_a_transposition():
    model = graph_of([node("Transpose", "w", y="t"), node("Identity", "t", y="u"), node("MatMul", "x", "u")], {"w": W})
    (use,) = products_of(model).found["w"]
    np.testing.assert_array_equal(use.view.apply(W)[0, 0], W.T)
    np.testing.assert_array_equal(use.view.undo(use.view.apply(W), W.shape), W)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("MatMul", (3, 5, 6), lambda x: [(x**2).sum(axis=(0, 1))]),
        ("MatMul", (6,), lambda x: [x**2]),
        ("MatMul, left", (2, 4, 5), lambda x: [(x**2).sum(axis=(0, 2))]),
        ("MatMul, experts", (6, 2, 5, 3), lambda x: (x.reshape(12, 5, 3) ** 2).sum(axis=1)),
        ("MatMul, experts", (5, 3), lambda x: [(x**2).sum(axis=0)]),
        ("Gemm", (5, 6), lambda x: [(x**2).sum(axis=0)]),
        ("Gemm, left", (5, 4), lambda x: [(x**2).sum(axis=0)]),
        ("Conv", (3, 2, 8, 7), lambda x: [(x**2).sum(axis=(0, 2, 3))]),
        ("Conv, groups", (3, 6, 8, 7), lambda x: (x**2).sum(axis=(0, 2, 3)).reshape(3, 2)),
    ],
)
def test_squares_of_inputs(name, x, expected):
    made, weight, _ = CASES[name]
    (use,) = products_of(graph_of([made], {"w": weight})).found["w"]
    x = RNG.standard_normal(x).astype(np.float32)
    np.testing.assert_allclose(use.squares(x), expected(x.astype(np.float64)), rtol=1e-12)


def test_weights_that_others_read_stay():
    tied = graph_of([node("Gather", "w", "i", y="x"), node("MatMul", "x", "w")], {"w": W, "i": np.array([0])}, ())
    assert products_of(tied).refused == {"w": "Gather reads it, too"}
    ways = graph_of([node("MatMul", "x", "w", y="z"), node("Gemm", "z", "w", transB=1)], {"w": W})
    assert products_of(ways).refused == {"w": "it is read in different ways"}
    result = graph_of([node("MatMul", "x", "w")], {"w": W}, outputs=("y", "w"))
    assert products_of(result).refused == {"w": "the graph's results reads it, too"}
    twice = graph_of([node("MatMul", "x", "w", y="z"), node("MatMul", "v", "w")], {"w": W}, ("x", "v"))
    assert len(products_of(twice).found["w"]) == 2
    bytes_ = graph_of([node("MatMul", "x", "w")], {"w": W.astype(np.int32)})
    assert "no floats" in products_of(bytes_).refused["w"]


def test_constants_of_nodes_and_sparse_initializers_count():
    rows, columns = np.nonzero(W > 0)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(W[rows, columns], "v"), numpy_helper.from_array(rows * 4 + columns, "i"), W.shape
    )
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(W, "inner"))
    model = graph_of([constant, node("MatMul", "x", "w", y="z"), node("MatMul", "z", "v")], {})
    model.graph.sparse_initializer.append(sparse)
    weights = Weights(model, "")
    np.testing.assert_array_equal(weights.read("v"), np.maximum(W, 0))
    np.testing.assert_array_equal(weights.read("w"), W)
    assert not model.graph.sparse_initializer and [n.op_type for n in model.graph.node] == ["MatMul", "MatMul"]


def test_names_choose_and_ends_stay():
    made = [node("MatMul", "x", "a", y="h"), helper.make_node("Relu", ["h"], ["r"])]
    made += [helper.make_node("MatMul", ["r", "b"], ["s"], name="second"), node("Softmax", "s")]
    model = graph_of(made, {"a": W, "b": W.T.copy()})
    products, request = products_of(model), parse("2:4")
    choice = choose(model.graph, products, request)
    assert list(choice.pruned) == ["a"] and "layer that makes results" in choice.left["b"]
    assert list(choose(model.graph, products, request, ["sec*"]).pruned) == ["b"]
    assert list(choose(model.graph, products, request, None, ["a"]).pruned) == ["b"], "the only one left is no end"
    with pytest.raises(UserError, match="no layer has the name 'c'; there are the_MatMul"):
        choose(model.graph, products, request, ["c"])
    with pytest.raises(UserError, match="no weight of the model can be pruned"):
        choose(model.graph, products, request, None, ["*"])
