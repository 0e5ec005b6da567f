# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors from their descriptions, and the case's graph for PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.torch_graph import Graph, Node, module
from tilewright.core import safetensors

TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3fn": torch.float8_e4m3fn,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i1": torch.bool,
}
#: More would make graphs of a thousand launches; small inputs then come from L2, as the row's `copies` tells.
MOST_COPIES = 64


def fill(described: Sequence[Mapping[str, Any]], files: Path, file: str | None, device: str) -> list[torch.Tensor]:
    """Make a case's tensors, the same ones for the same description on the same kind of device.

    Args:
        described: name, dtype, shape and fill of each.
        files: folder of the weights' files.
        file: that holds those filled from a file.
        device: of PyTorch, for the tensors.
    """
    random = torch.Generator(device).manual_seed(20)
    stored = safetensors.read(files / file) if file else {}
    tensors = []
    for one in described:
        kind, shape, how = TYPES[one["dtype"]], one["shape"], one["fill"]
        if how["kind"] == "values":
            tensor = torch.tensor(how["values"], dtype=kind, device=device).reshape(shape)
        elif how["kind"] == "file":
            tensor = torch.from_numpy(np.array(stored[one["name"]])).to(device)
        elif how["kind"] == "uniform":
            span = how["high"] - how["low"]
            tensor = (torch.rand(shape, generator=random, device=device) * span + how["low"]).to(kind)
        else:
            tensor = torch.randn(shape, generator=random, device=device)
            tensor = tensor.mul_(how["std"]).add_(how["mean"]).to(kind)
        tensors.append(tensor)
    return tensors


def torch_module(case: Mapping[str, Any], tensors: Sequence[torch.Tensor], widen: bool) -> torch.nn.Module:
    """The case's graph with its weights inside, as a module of the other inputs.

    Args:
        case: its entry in suite.json.
        tensors: inputs and weights, in order.
        widen: compute 16-bit floats in f32.
    """
    graph = case["graph"]
    constants: dict[str, Any] = {name: _constant(one) for name, one in graph["constants"].items()}
    for one, tensor in zip(case["tensors"], tensors, strict=True):
        if one.get("weight"):
            constants[one["name"]] = tensor
    inputs = [one["name"] for one in case["tensors"] if not one.get("weight")]
    nodes = [Node(n["op"], n["inputs"], n["outputs"], n["attributes"]) for n in graph["nodes"]]
    outputs = [one["name"] for one in graph["outputs"]]
    return module(Graph(inputs, outputs, nodes, constants), widen).to(tensors[0].device)


def free_inputs(case: Mapping[str, Any], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that are no weights."""
    return [tensor for one, tensor in zip(case["tensors"], tensors, strict=True) if not one.get("weight")]


def empty_outputs(case: Mapping[str, Any], device: str) -> list[torch.Tensor]:
    """Places for the results."""
    return [torch.empty(one["shape"], dtype=TYPES[one["dtype"]], device=device) for one in case["graph"]["outputs"]]


#: Each byte of an integer before a run.
PATTERN = 0x5A


def poison(tensors: Sequence[torch.Tensor]) -> None:
    """Fill contiguous tensors with what a kernel that writes nothing is found by: NaN, a pattern for integers."""
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)  # another byte would be no value of the type
        else:
            tensor.reshape(-1).view(torch.uint8).fill_(PATTERN)


def untouched(tensors: Sequence[torch.Tensor]) -> int:
    """How many elements are as `poison` left them, or (floats) were computed to be NaN."""
    total = 0
    for tensor in tensors:
        if tensor.is_floating_point():
            total += int(torch.isnan(tensor).sum())
        elif tensor.dtype != torch.bool:
            total += int((tensor.reshape(-1, 1).view(torch.uint8) == PATTERN).all(1).sum())
    return total


def bits(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of the bytes: NaN equals NaN there, and 0 is not -0."""
    return [tensor.reshape(-1).view(torch.uint8).clone() for tensor in tensors]


def equal_bits(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether tensors have the same bytes as `bits` returned of others."""
    return all(torch.equal(a, b.reshape(-1).view(torch.uint8)) for a, b in zip(one, other, strict=True))


def copies_beyond(tensors: Sequence[torch.Tensor], cache: int) -> int:
    """How many copies of tensors weigh more than a cache of so many bytes; at most `MOST_COPIES`."""
    weight = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return max(1, min(MOST_COPIES, cache // max(weight, 1) + 1))


def widened(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """16-bit floats as f32, all else as it is."""
    short = (torch.float16, torch.bfloat16)
    return [tensor.float() if tensor.dtype in short else tensor for tensor in tensors]


def error(results: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> float:
    """The largest max|result - reference| / max|reference| of all outputs; infinite where one is not finite."""
    worst = 0.0
    for result, wanted in zip(results, reference, strict=True):
        result, wanted = result.double(), wanted.double()
        if not bool(torch.isfinite(result).all()):
            return float("inf")
        scale = wanted.abs().max().item() or 1.0
        worst = max(worst, (result - wanted).abs().max().item() / scale)
    return worst


def _constant(one: Mapping[str, Any]) -> Any:
    """A scalar as NumPy's (a number in PyTorch's calls), all else as a tensor of its type."""
    if not one["shape"] and one["dtype"] != "i1":
        return np.array(one["values"][0])
    return torch.tensor(one["values"], dtype=TYPES[one["dtype"]]).reshape(one["shape"])
