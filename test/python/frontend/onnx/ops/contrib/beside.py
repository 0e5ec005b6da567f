# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of com.microsoft beside ONNX Runtime: fixed and open sizes, f32, and f16 beside the same numbers in f32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from support import interpret, normalize

from tilewright.frontend import import_onnx

Arrays = Sequence[np.ndarray | None]
F32, F16, I32 = np.float32, np.float16, np.int32
RANDOM = np.random.default_rng(22)


def real(*shape: int) -> np.ndarray:
    """Normal numbers, f32."""
    return RANDOM.standard_normal(shape).astype(F32)


def model_of(
    op: str,
    inputs: Arrays,
    outputs: Sequence[str | None] = ("float",),
    known: Sequence[int] = (),
    opens: bool | Sequence[int] = False,
    domain: str = "com.microsoft",
    **attributes: object,
) -> onnx.ModelProto:
    """One node. Inputs are named by their position; those in `known` are initializers.

    Args:
        op: the operator.
        inputs: None for one that is absent.
        outputs: element types; None for one that is absent.
        known: positions of the inputs that the model holds.
        opens: the numbers that are symbols where they occur as sizes, or whether all are.
        domain: of the operator.
        attributes: of the node.
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = ["" if kind is None else f"y{i}" for i, kind in enumerate(outputs)]
    node = helper.make_node(op, names, results, name=f"the_{op}", domain=domain, **attributes)
    given = [(i, n, x) for i, (n, x) in enumerate(zip(names, inputs, strict=True)) if x is not None]

    def info(name: str, x: np.ndarray) -> onnx.ValueInfoProto:
        free = x.shape if opens is True else opens or ()
        shape = [f"d{n}" if n in free and n != 1 else n for n in x.shape]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape)

    graph = helper.make_graph(
        [node],
        op,
        [info(n, x) for i, n, x in given if i not in known],
        [
            helper.make_tensor_value_info(n, getattr(TensorProto, str(kind).upper()), None)
            for n, kind in zip(results, outputs, strict=True)
            if n
        ],
        [numpy_helper.from_array(x, n) for i, n, x in given if i in known],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run_runtime(model: onnx.ModelProto, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's results in ONNX Runtime."""
    return [np.asarray(y) for y in session(model).run(None, arrays)]


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """The model in ONNX Runtime, without its optimizer."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def agree(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float = 1e-4, atol: float = 2e-5) -> None:
    """Same number, shapes and values; NaN in `expected` stands for what nobody specifies."""
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert mine.shape == theirs.shape
        kept = ~np.isnan(theirs.astype(np.float64))
        np.testing.assert_allclose(mine[kept].astype(np.float64), theirs[kept].astype(np.float64), rtol=rtol, atol=atol)


def beside_runtime(
    op: str,
    inputs: Arrays,
    outputs: Sequence[str | None] = ("float",),
    known: Sequence[int] = (),
    half: bool = True,
    opens: bool | Sequence[int] = True,
    expected: Sequence[np.ndarray] | None = None,
    **options: object,
) -> list[np.ndarray]:
    """Compare a node with ONNX Runtime: sizes fixed and open, also normalized, and f16 beside f32. Returns results."""
    model = model_of(op, inputs, outputs, known, **options)
    arrays = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in known}
    theirs = run_runtime(model, arrays) if expected is None else expected
    imported = import_onnx(model)
    mine = interpret(imported, arrays)
    assert [x.dtype for x in mine] == [np.asarray(x).dtype for x in theirs]
    agree(mine, theirs)
    agree(interpret(normalize(imported), arrays), theirs)
    if opens:
        imported = import_onnx(model_of(op, inputs, outputs, known, opens=opens, **options), symbolic=True)
        agree(interpret(normalize(imported), arrays), theirs)
    if half:
        _check_half(op, inputs, outputs, known, theirs, options)
    return mine


def _check_half(op: str, inputs: Arrays, outputs: Sequence[str | None], known: Sequence[int], theirs, options) -> None:
    narrow = [x.astype(F16) if x is not None and x.dtype == F32 else x for x in inputs]
    kinds = ["float16" if kind == "float" else kind for kind in outputs]
    imported = import_onnx(model_of(op, narrow, kinds, known, **options))
    assert imported.module.operation.verify()
    arrays = {f"x{i}": x for i, x in enumerate(narrow) if x is not None and i not in known}
    unit = max((float(np.nanmax(np.abs(y))) for y in theirs if y.size), default=1.0)  # sums lose parts of the largest
    agree(interpret(imported, arrays), theirs, rtol=2e-2, atol=2e-2 * max(unit, 1.0))
