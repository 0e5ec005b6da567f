# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of com.microsoft on codes beside ONNX Runtime without its optimizer.

Codes of weights stay within 6 bits and a sign: on CPUs without VNNI ONNX Runtime's kernels add pairs of products in
16 bits, which saturate. Where a number lies half-way between two codes, its kernels may take the other one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from support import feeds, interpret, node_model, normalize

from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(17)
DOMAIN = "com.microsoft"


def codes(dtype: str, *shape: int) -> np.ndarray:
    """Random codes: all 8 bits for uint8, 6 bits and a sign for int8."""
    low, high = (0, 256) if dtype == "uint8" else (-64, 64)
    return _RANDOM.integers(low, high, shape).astype(dtype)


def number(value: float) -> np.ndarray:
    """A scale."""
    return np.array(value, np.float32)


def typed(model: onnx.ModelProto, dtypes: Sequence[np.dtype]) -> onnx.ModelProto:
    """The model with the element types of its results, which shape inference does not know for this domain."""
    for output, dtype in zip(model.graph.output, dtypes, strict=True):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, kind, None))
    return model


def run_runtime(model: onnx.ModelProto, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """ONNX Runtime on one thread, as the file stands."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, arrays)]


def beside_runtime(op: str, inputs: list, known: tuple = (), want=None, more: dict | None = None, **attributes) -> None:
    """One node with one result, before and after normalize: integers at most one code off, and that seldom.

    Attributes in `more` have names that `node_model` has other uses for.
    """
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    codes_given = [x.dtype for x in inputs if x is not None and x.dtype.itemsize == 1 and x.dtype != bool]
    kind = attributes.pop("result", codes_given[0])
    model = typed(node_model(op, inputs, known=known, domain=DOMAIN, opset=17, **attributes), [kind])
    model.graph.node[0].attribute.extend(onnx.helper.make_attribute(name, v) for name, v in (more or {}).items())
    arrays = feeds(model, inputs)
    wanted = np.asarray(run_runtime(model, arrays)[0] if want is None else want)
    imported = import_onnx(model)
    for _ in range(2):
        (got,) = interpret(imported, arrays)
        close(got, wanted)
        normalize(imported)


def close(got: np.ndarray, wanted: np.ndarray) -> None:
    """Equal shapes and types; floats to 1e-5 of the largest, codes to one step in few places."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5 * max(1.0, float(np.abs(wanted).max())))
        return
    difference = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
    assert difference.max(initial=0) <= 1 and (difference > 0).mean() < 0.05, difference
