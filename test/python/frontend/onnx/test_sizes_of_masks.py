# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that exporters compute of a past and new tokens: known to be those of the keys, so that nothing broadcasts."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from models._graph import Graph

#: A read of a tensor by computed places: of what may have one row or many, or of what no map describes.
COMPUTED_READ = re.compile(r"tensor\.extract %\w+\[%[^\]]*,")
SIZES = [("batch", 2, "sequence", 4), ("batch", 2, "past", 4)]


def inputs(g: Graph) -> tuple[str, str, str, str]:
    """Queries and keys of new tokens and of a past, and the number of new and of all tokens."""
    queries, past = (g.input(n, np.float32, list(s)) for n, s in zip("qp", SIZES, strict=True))
    new, old = (g.op("Gather", g.op("Shape", x), g.const(2)) for x in (queries, past))
    return queries, past, new, g.op("Add", old, new)


def causal() -> Graph:
    """Scores with a mask made of ranges, as the exporter of TorchScript writes it."""
    g = Graph("causal", 17)
    queries, past, new, total = inputs(g)
    keys = g.op("Concat", past, queries, axis=2)
    rows = g.op("Unsqueeze", g.op("Range", g.op("Sub", total, new), total, g.const(1)), g.const([1]))
    columns = g.op("Range", g.const(0), total, g.const(1))
    mask = g.op("Where", g.op("LessOrEqual", columns, rows), g.f32(0.0), g.f32(-1e9))
    scores = g.op("MatMul", queries, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
    g.output(g.op("Add", scores, mask), "y", np.float32, ["batch", 2, "sequence", "total"])
    return g


def merged() -> Graph:
    """Keys transposed as a batch of matrices, their number and rows computed from the shape: a quotient of sums."""
    g = Graph("merged", 17)
    queries, past, _, total = inputs(g)
    keys = g.op("Concat", past, queries, axis=2)
    rows = g.op("Unsqueeze", total, g.const([0]))
    flat = g.op("Reshape", keys, g.op("Concat", g.const([-1]), rows, g.const([4]), axis=0))
    batch = g.op("Slice", g.op("Shape", keys), g.const([0]), g.const([1]))
    turned = g.op("Concat", batch, g.const([2, 4]), rows, axis=0)
    back = g.op("Reshape", g.op("Transpose", flat, perm=[0, 2, 1]), turned)
    g.output(g.op("MatMul", queries, back), "y", np.float32, ["batch", 2, "sequence", "total"])
    return g


@pytest.mark.parametrize("graph", [causal, merged])
def test_one_model_for_all_pasts(graph) -> None:
    model = graph().model()
    assert not COMPUTED_READ.search(tw.compile(model, stop_after="import"))
    compiled = tw.compile(model)
    assert compiled.general is not None
    random = np.random.default_rng(0)
    for batch, sequence, past in ((2, 3, 5), (1, 1, 0), (1, 4, 1), (3, 1, 20)):
        q, p = (random.standard_normal((batch, 2, n, 4)).astype(np.float32) for n in (sequence, past))
        keys = np.concatenate([p, q], 2)
        expected = q @ keys.transpose(0, 1, 3, 2)
        if graph is causal:
            allowed = np.arange(past + sequence) <= np.arange(past, past + sequence)[:, None]
            expected = expected + np.where(allowed, 0, -1e9).astype(np.float32)
        np.testing.assert_allclose(compiled(q, p)["y"], expected, rtol=1e-5, atol=1e-5)


def test_no_keys() -> None:
    """No keys at all: an entry of the reshapes' shapes is 0, and ONNX copies a size there that does not fit."""
    compiled = tw.compile(merged().model())
    q, p = np.zeros((1, 2, 0, 4), np.float32), np.zeros((1, 2, 0, 4), np.float32)
    with pytest.raises(tw.UserError, match="copies a dimension that the input .* does not have"):
        compiled(q, p)


def test_a_mask_with_a_size_of_its_own(tmp_path) -> None:
    """`total` is taken to be past + sequence; a mask of one column for all is served by code of its own."""
    g = Graph("masked", 17)
    queries, past, _, _ = inputs(g)
    mask = g.op("Unsqueeze", g.input("mask", np.float32, ["batch", "total"]), g.const([1, 2]))
    keys = g.op("Concat", past, queries, axis=2)
    scores = g.op("MatMul", queries, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
    g.output(g.op("Add", scores, mask), "y", np.float32, ["batch", 2, "sequence", "keys"])
    model = g.model()
    assert not COMPUTED_READ.search(tw.compile(model, stop_after="import"))
    compiled = tw.compile(model)
    random = np.random.default_rng(0)

    def case(sequence: int, before: int, total: int) -> tuple[list[np.ndarray], np.ndarray]:
        shapes = ((2, 2, sequence, 4), (2, 2, before, 4), (2, total))
        q, p, m = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
        return [q, p, m], q @ np.concatenate([p, q], 2).transpose(0, 1, 3, 2) + m[:, None, None]

    saved = tw.load(compiled.save(tmp_path / "model.tw"))
    for sizes in ((3, 5, 8), (1, 0, 1)):
        arrays, expected = case(*sizes)
        np.testing.assert_allclose(saved(*arrays)["y"], expected, rtol=1e-5, atol=1e-5)
    arrays, expected = case(3, 5, 1)
    message = "the size total must be that of what it meets, which follows from past and sequence"
    with pytest.raises(tw.UserError, match=f"{message}.*compile with sizes='each' or shapes="):
        saved(*arrays)
    np.testing.assert_allclose(compiled(*arrays)["y"], expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(tw.UserError):
        compiled(arrays[0], arrays[1], np.zeros((2, 7), np.float32))


def test_sizes_that_follow_from_each_other() -> None:
    """`total` is taken to be past + new, so `past` is not taken to be total + new as well: it would have no end."""
    g = Graph("circle", 17)
    past, new, total = (g.input(name, np.float32, [name]) for name in ("past", "new", "total"))
    g.output(g.op("Add", g.op("Concat", past, new, axis=0), total), "y", np.float32, [None])
    g.output(g.op("Add", g.op("Concat", total, new, axis=0), past), "z", np.float32, [None])
    text = tw.compile(g.model(), stop_after="import")
    assert "the size total must be that of what it meets, which follows from new and past" in text
    assert "the size past must be" not in text
