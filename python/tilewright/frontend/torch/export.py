# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a torch.nn.Module to an ONNX model, through torch.export and torch's own exporter."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping
from typing import Any

import onnx

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.torch.pruned import dense_weights

_MODES = ("Dropout", "BatchNorm", "InstanceNorm")  # layers whose result depends on training or not


def export(module: Any, example_inputs: Any) -> onnx.ModelProto:
    """Export a module in evaluation mode; shapes and dtypes are those of the example inputs.

    Weights of a sparse layout become tensors with zeros; masks of `torch.nn.utils.prune` stay products of constants.

    Args:
        module: a torch.nn.Module.
        example_inputs: a tuple (or list) of positional inputs, or a dict by name.

    Raises:
        UserError: no example inputs, layers that are in training mode, or sparse weights that are not sound.
        UnsupportedError: torch cannot export the module, or its exporter is not installed.
    """

    args, kwargs = _split(example_inputs)
    training = sorted({n for n, m in module.named_modules() if m.training and type(m).__name__.startswith(_MODES)})
    if training:
        raise UserError(f"the module is in training mode ({', '.join(training[:5])}): call .eval() first")
    with dense_weights(module):
        return _export(module, args, kwargs)


def _export(module: Any, args: tuple, kwargs: dict[str, Any]) -> onnx.ModelProto:
    import torch

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(module, args, kwargs=kwargs, dynamo=True, verbose=False)
            return program.model_proto
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"torch's ONNX exporter needs the package {error.name}: pip install onnxscript"
        ) from None
    except Exception as error:  # whatever the module's own code or the exporter raises
        text = next((line for line in str(error).splitlines() if line.strip()), "no message")
        raise UnsupportedError(
            f"torch cannot export {type(module).__name__}: {type(error).__name__}: {text}. "
            "torch.onnx.export(module, inputs, dynamo=True, report=True) writes a report about it"
        ) from error


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
