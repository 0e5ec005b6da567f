# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse libraries on models of one product with a constant weight: the weight in a format, the product as one call.

The libraries multiply a sparse matrix from the left by a dense one: they get the weight transposed, and the input and
the result transposed, too, as they like it (not counted).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from bench.peers import Peer

BLOCK = (32, 32)


def constant_operand(model: onnx.ModelProto) -> np.ndarray:
    """The weight [k, n] of a model that is one MatMul `x @ weight`. Raises ValueError for any other model."""
    nodes = [node for node in model.graph.node if node.op_type != "Identity"]
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    if [node.op_type for node in nodes] != ["MatMul"] or nodes[0].input[1] not in held:
        raise ValueError("the model is more than one product with a constant weight")
    return numpy_helper.to_array(held[nodes[0].input[1]])


class SparseProduct(Peer):
    """y^T = weight^T x^T, the weight in a sparse format."""

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Convert the weight; hold the input transposed."""
        (x,) = inputs.values()
        self._result: Any = None
        self.prepare(
            np.ascontiguousarray(constant_operand(onnx.load(str(model))).T), np.ascontiguousarray(x.T), threads
        )

    @abstractmethod
    def prepare(self, weight: np.ndarray, x: np.ndarray, threads: int) -> None:
        """Hold the operands: weight [n, k], x [k, m]."""

    def outputs(self) -> list[np.ndarray]:
        """The latest result, as the model has it."""
        return [np.ascontiguousarray(np.asarray(self._result).T)]
