# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder that returns the logits of the last token alone: those before it are work that nobody reads."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

log = logging.getLogger("tilewright")

#: Slice takes its numbers as inputs since this version of ONNX's operators.
_SLICE = 10
_MOST = 2**63 - 1


def with_last_row(model: Any, name: str) -> Any:
    """The ONNX model with only the last row of its output `name`, [batch, sequence, vocabulary].

    Args:
        model: what :func:`tilewright.compile` takes. What is no ONNX model, has its weights in other files, or has no
            such output of three dimensions, is returned as it is.
        name: of the logits.
    """
    try:
        import onnx
    except ModuleNotFoundError:  # said where the model is compiled
        return model
    proto = _read(model, onnx)
    if proto is None or not _fits(proto, name):
        return model
    fresh = _unused(proto, name)
    for node in proto.graph.node:
        for names in (node.input, node.output):
            for number, other in enumerate(names):
                if other == name:
                    names[number] = fresh
    numbers = {"starts": [-1], "ends": [_MOST], "axes": [1]}
    for what, values in numbers.items():
        tensor = onnx.helper.make_tensor(f"{fresh}.{what}", onnx.TensorProto.INT64, [1], values)
        proto.graph.initializer.append(tensor)
    inputs = [fresh, *(f"{fresh}.{what}" for what in numbers)]
    proto.graph.node.append(onnx.helper.make_node("Slice", inputs, [name], name=f"{fresh}.last"))
    output = next(value for value in proto.graph.output if value.name == name)
    output.type.tensor_type.shape.dim[1].Clear()
    output.type.tensor_type.shape.dim[1].dim_value = 1
    return proto


def _read(model: Any, onnx: Any) -> Any:
    """A ModelProto of its own; None where there is none, or not all of it is in it."""
    try:
        if isinstance(model, bytes | bytearray | memoryview):
            proto = onnx.load_model_from_string(bytes(model))
        elif isinstance(model, str | os.PathLike) and "\n" not in str(model) and Path(model).is_file():
            proto = onnx.load(os.fspath(model), load_external_data=False) if Path(model).suffix != ".mlir" else None
        elif hasattr(model, "SerializeToString") and hasattr(model, "graph"):
            proto = onnx.ModelProto()
            proto.CopyFrom(model)
        else:
            return None
    except Exception:  # a damaged file: the compiler says what is wrong with it
        return None
    if proto is None or not any(t.data_location == t.EXTERNAL for t in proto.graph.initializer):
        return proto
    log.info(
        "the logits of all tokens are computed, as the weights are in other files: let the model's last operator "
        "return those of the last token, or save it with its weights in one file"
    )
    return None


def _fits(proto: Any, name: str) -> bool:
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    shapes = [value.type.tensor_type.shape for value in proto.graph.output if value.name == name]
    made = any(name in node.output for node in proto.graph.node)
    inner = [a.g for node in proto.graph.node for a in node.attribute if a.HasField("g")]
    if any(_reads(graph, name) for graph in inner):
        return False
    return made and bool(versions) and versions[0] >= _SLICE and len(shapes) == 1 and len(shapes[0].dim) == 3


def _reads(graph: Any, name: str) -> bool:
    """Whether a graph inside of a node reads a value of the outer one."""
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return any(name in node.input for node in graph.node) or any(_reads(g, name) for g in inner)


def _unused(proto: Any, name: str) -> str:
    """A name like the logits' that no value of the model has."""
    taken = {other for node in proto.graph.node for other in (*node.input, *node.output)}
    fresh = f"{name}.all"
    while fresh in taken:
        fresh += "_"
    return fresh
