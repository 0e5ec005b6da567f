# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residual networks whose blocks run only where a policy or a gate says so: an If around each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights
from .loops import lstm_cell

F32 = np.float32


class _Net:
    """Layers in a graph, or in a branch of it."""

    def __init__(self, g: Graph, w: Weights, batch: int) -> None:
        self.g, self.w, self.batch = g, w, batch

    def inside(self, name: str) -> _Net:
        """The same weights' source for a branch."""
        return _Net(self.g.inner(name), self.w, self.batch)

    def conv(self, x: str, outputs: int, inputs: int, size: int, stride: int = 1, gain: float = 2.0**0.5) -> str:
        """A convolution with its normalization folded in."""
        kernel = self.g.weight(self.w.conv(outputs, inputs, size, size, gain=gain))
        bias = self.g.weight(self.w.normal(outputs, scale=0.1))
        pads = [size // 2] * 4
        return self.g.op("Conv", x, kernel, bias, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads)

    def relu(self, x: str) -> str:
        """max(x, 0)."""
        return self.g.op("Relu", x)

    def choose(self, keep: str, x: str, shape: Sequence[int], block: Callable[[_Net], str], name: str) -> str:
        """`block` where `keep` says so, else `x`."""
        run, skip = self.inside(f"{name}.run"), self.inside(f"{name}.skip")
        run.g.output(block(run), f"{name}.kept", F32, shape)
        skip.g.output(skip.g.op("Identity", x), f"{name}.dropped", F32, shape)
        return self.g.op("If", keep, then_branch=run.g.as_attribute(), else_branch=skip.g.as_attribute())

    def classify(self, x: str, width: int, classes: int) -> None:
        """The output `y` [batch, classes]."""
        pooled = self.g.op("Flatten", self.g.op("GlobalAveragePool", x))
        weights = self.g.weight(self.w.linear(classes, width)), self.g.weight(self.w.normal(classes, scale=0.1))
        self.g.output(self.g.op("Gemm", pooled, *weights, transB=1), "y", F32, [self.batch, classes])


def blockdrop(
    depths: Sequence[int] = (5, 5, 5),
    width: int = 16,
    size: int = 32,
    classes: int = 10,
    batch: int = 1,
    seed: int = 0,
) -> onnx.ModelProto:
    """BlockDrop (Wu et al., CVPR 2018): `x` [batch, 3, size, size], `policy` [batch, blocks] -> `y` [batch, classes].

    A residual network for CIFAR. A block runs if any picture of the batch keeps it (its number in `policy` is above
    0.5), and changes those pictures alone. Shortcuts to fewer points average and add channels of zeros.
    """
    net = _Net(Graph("blockdrop", 20), Weights(seed), batch)
    g, blocks = net.g, sum(depths)
    x, policy = g.input("x", F32, [batch, 3, size, size]), g.input("policy", F32, [batch, blocks])
    keep = g.op("Greater", policy, g.f32(0.5))
    kept = g.op("Cast", keep, to=1)
    any_keeps = g.op("Cast", g.op("ReduceMax", kept, g.const([0]), keepdims=0), to=9)  # [blocks]
    x, inputs, number = net.relu(net.conv(x, width, 3, 3)), width, 0
    for stage, depth in enumerate(depths):
        for block in range(depth):
            outputs, stride = width << stage, 2 if stage and not block else 1
            size //= stride
            short = x
            if stride == 2:
                pooled = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
                short = g.op("Pad", pooled, g.const([0, 0, 0, 0, 0, outputs - inputs, 0, 0]))
            mask = g.op("Reshape", g.op("Gather", kept, g.const(number), axis=1), g.const([batch, 1, 1, 1]))
            build = _masked(x, short, mask, inputs, outputs, stride)
            one = g.op("Gather", any_keeps, g.const(number))
            x = net.choose(one, short, [batch, outputs, size, size], build, f"block{number}")
            inputs, number = outputs, number + 1
    net.classify(x, inputs, classes)
    return g.model()


def _masked(x: str, short: str, mask: str, inputs: int, outputs: int, stride: int) -> Callable[[_Net], str]:
    def block(net: _Net) -> str:
        y = net.relu(net.conv(x, outputs, inputs, 3, stride))
        y = net.relu(net.g.op("Add", short, net.conv(y, outputs, outputs, 3, gain=0.5)))
        rest = net.g.op("Sub", net.g.f32(1.0), mask)
        return net.g.op("Add", net.g.op("Mul", y, mask), net.g.op("Mul", short, rest))

    return block


def skipnet(
    depths: Sequence[int] = (3, 4, 23, 3),
    width: int = 64,
    gate: int = 10,
    size: int = 224,
    classes: int = 1000,
    batch: int = 1,
    seed: int = 0,
) -> onnx.ModelProto:
    """SkipNet (Wang et al., ECCV 2018): `x` [1, 3, size, size] -> `y` [1, classes], and `ran` [blocks], 1 or 0.

    A residual network of bottlenecks. Before each but the first of a stage an LSTM cell, the same for all, reads the
    mean of each channel, made `gate` numbers by a layer of the stage; its state's sign along a vector says whether the
    block runs.
    """
    if batch != 1:
        raise ValueError(f"batch = {batch}: a gate decides about one picture")
    net = _Net(Graph("skipnet", 20), Weights(seed), batch)
    g = net.g
    x = g.input("x", F32, [batch, 3, size, size])
    x = net.relu(net.conv(x, width, 3, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    size, inputs, ran = (((size + 1) // 2) + 1) // 2, width, []
    decide = _Gate(net, gate)
    for stage, depth in enumerate(depths):
        outputs, middle, stride = 4 * width << stage, width << stage, 1 if stage == 0 else 2
        size = (size + stride - 1) // stride
        x = net.relu(
            g.op("Add", net.conv(x, outputs, inputs, 1, stride), _bottleneck(net, x, outputs, middle, inputs, stride))
        )
        reads = g.weight(net.w.linear(outputs, gate).reshape(outputs, gate)), g.weight(net.w.normal(gate, scale=0.1))
        for block in range(1, depth):
            keep = decide.next(x, reads)
            ran.append(g.op("Cast", keep, to=1))
            build = _residual(x, outputs, middle)
            name = f"block{stage}.{block}"
            x = net.choose(keep, x, [batch, outputs, size, size], build, name)
        inputs = outputs
    net.classify(x, inputs, classes)
    g.output(g.op("Concat", *(g.op("Reshape", one, g.const([1])) for one in ran), axis=0), "ran", F32, [len(ran)])
    return g.model()


class _Gate:
    """The recurrent gate: an LSTM cell whose state goes from block to block."""

    def __init__(self, net: _Net, size: int) -> None:
        self.net, self.size = net, size
        g, w = net.g, net.w
        self._weights = [g.weight(w.normal(size, 4 * size, scale=(4 * size) ** -0.5), f"gate.{name}") for name in "wu"]
        self._bias = g.weight(w.normal(4 * size, scale=0.1), "gate.b")
        self._along = g.weight(w.normal(size, 1, scale=3.0), "gate.along")
        self._h = self._c = g.weight(np.zeros((net.batch, size), F32), "gate.zero")

    def next(self, x: str, reads: tuple[str, str]) -> str:
        """Whether the next block runs: a number, true or false."""
        g = self.net.g
        means = g.op("Flatten", g.op("GlobalAveragePool", x))
        seen = g.op("Relu", g.op("Gemm", means, *reads))
        sums = g.op("Add", g.op("MatMul", seen, self._weights[0]), g.op("MatMul", self._h, self._weights[1]))
        self._h, self._c = lstm_cell(g, g.op("Add", sums, self._bias), self._c, self.size)
        share = g.op("Sigmoid", g.op("MatMul", self._h, self._along))
        return g.op("Reshape", g.op("Greater", share, g.f32(0.5)), g.const(np.zeros(0, np.int64)))


def _bottleneck(net: _Net, x: str, outputs: int, middle: int, inputs: int, stride: int) -> str:
    y = net.relu(net.conv(x, middle, inputs, 1))
    return net.conv(net.relu(net.conv(y, middle, middle, 3, stride)), outputs, middle, 1, gain=0.5)


def _residual(x: str, outputs: int, middle: int) -> Callable[[_Net], str]:
    return lambda net: net.relu(net.g.op("Add", x, _bottleneck(net, x, outputs, middle, outputs, 1)))
