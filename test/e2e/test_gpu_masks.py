# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose masks and lengths a run brings: one kernel on GPUs, as the exporters of models write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu_plans import planned
from onnx import helper, numpy_helper

import tilewright as tw

LOW = -np.inf
DEVICES = {"sm_80": "nvidia-a100", "sm_90a": "nvidia-h200"}


@dataclass(frozen=True)
class Sizes:
    """Of queries [batch, heads, queries, channels], and of keys and values [batch, groups, keys, channels]."""

    batch: int = 2
    heads: int = 4
    groups: int = 4
    queries: int = 100
    keys: int = 197
    channels: int = 64
    kind: str = "float16"

    @property
    def dtype(self) -> np.dtype:
        """Of all tensors but masks."""
        return np.dtype(getattr(ml_dtypes, self.kind, self.kind))


@dataclass
class Case:
    """A model under construction: nodes, constants, inputs of a run, and what a mask leaves and adds."""

    sizes: Sizes
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    seen: np.ndarray | None = None
    added: np.ndarray | None = None

    def add(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        """One node; returns its output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: object, dtype: np.dtype | None = None) -> str:
        """A constant of the element type, unless another one is given."""
        array = np.asarray(value, self.sizes.dtype if dtype is None else dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def shape(self, rows: bool) -> tuple[int, ...]:
        """Of a mask for all heads: for each row, or for all rows."""
        return self.sizes.batch, 1, self.sizes.queries if rows else 1, self.sizes.keys

    def lengths(self) -> np.ndarray:
        """Keys that are there, per batch."""
        return self.random.integers(1, self.sizes.keys + 1, self.sizes.batch)

    def prefixes(self) -> np.ndarray:
        """Which keys are there, per batch."""
        return np.arange(self.sizes.keys) < self.lengths()[:, None]


def _numbers_per_key(case: Case, scores: str) -> str:
    case.feeds["mask"] = np.where(case.prefixes(), 0, -10000.0).astype(case.sizes.dtype)[:, None, None]
    case.added = case.feeds["mask"]
    return case.add("Add", [scores, "mask"], "masked")


def _numbers_per_head(case: Case, scores: str) -> str:
    shape = (case.sizes.batch, case.sizes.heads, case.sizes.queries, case.sizes.keys)
    case.feeds["mask"] = case.added = case.random.standard_normal(shape).astype(case.sizes.dtype)
    return case.add("Add", [scores, "mask"], "masked")


def _choices(case: Case, scores: str) -> str:
    case.feeds["mask"] = case.random.random(case.shape(rows=True)) < 0.5
    case.feeds["mask"][..., 0] = True
    case.seen = case.feeds["mask"]
    return case.add("Where", ["mask", scores, case.constant("low", LOW)], "masked")


def _extended(case: Case, scores: str) -> str:
    """BERT's: integers of a run, made into large negative numbers."""
    case.feeds["mask"] = case.prefixes().astype(np.int64)
    case.added = np.where(case.feeds["mask"], 0, -10000.0)[:, None, None]
    axes = case.constant("axes", [1, 2], np.dtype(np.int64))
    wide = case.add("Unsqueeze", ["mask", axes], "wide")
    cast = case.add("Cast", [wide], "cast", to=helper.np_dtype_to_tensor_dtype(case.sizes.dtype))
    hidden = case.add("Sub", [case.constant("one", 1), cast], "hidden")
    return case.add("Add", [scores, case.add("Mul", [hidden, case.constant("far", -10000)], "bias")], "masked")


def _exported(case: Case, scores: str) -> str:
    """PyTorch's: i1 becomes 0 and -inf, and rows that see nothing (one per batch) become zeros."""
    case.feeds["mask"] = case.random.random(case.shape(rows=True)) < 0.5
    case.feeds["mask"][:, :, case.sizes.queries // 2] = False
    case.seen = case.feeds["mask"]
    numbers = case.add("Where", ["mask", case.constant("zero", 0), case.constant("low", LOW)], "numbers")
    return case.add("Add", [scores, numbers], "masked")


SOFTMAX: dict[str, Callable[[Case, str], str]] = {
    "numbers per key": _numbers_per_key,
    "numbers per head": _numbers_per_head,
    "choices": _choices,
    "integers (BERT)": _extended,
    "exported by PyTorch": _exported,
}


def decomposed(name: str, sizes: Sizes, seed: int = 0) -> Case:
    """Two products with a softmax between."""
    case = Case(sizes, np.random.default_rng(seed))
    case.add("MatMul", ["q", case.add("Transpose", ["k"], "t", perm=[0, 1, 3, 2])], "products")
    scores = case.add("Mul", ["products", case.constant("scale", sizes.channels**-0.5)], "scores")
    p = case.add("Softmax", [SOFTMAX[name](case, scores)], "p", axis=-1)
    if name == "exported by PyTorch":
        p = case.add("Where", [case.add("IsNaN", [p], "bad"), case.constant("none", 0), p], "guarded")
    case.add("MatMul", [p, "v"], "y")
    return case


def operator(name: str, sizes: Sizes, seed: int = 0) -> Case:
    """The operator Attention."""
    case = Case(sizes, np.random.default_rng(seed))
    names = ["q", "k", "v"]
    if name == "lengths":
        lengths = case.feeds["lengths"] = case.lengths()
        case.seen = (np.arange(sizes.keys) < lengths[:, None])[:, None, None]
        names += ["", "", "", "lengths"]
    else:
        mask = case.random.random(case.shape(rows=True)) < 0.5
        mask[:, :, sizes.queries // 2] = False
        case.seen = mask
        case.feeds["mask"] = mask if name == "choices" else np.where(mask, 0, LOW).astype(sizes.dtype)
        names.append("mask")
    case.add("Attention", names, "y")
    return case


OPERATOR = ("lengths", "choices", "numbers")


def build(case: Case) -> tuple[onnx.ModelProto, list[np.ndarray], np.ndarray]:
    """The model, its inputs, and its result in f64; rows that see nothing are zeros."""
    s = case.sizes
    shapes = {"q": (s.heads, s.queries), "k": (s.groups, s.keys), "v": (s.groups, s.keys)}
    feeds = {n: case.random.standard_normal((s.batch, *z, s.channels)).astype(s.dtype) for n, z in shapes.items()}
    q, k, v = (array.astype(np.float64) for array in feeds.values())
    k, v = (np.repeat(x, s.heads // s.groups, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * s.channels**-0.5
    scores = scores if case.added is None else scores + case.added.astype(np.float64)
    scores = scores if case.seen is None else np.where(case.seen, scores, LOW)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    feeds |= case.feeds
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(s.dtype), q.shape)
    graph = helper.make_graph(case.nodes, "masked", inputs, [result], case.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    return model, list(feeds.values()), powers @ v / np.where(total == 0, 1, total)


def check(case: Case, arch: str) -> None:
    """The emulator's result under several orders of what may happen in any order."""
    model, feeds, expected = build(case)
    tolerance = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[case.sizes.kind] * max(np.abs(expected).max(), 1)
    for seed in (1, 2):
        compiled = tw.compile(model, target=f"cuda:{arch}", emulate={"seed": seed})
        actual = np.asarray(compiled(*feeds)[0]).astype(np.float64)
        np.testing.assert_allclose(actual, expected, atol=tolerance)


@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("name", SOFTMAX)
def test_masks_of_a_run_are_added_in_the_one_kernel(name: str, kind: str, arch: str) -> None:
    """What makes a small mask may be a kernel of its own, for all layers; scores are never in memory."""
    sizes = Sizes(4, 32, 32, 256, 512, 64, kind)
    text = str(planned(build(decomposed(name, sizes))[0], DEVICES[arch])[1].module)
    assert text.count("tile.launch @product_max_exp") == 1
    assert text.count("tile.launch") <= 2
    if name != "numbers per head":
        assert "4x32x256x512xf" not in text, "scores"


@pytest.mark.slow
@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("name", SOFTMAX)
def test_masks_of_a_run(name: str, arch: str) -> None:
    check(decomposed(name, Sizes()), arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("name", OPERATOR)
def test_masks_and_lengths_of_the_operator(name: str, arch: str) -> None:
    """Keys that heads share, of a number that no block divides."""
    sizes = Sizes(groups=1, keys=300, kind="bfloat16")
    model = build(operator(name, sizes))[0]
    text = str(planned(model, DEVICES[arch])[1].module)
    assert text.count("tile.launch @product_max_exp") == 1 and text.count("tile.launch") <= 2
    check(operator(name, sizes), arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", DEVICES)
def test_wide_heads_with_a_mask_take_fewer_rows(arch: str) -> None:
    """Sums of 64 rows of 256 channels leave four warps no registers for a mask."""
    check(decomposed("choices", Sizes(1, 2, 2, 77, 100, 256, "bfloat16")), arch)
