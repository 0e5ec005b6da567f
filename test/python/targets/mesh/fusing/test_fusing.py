# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bias, scale, residual and activation follow in the program that makes what they read: same numbers, no more time."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright import devices
from tilewright.demo.graph import GraphBuilder
from tilewright.dialects import coremesh, tile
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh_ir.read import programs, read_program

load_builtin_passes()
assert coremesh and tile  # their ops stand in the text
TARGET = "mesh:toy8x8"
EXPANDED = "tile-plan-reductions,tile-expand-collectives,tile-expand-locals"


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def layer(rows: int, columns: int) -> onnx.ModelProto:
    """Product, bias, scale, residual, activation; columns that no number of cores divides, and rows that pad."""
    g = GraphBuilder("layer")
    x = g.input("x", np.float32, [rows, columns])
    y = g.op("Mul", g.op("Add", g.op("MatMul", x, g.weight(drawn(columns, columns))), g.weight(drawn(columns))), x)
    g.output(g.op("Relu", g.op("Add", y, x)), "y", np.float32, [rows, columns])
    return g.model()


def image() -> onnx.ModelProto:
    """A residual block, whose padding is divided by."""
    g = GraphBuilder("image")
    x = g.input("x", np.float32, [1, 4, 9, 7])
    y = g.op("Conv", x, g.weight(drawn(4, 4, 3, 3)), g.weight(drawn(4)), pads=[1, 1, 1, 1])
    g.output(g.op("Relu", g.op("Add", g.op("Div", y, g.op("Exp", y)), x)), "y", np.float32, [1, 4, 9, 7])
    return g.model()


MODELS = {"columns": layer(24, 20), "rows": layer(1, 13), "image": image()}


@pytest.mark.parametrize("name", MODELS)
def test_numbers_and_time(name: str):
    model = MODELS[name]
    x = drawn(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim))
    (got,), (wanted,) = tw.compile(model, TARGET)(x), tw.compile(model, "reference")(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    text = str(tw.compile(model, TARGET, stop_after="tile"))
    apart, fused = (steps(text, passes) for passes in (EXPANDED, f"{EXPANDED},tile-fuse-programs"))
    assert len(fused) < len(apart)
    assert sum(fused) <= sum(apart) * (1 + 1e-9)


def steps(text: str, passes: str) -> list[float]:
    """Cycles of each program."""
    toy = machine(devices.get("toy8x8"), "calibrated")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({passes})")
        return [time_program(read_program(one), toy, loads=False).cycles for one in programs(module)]


def test_what_follows_a_product_is_in_its_program():
    table = tw.compile(MODELS["columns"], TARGET).explain()
    assert re.findall(r"^(local|meshgemm|meshgemv) ", table, re.M) == ["meshgemm"]
