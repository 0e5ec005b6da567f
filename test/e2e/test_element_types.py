# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of every element type through compiled code: as inputs, weights and outputs, and cast."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.core import dtypes

ALL = [dtypes.to_numpy(name) for name in dtypes.NAMES]
REAL = [d for d in ALL if d.kind != "c"]
SMALL = [d for d in REAL if d.itemsize == 1 and d not in (np.int8, np.uint8, np.bool_)]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def number(dtype: np.dtype) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


def codes(dtype: np.dtype, count: int) -> np.ndarray:
    """Different elements of a type, as bytes."""
    width = (
        {"4": 16, "2": 4}.get(dtype.name[-1], 256)
        if "int" in dtype.name
        else {"4": 16, "6": 64}.get(dtype.name[5:6], 256)
    )
    width = 2 if dtype == np.bool_ else width if dtype.itemsize == 1 else 120
    return (np.arange(count * dtype.itemsize) * 7 % width).astype(np.uint8).view(dtype)


def model_of(nodes: list, inputs: dict, outputs: dict, weights: dict | None = None) -> onnx.ModelProto:
    """A graph of nodes; inputs and outputs as name: (dtype, shape)."""
    infos = [
        [helper.make_tensor_value_info(name, number(dtype), shape) for name, (dtype, shape) in side.items()]
        for side in (inputs, outputs)
    ]
    given = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "types", *infos, given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def test_every_type_as_input_weight_and_output():
    """Where(c, input, weight) and Where(c, input, scalar) of each type in one model."""
    nodes, inputs, outputs, weights, feeds, want = [], {"c": (np.dtype(bool), (300,))}, {}, {}, {}, {}
    feeds["c"] = np.arange(300) % 3 == 0
    for dtype in ALL:
        name = dtype.name
        x, w = codes(dtype, 300), codes(dtype, 300)[::-1].copy()
        inputs[name], feeds[name], weights[name + "_w"], weights[name + "_s"] = (dtype, (300,)), x, w, w[5:6]
        for kind in "ws":
            nodes.append(helper.make_node("Where", ["c", name, f"{name}_{kind}"], [f"{name}_{kind}_out"]))
            outputs[f"{name}_{kind}_out"] = (dtype, (300,))
            bits = np.dtype(f"V{dtype.itemsize}")
            chosen = np.where(feeds["c"], x.view(bits), weights[f"{name}_{kind}"].view(bits))
            want[f"{name}_{kind}_out"] = chosen.tobytes()
    model = tw.compile(model_of(nodes, inputs, outputs, weights))
    results = model(**feeds)
    for spec in model.outputs:
        assert results[spec.name].dtype == outputs[spec.name][0]
        assert results[spec.name].tobytes() == want[spec.name], spec.name


@pytest.mark.slow
def test_casts_are_those_of_the_reference():
    """From f32, f64 and i64 to every type and from every small type to f32, in one model."""
    rng = np.random.default_rng(3)
    wide = np.concatenate(
        [rng.standard_normal(200) * 10.0 ** rng.uniform(-9, 9, 200), [0, -0.0, np.inf, -np.inf, np.nan]]
    )
    feeds = {"float32": wide.astype(np.float32), "float64": wide, "int64": rng.integers(-(2**63), 2**63 - 1, 205)}
    feeds["int64"][:100] >>= rng.integers(0, 60, 100)
    feeds |= {dtype.name: codes(dtype, 256) for dtype in SMALL}
    inputs = {name: (x.dtype, x.shape) for name, x in feeds.items()}
    nodes, outputs = [], {}
    for source, x in feeds.items():
        for target in REAL if x.dtype.itemsize > 1 else [np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)]:
            name = f"{source}_to_{target.name}"
            nodes.append(helper.make_node("Cast", [source], [name], to=number(target), saturate=len(name) % 2))
            outputs[name] = (target, x.shape)
    model = model_of(nodes, inputs, outputs)
    got, want = (tw.compile(model, target=target)(**feeds) for target in ("cpu", "reference"))
    for name, (dtype, _) in outputs.items():
        mine, theirs = (r[name].astype(np.float64) for r in (got, want))
        assert got[name].dtype == want[name].dtype == dtype
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_small_integers_that_are_not_canonical_are_read_by_their_low_bits():
    dtype = np.dtype(ml_dtypes.int4)
    node = helper.make_node("Cast", ["x"], ["y"], to=number(np.dtype(np.int32)))
    model = tw.compile(model_of([node], {"x": (dtype, (3,))}, {"y": (np.dtype(np.int32), (3,))}))
    loose = np.array([0xF8, 0x1F, 0x37], np.uint8).view(dtype)
    np.testing.assert_array_equal(model(loose)["y"], [-8, -1, 7])
    np.testing.assert_array_equal(model([-8, -1, 7])["y"], [-8, -1, 7])


def test_f16_on_processors_that_do_not_convert_it():
    """All codes to f32, all middles between two of them back."""
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    every = np.arange(1 << 16, dtype=np.uint16).view(half)
    finite = np.unique(every[np.isfinite(every)].astype(single))
    middle = (finite[1:] + finite[:-1]) / 2
    back = np.concatenate([middle, np.nextafter(middle, single.type(9e9)), [1e-10, 65520, 1e9, np.nan]]).astype(single)
    nodes = [helper.make_node("Cast", [x], [y], to=number(t)) for x, y, t in (("a", "b", single), ("c", "d", half))]
    inputs, outputs = (
        {"a": (half, every.shape), "c": (single, back.shape)},
        {"b": (single, every.shape), "d": (half, back.shape)},
    )
    model = tw.compile(model_of(nodes, inputs, outputs), target="cpu:x86-64-v2")
    wide, narrow = model(every, back)
    np.testing.assert_array_equal(wide, every.astype(single))
    np.testing.assert_array_equal(narrow, back.astype(half))
