# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model means the same after every phase: the IR of each border is interpreted, and compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import models
from models.compare import assert_close, onnxruntime_outputs
from tilewright import devices, reference
from tilewright.frontend import import_onnx
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.pipelines.cpu import PIPELINE
from tilewright.reference import types

NAMES = ["mlp_tiny", "bert_tiny", "resnet_tiny", "mobilenet_tiny", "vit_tiny", "lstm_tiny", "lstm_tiny_state"]
BORDERS = ("normalize", "plan", "tile", "schedule")


def find(module: ir.Module, name: str) -> ir.Operation | None:
    """The function called ``name``, or None."""
    for op in module.body.operations:
        if op.operation.attributes["sym_name"].value == name:
            return op.operation
    return None


def initialised(module: ir.Module, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """``weights``, and what @init makes of them."""
    init = find(module, "init")
    if init is None:
        return weights
    names = [attributes["tile.global"].value for attributes in init.attributes["res_attrs"]]
    return {**weights, **dict(zip(names, reference.run(module, "init", [], weights), strict=True))}


def run_on_buffers(module: ir.Module, inputs: list[np.ndarray], weights: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run @main after phase schedule: inputs, weights, results and one arena are arguments."""
    main = find(module, "main")
    assert main is not None
    waiting, arguments, results = list(inputs), [], []
    for argument, attributes in zip(main.regions[0].blocks[0].arguments, main.attributes["arg_attrs"], strict=True):
        arguments.append(_argument(argument.type, attributes, waiting, weights))
        if "tile.result" in attributes:
            results.append(arguments[-1])
    assert not waiting
    reference.run(module, "main", arguments)
    return results


def _argument(type_: ir.Type, attributes: Any, waiting: list[np.ndarray], weights: dict[str, np.ndarray]) -> np.ndarray:
    if "tile.global" in attributes:
        return weights[attributes["tile.global"].value]
    if "tile.arena" in attributes or "tile.result" in attributes:
        return types.uninitialised(types.shape_of(type_), types.dtype_of(type_))
    return waiting.pop(0)


@pytest.mark.parametrize("name", NAMES)
def test_every_border_means_the_model(name):
    file = models.path(name)
    imported = import_onnx(str(file))
    feeds = models.random_inputs(models.build(name))
    inputs = [feeds[spec.name] for spec in imported.inputs]
    expected = onnxruntime_outputs(file, feeds)
    phases, module, weights = PIPELINE, imported.module, imported.weights
    annotate(module, devices.get("cpu"))
    with module.context, ir.Location.unknown():
        assert_close(reference.run(module, "main", inputs, weights), expected)
        for border in BORDERS:
            run_pipeline(module, str(phases.phase(border)))
            if border == "plan":
                weights = initialised(module, weights)
            if border == "schedule":
                got = run_on_buffers(module, inputs, weights)
            else:
                got = reference.run(module, "main", inputs, weights)
            assert_close(got, expected)
