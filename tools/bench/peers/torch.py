# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, eager. Single operators are the calls that a user would write, with `out=` where PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F

from bench.onnx_torch import convert
from bench.peers import Peer


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().to(torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype).numpy()


def _kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node} - {"Identity"}


def special(model: onnx.ModelProto, inputs: list[torch.Tensor]) -> Callable[..., object] | None:
    """The fused or preallocating call for a model that is one operator, if there is one."""
    kinds = _kinds(model)
    if kinds == {"Softmax"}:
        result = torch.empty_like(inputs[0])
        return lambda x: (torch.softmax(x, -1, out=result),)
    if kinds == {"MatMul"} and len(inputs) == 2:
        product = torch.empty(inputs[0].shape[0], inputs[1].shape[1], dtype=inputs[0].dtype)
        return lambda a, b: (torch.matmul(a, b, out=product),)
    if kinds - {"Where"} == {"MatMul", "Transpose", "Mul", "Softmax"} and len(inputs) == 3:
        return lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal="Where" in kinds),)
    return None


class Torch(Peer):
    """The model as PyTorch calls in inference mode; freed memory stays with the process (see bench.environment)."""

    settings = "eager, inference mode, out= or kept memory; scaled_dot_product_attention for attention"

    def version(self) -> str:
        """The package's version."""
        return torch.__version__

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Convert the model."""
        torch.set_num_threads(threads)
        proto = onnx.load(str(model))
        self._inputs = [_tensor(array) for array in inputs.values()]
        self._call = self.function(proto)
        self.run()

    def function(self, proto: onnx.ModelProto) -> Callable[..., object]:
        """What is called."""
        return special(proto, self._inputs) or convert(proto)

    def run(self) -> None:
        """Call it."""
        with torch.inference_mode():
            self._results = self._call(*self._inputs)

    def outputs(self) -> list[np.ndarray]:
        """The latest results."""
        return [_array(tensor) for tensor in self._results]  # type: ignore[attr-defined]


PEER = Torch
