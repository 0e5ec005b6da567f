# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each state of the CPU pipeline that the interpreter knows means what the model means; @main at all layers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.bisection import native
from tilewright.bisection.compare import differences
from tilewright.bisection.entry import can_interpret, interpret
from tilewright.bisection.stages import run_steps, start, steps_of
from tilewright.compiler.source import open_source
from tilewright.ir.target_info import annotate
from tilewright.passes.registry import load_builtin_passes
from tilewright.targets.registry import parse_target

F, D, N = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
CASES = {
    "product and softmax": ([("MatMul", ["x", "x"]), ("Softmax", ["_"])], F, [9, 9], F, [9, 9]),
    "logarithm of f64, from a library": ([("Log", ["x"])], D, [5], D, [5]),
    "sizes known after the run": ([("NonZero", ["x"])], F, [3, 4], N, [2, None]),
    "sort on the host": ([("TopK", ["x", "k"])], F, [7], F, [3]),
    "convolution": ([("Conv", ["x", "x"])], F, [2, 2, 5, 5], F, [2, 2, 1, 1]),
}


def model_of(nodes, kind, shape, out_kind, out_shape) -> onnx.ModelProto:
    """A chain of nodes; "_" is the result of the one before."""
    made = []
    for i, (op, names) in enumerate(nodes):
        inputs = [f"t{i - 1}" if name == "_" else name for name in names]
        outputs = ["y" if i == len(nodes) - 1 else f"t{i}", *(["indices"] if op == "TopK" else [])]
        made.append(helper.make_node(op, inputs, outputs))
    graph = helper.make_graph(
        made,
        "case",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", out_kind, out_shape)],
        [helper.make_tensor("k", N, [1], [3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("name", CASES)
def test_every_state_means_the_same(name):
    load_builtin_passes()
    target = parse_target("cpu")
    imported = open_source(model_of(*CASES[name])).load(None)
    rng = np.random.default_rng(1)
    spec = imported.inputs[0]
    inputs = [(rng.random(spec.shape) + 0.1).astype({"f32": np.float32, "f64": np.float64}[spec.dtype])]
    annotate(imported.module, target.device)
    begin = start(imported.module, imported.weights)
    baseline = interpret(begin, inputs, imported.outputs)
    run = run_steps(begin, steps_of(target.states()))
    assert run.error is None
    known = [stage for stage in run.stages if can_interpret(stage)]
    assert len(known) > 20
    for stage in known:
        step = run.steps[stage.position - 1] if stage.position else "import"
        got = interpret(stage, inputs, imported.outputs)
        moved = [str(d) for d in differences(["y"], baseline, got) if d.moved]
        assert not moved, f"after {step}: {moved}"
    assert target.executes(run.stages[-1].module)
    got = native.execute(run.stages[-1], target, inputs, (imported.inputs, imported.outputs))
    assert not any(d.moved for d in differences(["y"], baseline, got))
