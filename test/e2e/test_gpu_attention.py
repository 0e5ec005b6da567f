# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for a GPU is one kernel: a loop over blocks of keys whose scores never leave registers."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu_plans import planned
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.bisection.entry import interpret
from tilewright.compiler.source import open_source

CASES = [
    # heads, queries, keys, channels, type, causal
    (2, 130, 300, 40, np.float32, False),
    (2, 256, 256, 64, np.float16, True),
    (3, 192, 321, 24, np.float16, False),
    (4, 200, 200, 32, np.float32, True),
]


def attention(
    heads: int, queries: int, keys: int, channels: int, kind: type, causal: bool, window: int = 1 << 30
) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(channels) [+ mask]) v; a causal query sees `window` keys, the last one at its own place."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    constants = [numpy_helper.from_array(np.asarray(channels**-0.5, kind), "scale")]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
    ]
    if causal:
        back = np.arange(queries)[:, None] - np.arange(keys)
        mask = np.where((back >= 0) & (back < window), 0, -np.inf).astype(kind)
        constants.append(numpy_helper.from_array(mask, "mask"))
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
    nodes.append(helper.make_node("Softmax", ["masked" if causal else "scaled"], ["p"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["p", "v"], ["y"]))
    shapes = {"q": queries, "k": keys, "v": keys}
    inputs = [helper.make_tensor_value_info(n, element, [1, heads, size, channels]) for n, size in shapes.items()]
    graph = helper.make_graph(
        nodes, "attention", inputs, [helper.make_tensor_value_info("y", element, None)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def operator(
    batch: int, heads: int, groups: int, queries: int, keys: int, channels: int, kind: str, **attributes: int
) -> onnx.ModelProto:
    """The operator Attention: `q` [batch, heads, queries, channels], `k` and `v` [batch, groups, keys, channels]."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    shapes = {"q": (heads, queries), "k": (groups, keys), "v": (groups, keys)}
    inputs = [helper.make_tensor_value_info(n, element, [batch, *sizes, channels]) for n, sizes in shapes.items()]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], **attributes)
    result = helper.make_tensor_value_info("y", element, [batch, heads, queries, channels])
    graph = helper.make_graph([node], "operator", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_runs_in_blocks_of_keys(case: tuple) -> None:
    model = attention(*case)
    before, after = planned(model, "nvidia-h100")
    text = str(after.module)
    assert text.count("tile.kernel @") == 1
    assert "tile.alloc" not in text, "what blocks hand on is in registers"
    assert re.search(r"iter_args\(.*tile\.tile<\d+x1xf32>", text), "the loop carries maxima and sums"
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(i.shape).astype(case[4]) for i in open_source(model).load(None, True).inputs]
    outputs = open_source(model).load(None, True).outputs
    (expected,), (actual,) = interpret(before, feeds, outputs), interpret(after, feeds, outputs)
    tolerance = 4e-3 if case[4] is np.float16 else 1e-5
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), atol=tolerance)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_the_operator_is_one_kernel_that_reads_keys_as_they_lie(kind: type) -> None:
    """ONNX rounds scores, maxima, exponentials and sums, and scales queries and keys: no reason for more kernels."""
    model = operator(1, 6, 2, 96, 160, 32, np.dtype(kind).name, is_causal=1)
    before, after = planned(model, "nvidia-h100")
    text = str(after.module)
    assert text.count("tile.kernel @") == 1 and text.count("tile.launch") == 1
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(i.shape).astype(kind) for i in open_source(model).load(None, True).inputs]
    outputs = open_source(model).load(None, True).outputs
    (expected,), (actual,) = interpret(before, feeds, outputs), interpret(after, feeds, outputs)
    tolerance = {2: 3e-3 if kind is np.float16 else 3e-2, 4: 1e-5}[np.dtype(kind).itemsize]
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), atol=tolerance)


def test_positions_of_keys_go_through_the_ring_as_one_row() -> None:
    """A slot of one row has no swizzle, whose pattern would differ from slot to slot."""
    model = operator(1, 4, 4, 192, 320, 64, "float16", is_causal=1)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 4, n, 64)).astype(np.float16) for n in (192, 320, 320))
    y = tw.compile(model, target="cuda:sm_80", emulate=True)(q, k, v)
    s = np.einsum("bhqd,bhkd->bhqk", q.astype(np.float32), k.astype(np.float32)) / 8
    s = np.where(np.arange(320) <= np.arange(192)[:, None], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    expected = (p / p.sum(-1, keepdims=True)) @ v.astype(np.float32)
    np.testing.assert_allclose(np.asarray(y[0] if isinstance(y, list | tuple) else y), expected, atol=4e-3)


def test_a_causal_mask_ends_the_loop_early() -> None:
    text = str(planned(attention(2, 256, 256, 64, np.float16, True))[1].module)
    assert re.search(r"scf\.for %\w+ = %c0 to %(?!c\d)\w+ step %c64", text), "the last block follows from the task"


def test_keys_and_values_go_through_a_ring() -> None:
    text = str(planned(attention(8, 256, 1024, 64, np.float16, False))[1].module)
    assert re.search(r"\{tile\.stages = \d : i64\}", text)


@pytest.mark.parametrize("device", ["nvidia-a100", "nvidia-h100"])
def test_a_sliding_window_skips_keys_at_both_ends(device: str) -> None:
    """Each task runs from the block of its first visible key to that of its last one: no constant is a bound."""
    keys, window = 1024, 256
    model = attention(2, keys, keys, 64, np.float16, True, window)
    after = planned(model, device)[1]
    loops = re.findall(r"scf\.for %\w+ = (%\w+) to (%\w+) step %c(\d+)", str(after.module))
    (low, high, block) = max(loops, key=lambda loop: int(loop[2]))
    assert not re.match(r"%c\d", low) and not re.match(r"%c\d", high)
    assert int(block) <= window // 2, "blocks finer than the window"
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(i.shape).astype(np.float16) for i in open_source(model).load(None, True).inputs]
    for feed in feeds[1:]:
        feed[:, :, : keys // 2] = np.nan  # the last queries see nothing of these: what is not loaded does no harm
    outputs = open_source(model).load(None, True).outputs
    (actual,) = interpret(after, feeds, outputs)
    assert np.isfinite(actual[:, :, keys // 2 + 2 * window :].astype(np.float32)).all()


@pytest.mark.parametrize(("arch", "unit"), [("sm_80", "mma.sync"), ("sm_90a", "wgmma.mma_async")])
def test_bf16_rounds_queries_and_keys_for_tensor_cores(arch: str, unit: str, tmp_path: Path) -> None:
    """Two activations: one kernel of tensor cores, and the error that bf16 has."""
    model = tw.compile(
        attention(2, 128, 256, 64, np.float32, False), target=f"cuda:{arch}", emulate=True, precision="bf16"
    )
    model.save(tmp_path / "m")
    text = "\n".join(path.read_text() for path in (tmp_path / "m").rglob("*.ptx"))
    assert unit in text and ".bf16" in text
    entry = model._manifest.compile["precision"]
    assert entry["products"] == 2 and 0 < entry["relative_error"] < 0.02
