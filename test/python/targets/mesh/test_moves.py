# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that are reshaped, sliced and moved on a mesh; whole models with the reference's numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.targets.mesh.pipeline import PIPELINE

sys.path.insert(0, str(Path(__file__).parents[3]))
from models.decoder import decoder
from models.resnet import resnet

TARGET = "mesh:toy8x8"


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def near_reference(model: onnx.ModelProto, *inputs: np.ndarray) -> tw.Model:
    compiled = tw.compile(model, TARGET)
    for got, wanted in zip(compiled(*inputs), tw.compile(model, "reference")(*inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    return compiled


def steps(model: tw.Model) -> list[str]:
    return [kernel.symbol for kernel in model.kernels]


def heads(rows: int, count: int, size: int) -> onnx.ModelProto:
    """Columns as heads, turned to the front, changed, and back again."""
    g = GraphBuilder("heads")
    x = g.op("Exp", g.input("x", np.float32, [rows, count * size]))
    y = g.op("Transpose", g.op("Reshape", x, g.const([rows, count, size])), perm=[1, 0, 2])
    y = g.op("Transpose", g.op("Neg", y), perm=[1, 0, 2])
    g.output(g.op("Reshape", y, g.const([rows, count * size])), "y", np.float32, [rows, count * size])
    return g.model()


@pytest.mark.parametrize(("rows", "count", "size"), [(9, 4, 4), (3, 5, 7), (1, 16, 2)])
def test_heads_stay_whole(rows: int, count: int, size: int) -> None:
    """No op is interpreted outside, whatever blocks heads make."""
    x = drawn(rows, count * size)
    compiled = near_reference(heads(rows, count, size), x)
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()


def edited(how: str) -> tw.Model:
    planned = tw.compile(heads(9, 4, 4), TARGET, stop_after="plan")
    text = planned.replace("coremesh.side = ", f'coremesh.moves = "{how}", coremesh.side = ')
    return tw.compile(text, TARGET, pipeline=PIPELINE.after("plan"))


def test_how_tensors_move_is_a_decision() -> None:
    """From core to core nothing passes the edge but input and output; results are those of moves through the edge."""
    grid, edge = edited("grid"), edited("edge")
    x = drawn(9, 16)
    assert np.array_equal(grid(x)[0], edge(x)[0])
    np.testing.assert_allclose(grid(x)[0], -np.exp(x), rtol=1e-5)
    assert steps(grid).count("assemble") == 1 and "relayout" in steps(grid)
    assert steps(edge).count("assemble") > 1 and "relayout" not in steps(edge)
    with pytest.raises(UserError, match=r"coremesh\.moves is 'air': use grid, edge or fastest"):
        edited("air")


def test_slices_and_concatenations() -> None:
    g = GraphBuilder("slices")
    x = g.op("Exp", g.input("x", np.float32, [7, 11]))
    first, second = g.ops("Split", x, g.const([4, 7]), outputs=2, axis=1)
    y = g.op("Concat", g.op("Neg", second), first, axis=1)
    g.output(g.op("Neg", g.op("Pad", y, g.const([1, 0, 2, 3]))), "y", np.float32, [10, 14])
    compiled = near_reference(g.model(), drawn(7, 11))
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()


@pytest.mark.slow
@pytest.mark.parametrize("style", ["operators", "export"])
def test_a_decoder(style: str) -> None:
    """Two layers like LLaMA's: RMSNorm, rotary positions, grouped queries, SwiGLU, and a cache."""
    sizes = {"hidden": 16, "heads": 4, "kv_heads": 2, "intermediate": 20, "vocabulary": 11, "positions": 16}
    past = [drawn(1, 2, 5, 4) + at for at in range(4)]
    compiled = near_reference(decoder(style, **sizes), np.array([[1, 5, 3]]), np.array([[5, 6, 7]]), *past)
    assert {"meshgemv", "allreduce", "local"} <= {*steps(compiled)}
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()


@pytest.mark.slow
def test_a_resnet() -> None:
    """Windows get their borders from neighbours: nothing is done outside of the grid."""
    compiled = near_reference(resnet((1, 1), width=4, classes=5, size=16), drawn(1, 3, 16, 16))
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()
