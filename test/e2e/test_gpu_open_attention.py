# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for a GPU over sizes that a run brings: one kernel, or parts of the keys and one that combines them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from gpu_plans import planned
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.bisection.entry import interpret
from tilewright.compiler.source import open_source

Size = int | str


@dataclass(frozen=True)
class Case:
    """The operator Attention on `q` [batch, heads, queries, channels], `k` and `v` [batch, groups, keys, channels].

    Attributes:
        shape: batch, heads, groups, queries, keys, channels; names are sizes that a run brings.
        runs: values of these sizes.
        kernels: launches of which a run is made, those that append to a cache not counted.
        past: keys of a cache before the new ones.
        mask: whether a table of truth values masks keys.
        attributes: of the operator.
    """

    shape: tuple[Size, Size, Size, Size, Size, Size]
    runs: list[dict[str, int]]
    kernels: int = 1
    past: Size | None = None
    mask: bool = False
    kind: str = "float16"
    attributes: dict[str, int] = field(default_factory=dict)


CASES = {
    "sequence": Case(("b", 4, 4, "s", "s", 64), [{"b": 1, "s": 100}, {"b": 2, "s": 192}, {"b": 1, "s": 65}]),
    "grouped": Case((1, 4, 2, "s", "t", 64), [{"s": 100, "t": 200}, {"s": 33, "t": 64}, {"s": 40, "t": 1}]),
    "causal": Case(("b", 4, 2, "s", "s", 32), [{"b": 1, "s": 100}, {"b": 1, "s": 192}], 2, attributes={"is_causal": 1}),
    "window": Case((1, 2, 2, "s", "s", 64), [{"s": 192}], 2, attributes={"is_causal": 1, "left_window_size": 50}),
    "masked": Case(("b", 2, 2, "s", "s", 64), [{"b": 1, "s": 100}, {"b": 2, "s": 130}], mask=True),
    "f32": Case(("b", 2, 2, "s", "s", 32), [{"b": 1, "s": 100}, {"b": 2, "s": 70}], kind="float32"),
    "decode": Case((1, 32, 8, 1, 1, 64), [{"p": 0}, {"p": 63}, {"p": 600}], 2, past="p"),
    "ragged": Case((1, 8, 2, 1, 4999, 64), [{}], 2),
}


def operator(case: Case) -> onnx.ModelProto:
    batch, heads, groups, queries, keys, channels = case.shape
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(case.kind))
    shapes: dict[str, list[Size]] = {
        "q": [batch, heads, queries, channels],
        "k": [batch, groups, keys, channels],
        "v": [batch, groups, keys, channels],
    }
    names, results = ["q", "k", "v"], {"y": shapes["q"]}
    inputs = [helper.make_tensor_value_info(n, kind, shape) for n, shape in shapes.items()]
    if case.mask:
        names.append("m")
        inputs.append(helper.make_tensor_value_info("m", TensorProto.BOOL, [batch, 1, queries, keys]))
    if case.past is not None:
        names += ["" for _ in range(4 - len(names))] + ["pk", "pv"]
        for name in ("pk", "pv"):
            inputs.append(helper.make_tensor_value_info(name, kind, [batch, groups, case.past, channels]))
            results["n" + name] = [batch, groups, "all", channels]
    node = helper.make_node("Attention", names, list(results), **case.attributes)
    outputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in results.items()]
    graph = helper.make_graph([node], "operator", inputs, outputs)
    opset = 25 if "left_window_size" in case.attributes else 23
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def feeds_of(case: Case, sizes: dict[str, int], rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of a run, and the result in f64."""

    def drawn(*shape: Size) -> np.ndarray:
        return rng.standard_normal([sizes.get(s, s) if isinstance(s, str) else s for s in shape]).astype(case.kind)

    batch, heads, groups, queries, keys, channels = case.shape
    q, k, v = drawn(batch, heads, queries, channels), *(drawn(batch, groups, keys, channels) for _ in "kv")
    feeds = [q, k, v]
    if case.past is not None:
        past = [drawn(batch, groups, case.past, channels) for _ in "kv"]
        feeds += past
        k, v = (np.concatenate(pair, axis=2) for pair in zip(past, (k, v), strict=True))
    back = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - np.arange(k.shape[2])
    seen = (back >= 0) if case.attributes.get("is_causal") else np.ones(back.shape, bool)
    if "left_window_size" in case.attributes:
        seen &= back <= case.attributes["left_window_size"]
    if case.mask:
        given = rng.random((q.shape[0], 1, *seen.shape)) < 0.7
        given[..., 0] = True
        feeds.append(given)
        seen = seen & given[:, :, None]
    grouped = q.astype(np.float64).reshape(q.shape[0], k.shape[1], -1, *q.shape[2:])
    scores = np.einsum("bghqd,bgkd->bghqk", grouped, k.astype(np.float64)) / np.sqrt(q.shape[3])
    scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    result = np.einsum("bghqk,bgkd->bghqd", powers / powers.sum(-1, keepdims=True), v.astype(np.float64))
    return feeds, result.reshape(q.shape)


def check(case: Case, run: Any) -> None:
    rng = np.random.default_rng(0)
    for sizes in case.runs:
        feeds, want = feeds_of(case, sizes, rng)
        tolerance = 4e-3 if case.kind == "float16" else 1e-5
        np.testing.assert_allclose(np.asarray(run(feeds)).astype(np.float64), want, atol=tolerance)


@pytest.mark.parametrize("device", ["nvidia-a100", "nvidia-h100"])
@pytest.mark.parametrize("name", CASES)
def test_open_sizes_take_one_loop_over_blocks_of_keys(name: str, device: str) -> None:
    case = CASES[name]
    model = operator(case)
    after = planned(model, device)[1]
    text = str(after.module)
    assert text.count("tile.launch @") == case.kernels + (4 if case.past else 0)
    assert "steps, " in text and "tile.alloc" not in text, "a chain in blocks, whose values are in registers"
    if case.shape[3] == 1:
        assert re.search(r"scf.for %\w+ = %(?!c\d)\w+ to %(?!c\d)", text), "a task of a part runs its own steps"
    outputs = open_source(model).load(None, True).outputs
    check(case, lambda feeds: interpret(after, feeds, outputs)[0])


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["sequence", "causal", "decode"])
def test_on_the_emulator(name: str, arch: str) -> None:
    case = CASES[name]
    for seed in range(2):
        model = tw.compile(operator(case), target=f"cuda:{arch}", emulate={"seed": seed})
        check(case, lambda feeds, model=model: model(*feeds)[0])


def test_queries_of_open_sizes_are_warpgroups_with_one_that_loads(tmp_path: Any) -> None:
    """Sizes that are equal in any run are one value in the kernel: TMA's boxes then end with their tensors."""
    model = tw.compile(operator(CASES["sequence"]), target="cuda:sm_90a", emulate=True)
    model.save(tmp_path / "m")
    text = "\n".join(path.read_text() for path in (tmp_path / "m").rglob("*.ptx"))
    assert "wgmma.mma_async" in text and "cp.async.bulk.tensor" in text and "setmaxnreg" in text
