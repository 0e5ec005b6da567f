# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models in small versions: numbers beside ONNX Runtime, and the form that planning gets."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, compare, import_onnx, interpret, normalize

from counting import calls_of
from models.bert import bert, encoder_inputs
from models.lstm import lstm
from models.mobilenet import mobilenet_v2
from models.resnet import resnet
from models.vit import vit

ENCODER = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 100, "positions": 32}


def image(*shape):
    return {"image": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def operations(imported, name):
    main = next(op for op in imported.module.body.operations if op.operation.name == "func.func")
    return [op for op in main.regions[0].blocks[0].operations if op.operation.name == name]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("options", [{}, {"style": "export"}, {"pooled": True}])
def test_encoder(batch, options):
    model = bert(**ENCODER, batch=batch, sequence=7, **options)
    check_numbers(model, encoder_inputs(batch, 7, 100))


def test_encoder_with_symbolic_dimensions_equals_the_static_one():
    symbolic = bert(**ENCODER, style="export", dynamic=True)
    static = bert(**ENCODER, style="export", batch=2, sequence=7)
    modules = [normalize(import_onnx(symbolic, shapes={"batch": 2, "sequence": 7})), normalize(import_onnx(static))]
    inputs = encoder_inputs(2, 7, 100)
    compare(interpret(modules[0], inputs), interpret(modules[1], inputs), 0, 0)
    assert len(operations(modules[0], "linalg.generic")) == len(operations(modules[1], "linalg.generic"))


def test_encoder_of_batch_one_has_no_loop_of_one_and_no_copy():
    imported = check_numbers(bert(**ENCODER, sequence=7), encoder_inputs(1, 7, 100))
    for op in operations(imported, "linalg.generic"):
        assert 1 not in op.results[0].type.shape
        body = op.regions[0].blocks[0].operations
        assert len(body) > 1, "a copy is left"
    layers = ENCODER["layers"]
    assert len(operations(imported, "tensor.expand_shape")) == 3 * layers + 1  # heads of q, k, v; the output's batch
    joined = [op.results[0].type.element_type for op in operations(imported, "tensor.collapse_shape")]
    assert len([kind for kind in joined if str(kind) == "f32"]) == layers  # and two of indices, to see their range
    assert len(joined) == layers + 2


@pytest.mark.parametrize(("batch", "size"), [(1, 32), (2, 33)])
def test_resnet_has_no_interior_transposes(batch, size):
    imported = check_numbers(
        resnet(blocks=(1, 1), width=8, size=size, classes=10, batch=batch), image(batch, 3, size, size)
    )
    copies = [op for op in operations(imported, "linalg.generic") if len(op.regions[0].blocks[0].operations) == 1]
    assert copies  # into the padded inputs of convolutions and of the pooling
    for copy in copies:
        assert copy.operands[1].owner.name == "tensor.extract_slice"


def test_text_carries_everything_but_the_weights():
    from tilewright.mlir import ir

    imported = normalize(import_onnx(bert(**ENCODER, sequence=7)))
    text = str(imported.module)
    with ir.Context():
        again = ir.Module.parse(text)
        assert again.operation.verify()
        assert str(again) == text
    assert len(text) < 200_000


def test_mobilenet():
    check_numbers(mobilenet_v2(size=32), image(1, 3, 32, 32), rtol=1e-3, atol=1e-4)


def test_vit():
    check_numbers(vit(layers=1, hidden=32, heads=2, intermediate=64, size=32, patch=8, classes=10), image(1, 3, 32, 32))


@pytest.mark.parametrize("options", [{}, {"batch": 3, "initial_state": True}])
def test_lstm(options):
    model = lstm(layers=2, hidden=16, inputs=8, sequence=7, **options)
    random = np.random.default_rng(0)
    arrays = {
        i.name: random.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }
    check_numbers(model, arrays)


def test_import_of_a_full_model_is_fast():
    """1,000 calls of functions for each node of ResNet-50, 0.3 s in all: nothing walks the graph again and again."""
    model = resnet()
    import_onnx(model)
    assert calls_of(lambda: import_onnx(model)) < 3000 * len(model.graph.node)
