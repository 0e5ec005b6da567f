# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of sentences runs on their real tokens alone; results at these are those of the model that computes all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from models import bert
from models._graph import Graph
from tilewright.core.options import CompileOptions
from tilewright.mlir import ir
from tilewright.plan.sparse.padding import meetings
from tilewright.plan.sparse.padding.demanded import demanded_roles
from tilewright.plan.sparse.padding.tokens import Tokens
from tilewright.targets import registry

SIZES = dict(layers=2, hidden=24, heads=2, intermediate=40, vocabulary=100)


def masks(batch: int, longest: int) -> list[np.ndarray]:
    """Sentences of any number of tokens, of one, of all, of none beside others, padded on the left, with holes."""
    rng = np.random.default_rng(1)
    places, some = np.arange(longest), rng.integers(1, longest + 1, batch)[:, None]
    none = np.where(np.arange(batch) % 2, longest // 2, 0)[:, None]
    made = [places < some, places < np.ones((batch, 1)), np.ones((batch, longest)), places < none]
    made += [places >= longest - some, rng.integers(0, 2, (batch, longest))]
    return [one.astype(np.int64) for one in made]


def inputs(mask: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(0, 100, mask.shape),
        "attention_mask": mask,
        "token_type_ids": rng.integers(0, 2, mask.shape),
    }


def whole(model: Any) -> Any:
    pipeline = registry.parse_target("cpu").here().pipeline(CompileOptions()).without("tile-skip-padding")
    return tw.compile(model, threads=2, pipeline=pipeline)


def told(compiled: Any) -> list[str]:
    return [remark["message"] for remark in compiled.report_data()["remarks"]]


@pytest.fixture
def worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are worth a launch, however small the test's are."""
    monkeypatch.setattr(meetings, "_LAUNCHES", 1e9)
    monkeypatch.setattr(meetings, "_TASK", 1)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize(("batch", "longest", "style"), [(9, 31, "plain"), (9, 31, "export"), (1, 261, "export")])
def test_means_of_tokens(batch: int, longest: int, style: str) -> None:
    """Without an option; layers share what makes their mask, which one style has for each query."""
    model = bert.bert(batch=batch, sequence=longest, pooled=True, style=style, **SIZES)
    packed, other = tw.compile(model, threads=2), whole(model)
    assert "2 groups of operations where tokens meet run sentence by sentence" in told(packed)
    for mask in masks(batch, longest):
        found, wanted = packed(**inputs(mask))[0], other(**inputs(mask))[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert np.abs(wanted).max() > 0.1 or not mask.any()


@pytest.mark.usefixtures("worth")
def test_hidden_states() -> None:
    """With the option; a sentence without a token costs nothing."""
    model = bert.bert(batch=5, sequence=37, **{**SIZES, "layers": 1})
    packed, other = tw.compile(model, threads=2, padded="attention_mask"), whole(model)
    assert "1 groups of operations where tokens meet run sentence by sentence" in told(packed)
    for mask in [*masks(5, 37), np.zeros((5, 37), np.int64)]:
        found, wanted = np.asarray(packed(**inputs(mask))[0]), np.asarray(other(**inputs(mask))[0])
        np.testing.assert_allclose(found[mask == 1], wanted[mask == 1], rtol=1e-4, atol=1e-5)
        assert not found[mask == 0].any()


def attention(lowest: float | None) -> Any:
    """Softmax of scores between projections of tokens; `lowest` is added at padding."""
    random, f32 = np.random.default_rng(0), np.float32
    g = Graph("attention", 17)
    x, mask = g.input("x", f32, [4, 33, 16]), g.input("mask", f32, [4, 33])
    query, key, value = (g.op("MatMul", x, g.weight(random.standard_normal((16, 16), f32))) for _ in range(3))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1]))
    if lowest is not None:
        off = g.op("Mul", g.op("Sub", g.const(1.0, f32), mask), g.const(lowest, f32))
        scores = g.op("Add", scores, g.op("Unsqueeze", off, g.const([1])))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    g.output(g.op("MatMul", mixed, g.weight(random.standard_normal((16, 8), f32))), "y", f32, [4, 33, 8])
    return g.model()


@pytest.mark.usefixtures("worth")
def test_what_counts_padding_runs_on_it() -> None:
    """Scores without a mask: zeros at padding count in the softmax, as they did."""
    compiled = tw.compile(attention(None), padded="mask", threads=2)
    assert any("run on padding, too: padding is not surely hidden" in message for message in told(compiled))
    x = np.random.default_rng(3).standard_normal((4, 33, 16)).astype(np.float32)
    mask = (np.arange(33) < np.array([[3], [33], [12], [20]])).astype(np.float32)
    wanted = np.asarray(whole(attention(None))(x * mask[..., None], mask)[0])
    np.testing.assert_allclose(np.asarray(compiled(x, mask)[0]), wanted * mask[..., None], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("batch", "tasks", "launches", "why"),
    [(7, 1 << 20, 0, "too short for a launch"), (8, 0, 1e9, "a sentence has 0 tasks for")],
)
def test_sentences_that_are_too_short(
    batch: int, tasks: int, launches: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few points for a launch, or few tasks for the cores: all places are computed, and a remark says so."""
    model = bert.bert(batch=batch, sequence=40, pooled=True, **{**SIZES, "layers": 1})
    monkeypatch.setattr(meetings, "_tasks", lambda *_: tasks)
    monkeypatch.setattr(meetings, "_LAUNCHES", launches)
    assert any(why in message for message in told(tw.compile(model, threads=2)))


BIAS = """
#all = affine_map<(b, i, j) -> (b, i, j)>
#key = affine_map<(b, i, j) -> (b, j)>
#row = affine_map<(b, i, j) -> (b, i)>
func.func @main(%mask: tensor<4x33xf32>, %bias: tensor<4x33x33xf32>) -> tensor<4x33x33xf32> {
  %e = tensor.empty() : tensor<4x33x33xf32>
  %m = linalg.generic {indexing_maps = [MAP, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(READ) outs(%e : tensor<4x33x33xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x33x33xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #key, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%m, %mask, %mask : tensor<4x33x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>)
      outs(%e : tensor<4x33x33xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    %u = arith.mulf %t, %r : f32
    linalg.yield %u : f32
  } -> tensor<4x33x33xf32>
  return %s : tensor<4x33x33xf32>
}
"""


@pytest.mark.parametrize(
    ("access", "read", "roles"),
    [
        ("#all", "%bias : tensor<4x33x33xf32>", ("batch", "place", "")),
        ("#row", "%mask : tensor<4x33xf32>", ("batch", "place", "")),
        ("#key", "%mask : tensor<4x33xf32>", ("batch", "place", "place")),
    ],
)
def test_what_is_packed_by_rows_has_whole_rows(access: str, read: str, roles: tuple[str, ...]) -> None:
    """A bias of pairs of tokens, packed as rows of tokens, has all places in them, also where padding is among these.

    A mask that is the same for all queries is not packed: each sentence has its own.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(BIAS.replace("MAP", access).replace("READ", read))
        tokens = Tokens(module.body.operations[0].operation.regions[0].blocks[0], (4, 33))
        made = next(op for op in tokens.block.operations if op.operation.name == "linalg.generic")
        assert tuple(demanded_roles(tokens)[made.operation.results[0]]) == roles
