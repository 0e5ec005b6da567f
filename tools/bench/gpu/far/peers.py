# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whom ours is measured beside: PyTorch's own calls, its fused attentions, Inductor, and kernels written in Triton.

A peer takes a `Given`; it returns what is to be timed, which returns the results. The suite itself records it as a CUDA
graph too (`NAME_graph`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Given:
    """What a peer works with.

    Attributes:
        case: its entry in suite.json.
        module: the graph with the weights inside.
        inputs: of the module.
        weights: tensors of the graph's weights, in order.
    """

    case: Mapping[str, Any]
    module: torch.nn.Module
    inputs: Sequence[torch.Tensor]
    weights: Sequence[torch.Tensor] = ()


Call = Callable[[], Sequence[torch.Tensor]]
Maker = Callable[[Given], Call]


class Skip(Exception):
    """A peer that cannot do a case, with the reason."""


def eager(given: Given) -> Call:
    """Calls of the operators: cuBLAS, cuDNN, the attention that PyTorch picks."""
    return lambda: given.module(*given.inputs)


def _compiled(mode: str) -> Maker:
    def make(given: Given) -> Call:
        function = torch.compile(given.module, mode=mode, dynamic=False)
        return lambda: function(*given.inputs)

    return make


def _sdpa(backend: str) -> Maker:
    def make(given: Given) -> Call:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        kind = getattr(SDPBackend, backend)

        def call() -> Sequence[torch.Tensor]:
            with sdpa_kernel(kind):
                return given.module(*given.inputs)

        return call

    return make


def scaled_mm(given: Given) -> Call:
    """cuBLAS's product of float8 with a scale of each operand, promoted as ours is (no fast accumulation)."""
    if not hasattr(torch, "_scaled_mm"):
        raise Skip("this PyTorch has no torch._scaled_mm")
    x, w = given.inputs
    scales = [torch.tensor(c["values"][0], device=x.device) for c in given.case["graph"]["constants"].values()]

    def call() -> Sequence[torch.Tensor]:
        product = torch._scaled_mm(
            x, w.t(), scale_a=scales[0], scale_b=scales[1], out_dtype=torch.float32, use_fast_accum=False
        )
        return (product,)

    return call


def triton(given: Given) -> Call:
    """A kernel of `triton_kernels`."""
    try:
        from bench.gpu.far import triton_kernels
    except ImportError as error:
        raise Skip(f"no Triton: {error}") from None
    return triton_kernels.make(given)


PEERS: dict[str, Maker] = {
    "eager": eager,
    "compile": _compiled("default"),
    "compile_reduce": _compiled("reduce-overhead"),
    "sdpa_flash": _sdpa("FLASH_ATTENTION"),
    "sdpa_cudnn": _sdpa("CUDNN_ATTENTION"),
    "scaled_mm": scaled_mm,
    "triton": triton,
}
ABOUT = {
    "eager": "PyTorch's calls: cuBLAS, cuDNN, the attention that it picks",
    "compile": "torch.compile, default mode, static shapes",
    "compile_reduce": "torch.compile, reduce-overhead (its own CUDA graphs, which copy inputs)",
    "sdpa_flash": "scaled_dot_product_attention, FlashAttention",
    "sdpa_cudnn": "scaled_dot_product_attention, cuDNN",
    "scaled_mm": "torch._scaled_mm: cuBLAS on float8, use_fast_accum=False",
    "triton": "kernels of the usual form in Triton, best of a few tiles",
}
