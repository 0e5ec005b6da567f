# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as ONNX files with open sizes, by either exporter of torch.onnx."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .storing import Made

OPSETS = {"dynamo": 20, "script": 17}


@dataclass(frozen=True)
class TorchModel:
    """A module, how it is called, and which of its sizes are open.

    `run` takes tensors by name and returns a tensor, or what holds tensors; `outputs` names what is wanted of it, in
    order (attributes or indices), None: it is a tensor or a flat tuple of these.
    """

    module: torch.nn.Module
    inputs: Callable[[Mapping[str, int]], dict[str, torch.Tensor]]  # inputs by name, for given sizes
    axes: Mapping[str, Mapping[int, str]]  # open dimensions of each input
    sizes: Sequence[Mapping[str, int]]  # the first is what the exporter sees
    call: Callable[[torch.nn.Module, dict[str, torch.Tensor]], Sequence[torch.Tensor]]
    outputs: Sequence[str]
    tolerance: float = 1e-4


class Flat(torch.nn.Module):
    """A module with a signature of tensors alone: what exporters and files know."""

    def __init__(self, model: TorchModel, names: Sequence[str]) -> None:
        super().__init__()
        self.module = model.module
        self.call = model.call
        parameters = [identifier(name) for name in names]
        body = ", ".join(f"{name!r}: {parameter}" for name, parameter in zip(names, parameters, strict=True))
        code = f"def forward(self, {', '.join(parameters)}):\n    return tuple(self.call(self.module, {{{body}}}))\n"
        space: dict[str, Any] = {}
        exec(code, space)  # exporters read the names of parameters from the signature
        self.forward = space["forward"].__get__(self)


def identifier(name: str) -> str:
    """A name of an input as a name of Python."""
    return name.replace(".", "_")


def export(model: TorchModel, exporter: str, path: Path) -> None:
    """Write the module as an ONNX file with open sizes."""
    example = model.inputs(model.sizes[0])
    names = list(example)
    flat = Flat(model, names).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            shapes = {identifier(name): dict(model.axes.get(name, {})) for name in names}
            program = torch.onnx.export(
                flat,
                tuple(example.values()),
                dynamo=True,
                input_names=names,
                output_names=list(model.outputs),
                dynamic_shapes=shapes,
                opset_version=OPSETS[exporter],
                verbose=False,
            )
            program.save(path, external_data=False)
        else:
            torch.onnx.export(
                flat,
                tuple(example.values()),
                path,
                dynamo=False,
                input_names=names,
                output_names=list(model.outputs),
                dynamic_axes={name: dict(axes) for name, axes in model.axes.items()},
                opset_version=OPSETS[exporter],
            )


def calls(model: TorchModel) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Inputs and eager results for each set of sizes."""
    found = []
    with torch.no_grad():
        for sizes in model.sizes:
            inputs = model.inputs(sizes)
            results = model.call(model.module, {name: value.clone() for name, value in inputs.items()})
            arrays = {name: value.numpy() for name, value in inputs.items()}
            found.append((arrays, {n: v.numpy() for n, v in zip(model.outputs, results, strict=True)}))
    return found


Variant = Callable[[Path], Made]


def by_exporters(models: Mapping[str, Callable[[], TorchModel]], exporters: Sequence[str]) -> dict[str, Variant]:
    """Each model by each exporter: what writes it into a folder."""

    def variant(make: Callable[[], TorchModel], exporter: str) -> Variant:
        def write(folder: Path) -> Made:
            model = make()
            found = calls(model)
            export(model, exporter, folder / "model.onnx")
            return Made(found, model.tolerance, f"torch.onnx ({exporter})")

        return write

    return {f"{name}.{exporter}": variant(make, exporter) for name, make in models.items() for exporter in exporters}
