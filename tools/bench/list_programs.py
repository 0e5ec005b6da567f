# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on nested lists that a model stands for: their arguments and weights. It needs NumPy and ONNX only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

Weights = dict[str, np.ndarray]
LEAF_RANK = 2  # of all arguments: the axes before are levels


@dataclass(frozen=True)
class ListProgram:
    """A program of `examples/fractal` as a case has it.

    Attributes:
        name: of the program.
        inputs: shapes of its arguments as arrays, by name.
        weights: its constants, by name; levels first as in arguments.
        trees: of arguments that are trees, both children of each node (`models.trees`); their arrays hold the leaves.
    """

    name: str
    inputs: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, np.ndarray]
    trees: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def leaf(self) -> tuple[int, ...]:
        """The arguments of the example's `program`: leaf sizes."""
        if self.trees:
            return _TREE_LEAVES[self.name](self.weights["w"])
        shapes = list(self.inputs.values())
        return _LEAVES[self.name](*shapes)

    @property
    def lengths(self) -> dict[str, tuple[int, ...]]:
        """Lengths of the levels of each argument; of a tree how many nodes it has, and on the longest way down."""
        levels = {name: shape[:-LEAF_RANK] for name, shape in self.inputs.items()}
        return levels | {name: (len(children), 1 + _height(children)) for name, children in self.trees.items()}


def read(model: Path | onnx.ModelProto, name: str) -> ListProgram:
    """The program `name` with the arguments and weights of its library form (`models.lists`)."""
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
    inputs = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in proto.graph.input}
    weights = _WEIGHTS.get(name, lambda _: {})(proto)
    trees = {} if name not in _TREE_LEAVES else {"tree": _named(proto)["children"]}
    return ListProgram(name, inputs, weights, trees)


def _named(proto: onnx.ModelProto) -> Weights:
    """All initializers."""
    return {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}


def _height(children: np.ndarray) -> int:
    """The largest number of steps from the root to a leaf; nodes stand behind their children."""
    levels: list[int] = []
    for left, right in children.tolist():
        levels.append(0 if left < 0 else 1 + max(levels[left], levels[right]))
    return levels[-1]


def _gates(proto: onnx.ModelProto) -> Weights:
    """Parameters of LSTM nodes as [layer][gate], gates i, f, o, g."""
    constants = {t.name: t for t in proto.graph.initializer}
    layers = [node.input[1:4] for node in proto.graph.node if node.op_type == "LSTM"]
    found: dict[str, list[np.ndarray]] = {"ws": [], "us": [], "bs": []}
    for names in layers:
        w, r, b = (numpy_helper.to_array(constants[name])[0] for name in names)
        for name, matrix in (("ws", w), ("us", r)):
            found[name].append(_ordered(matrix).transpose(0, 2, 1))
        found["bs"].append(_ordered(b.reshape(2, -1).sum(0))[:, None])
    return {name: np.ascontiguousarray(np.stack(parts)) for name, parts in found.items()}


def _ordered(rows: np.ndarray) -> np.ndarray:
    """[4 * hidden, ...] in ONNX's order i, o, f, g as [4, hidden, ...] in the order i, f, o, g."""
    return rows.reshape(4, -1, *rows.shape[1:])[[0, 2, 1, 3]]


def _side_by_side(proto: onnx.ModelProto) -> Weights:
    """Parameters of LSTM nodes as [layer], the gates beside each other."""
    return {
        name: np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1))
        for name, x in _gates(proto).items()
    }


def _by_name(names: Sequence[str]) -> Callable[[onnx.ModelProto], Weights]:
    """Initializers of all layers, which end with a name: matrices, and vectors as rows."""

    def weights(proto: onnx.ModelProto) -> Weights:
        found = {n: [t for t in proto.graph.initializer if t.name.endswith(f".{n}")] for n in names}
        arrays = {n: [np.atleast_2d(numpy_helper.to_array(t)) for t in layers] for n, layers in found.items()}
        return {n: np.stack(layers) for n, layers in arrays.items()}

    return weights


_WEIGHTS: Mapping[str, Callable[[onnx.ModelProto], Weights]] = {
    "stacked_lstm": _gates,
    "dilated_lstm": _side_by_side,
    "grid_rnn": _by_name(("wx", "ux", "bx", "wy", "uy", "by")),
    "tree_lstm": lambda proto: {name: _named(proto)[name] for name in "wub"},
    "recursive_autoencoder": lambda proto: {name: _named(proto)[name] for name in "wb"},
}
_TREE_LEAVES: Mapping[str, Callable[[np.ndarray], tuple[int, ...]]] = {
    "tree_lstm": lambda w: (w.shape[0], w.shape[1] // 3),
    "recursive_autoencoder": lambda w: (w.shape[1],),
}
_LEAVES: Mapping[str, Callable[..., tuple[int, ...]]] = {
    "stacked_lstm": lambda x: x[-1:],
    "dilated_lstm": lambda x: x[-1:],
    "grid_rnn": lambda x, y: x[-1:],
    "b2b_gemm": lambda a, b, c: (*a[-2:], *c[-2:]),
    "attention": lambda q, k, v: q[-2:],
    "bigbird": lambda q, k, v: q[-2:],
}
