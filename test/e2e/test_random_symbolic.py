# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs over [batch, sequence, hidden] with symbolic sizes, compiled once, against ONNX Runtime."""

from __future__ import annotations

import os

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from random_graphs import Maker

import tilewright as tw

#: More seeds: `RANDOM_SYMBOLIC=3:200 pytest test/e2e/test_random_symbolic.py`.
SEEDS = range(*map(int, os.environ.get("RANDOM_SYMBOLIC", "0:3").split(":")))
#: One; below, at and above vectors and tiles; many.
EXTENTS = (1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 64, 65, 100, 129)


class Chain:
    """Steps on a tensor of a random hidden size; each keeps batch and sequence."""

    def __init__(self, seed: int) -> None:
        self.maker = Maker(seed)
        self.hidden = self.maker.pick(4, 6, 16, 24, 33, 48)
        self.count = 0
        self.seen = ["x"]

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node with a new name for its result."""
        self.count += 1
        return self.maker.node(kind, list(inputs), f"v{self.count}", **attributes)

    def weight(self, *shape: int) -> str:
        """A new constant."""
        self.count += 1
        return self.maker.weight(f"w{self.count}", *shape)

    def linear(self, x: str) -> str:
        """A product with weights, a bias, an activation or none."""
        wide = self.maker.pick(self.hidden, 2 * self.hidden, 40)
        y = self.node("Add", self.node("MatMul", x, self.weight(self.hidden, wide)), self.weight(wide))
        y = self.node(self.maker.pick("Relu", "Tanh", "Identity", "Sigmoid"), y)
        return self.node("MatMul", y, self.weight(wide, self.hidden))

    def residual(self, x: str) -> str:
        """Something earlier is added."""
        return self.node(self.maker.pick("Add", "Mul"), x, self.maker.pick(*self.seen))

    def norm(self, x: str) -> str:
        """Layer normalization."""
        return self.node("LayerNormalization", x, self.weight(self.hidden), self.weight(self.hidden))

    def softmax(self, x: str) -> str:
        """Over the hidden size or over the sequence."""
        return self.node("Softmax", x, axis=self.maker.pick(1, 2))

    def centered(self, x: str) -> str:
        """Less its mean over the sequence, or its largest element over the batch."""
        self.count += 1
        axes = self.maker.constant(f"a{self.count}", np.array([self.maker.pick(0, 1)]))
        return self.node("Sub", x, self.node(self.maker.pick("ReduceMean", "ReduceMax"), x, axes, keepdims=1))

    def attention(self, x: str) -> str:
        """One head: queries, keys, and a softmax between the products."""
        queries = self.node("MatMul", x, self.weight(self.hidden, self.hidden))
        scores = self.node("MatMul", queries, self.node("Transpose", x, perm=[0, 2, 1]))
        return self.node("MatMul", self.node("Softmax", scores, axis=2), x)

    def build(self) -> onnx.ModelProto:
        """Some steps."""
        x = "x"
        steps = (self.linear, self.residual, self.norm, self.softmax, self.centered, self.attention)
        for _ in range(self.maker.pick(3, 4, 5, 6)):
            x = self.maker.pick(*steps)(x)
            self.seen.append(x)
        self.maker.node("Identity", [x], "y")
        shape = ["batch", "sequence", self.hidden]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
        graph = helper.make_graph(self.maker.nodes, "chain", values[:1], values[1:], self.maker.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_compilation_serves_all_sizes(seed: int) -> None:
    chain = Chain(seed)
    model = chain.build()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    bounded = chain.maker.pick(None, {"sequence": (1, 200)})
    general = tw.compile(model, threads=2, shapes=bounded).general
    assert general is not None
    for _ in range(5):
        sizes = chain.maker.pick(*EXTENTS[:9]), chain.maker.pick(*EXTENTS)
        x = chain.maker.values.standard_normal((*sizes, chain.hidden)).astype(np.float32)
        expected = np.asarray(session.run(None, {"x": x})[0])
        actual = general(x)[0]
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-3 * max(1, np.abs(expected).max()))
