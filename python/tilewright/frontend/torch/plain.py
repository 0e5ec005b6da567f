# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models of graphs without what says nothing of their meaning, so that equal graphs are equal models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import onnx

_SYMBOL = re.compile(r"\b[su]\d+\b")


def make_plain(model: onnx.ModelProto) -> None:
    """Remove stack traces and descriptions, and number the symbols of sizes by their first place, in a model.

    torch names a symbol by where in a program its size comes from, and describes each value by its strides.
    """
    names: dict[str, str] = {}
    for graph in _graphs(model.graph):
        for part in (graph, *graph.node, *graph.initializer, *_values(graph)):
            part.ClearField("metadata_props")
            part.ClearField("doc_string")
        for value in _values(graph):
            for size in value.type.tensor_type.shape.dim:
                if size.dim_param:
                    size.dim_param = _SYMBOL.sub(
                        lambda found: names.setdefault(found.group(), f"size{len(names)}"), size.dim_param
                    )


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info


def _graphs(graph: onnx.GraphProto) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _graphs(inner)
