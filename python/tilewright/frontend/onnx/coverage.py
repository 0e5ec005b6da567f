# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an import does with each node of a model, or why it cannot: the import goes on behind a failing node."""

from __future__ import annotations

import onnx

from tilewright.core.errors import TilewrightError, UnsupportedError, UserError
from tilewright.frontend.onnx.collector import Collector, Coverage, Row
from tilewright.frontend.onnx.importer import import_graph
from tilewright.frontend.onnx.inventory import require_supported
from tilewright.frontend.onnx.load import ModelSource, check_model, load_model
from tilewright.frontend.onnx.signature import Shapes, graph_inputs
from tilewright.frontend.onnx.text import lowered, of_code
from tilewright.mlir import ir

__all__ = ["Coverage", "Row", "collect"]


def collect(source: ModelSource, shapes: Shapes | None = None) -> Coverage:
    """Import a model, node for node, past those that fail.

    Args:
        source: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: as for import_onnx.

    Raises:
        UserError: not a valid model, or its shapes are not fixed.
    """
    model, folder = load_model(source)
    coverage = Coverage()
    try:
        model, boundary = lowered(model, shapes, folder)
        shapes = of_code(shapes, boundary)
        inputs = graph_inputs(model, shapes)
    except UnsupportedError as error:  # nothing can be imported without inputs, but operators can be looked up
        coverage.problems += [error.message, *_missing_operators(model)]
        return coverage
    try:
        check_model(model)
    except UserError as error:
        coverage.problems.append(error.message)
    collector = Collector()
    with ir.Context(), ir.Location.unknown():
        try:
            import_graph(model, folder, inputs, shapes, collector)
        except TilewrightError as error:
            coverage.problems.append(error.message)
    coverage.rows = list(collector.rows.values())
    return coverage


def _missing_operators(model: onnx.ModelProto) -> list[str]:
    try:
        require_supported(model)
    except UnsupportedError as error:
        return [error.message]
    return []
