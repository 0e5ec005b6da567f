# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized models for ONNX Runtime without saturation: signed weights as unsigned ones, the same numbers.

On CPUs with AVX2 and no VNNI, ONNX Runtime multiplies codes u8 by s8 with an instruction that adds two products in 16
bits and saturates; codes u8 by u8 it multiplies without. A weight w of zero point z is the same number as w + 128 of
zero point z + 128, so the changed model says what the model means, wherever it runs.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

#: by operator: the inputs that hold signed weights, each with that of its zero point
_WEIGHTS = {
    "MatMulInteger": ((1, 3),),
    "ConvInteger": ((1, 3),),
    "QLinearMatMul": ((3, 5),),
    "QLinearConv": ((3, 5),),
    "QGemm": ((3, 5),),
    "MatMulIntegerToFloat": ((1, 5),),
    "DynamicQuantizeMatMul": ((1, 3),),
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
    "QAttention": ((1, 7),),
}


def unsigned(model: onnx.ModelProto) -> tuple[onnx.ModelProto, int]:
    """The same model with unsigned weights, and how many of them were signed."""
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    weights = {t.name: t for t in changed.graph.initializer}
    count = 0
    for number, node in enumerate(changed.graph.node):
        for weight, zero in _WEIGHTS.get(node.op_type, ()):
            held = weights.get(node.input[weight])
            if held is None or held.data_type != onnx.TensorProto.INT8:
                continue
            node.input.extend([""] * (zero + 1 - len(node.input)))
            codes = numpy_helper.to_array(held)
            given = node.input[zero]
            point = numpy_helper.to_array(weights[given]) if given else np.zeros((), np.int8)
            for at, array in ((weight, codes), (zero, point)):
                name = f"unsigned_{number}_{at}"
                changed.graph.initializer.append(numpy_helper.from_array(_moved(array), name))
                node.input[at] = name
            count += 1
    return changed, count


def _moved(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.int16) + 128).astype(np.uint8)
