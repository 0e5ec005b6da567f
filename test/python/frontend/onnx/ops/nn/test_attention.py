# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention beside ONNX's reference evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support import import_onnx, interpret, normalize

from tilewright.core.errors import UserError

_RANDOM = np.random.default_rng(11)
BATCH, ROWS, COLUMNS, SIZE = 2, 3, 5, 4


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def model_of(op, inputs, outputs, *, opset=25, domain="", **attributes):
    """A model of one node, its inputs unknown at compile time."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="it", domain=domain, **attributes)
    kinds = {n: (helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs, strict=True) if n}
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info(n, *kind) for n, kind in kinds.items()],
        [helper.make_tensor_value_info(r, kinds["x0"][0], None) for r in results],
    )
    domains = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=domains)


def check(op, inputs, outputs=1, rtol=1e-4, atol=1e-5, **options):
    """Compare with the evaluator, before and after normalizing. Returns the results."""
    model = model_of(op, inputs, outputs, **options)
    arrays = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    expected = ReferenceEvaluator(model).run(None, arrays)
    imported = import_onnx(model)
    for module in (imported, normalize(imported)):
        results = interpret(module, arrays)
        for mine, theirs in zip(results, expected, strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
            wide = np.float64
            np.testing.assert_allclose(mine.astype(wide), theirs.astype(wide), rtol=rtol, atol=atol)
    return results


def qkv(heads=2, groups=1, value=SIZE, rows=ROWS, columns=COLUMNS, dtype=np.float32):
    return [
        random(BATCH, heads * groups, rows, SIZE, dtype=dtype),
        random(BATCH, heads, columns, SIZE, dtype=dtype),
        random(BATCH, heads, columns, value, dtype=dtype),
    ]


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("value", [SIZE, 7])
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"is_causal": 1}])
def test_heads(groups, value, options):
    check("Attention", qkv(groups=groups, value=value), **options)


@pytest.mark.parametrize("options", [{}, {"is_causal": 1}])
def test_three_dimensions(options):
    inputs = [random(BATCH, ROWS, 4 * SIZE), random(BATCH, COLUMNS, 2 * SIZE), random(BATCH, COLUMNS, 2 * 3)]
    check("Attention", inputs, 3, q_num_heads=4, kv_num_heads=2, **options)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 5), (4, 3, 5), (2, 4, 3, 5), (2, 1, 1, 5), (3, 4), (2, 4, 3, 2)])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
@pytest.mark.parametrize("causal", [0, 1])
def test_masks(shape, dtype, causal):
    mask = random(*shape) > 0 if dtype == np.bool_ else random(*shape)
    if causal:  # the evaluator takes the mask's rows for the queries'
        mask = np.ascontiguousarray(np.broadcast_to(mask, (*mask.shape[:-2], ROWS, mask.shape[-1])))
    check("Attention", [*qkv(groups=2), mask], is_causal=causal)


def test_rows_that_see_nothing_are_zero():
    mask = np.zeros((ROWS, COLUMNS), np.bool_)
    mask[1, 2] = True
    y, *_, weights = check("Attention", [*qkv(), mask], 4, qk_matmul_output_mode=3)
    assert not y[:, :, 0].any() and not weights[:, :, 0].any()
    assert y[:, :, 1].any()


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("causal", [0, 1])
def test_cache_inside(mode, causal):
    past = [random(BATCH, 2, 6, SIZE), random(BATCH, 2, 6, SIZE)]
    mask = random(ROWS, 6 + COLUMNS)
    inputs = [*qkv(groups=2), mask, *past]
    cap = 1.5 if mode else 0.0  # the evaluator gives capped products as mode 0
    check("Attention", inputs, 4, is_causal=causal, softcap=cap, qk_matmul_output_mode=mode)


def test_scores_with_an_open_past():
    """ONNX's shape inference takes the open size to be 0, and its shape of the scores is not believed."""
    past = [random(BATCH, 2, 6, SIZE), random(BATCH, 2, 6, SIZE)]
    inputs = [*qkv(), None, *past]
    model = model_of("Attention", inputs, 4)
    arrays = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    expected = ReferenceEvaluator(model).run(None, arrays)
    for value in model.graph.input[3:]:
        value.type.tensor_type.shape.dim[2].dim_param = "past"
    for mine, theirs in zip(interpret(import_onnx(model, symbolic=True), arrays), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [0, 1])
def test_cache_outside(causal):
    check("Attention", [*qkv(), None, None, None, np.array([2, 5])], is_causal=causal)


@pytest.mark.parametrize("left", [-1, 0, 2])
@pytest.mark.parametrize("right", [-1, 0, 1])
@pytest.mark.parametrize("kind", ["none", "past", "lengths"])
def test_windows(left, right, kind):
    rest = {
        "none": [],
        "past": [None, random(BATCH, 2, 2, SIZE), random(BATCH, 2, 2, SIZE)],
        "lengths": [None, None, None, np.array([3, 5])],
    }[kind]
    check("Attention", [*qkv(rows=4), *rest], left_window_size=left, right_window_size=right)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_types(dtype):
    tolerance = {np.float64: 1e-12, np.float16: 4e-3, ml_dtypes.bfloat16: 4e-2}[dtype]
    mask = random(ROWS, COLUMNS, dtype=dtype)
    check("Attention", [*qkv(dtype=dtype), mask], rtol=tolerance, atol=tolerance)


def test_precision_of_the_softmax():
    check("Attention", qkv(dtype=np.float16), rtol=4e-3, atol=4e-3, softmax_precision=onnx.TensorProto.FLOAT)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ([random(2, 3, 8), random(2, 5, 8), random(2, 5, 8)], {"q_num_heads": 3, "kv_num_heads": 1}, "do not divide"),
        ([random(2, 3, 4, 8), random(2, 2, 5, 8), random(2, 2, 5, 8)], {}, "do not fit"),
        ([*qkv(), np.zeros((3, 9), np.float32)], {}, "9 columns for 5 keys"),
        ([*qkv(), None, random(2, 2, 6, 4)], {}, "come together"),
    ],
)
def test_wrong_inputs(inputs, options, message):
    with pytest.raises(UserError, match=message):
        import_onnx(model_of("Attention", inputs, 1, **options))


def graph_of(op, constant):
    """A graph attribute: one operator with a constant."""
    shape = [BATCH, 2, ROWS, COLUMNS]
    return helper.make_graph(
        [helper.make_node(op, ["s", "c"], ["t"])],
        "change",
        [helper.make_tensor_value_info("s", 1, shape)],
        [helper.make_tensor_value_info("t", 1, shape)],
        [onnx.numpy_helper.from_array(np.float32(constant), "c")],
    )


@pytest.mark.parametrize("options", [{}, {"scale": 0.4}])
@pytest.mark.parametrize("score", [None, "Add", "Mul"])
def test_flex_attention(options, score):
    changes = {"score_mod": graph_of(score, 1.5), "prob_mod": graph_of("Mul", 2.0)} if score else {}
    options = {**options, **changes}
    model = model_of("FlexAttention", qkv(), 1, domain="ai.onnx.preview", opset=26, **options)
    arrays = dict(zip(("x0", "x1", "x2"), qkv(), strict=True))
    q, k, v = arrays.values()
    scores = q @ k.swapaxes(2, 3) * options.get("scale", SIZE**-0.5)
    scores = {None: scores, "Add": scores + 1.5, "Mul": scores * 1.5}[score]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True) * (2.0 if score else 1.0)
    (y,) = interpret(import_onnx(model), arrays)
    np.testing.assert_allclose(y, weights @ v, rtol=1e-4, atol=1e-5)
