# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's shape inference, run in a compile worker: it crashes on some invalid models, and takes the process with it."""

from __future__ import annotations

import onnx


class InferenceFailed(Exception):
    """What shape inference says against a model; or that it crashed."""


def inferred(model: onnx.ModelProto, *, strict: bool, values: bool) -> onnx.ModelProto:
    """The model with the shapes that ONNX infers.

    Args:
        model: without large initializers.
        strict: fail where a node breaks a rule; otherwise leave its results open.
        values: follow the values of small tensors too.

    Raises:
        InferenceFailed: a node breaks a rule, or the inference crashed.
    """
    from tilewright.core.workers import shared_pool

    request = {"only": "infer", "strict": strict, "values": values}
    answer = shared_pool().ask(request, model.SerializeToString())
    if answer is None:
        raise InferenceFailed("ONNX's shape inference crashes on it")
    header, data = answer
    if not header["ok"]:
        raise InferenceFailed(" ".join(header["error"].split()))
    return onnx.ModelProto.FromString(data)
