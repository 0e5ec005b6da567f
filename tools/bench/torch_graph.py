# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of ONNX operators as a torch.fx module. It needs PyTorch and NumPy, but no ONNX.

A product with a constant matrix becomes `torch.nn.functional.linear`, with the bias that is added to it; everything
else is one PyTorch call per operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Attributes = dict[str, Any]


def _conv(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, a: Attributes) -> torch.Tensor:
    pads, rank = a.get("pads", [0] * 2 * (w.ndim - 2)), w.ndim - 2
    if pads[:rank] != pads[rank:]:
        x = F.pad(x, [p for i in reversed(range(rank)) for p in (pads[i], pads[rank + i])])
        pads = [0] * 2 * rank
    function = {1: F.conv1d, 2: F.conv2d}[rank]
    return function(x, w, b, a.get("strides", 1), pads[:rank], a.get("dilations", 1), a.get("group", 1))


def _attention(q: Any, k: Any, v: Any, mask: Any, a: Attributes) -> torch.Tensor:
    """The operator of opset 23 on four dimensions, without a cache."""
    grouped, causal = q.shape[1] != k.shape[1], bool(a.get("is_causal", 0))
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale=a.get("scale"), enable_gqa=grouped)


def _gelu(x: torch.Tensor, a: Attributes) -> torch.Tensor:
    kind = a.get("approximate", b"none")
    return F.gelu(x, approximate=kind if isinstance(kind, str) else kind.decode())


def _rms_norm(x: torch.Tensor, s: torch.Tensor, a: Attributes) -> torch.Tensor:
    return F.rms_norm(x, s.shape, s, a.get("epsilon", 1e-5))


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
    """None given: all, which PyTorch reduces over where the list is empty."""
    return list(axes if axes is not None else a.get("axes", []))


def _pad(x: torch.Tensor, pads: Sequence[int], a: Attributes) -> torch.Tensor:
    return F.pad(x, [p for d in reversed(range(x.ndim)) for p in (pads[d], pads[d + x.ndim])])


def _average_pool(x: torch.Tensor, a: Attributes) -> torch.Tensor:
    return F.avg_pool2d(x, a["kernel_shape"], a.get("strides", 1))


def _scatter_rows(x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor, a: Attributes) -> torch.Tensor:
    write = x.index_put_ if a.get(IN_PLACE) else x.index_put
    return write(torch.unbind(index, -1), updates)


def _scatter(x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor, a: Attributes) -> torch.Tensor:
    write = x.scatter_ if a.get(IN_PLACE) else x.scatter
    return write(a.get("axis", 0), index, updates)


def _squeeze(x: torch.Tensor, axes: Sequence[int] | None, a: Attributes) -> torch.Tensor:
    return torch.squeeze(x, tuple(_axes(a, axes)))


def _unsqueeze(x: torch.Tensor, axes: Sequence[int] | None, a: Attributes) -> torch.Tensor:
    for axis in sorted(_axes(a, axes)):
        x = torch.unsqueeze(x, axis)
    return x


def _reshape(x: torch.Tensor | int, shape: Sequence[int], a: Attributes) -> torch.Tensor:
    if isinstance(x, int):
        return torch.full(list(shape), x)
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


#: Attribute of our own: the first input is used by nobody else, and may be written.
IN_PLACE = "in_place"
_NUMBER = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 16: torch.bfloat16}

# Operator: its function of the inputs (in order, absent ones None) and the attributes.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda x, y, a: x + y,
    "ArgMax": lambda x, a: torch.argmax(x, a.get("axis", 0), bool(a.get("keepdims", 1))),
    "Attention": _attention,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": lambda x, a: x.to(_NUMBER[a["to"]]),
    "Clip": lambda x, low, high, a: torch.clamp(x, low, high),
    "Concat": lambda *xs: torch.cat(xs[:-1], xs[-1]["axis"]),
    "Conv": _conv,
    "DequantizeLinear": lambda x, s, a: x.float() * s,
    "Div": lambda x, y, a: x / y,
    "Equal": lambda x, y, a: x == y,
    "Erf": lambda x, a: torch.erf(x),
    "Expand": lambda x, shape, a: torch.broadcast_to(x, torch.broadcast_shapes(tuple(shape), x.shape)),
    "Flatten": lambda x, a: torch.flatten(x, a.get("axis", 1)),
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x, a: torch.mean(x, tuple(range(2, x.ndim)), keepdim=True),
    "Greater": lambda x, y, a: x > y,
    "Identity": lambda x, a: x,
    "LayerNormalization": _layer_norm,
    "LessOrEqual": lambda x, y, a: x <= y,
    "MatMul": lambda x, y, a: torch.matmul(x, y),
    "MaxPool": _max_pool,
    "Mul": lambda x, y, a: x * y,
    "Not": lambda x, a: torch.logical_not(x),
    "Pad": _pad,
    "Pow": lambda x, y, a: torch.pow(x, y),
    "ReduceL2": lambda x, axes, a: torch.linalg.vector_norm(x, 2, _axes(a, axes), bool(a.get("keepdims", 1))),
    "ReduceMax": lambda x, axes, a: torch.amax(x, _axes(a, axes), bool(a.get("keepdims", 1))),
    "ReduceMean": lambda x, axes, a: torch.mean(x, _axes(a, axes), bool(a.get("keepdims", 1))),
    "ReduceSum": lambda x, axes, a: torch.sum(x, _axes(a, axes), bool(a.get("keepdims", 1))),
    "RMSNormalization": _rms_norm,
    "Relu": lambda x, a: torch.relu(x),
    "Reshape": _reshape,
    "ScatterElements": _scatter,
    "ScatterND": _scatter_rows,
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
_INPUTS = {
    "Attention": 4,
    "Conv": 3,
    "Gemm": 3,
    "LayerNormalization": 3,
    "Slice": 5,
    "Clip": 3,
}  # with the optional ones
_WITH_AXES = ("ReduceL2", "ReduceMax", "ReduceMean", "ReduceSum", "Squeeze", "Unsqueeze")
_LISTS = {"Reshape", "Expand", "Pad", "Slice", "Split", *_WITH_AXES}  # their further inputs are lists of constants


class Lstm(torch.nn.Module):
    """One ONNX LSTM node without sequence lengths, forward."""

    def __init__(self, w: torch.Tensor, r: torch.Tensor, b: torch.Tensor) -> None:
        super().__init__()
        hidden = r.shape[2]
        self.lstm = torch.nn.LSTM(w.shape[2], hidden, device=w.device, dtype=w.dtype)
        order = torch.cat([torch.arange(hidden) + hidden * gate for gate in (0, 2, 3, 1)])  # i o f c -> i f c o
        order = order.to(w.device)
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(w[0][order])
            self.lstm.weight_hh_l0.copy_(r[0][order])
            self.lstm.bias_ih_l0.copy_(b[0][: 4 * hidden][order])
            self.lstm.bias_hh_l0.copy_(b[0][4 * hidden :][order])

    def forward(self, x: torch.Tensor, h: Any = None, c: Any = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Y [sequence, 1, batch, hidden], the last h and c."""
        y, (last, cell) = self.lstm(x, None if h is None else (h, c))
        return y.unsqueeze(1), last, cell


class Loop(torch.nn.Module):
    """A Loop as Python's own; numbers that count are Python's, too."""

    def __init__(self, body: torch.nn.Module, carried: int) -> None:
        super().__init__()
        self.body, self.carried = body, carried

    def forward(self, trips: Any, going: Any, *values: Any) -> tuple[Any, ...]:
        """What is carried, then what each iteration gives, as tensors."""
        state, around = values[: self.carried], values[self.carried :]
        state = tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in state)
        step, parts = 0, []
        while (trips is None or step < trips) and (going is None or going):
            going, *results = self.body(step, going, *state, *around)
            state, step = tuple(results[: self.carried]), step + 1
            parts.append(results[self.carried :])
        stacked = [torch.stack(part) for part in zip(*parts, strict=True)]
        return (*(torch.as_tensor(value) for value in state), *stacked)


class If(torch.nn.Module):
    """An If as Python's own."""

    def __init__(self, then: torch.nn.Module, other: torch.nn.Module) -> None:
        super().__init__()
        self.then, self.other = then, other

    def forward(self, condition: Any, *around: Any) -> Any:
        """The results of one of both."""
        return (self.then if condition else self.other)(*around)


@dataclass(frozen=True)
class Node:
    """One operator: its type, the names of its inputs (empty: absent) and outputs, its attributes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class Graph:
    """A graph of ONNX operators.

    Attributes:
        inputs: names, in order.
        outputs: names, in order.
        nodes: in an order that can be run.
        constants: arrays or tensors by name.
        own: how many of the first inputs only this graph has: a loop's, which it may write.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    nodes: Sequence[Node]
    constants: Mapping[str, Any]
    own: int = 0


def captured(graph: Graph) -> set[str]:
    """Names that a graph inside a node uses of those around it."""
    made = {*graph.inputs, *graph.constants, *(name for node in graph.nodes for name in node.outputs)}
    used = {name for node in graph.nodes for name in node.inputs if name} | set(graph.outputs)
    for node in graph.nodes:
        for inner in node.attributes.values():
            used |= captured(inner) if isinstance(inner, Graph) else set()
    return used - made


class _Converter:
    """Builds one fx graph."""

    def __init__(self, graph: Graph, widen: bool) -> None:
        self.source, self.widen = graph, widen
        self.constants = graph.constants
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.values: dict[str, Any] = {}
        self.uses: dict[str, int] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.uses[name] = self.uses.get(name, 0) + 1

    def tensor(self, name: str, array: Any) -> torch.fx.Node:
        """A constant as a buffer of the module."""
        buffer = f"c{len(list(self.root.buffers()))}"
        self.root.register_buffer(buffer, self.torch(array))
        self.values[name] = self.graph.get_attr(buffer)
        return self.values[name]

    def torch(self, array: Any) -> torch.Tensor:
        """A constant as a tensor, f32 for shorter floats where they are widened."""
        tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(np.array(array))
        return tensor.float() if self.widen and tensor.is_floating_point() else tensor

    def value(self, name: str, plain: bool = False) -> Any:
        """What an input name stands for: a graph value, a Python number or list, a buffer, or None."""
        if not name or name in self.values:
            return self.values.get(name)
        array = self.constants[name]
        if plain or (array.ndim == 0 and not isinstance(array, torch.Tensor) and array.dtype.kind in "fi"):
            return array.tolist()
        return self.tensor(name, array)

    def run(self) -> torch.fx.GraphModule:
        """The whole graph."""
        for i, name in enumerate(self.source.inputs):
            self.values[name] = self.graph.placeholder(f"x{i}")
        nodes, skip = list(self.source.nodes), set[int]()
        for i, node in enumerate(nodes):
            if i not in skip:
                skip |= self.node(node, nodes)
        self.graph.output(tuple(self.values[name] for name in self.source.outputs))
        return torch.fx.GraphModule(self.root, self.graph)

    def node(self, node: Node, nodes: Sequence[Node]) -> set[int]:
        """Convert one node; returns the positions of further nodes that it covers."""
        if node.op == "LSTM":
            self.lstm(node)
            return set()
        if node.op in ("Loop", "If"):
            self.control(node)
            return set()
        if node.op == "MatMul" and self.rank(node.inputs[1]) == 2:
            return self.linear(node, nodes)
        if node.op not in FUNCTIONS:
            raise NotImplementedError(f"no conversion of operator {node.op} to PyTorch")
        names = [*node.inputs, *[""] * (_INPUTS.get(node.op, 0) - len(node.inputs))]
        names += [""] * (node.op in _WITH_AXES and len(names) == 1)
        plain = node.op in _LISTS
        arguments = [self.value(name, plain and i > 0) for i, name in enumerate(names)]
        result = self.graph.call_function(FUNCTIONS[node.op], (*arguments, self.attributes(node)))
        self.bind(node, result)
        return set()

    def attributes(self, node: Node) -> Attributes:
        """Those of the node; casts to shorter floats go to f32 where these are widened."""
        if node.op.startswith("Scatter") and self.uses[node.inputs[0]] == 1:
            return {**node.attributes, IN_PLACE: node.inputs[0] in self.source.inputs[: self.source.own]}
        if node.op == "Cast" and self.widen and node.attributes["to"] in (10, 16):
            return {**node.attributes, "to": 1}
        return dict(node.attributes)

    def rank(self, name: str) -> int | None:
        """Dimensions of a constant; None for other values."""
        return self.constants[name].ndim if name in self.constants else None

    def bind(self, node: Node, result: torch.fx.Node, several: bool = False) -> None:
        """Name the results of a node; `several`: the call gives a tuple, whoever uses more than its first part."""
        if len(node.outputs) == 1 and not several:
            self.values[node.outputs[0]] = result
            return
        for i, name in enumerate(node.outputs):
            self.values[name] = self.graph.call_function(lambda xs, at: xs[at], (result, i))

    def linear(self, node: Node, nodes: Sequence[Node]) -> set[int]:
        """A product with a constant matrix, and the bias that alone uses it."""
        weight = self.tensor(node.inputs[1] + "^T", self.torch(self.constants[node.inputs[1]]).T.contiguous())
        covered, bias, out = set[int](), None, node.outputs[0]
        for i, other in enumerate(nodes):
            if other.op == "Add" and out in other.inputs and self.uses[out] == 1:
                name = next(n for n in other.inputs if n != out)
                if self.rank(name) == 1:
                    bias, covered, out = self.value(name), {i}, other.outputs[0]
                break
        self.values[out] = self.graph.call_function(F.linear, (self.value(node.inputs[0]), weight, bias))
        return covered

    def control(self, node: Node) -> None:
        """A loop or a branch as a submodule, which is given what its graphs use of this one."""
        graphs = [node.attributes[key] for key in ("body", "then_branch", "else_branch") if key in node.attributes]
        used = sorted({name for graph in graphs for name in captured(graph)} - set(self.constants))
        inner = [
            module(replace(g, inputs=[*g.inputs, *used], constants={**self.constants, **g.constants}), self.widen)
            for g in graphs
        ]
        name = f"control{len(list(self.root.children()))}"
        self.root.add_module(name, Loop(inner[0], len(node.inputs) - 2) if node.op == "Loop" else If(*inner))
        values = [self.value(n) for n in (*node.inputs, *used)]
        self.bind(node, self.graph.call_module(name, tuple(values)), several=True)

    def lstm(self, node: Node) -> None:
        """A recurrent layer as a submodule."""
        name = f"lstm{len(list(self.root.children()))}"
        self.root.add_module(name, Lstm(*(self.torch(self.constants[n]) for n in node.inputs[1:4])))
        state = [self.value(n) for n in node.inputs[5:7] if n]
        self.bind(node, self.graph.call_module(name, (self.value(node.inputs[0]), *state)), several=True)


def module(graph: Graph, widen: bool = False) -> torch.nn.Module:
    """The graph as a module of positional inputs that returns a tuple.

    Args:
        graph: the operators.
        widen: compute 16-bit floats in f32 (inputs are to be given as f32): a reference for those.

    Raises:
        NotImplementedError: an operator without a function here.
    """
    return _Converter(graph, widen).run().eval()
