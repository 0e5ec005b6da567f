# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small ONNX graphs: shapes with 1, primes and sizes around the vector width, operands constant or not."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 48, 64, 65, 100, 127)


class Maker:
    """One graph under construction; `pick` and `size` choose, the other methods add."""

    def __init__(self, seed: int) -> None:
        """Start an empty graph whose choices follow from `seed`."""
        self.choose = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, list[int]] = {}
        self.constants: list[onnx.TensorProto] = []

    def pick(self, *options):
        """One of the options."""
        return self.choose.choice(options)

    def size(self) -> int:
        """A size of a dimension."""
        return self.choose.choice(SIZES)

    def input(self, name: str, *shape: int) -> str:
        """A float input."""
        self.inputs[name] = list(shape)
        return name

    def weight(self, name: str, *shape: int) -> str:
        """A constant of small random numbers."""
        return self.constant(name, self.values.standard_normal(shape, np.float32) * np.float32(0.5))

    def constant(self, name: str, value: np.ndarray) -> str:
        """A constant with the given value."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes) -> str:
        """One node."""
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def model(self) -> onnx.ModelProto:
        """The graph with output `y`, whose shape ONNX infers."""
        value = helper.make_tensor_value_info
        inputs = [value(name, TensorProto.FLOAT, shape) for name, shape in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, [value("y", TensorProto.FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def feeds(self) -> dict[str, np.ndarray]:
        """Random inputs."""
        return {name: self.values.standard_normal(shape, np.float32) for name, shape in self.inputs.items()}


def product(m: Maker) -> None:
    """A matrix product, its right side constant or not, with or without a function behind it."""
    rows, columns, depth = m.size(), m.size(), m.size()
    right = m.pick(m.weight, m.input)("w", depth, columns)
    m.node("MatMul", [m.input("x", rows, depth), right], "t")
    m.node(m.pick("Relu", "Erf", "Tanh", "Sigmoid", "Identity"), ["t"], "y")


def gemm(m: Maker) -> None:
    """Gemm with either side transposed."""
    rows, columns, depth = m.size(), m.size(), m.size()
    left, right = m.pick(0, 1), m.pick(0, 1)
    x = m.input("x", *((depth, rows) if left else (rows, depth)))
    w = m.weight("w", *((columns, depth) if right else (depth, columns)))
    m.node("Gemm", [x, w, m.weight("b", columns)], "y", transA=left, transB=right, alpha=m.pick(1.0, 0.5))


def batched_product(m: Maker) -> None:
    """A product over leading dimensions that broadcast."""
    batch, rows, columns, depth = m.pick(1, 2, 3), m.size(), m.size(), m.size()
    lead = m.pick((batch, 2), (2,), (batch, 1), ())
    m.node("MatMul", [m.input("x", batch, 2, rows, depth), m.input("w", *lead, depth, columns)], "y")


def convolution(m: Maker) -> None:
    """A 2-d convolution, depthwise or not, strided, dilated, padded."""
    depthwise = m.pick(True, False)
    channels = m.pick(1, 3, 8, 16, 20, 33)
    filters = channels if depthwise else m.pick(1, 5, 16, 32, 40)
    kernel, stride, pad = m.pick(1, 2, 3, 5), m.pick(1, 2), m.pick(1, 2)
    x = m.input("x", m.pick(1, 2), channels, m.pick(5, 7, 9, 14, 17), m.pick(5, 8, 11, 16))
    w = m.weight("w", filters, 1 if depthwise else channels, kernel, kernel)
    m.node(
        "Conv",
        [x, w, m.weight("b", filters)],
        "t",
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        pads=[pad] * 4,
        dilations=[m.pick(1, 2) if kernel < 5 else 1] * 2,
        group=channels if depthwise else 1,
    )
    m.node("Relu", ["t"], "y")


def pooling(m: Maker) -> None:
    """Maximum or average over windows."""
    x = m.input("x", 1, m.pick(3, 8, 17), m.pick(6, 9, 16), m.pick(7, 12))
    kind, window, stride, pad = m.pick("MaxPool", "AveragePool"), m.pick(2, 3), m.pick(1, 2), m.pick(0, 1)
    m.node(kind, [x], "y", kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4)


def shape3(m: Maker) -> list[int]:
    """Three sizes, the first small."""
    return [m.pick(1, 2, 3, 4), m.size(), m.size()]


def softmax(m: Maker) -> None:
    """Along any dimension."""
    m.node("Softmax", [m.input("x", *shape3(m))], "y", axis=m.pick(-1, 0, 1))


def layer_norm(m: Maker) -> None:
    """Of a sum of two inputs."""
    shape = shape3(m)
    m.node("Add", [m.input("x", *shape), m.input("z", *shape)], "t")
    m.node("LayerNormalization", ["t", m.weight("s", shape[2]), m.weight("b", shape[2])], "y", axis=-1)


def transpose(m: Maker) -> None:
    """Any permutation of three dimensions."""
    m.node("Transpose", [m.input("x", *shape3(m))], "y", perm=m.choose.sample([0, 1, 2], 3))


def reduction(m: Maker) -> None:
    """Over any set of dimensions."""
    axes = m.constant("axes", np.array(sorted(m.choose.sample([0, 1, 2], m.pick(1, 2, 3))), np.int64))
    kind = m.pick("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
    m.node(kind, [m.input("x", *shape3(m)), axes], "y", keepdims=m.pick(0, 1))


def elementwise(m: Maker) -> None:
    """Two operands that broadcast, then a function."""
    shape = shape3(m)
    other = [m.pick(1, size) for size in shape][m.pick(0, 1) :]
    m.node(m.pick("Add", "Sub", "Mul", "Max"), [m.input("x", *shape), m.input("z", *other)], "t")
    m.node(m.pick("Exp", "Abs", "Neg", "Sigmoid"), ["t"], "y")


def softmax_by_hand(m: Maker) -> None:
    """A product, its softmax in single steps, and the product again: values with several readers."""
    shape = shape3(m)
    axis = m.constant("axis", np.array([-1], np.int64))
    m.node("MatMul", [m.input("x", *shape), m.weight("w", shape[2], 33)], "a")
    m.node("Sub", ["a", m.node("ReduceMax", ["a", axis], "top")], "d")
    m.node("Exp", ["d"], "e")
    m.node("Div", ["e", m.node("ReduceSum", ["e", axis], "sum")], "q")
    m.node("Add", ["q", "a"], "y")


def concatenation(m: Maker) -> None:
    """Of two inputs, then a function."""
    axis, first = m.pick(0, 1, 2), shape3(m)
    second = list(first)
    second[axis] = m.size()
    m.node("Concat", [m.input("x", *first), m.input("z", *second)], "t", axis=axis)
    m.node("Mul", ["t", "t"], "y")


def attention(m: Maker) -> None:
    """softmax(q k^T) v for three heads."""
    shape = (1, 3, m.size(), m.pick(8, 16, 32, 33))
    q, k, v = (m.input(name, *shape) for name in "qkv")
    m.node("MatMul", [q, m.node("Transpose", [k], "kt", perm=[0, 1, 3, 2])], "s")
    m.node("MatMul", [m.node("Softmax", ["s"], "p", axis=-1), v], "y")


KINDS: dict[str, Callable[[Maker], None]] = {
    make.__name__: make
    for make in (
        *(product, gemm, batched_product, convolution, pooling, softmax, layer_norm, transpose, reduction),
        *(elementwise, softmax_by_hand, concatenation, attention),
    )
}
