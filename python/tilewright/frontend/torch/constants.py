# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models some of whose inputs become constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx


def with_constants(model: onnx.ModelProto, places: Mapping[int, np.ndarray]) -> onnx.ModelProto:
    """A copy of a model with initializers instead of the inputs at these places.

    Args:
        model: of which every input is a tensor.
        places: arrays by the number of the input; their dtype is that of the input.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for place, array in places.items():
        given = model.graph.input[place]
        result.graph.initializer.append(
            onnx.TensorProto(
                name=given.name,
                data_type=given.type.tensor_type.elem_type,
                dims=array.shape,
                raw_data=np.ascontiguousarray(array).tobytes(),
            )
        )
    for place in sorted(places, reverse=True):
        del result.graph.input[place]
    return result
