# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RNN, GRU and LSTM beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, import_onnx, interpret, node_model

_RANDOM = np.random.default_rng(4)
STEPS, INPUTS, HIDDEN = 5, 3, 4


def random(*shape):
    return (_RANDOM.standard_normal(shape) * 0.5).astype(np.float32)


def arguments(directions: int, batch: int, *, bias=True, state=False, peepholes=False):
    inputs = [
        random(STEPS, batch, INPUTS),
        random(directions, 4 * HIDDEN, INPUTS),
        random(directions, 4 * HIDDEN, HIDDEN),
    ]
    inputs.append(random(directions, 8 * HIDDEN) if bias else None)
    inputs.append(None)
    inputs += [random(directions, batch, HIDDEN) if state else None for _ in range(2)]
    inputs.append(random(directions, 3 * HIDDEN) if peepholes else None)
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def run(inputs, **options):
    known = [i for i in (1, 2, 3, 7) if i < len(inputs) and inputs[i] is not None]
    model = node_model("LSTM", inputs, known=known, outputs=3, hidden_size=HIDDEN, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("batch", [1, 2])
def test_directions(direction, batch):
    run(arguments(2 if direction == "bidirectional" else 1, batch), direction=direction)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_initial_state(direction):
    run(arguments(2 if direction == "bidirectional" else 1, 2, state=True), direction=direction)


def test_single_step_and_single_unit():
    x, w, r = random(1, 1, 2), random(1, 4, 2), random(1, 4, 1)
    for inputs in ([x, w, r], [random(3, 1, 2), w, r], [random(1, 2, 2), w, r]):
        model = node_model("LSTM", inputs, known=[1, 2], outputs=3, hidden_size=1)
        check_numbers(model, feeds(model, inputs))


def test_batch_first():
    inputs = arguments(1, 2, state=True)
    model = node_model("LSTM", inputs, known=[1, 2, 3], outputs=3, hidden_size=HIDDEN)
    expected = interpret(import_onnx(model), feeds(model, inputs))
    moved = [x.transpose(1, 0, 2).copy() if x is not None and i in (0, 5, 6) else x for i, x in enumerate(inputs)]
    model = node_model("LSTM", moved, known=[1, 2, 3], outputs=3, hidden_size=HIDDEN, layout=1)
    y, h, c = interpret(import_onnx(model), feeds(model, moved))
    np.testing.assert_allclose(y, expected[0].transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(h, expected[1].transpose(1, 0, 2), rtol=1e-6)
    np.testing.assert_allclose(c, expected[2].transpose(1, 0, 2), rtol=1e-6)


def test_without_bias():
    run(arguments(1, 2, bias=False))


def test_peepholes_and_clip():
    run(arguments(1, 2, peepholes=True))
    run(arguments(1, 2), clip=0.3)


def test_coupled_gates():
    run(arguments(1, 2), input_forget=1)


def test_other_activations():
    run(arguments(1, 2), activations=["HardSigmoid", "Relu", "Tanh"])


def test_weights_at_run_time():
    inputs = arguments(1, 2)
    model = node_model("LSTM", inputs, outputs=3, hidden_size=HIDDEN)
    check_numbers(model, feeds(model, inputs))


def test_the_projection_is_outside_the_loop():
    imported = run(arguments(1, 2))
    before, after = str(imported.module).split("scf.for")
    assert f"{STEPS}x2x{4 * HIDDEN}xf32" in before
    assert f"tensor<{4 * HIDDEN}x{INPUTS}xf32>" not in after


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("known", [False, True])
def test_lengths_of_sequences(op, direction, known):
    inputs = cell_inputs(op, direction, batch=3)
    inputs[4] = np.array([5, 1, 3], np.int32)
    run_cell(op, inputs, known=[4] if known else [], direction=direction)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("rest", ["nothing", "bias", "state", "both"])
def test_cells(op, direction, rest):
    bias, state = rest in ("bias", "both"), rest in ("state", "both")
    run_cell(op, cell_inputs(op, direction, bias=bias, state=state), direction=direction)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_before_reset(direction, bias):
    inputs = cell_inputs("GRU", direction, bias=bias, state=True)
    run_cell("GRU", inputs, direction=direction, linear_before_reset=1)


@pytest.mark.parametrize("op", ["RNN", "GRU"])
def test_clip(op):
    run_cell(op, cell_inputs(op, "forward"), clip=0.2)


@pytest.mark.parametrize(
    ("op", "names", "alpha", "beta"),
    [
        ("RNN", ["Affine"], [0.5], [0.1]),
        ("RNN", ["LeakyRelu"], [0.3], None),
        ("RNN", ["ScaledTanh"], [0.7], [1.3]),
        ("RNN", ["Elu"], None, None),
        ("GRU", ["HardSigmoid", "Softsign"], [0.3], [0.4]),
        ("GRU", ["Sigmoid", "ThresholdedRelu"], [0.2], None),
        ("LSTM", ["HardSigmoid", "Softplus", "Affine"], [0.3, 0.5], [0.4, 0.2]),
    ],
)
def test_activations_with_parameters(op, names, alpha, beta):
    options = {"activation_alpha": alpha, "activation_beta": beta}
    given = {name: value for name, value in options.items() if value is not None}
    run_cell(op, cell_inputs(op, "forward"), activations=names, **given)


@pytest.mark.parametrize("op", ["RNN", "GRU"])
def test_batch_first_of_the_others(op):
    inputs = cell_inputs(op, "bidirectional", state=True)
    model = cell_model(op, inputs, direction="bidirectional")
    expected = interpret(import_onnx(model), feeds(model, inputs))
    moved = [x.transpose(1, 0, 2).copy() if i in (0, 5) and x is not None else x for i, x in enumerate(inputs)]
    model = cell_model(op, moved, direction="bidirectional", layout=1)
    y, h = interpret(import_onnx(model), feeds(model, moved))
    np.testing.assert_allclose(y, expected[0].transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(h, expected[1].transpose(1, 0, 2), rtol=1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_types(op, dtype):
    inputs = cell_inputs(op, "forward")
    model = cell_model(op, inputs)
    expected = interpret(import_onnx(model), feeds(model, inputs))
    cast = [x if x is None or x.dtype != np.float32 else x.astype(dtype) for x in inputs]
    model = cell_model(op, cast)
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    for mine, theirs in zip(interpret(import_onnx(model), feeds(model, cast)), expected, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def cell_inputs(op, direction, batch=2, bias=True, state=False):
    gates, directions = {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 2 if direction == "bidirectional" else 1
    rows = gates * HIDDEN
    inputs = [random(STEPS, batch, INPUTS), random(directions, rows, INPUTS), random(directions, rows, HIDDEN)]
    inputs += [random(directions, 2 * rows) if bias else None, None]
    return [*inputs, *(random(directions, batch, HIDDEN) if state else None for _ in range(2 if op == "LSTM" else 1))]


def cell_model(op, inputs, known=(), **options):
    while inputs[-1] is None:
        inputs = inputs[:-1]
    fixed = [*(i for i in (1, 2, 3) if i < len(inputs) and inputs[i] is not None), *known]
    outputs = 3 if op == "LSTM" else 2
    return node_model(op, inputs, known=fixed, outputs=outputs, hidden_size=HIDDEN, **options)


def run_cell(op, inputs, known=(), **options):
    model = cell_model(op, inputs, known, **options)
    return check_numbers(model, feeds(model, inputs))
