# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers by computed indices share kernels with what stands around them only where tiles allow it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
CASES = {
    "indices computed by a kernel": (["Abs i a", "Gather x a y"], [100], [64], [64]),
    "by rows, then reduced": (["Abs i a", "Gather x a g", "ReduceSum g _ y"], [100, 64], [64], [1, 1]),
    "by elements, then rows of softmax": (["Gather x i g", "Softmax g y"], [100], [8, 32], [8, 32]),
    "by elements along rows": (["GatherElements x i g", "Softmax g y"], [100, 64], [90, 64], [90, 64]),
    "by two indices": (["GatherND x i g", "Softmax g y"], [64, 64], [40, 2], [40]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_gathers(name: str) -> None:
    lines, *shapes = CASES[name]
    nodes = []
    for line in lines:
        kind, *names = line.split()
        nodes.append(helper.make_node(kind, ["" if n == "_" else n for n in names[:-1]], names[-1:]))
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in zip("xiy", (F32, I64, F32), shapes, strict=True)]
    graph = helper.make_graph(nodes, "g", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    random = np.random.default_rng(2)
    x = random.standard_normal(shapes[0]).astype(np.float32)
    at = random.integers(-shapes[0][0] // 2, shapes[0][0] // 2, shapes[1])
    compiled = tw.compile(model, target="cpu", threads=1)
    assert not compiled.report_data()["remarks"], "all of it runs in kernels"
    np.testing.assert_allclose(compiled(x, at)[0], tw.compile(model, target="reference")(x, at)[0], rtol=1e-5)


def test_resized_channels_side_by_side() -> None:
    """What a product made lies with its few channels side by side: gathers take rows from one loop alone."""
    random = np.random.default_rng(3)
    x, kernel = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 12, 1, 7), (4, 12, 1, 1)))
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Resize", ["r", "", "s"], ["y"], mode="linear"),
    ]
    infos = [helper.make_tensor_value_info(n, F32, a.shape) for n, a in (("x", x), ("k", kernel))]
    scales = helper.make_tensor("s", F32, [4], [1, 1, 2, 2])
    out = [helper.make_tensor_value_info("y", F32, [2, 4, 2, 14])]
    model = helper.make_model(helper.make_graph(nodes, "g", infos, out, [scales]))
    want = tw.compile(model, target="reference")(x, kernel)[0]
    np.testing.assert_allclose(tw.compile(model, threads=1)(x, kernel)[0], want, rtol=1e-5, atol=1e-6)


#: kind, sizes of the data (a text: a size that the run brings), of the indices; which index lies outside.
OUTSIDE = {
    "a few": ("Gather", [100, 8], [6], 3),
    "one": ("Gather", [100, 8], [1], 0),
    "many, found by a kernel": ("Gather", [100, 8], [40, 50], 1777),
    "as many as the run says": ("Gather", [100, 8], ["n"], 5),
    "into as many as the run says": ("Gather", ["m", 8], [7], 6),
    "by elements": ("GatherElements", [100, 40], [90, 40], 3000),
    "by coordinates": ("GatherND", [100, 8], [30, 1], 29),
}


@pytest.mark.parametrize("wrong", [100, -101, 2**62])
@pytest.mark.parametrize("name", list(OUTSIDE))
def test_an_index_outside_ends_the_run(name: str, wrong: int) -> None:
    """With the node's name, the index and the limits; the next run is as good as any."""
    kind, shape, places, where = OUTSIDE[name]
    node = helper.make_node(kind, ["x", "i"], ["y"], name="/words/Gather")
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in zip("xi", (F32, I64), (shape, places), strict=True)]
    rank = {"Gather": len(places) + 1}.get(kind, 2)
    out = helper.make_tensor_value_info("y", F32, [None] * rank)
    model = helper.make_model(helper.make_graph([node], "g", infos, [out]), opset_imports=[helper.make_opsetid("", 21)])
    random = np.random.default_rng(5)
    x = random.standard_normal([100, shape[1]]).astype(np.float32)
    good = random.integers(-100, 100, [9 if n == "n" else n for n in places])
    bad = good.copy()
    bad.flat[where] = wrong
    want = tw.compile(model, target="reference")(x, good)[0]
    compiled = tw.compile(model, target="cpu", threads=2)
    np.testing.assert_array_equal(compiled(x, good)[0], want)
    limits = "" if shape[0] == "m" else r", which has 100 elements \(-100 to 99\)"
    with pytest.raises(
        tw.UserError, match=rf"/words/Gather: an index lies outside of axis 0 of the data{limits}: {wrong}"
    ):
        compiled(x, bad)
    np.testing.assert_array_equal(compiled(x, good)[0], want)


def test_an_index_outside_that_is_known_is_an_error_of_the_model() -> None:
    infos = [helper.make_tensor_value_info("x", F32, [3, 4]), helper.make_tensor_value_info("y", F32, [1, 4])]
    at = helper.make_tensor("i", I64, [1, 4], [0, 1, 3, 0])
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], name="n")
    model = helper.make_model(helper.make_graph([node], "g", infos[:1], infos[1:], [at]))
    with pytest.raises(tw.UserError, match="indices reach from 0 to 3, but axis 0 has 3 elements"):
        tw.compile(model, target="cpu")
