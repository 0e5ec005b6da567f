# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module, exported program or ONNX program of PyTorch to an ONNX model and the form of its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from tilewright.core.errors import UserError
from tilewright.frontend.torch.conversion import program_of
from tilewright.frontend.torch.exported import without_constants
from tilewright.frontend.torch.pruned import dense_weights
from tilewright.frontend.torch.structure import Form, recorded

_MODES = ("Dropout", "BatchNorm", "InstanceNorm")  # layers whose result depends on training or not


def export(module: Any, example_inputs: Any, dynamic_shapes: Any = None) -> tuple[onnx.ModelProto, str]:
    """Export a module in evaluation mode; shapes and dtypes are those of the example inputs.

    Weights of a sparse layout become tensors with zeros; masks of `torch.nn.utils.prune` stay products of constants.

    Args:
        module: a torch.nn.Module.
        example_inputs: a tuple (or list) of positional inputs, or a dict by name.
        dynamic_shapes: which sizes stay open, as `torch.export.export` takes them.

    Returns:
        The model, and the form of its results (see :mod:`tilewright.runtime.structure`), empty where it is flat.

    Raises:
        UserError: no example inputs, layers that are in training mode, or sparse weights that are not sound.
        UnsupportedError: torch cannot export the module, or its exporter is not installed.
    """

    args, kwargs = _split(example_inputs)
    training = sorted({n for n, m in module.named_modules() if m.training and type(m).__name__.startswith(_MODES)})
    if training:
        raise UserError(f"the module is in training mode ({', '.join(training[:5])}): call .eval() first")
    form = Form()
    with dense_weights(module), recorded(module, form):
        program = program_of(module, type(module).__name__, args, kwargs, dynamic_shapes)
    return _named(program, form), form.text


def export_program(program: Any) -> tuple[onnx.ModelProto, str]:
    """Convert a torch.export.ExportedProgram; returns what :func:`export` does.

    Raises:
        UserError: it has batch norms in training mode, of which torch's exporter makes others.
        UnsupportedError: torch's exporter has no rule for an operator, or is not installed.
    """
    _check_mode(program)
    form = Form()
    plain = without_constants(program, form)
    return _named(program_of(plain, "the exported program"), form), form.text


def _check_mode(program: Any) -> None:
    """Raise UserError where a batch norm takes the statistics of its batch and updates the running ones."""
    for node in program.graph.nodes:
        if node.op != "call_function" or "batch_norm" not in str(node.target):
            continue
        names = [argument.name for argument in node.target._schema.arguments]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        if given.get("training") is True and given.get("running_mean") is not None:
            raise UserError(
                f"this ExportedProgram has batch norms in training mode ({node.name}): call .eval() on the module "
                "before torch.export.export"
            )


def of_onnx_program(program: Any) -> tuple[onnx.ModelProto, str]:
    """The model of a torch.onnx.ONNXProgram, whose names the user may have chosen; as :func:`export`."""
    form = Form()
    if getattr(program, "exported_program", None) is not None:
        without_constants(program.exported_program, form)
    model = program.model_proto
    same = form.results == len(model.graph.output)
    return model, form.text if same else ""


def _named(program: Any, form: Form) -> onnx.ModelProto:
    """The model, with the names of the form for its outputs, as far as nothing else in it has them."""
    graph = program.model.graph
    taken = {value.name for value in graph.inputs} | set(graph.initializers)
    outputs = list(graph.outputs)
    inner = {value.name for node in graph for value in node.outputs} - {value.name for value in outputs}
    for value, name in zip(outputs, form.names, strict=False):
        if value.name not in taken and name not in taken | inner:
            value.name = name
            taken.add(name)
    return program.model_proto


def _split(example_inputs: Any) -> tuple[tuple, dict[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, tuple | list):
        return tuple(example_inputs), {}
    if example_inputs is None:
        raise UserError("a torch module needs example inputs: compile(module, example_inputs=(x,))")
    raise UserError(
        f"example_inputs must be a tuple of inputs, or a dict by name, got a {type(example_inputs).__name__}: "
        "for one input write example_inputs=(x,)"
    )
