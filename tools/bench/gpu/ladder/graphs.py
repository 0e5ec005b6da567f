# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of rungs that the suite has no kernel for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.gpu.far.ladder import numbers


def float8_product(m: int, n: int, k: int) -> onnx.ModelProto:
    """`x` [m, k] of e4m3 times constants of e4m3 -> `y` [m, n] in f32: dequantized with a scale of a half each.

    The constants are positive, and drawn again on the other side (`numbers.constants`).
    """
    weights = numbers.constants("f8e4m3fn", (k, n)).view(ml_dtypes.float8_e4m3fn)
    nodes = [helper.make_node("DequantizeLinear", [a, "s"], [b]) for a, b in (("x", "d"), ("w", "v"))]
    nodes.append(helper.make_node("MatMul", ["d", "v"], ["y"]))
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FN, [m, k]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n]),
    ]
    held = [numpy_helper.from_array(np.array(0.5, np.float32), "s"), numpy_helper.from_array(weights, "w")]
    graph = helper.make_graph(nodes, "float8_product", values[:1], values[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


BUILDERS = {"float8_product": float8_product}
