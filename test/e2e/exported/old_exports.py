# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of opset 11 as tracing exporters wrote them, by hand: norms and GELUs in parts, axes as attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = np.float32, np.int64
Inputs = dict[str, np.ndarray]


class Net:
    """A graph, node by node."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(11)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """The first result of a node; others have a number behind its name."""
        names = [f"{kind.lower()}_{len(self.nodes)}{f'.{i}' if i else ''}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names[0]

    def value(self, array: object, dtype: np.typing.DTypeLike = F32) -> str:
        """A known tensor."""
        self.weights.append(numpy_helper.from_array(np.array(array, dtype), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int) -> str:
        """Normal numbers, scaled by the first size of a matrix or by the inputs of a filter."""
        inputs = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        return self.value(self.random.standard_normal(shape) * inputs**-0.5)

    def dense(self, x: str, rows: int, columns: int) -> str:
        """x @ w + b as two nodes."""
        return self.op("Add", self.op("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def norm(self, x: str, width: int) -> str:
        """LayerNormalization in its nine parts."""
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        squares = self.op("ReduceMean", self.op("Pow", centred, self.value(2.0)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", squares, self.value(1e-5)))
        scaled = self.op("Mul", self.op("Div", centred, root), self.value(1 + 0.1 * self.random.standard_normal(width)))
        return self.op("Add", scaled, self.weight(width))

    def gelu(self, x: str) -> str:
        """GELU by the error function."""
        one = self.op("Add", self.op("Erf", self.op("Div", x, self.value(2**0.5))), self.value(1.0))
        return self.op("Mul", self.op("Mul", x, one), self.value(0.5))

    def gelu_by_tanh(self, x: str) -> str:
        """GELU by tanh, as GPT-2 writes it."""
        inner = self.op("Add", x, self.op("Mul", self.op("Pow", x, self.value(3.0)), self.value(0.044715)))
        bent = self.op("Tanh", self.op("Mul", inner, self.value((2 / np.pi) ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.value(0.5)), self.op("Add", bent, self.value(1.0)))

    def size(self, x: str, axis: int) -> str:
        """A size as a vector of one."""
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.value(axis, I64)), axes=[0])

    def heads(self, x: str, count: int, size: int) -> str:
        """[batch, sequence, columns] to [batch, heads, sequence, size]."""
        sizes = [self.size(x, 0), self.size(x, 1), self.value([count], I64), self.value([size], I64)]
        split = self.op("Reshape", x, self.op("Concat", *sizes, axis=0))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, x: str, width: int, count: int, mask: str | None = None) -> str:
        """Self-attention with what is added to its scores."""
        size = width // count
        q, k, v = (self.heads(self.dense(x, width, width), count, size) for _ in range(3))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.value(size**0.5))
        scores = scores if mask is None else self.op("Add", scores, mask)
        y = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=3), v), perm=[0, 2, 1, 3])
        sizes = [self.size(y, 0), self.size(y, 1), self.value([width], I64)]
        return self.dense(self.op("Reshape", y, self.op("Concat", *sizes, axis=0)), width, width)

    def conv(self, x: str, inputs: int, outputs: int, window: int = 3, **attributes: object) -> str:
        """A convolution without a bias and its normalization."""
        half = window // 2
        y = self.op("Conv", x, self.weight(outputs, inputs, window, window), pads=[half] * 4, **attributes)
        return self.op("BatchNormalization", y, *self._batch(outputs))

    def _batch(self, channels: int) -> list[str]:
        parts = [self.random.standard_normal(channels) for _ in range(3)]
        scale, shift, mean = (self.value(1 + 0.1 * p) for p in parts)
        return [scale, shift, mean, self.value(self.random.uniform(0.5, 2, channels))]

    def model(self, inputs: list[onnx.ValueInfoProto], *outputs: str) -> onnx.ModelProto:
        """The model."""
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "old", inputs, results, self.weights)
        found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
        return onnx.shape_inference.infer_shapes(found)


def given(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """An input."""
    return helper.make_tensor_value_info(name, kind, shape)


@dataclass(frozen=True)
class Example:
    """A model, and its inputs for a number from which sizes follow."""

    model: Callable[[], onnx.ModelProto]
    inputs: Callable[[np.random.Generator, int], Inputs]


def encoder() -> onnx.ModelProto:
    """BERT: ids, kinds and a mask, sums of embeddings, two layers."""
    net, width = Net(), 16
    places = net.op("Slice", net.value(np.arange(20)[None], I64), net.value([0], I64), net.size("ids", 1),
                    net.value([1], I64))  # fmt: skip
    words = net.op("Gather", net.weight(30, width), "ids")
    kinds = net.op("Gather", net.weight(2, width), "kinds")
    x = net.op("Add", net.op("Add", words, kinds), net.op("Gather", net.weight(20, width), places))
    x = net.norm(x, width)
    seen = net.op("Cast", net.op("Unsqueeze", net.op("Unsqueeze", "mask", axes=[1]), axes=[2]), to=TensorProto.FLOAT)
    mask = net.op("Mul", net.op("Sub", net.value(1.0), seen), net.value(-10000.0))
    for _ in range(2):
        x = net.norm(net.op("Add", net.attention(x, width, 2, mask), x), width)
        y = net.dense(net.gelu(net.dense(x, width, 32)), 32, width)
        x = net.norm(net.op("Add", y, x), width)
    first = net.op("Gather", x, net.value(0, I64), axis=1)
    pooled = net.op("Tanh", net.op("Gemm", first, net.weight(width, width), net.weight(width)))
    names = ("ids", "kinds", "mask")
    return net.model([given(n, "batch", "sequence", kind=TensorProto.INT64) for n in names], x, pooled)


def encoder_inputs(random: np.random.Generator, n: int) -> Inputs:
    shape = (n, 2 * n + 1)
    limits = {"ids": 30, "kinds": 2, "mask": 2}
    return {name: random.integers(0, top, shape) for name, top in limits.items()}


def decoder() -> onnx.ModelProto:
    """GPT-2's layer: causal by a stored triangle, GELU by tanh, and the vocabulary's product."""
    net, width = Net(), 16
    length = net.size("x", 1)
    triangle = net.value(np.tril(np.ones((1, 1, 32, 32))), np.bool_)
    for axis in (2, 3):
        triangle = net.op("Slice", triangle, net.value([0], I64), length, net.value([axis], I64))
    mask = net.op("Where", triangle, net.value(0.0), net.value(-10000.0))
    x = net.op("Add", "x", net.attention(net.norm("x", width), width, 4, mask))
    y = net.dense(net.gelu_by_tanh(net.dense(net.norm(x, width), width, 32)), 32, width)
    x = net.norm(net.op("Add", x, y), width)
    logits = net.op("MatMul", x, net.op("Transpose", net.weight(30, width), perm=[1, 0]))
    top = net.op("TopK", logits, net.value([5], I64), outputs=2, axis=-1)
    return net.model([given("x", "batch", "sequence", width)], logits, top, f"{top}.1")


def residual() -> onnx.ModelProto:
    """Convolutions with their normalizations, additions, clipped activations and a linear end."""
    net = Net()
    x = net.op("Clip", net.conv("x", 3, 16, strides=[2, 2]), net.value(0.0), net.value(6.0))
    y = net.op("Relu", net.conv(x, 1, 16, group=16))
    x = net.op("Relu", net.op("Add", net.conv(y, 16, 16, 1), x))
    swish = net.op("Mul", x, net.op("Sigmoid", x))
    pooled = net.op("MaxPool", swish, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    share = net.op("Relu", net.op("Conv", net.op("GlobalAveragePool", pooled), net.weight(4, 16, 1, 1)))
    share = net.op("HardSigmoid", net.op("Conv", share, net.weight(16, 4, 1, 1)), alpha=1 / 6)
    flat = net.op("Flatten", net.op("GlobalAveragePool", net.op("Mul", pooled, share)), axis=1)
    y = net.op("Relu", net.op("Gemm", flat, net.weight(20, 16), net.weight(20), transB=1))
    return net.model([given("x", "batch", 3, 16, 16)], net.op("Softmax", net.dense(y, 20, 7), axis=1))


def upsampling() -> onnx.ModelProto:
    """A U with a skip: strides, a transposed convolution, Resize with the region and scales of opset 11, Pad."""
    net = Net()
    a = net.op("LeakyRelu", net.conv("x", 3, 16), alpha=0.1)
    b = net.op("Elu", net.conv(a, 16, 16, strides=[2, 2]))
    u = net.op("ConvTranspose", b, net.weight(16, 16, 2, 2), strides=[2, 2])
    x = net.op("Concat", a, u, axis=1)
    scales = [net.value([], F32), net.value([1, 1, 2, 2], F32)]
    x = net.op("Resize", net.conv(x, 32, 8, 1), *scales, mode="linear",
               coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
    x = net.op("Pad", x, net.value([0, 0, 1, 0, 0, 0, 2, 1], I64), mode="reflect")
    nearest = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    y = net.op("Resize", net.conv(b, 16, 8, 1), *scales, **nearest)
    return net.model([given("x", "batch", 3, 8, "width")], x, y)


def products() -> onnx.ModelProto:
    """Transposed and scaled products, QuickGELU, Softmax over all dimensions from the axis on, sums, a split."""
    net = Net()
    split = net.op("Split", "x", outputs=3, axis=2, split=[8, 8, 8])
    q, k, v = split, f"{split}.1", f"{split}.2"
    scores = net.op("Mul", net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 1])), net.value(0.3))
    y = net.op("MatMul", net.op("Softmax", scores, axis=1), v)
    quick = net.op("Mul", y, net.op("Sigmoid", net.op("Mul", y, net.value(1.702))))
    total = net.op("Squeeze", net.op("ReduceSum", quick, axes=[1], keepdims=1), axes=[1])
    best = net.op("ArgMax", quick, axis=2, keepdims=0)
    running = net.op("CumSum", total, net.value(1, I64))
    return net.model([given("x", "batch", "sequence", 24)], quick, total, best, running)


def recurrent() -> onnx.ModelProto:
    """Embeddings, an LSTM in both directions with states of zeros by Shape, and LogSoftmax."""
    net = Net()
    x = net.op("Transpose", net.op("Gather", net.weight(30, 8), "ids"), perm=[1, 0, 2])
    sizes = [net.value([2], I64), net.size(x, 1), net.value([6], I64)]
    zero = numpy_helper.from_array(np.zeros(1, F32))
    state = net.op("ConstantOfShape", net.op("Concat", *sizes, axis=0), value=zero)
    weights = [net.weight(2, 24, 8), net.weight(2, 24, 6), net.weight(2, 48)]
    y = net.op("LSTM", x, *weights, "", state, state, outputs=3, hidden_size=6, direction="bidirectional")
    flat = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.value([0, 0, -1], I64))
    scores = net.op("LogSoftmax", net.dense(flat, 12, 5), axis=2)
    return net.model([given("ids", "batch", "sequence", kind=TensorProto.INT64)], scores, f"{y}.1")


#: the examples by name
EXAMPLES = {
    "encoder": Example(encoder, encoder_inputs),
    "decoder": Example(decoder, lambda random, n: {"x": _real(random, n, 3 * n, 16)}),
    "residual": Example(residual, lambda random, n: {"x": _real(random, n, 3, 16, 16)}),
    "upsampling": Example(upsampling, lambda random, n: {"x": _real(random, n, 3, 8, 6 * n)}),
    "products": Example(products, lambda random, n: {"x": _real(random, n, 2 * n + 1, 24)}),
    "recurrent": Example(recurrent, lambda random, n: {"ids": random.integers(0, 30, (n, 2 * n + 2))}),
}


def _real(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(F32)
