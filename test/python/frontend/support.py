# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small ONNX graphs, imported, normalized and interpreted, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright import reference
from tilewright.core.dtypes import presented, stored
from tilewright.frontend import ImportedModel, import_onnx
from tilewright.normalize import PASSES
from tilewright.passes import load_builtin_passes, run_pipeline
from tilewright.passes.pipeline import Phase, Pipeline

NORMALIZE = str(Pipeline("normalize-only", [Phase("normalize", PASSES)]))


def node_model(
    op: str,
    inputs: Sequence[np.ndarray | None],
    *,
    known: Sequence[int] = (),
    outputs: int = 1,
    opset: int = 17,
    domain: str = "",
    version: int = 1,
    **attributes: object,
) -> onnx.ModelProto:
    """A model of one node. Inputs named by their position; those in `known` are initializers, None is absent."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name=f"the_{op}", domain=domain, **attributes)
    arrays = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    fixed = [names[i] for i in known]
    graph = helper.make_graph(
        [node],
        op,
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in arrays.items()
            if n not in fixed
        ],
        [helper.make_empty_tensor_value_info(n) for n in results],
        [numpy_helper.from_array(arrays[n], n) for n in fixed],
    )
    domains = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)  # fills in the types of the outputs
    for output in model.graph.output:
        if not output.type.tensor_type.elem_type:
            output.CopyFrom(helper.make_tensor_value_info(output.name, onnx.TensorProto.FLOAT, None))
    return model


def feeds(model: onnx.ModelProto, inputs: Sequence[np.ndarray | None]) -> dict[str, np.ndarray]:
    """The arrays of node_model's graph inputs."""
    return {i.name: inputs[int(i.name[1:])] for i in model.graph.input}


def interpret(imported: ImportedModel, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run @main in the reference interpreter."""
    arguments = [stored(arrays[s.name]) for s in imported.inputs]
    results = reference.run(imported.module, "main", arguments, imported.weights)
    return [presented(r, s.dtype) for r, s in zip(results, imported.outputs, strict=True)]


def normalize(imported: ImportedModel) -> ImportedModel:
    """Run phase normalize in place; its last pass checks the border."""
    load_builtin_passes()
    run_pipeline(imported.module.operation, NORMALIZE)
    return imported


def check_numbers(
    model: onnx.ModelProto, arrays: dict[str, np.ndarray], rtol: float = 1e-4, atol: float = 1e-5
) -> ImportedModel:
    """Compare with ONNX Runtime after import and after normalize. Returns the normalized model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return check_values(model, arrays, session.run(None, arrays), rtol, atol)


def check_reference(
    model: onnx.ModelProto, arrays: dict[str, np.ndarray], rtol: float = 1e-4, atol: float = 1e-5
) -> ImportedModel:
    """The same beside onnx's reference evaluator, for what ONNX Runtime lacks."""
    expected = ReferenceEvaluator(model).run(None, arrays)
    assert isinstance(expected, list)
    return check_values(model, arrays, expected, rtol, atol)


def check_values(
    model: onnx.ModelProto,
    arrays: dict[str, np.ndarray],
    expected: Sequence[np.ndarray],
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> ImportedModel:
    """Compare with expected outputs after import and after normalize. Returns the normalized model."""
    imported = import_onnx(model)
    assert imported.module.operation.verify()
    compare(interpret(imported, arrays), expected, rtol, atol)
    compare(interpret(normalize(imported), arrays), expected, rtol, atol)
    return imported


def compare(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float, atol: float) -> None:
    """Same number of outputs, shapes, dtypes, values."""
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        theirs = np.asarray(theirs)
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
