# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX graph as a torch.fx module, for the operators of the benchmarks' models. Runs in the peers' environment.

A product with a constant matrix becomes `torch.nn.functional.linear`, with the bias that is added to it; everything
else is one PyTorch call per operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

Attributes = dict[str, Any]


def _conv(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, a: Attributes) -> torch.Tensor:
    pads, rank = a.get("pads", [0] * 2 * (w.ndim - 2)), w.ndim - 2
    if pads[:rank] != pads[rank:]:
        x = F.pad(x, [p for i in reversed(range(rank)) for p in (pads[i], pads[rank + i])])
        pads = [0] * 2 * rank
    function = {1: F.conv1d, 2: F.conv2d}[rank]
    return function(x, w, b, a.get("strides", 1), pads[:rank], a.get("dilations", 1), a.get("group", 1))


def _max_pool(x: torch.Tensor, a: Attributes) -> torch.Tensor:
    rank = x.ndim - 2
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), a.get("pads", [0] * 4)[:rank])


def _batch_norm(x: torch.Tensor, s: Any, b: Any, m: Any, v: Any, a: Attributes) -> torch.Tensor:
    return F.batch_norm(x, m, v, s, b, False, 0.0, a.get("epsilon", 1e-5))


def _gemm(x: torch.Tensor, w: torch.Tensor, c: torch.Tensor | None, a: Attributes) -> torch.Tensor:
    return F.linear(x, w if a.get("transB") else w.T, c)


def _layer_norm(x: torch.Tensor, s: torch.Tensor, b: torch.Tensor | None, a: Attributes) -> torch.Tensor:
    return F.layer_norm(x, s.shape, s, b, a.get("epsilon", 1e-5))


def _axes(a: Attributes, axes: Sequence[int] | None) -> list[int]:
    return list(axes if axes is not None else a["axes"])


def _squeeze(x: torch.Tensor, axes: Sequence[int] | None, a: Attributes) -> torch.Tensor:
    return torch.squeeze(x, tuple(_axes(a, axes)))


def _unsqueeze(x: torch.Tensor, axes: Sequence[int] | None, a: Attributes) -> torch.Tensor:
    for axis in sorted(_axes(a, axes)):
        x = torch.unsqueeze(x, axis)
    return x


def _reshape(x: torch.Tensor, shape: Sequence[int], a: Attributes) -> torch.Tensor:
    return torch.reshape(x, [x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def _gather(x: torch.Tensor, index: Any, a: Attributes) -> torch.Tensor:
    axis = a.get("axis", 0)
    if isinstance(index, int):
        return torch.select(x, axis, index)
    if axis == 0 and x.ndim == 2:
        return F.embedding(index, x)
    return torch.index_select(x, axis, index.reshape(-1)).reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _slice(x: torch.Tensor, starts: Any, ends: Any, axes: Any, steps: Any, a: Attributes) -> torch.Tensor:
    axes = axes or list(range(len(starts)))
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(axes), strict=True):
        at: list[Any] = [slice(None)] * x.ndim
        at[axis] = slice(start, end, step)
        x = x[tuple(at)]
    return x


_NUMBER = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 16: torch.bfloat16}

# Operator: its function of the inputs (in order, absent ones None) and the attributes.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda x, y, a: x + y,
    "BatchNormalization": _batch_norm,
    "Cast": lambda x, a: x.to(_NUMBER[a["to"]]),
    "Clip": lambda x, low, high, a: torch.clamp(x, low, high),
    "Concat": lambda *xs: torch.cat(xs[:-1], xs[-1]["axis"]),
    "Conv": _conv,
    "Div": lambda x, y, a: x / y,
    "Erf": lambda x, a: torch.erf(x),
    "Expand": lambda x, shape, a: torch.broadcast_to(x, torch.broadcast_shapes(tuple(shape), x.shape)),
    "Flatten": lambda x, a: torch.flatten(x, a.get("axis", 1)),
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x, a: torch.mean(x, tuple(range(2, x.ndim)), keepdim=True),
    "Identity": lambda x, a: x,
    "LayerNormalization": _layer_norm,
    "MatMul": lambda x, y, a: torch.matmul(x, y),
    "MaxPool": _max_pool,
    "Mul": lambda x, y, a: x * y,
    "Pow": lambda x, y, a: torch.pow(x, y),
    "ReduceL2": lambda x, axes, a: torch.linalg.vector_norm(x, 2, _axes(a, axes), bool(a.get("keepdims", 1))),
    "ReduceMean": lambda x, axes, a: torch.mean(x, _axes(a, axes), bool(a.get("keepdims", 1))),
    "ReduceSum": lambda x, axes, a: torch.sum(x, _axes(a, axes), bool(a.get("keepdims", 1))),
    "Relu": lambda x, a: torch.relu(x),
    "Reshape": _reshape,
    "Sigmoid": lambda x, a: torch.sigmoid(x),
    "Slice": _slice,
    "Softmax": lambda x, a: torch.softmax(x, a.get("axis", -1)),
    "Split": lambda x, sizes, a: torch.split(x, list(sizes), a.get("axis", 0)),
    "Sqrt": lambda x, a: torch.sqrt(x),
    "Squeeze": _squeeze,
    "Sub": lambda x, y, a: x - y,
    "Tanh": lambda x, a: torch.tanh(x),
    "Transpose": lambda x, a: torch.permute(x, a["perm"]),
    "Unsqueeze": _unsqueeze,
    "Where": lambda c, x, y, a: torch.where(c, x, y),
}
_INPUTS = {"Conv": 3, "Gemm": 3, "LayerNormalization": 3, "Slice": 5, "Clip": 3}  # with the optional ones
_WITH_AXES = ("ReduceL2", "ReduceMean", "ReduceSum", "Squeeze", "Unsqueeze")
_LISTS = {"Reshape", "Expand", "Slice", "Split", *_WITH_AXES}  # their further inputs are lists of constants


class Lstm(torch.nn.Module):
    """One ONNX LSTM node without sequence lengths, forward."""

    def __init__(self, w: np.ndarray, r: np.ndarray, b: np.ndarray) -> None:
        super().__init__()
        hidden = r.shape[2]
        self.lstm = torch.nn.LSTM(w.shape[2], hidden)
        order = np.concatenate([np.arange(hidden) + hidden * gate for gate in (0, 2, 3, 1)])  # i o f c -> i f c o
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(torch.from_numpy(w[0][order]))
            self.lstm.weight_hh_l0.copy_(torch.from_numpy(r[0][order]))
            self.lstm.bias_ih_l0.copy_(torch.from_numpy(b[0][: 4 * hidden][order]))
            self.lstm.bias_hh_l0.copy_(torch.from_numpy(b[0][4 * hidden :][order]))

    def forward(self, x: torch.Tensor, h: Any = None, c: Any = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Y [sequence, 1, batch, hidden], the last h and c."""
        y, (last, cell) = self.lstm(x, None if h is None else (h, c))
        return y.unsqueeze(1), last, cell


class _Converter:
    """Builds one fx graph."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.proto = model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.proto.initializer}
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.values: dict[str, Any] = {}
        self.uses: dict[str, int] = {}
        for node in self.proto.node:
            for name in node.input:
                self.uses[name] = self.uses.get(name, 0) + 1

    def tensor(self, name: str, array: np.ndarray) -> torch.fx.Node:
        """A constant as a buffer of the module."""
        buffer = f"c{len(list(self.root.buffers()))}"
        self.root.register_buffer(buffer, torch.from_numpy(np.array(array)))
        self.values[name] = self.graph.get_attr(buffer)
        return self.values[name]

    def value(self, name: str, plain: bool = False) -> Any:
        """What an input name stands for: a graph value, a Python number or list, a buffer, or None."""
        if not name or name in self.values:
            return self.values.get(name)
        array = self.constants[name]
        if plain or (array.ndim == 0 and array.dtype.kind in "fi"):
            return array.tolist()
        return self.tensor(name, array)

    def run(self) -> torch.fx.GraphModule:
        """The whole graph."""
        inputs = [i.name for i in self.proto.input if i.name not in self.constants]
        for i, name in enumerate(inputs):
            self.values[name] = self.graph.placeholder(f"x{i}")
        nodes, skip = list(self.proto.node), set[int]()
        for i, node in enumerate(nodes):
            if i not in skip:
                skip |= self.node(node, nodes)
        self.graph.output(tuple(self.values[o.name] for o in self.proto.output))
        return torch.fx.GraphModule(self.root, self.graph)

    def node(self, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto]) -> set[int]:
        """Convert one node; returns the positions of further nodes that it covers."""
        if node.op_type == "LSTM":
            self.lstm(node)
            return set()
        if node.op_type == "MatMul" and self.constants.get(node.input[1], np.zeros(())).ndim == 2:
            return self.linear(node, nodes)
        if node.op_type not in FUNCTIONS:
            raise NotImplementedError(f"no conversion of operator {node.op_type} to PyTorch")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        names = [*node.input, *[""] * (_INPUTS.get(node.op_type, 0) - len(node.input))]
        names += [""] * (node.op_type in _WITH_AXES and len(names) == 1)
        plain = node.op_type in _LISTS
        arguments = [self.value(name, plain and i > 0) for i, name in enumerate(names)]
        result = self.graph.call_function(FUNCTIONS[node.op_type], (*arguments, attributes))
        self.bind(node, result)
        return set()

    def bind(self, node: onnx.NodeProto, result: torch.fx.Node) -> None:
        """Name the results of a node."""
        if len(node.output) == 1:
            self.values[node.output[0]] = result
            return
        for i, name in enumerate(node.output):
            self.values[name] = self.graph.call_function(lambda xs, at: xs[at], (result, i))

    def linear(self, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto]) -> set[int]:
        """A product with a constant matrix, and the bias that alone uses it."""
        weight = self.tensor(node.input[1] + "^T", np.ascontiguousarray(self.constants[node.input[1]].T))
        covered, bias, out = set[int](), None, node.output[0]
        for i, other in enumerate(nodes):
            if other.op_type == "Add" and out in other.input and self.uses[out] == 1:
                name = next(n for n in other.input if n != out)
                if self.constants.get(name, np.zeros(())).ndim == 1:
                    bias, covered, out = self.value(name), {i}, other.output[0]
                break
        self.values[out] = self.graph.call_function(F.linear, (self.value(node.input[0]), weight, bias))
        return covered

    def lstm(self, node: onnx.NodeProto) -> None:
        """A recurrent layer as a submodule."""
        name = f"lstm{len(list(self.root.children()))}"
        self.root.add_module(name, Lstm(*(self.constants[n] for n in node.input[1:4])))
        state = [self.value(n) for n in node.input[5:7] if n]
        self.bind(node, self.graph.call_module(name, (self.value(node.input[0]), *state)))


def convert(model: onnx.ModelProto) -> torch.nn.Module:
    """The model as a module of positional inputs that returns a tuple. Raises NotImplementedError."""
    return _Converter(model).run().eval()
