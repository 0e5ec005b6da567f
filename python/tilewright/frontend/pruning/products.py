# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of an ONNX graph that have a constant operand: what pruning can change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx

from tilewright.frontend.onnx.load import domain_of, initializer_array, subgraphs_of

_MOVES = ("Identity", "Transpose")
_WEIGHTED = ("MatMul", "Gemm", "Conv", "ConvTranspose")
#: Operators with weights that stay as they are.
_LEFT = ("LSTM", "GRU", "RNN", "Einsum", "DeformConv", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")


@dataclass(frozen=True)
class View:
    """A weight as products [groups, positions, inputs, outputs].

    Attributes:
        perm: from the weight to the node's operand.
        shape: the operand with its dimensions joined or cut; four of them.
        order: which of those are groups, positions, inputs and outputs.
    """

    perm: tuple[int, ...]
    shape: tuple[int, int, int, int]
    order: tuple[int, int, int, int]

    def apply(self, weight: np.ndarray) -> np.ndarray:
        """The products of a weight."""
        return weight.transpose(self.perm).reshape(self.shape).transpose(self.order)

    def undo(self, products: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """An array like the weight, of one like the products."""
        operand = products.transpose(np.argsort(self.order)).reshape([shape[axis] for axis in self.perm])
        return np.ascontiguousarray(operand.transpose(np.argsort(self.perm)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of groups, positions, inputs of a group, outputs of a group."""
        return tuple(self.shape[axis] for axis in self.order)


@dataclass(frozen=True)
class Product:
    """One use of a weight.

    Attributes:
        name: of the node, or of its first output.
        operator: ONNX's name.
        weight: name of the initializer.
        view: the weight as products.
        x: name of the other operand.
        axis: the dimension of `x` that the product sums over.
        y: name of the result.
    """

    name: str
    operator: str
    weight: str
    view: View
    x: str
    axis: int
    y: str

    def squares(self, x: np.ndarray) -> np.ndarray:
        """Sums of squares of each input of each group: f64 [groups, inputs], or [1, inputs] where all have the same."""
        groups, _, inputs, _ = self.view.sizes
        front = np.moveaxis(x.astype(np.float64), self.axis if x.ndim > 1 else -1, -1)
        if self.operator in ("Conv", "ConvTranspose"):
            return np.square(front).reshape(-1, groups * inputs).sum(axis=0).reshape(groups, inputs)
        if groups > 1 and prod(front.shape[:-2]) == groups:
            return np.square(front).reshape(groups, -1, inputs).sum(axis=1)
        return np.square(front).reshape(-1, inputs).sum(axis=0)[None]


class Weights:
    """The constants of a model's graph, to read and to replace. The model is changed.

    Args:
        model: constants that nodes or sparse initializers make become plain initializers.
        folder: where external data lie.

    Raises:
        UserError: the data of a constant cannot be read.
    """

    def __init__(self, model: onnx.ModelProto, folder: str) -> None:
        from tilewright.frontend.onnx.load import dense_array

        graph, self._folder = model.graph, folder
        for sparse in graph.sparse_initializer:
            array = dense_array(sparse, folder)
            graph.initializer.append(onnx.numpy_helper.from_array(array, sparse.values.name))
        del graph.sparse_initializer[:]
        for node in [node for node in graph.node if node.op_type == "Constant" and not domain_of(node.domain)]:
            (value,) = node.attribute or (None,)
            if value is not None and value.name in ("value", "sparse_value"):
                held = value.t if value.name == "value" else None
                array = dense_array(value.sparse_tensor, folder) if held is None else None
                tensor = held if held is not None else onnx.numpy_helper.from_array(array)
                graph.initializer.add().CopyFrom(tensor)
                graph.initializer[-1].name = node.output[0]
                graph.node.remove(node)
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}

    def __contains__(self, name: str) -> bool:
        """Whether there is a constant of this name."""
        return name in self._tensors

    def rank(self, name: str) -> int:
        """Its dimensions."""
        return len(self._tensors[name].dims)

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self._tensors[name].dims)

    def is_float(self, name: str) -> bool:
        """Whether its elements are floats of at least 16 bits."""
        kinds = onnx.TensorProto
        return self._tensors[name].data_type in (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE)

    def read(self, name: str) -> np.ndarray:
        """Its elements."""
        return initializer_array(self._tensors[name], self._folder)

    def write(self, name: str, array: np.ndarray) -> None:
        """Replace it."""
        self._tensors[name].CopyFrom(onnx.numpy_helper.from_array(array, name))


class Products:
    """All products of a graph with a constant operand.

    Attributes:
        found: by the name of the weight, in the order of the graph: the products that read it.
        refused: weights that stay, with the reason.
        makers: the node that makes a value.
        readers: how many operands of nodes, and results of the graph, a value is.
    """

    def __init__(self, graph: onnx.GraphProto, weights: Weights) -> None:
        self.makers = {name: node for node in graph.node for name in node.output}
        self.readers: Counter[str] = Counter(_names_read(graph))
        self.found: dict[str, list[Product]] = {}
        self.refused: dict[str, str] = {}
        self._weights = weights
        self._inputs = {i.name for i in graph.input}
        self.results = {o.name for o in graph.output}
        for node in graph.node:
            self._look(node)
        self._refuse_shared(graph)

    def source(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """The constant that an operand is, and the order of its dimensions in it; None where it is none."""
        perms = []
        while name not in self._weights:
            node = self.makers.get(name)
            if node is None or node.op_type not in _MOVES or domain_of(node.domain):
                return None
            perms.append(next((tuple(a.ints) for a in node.attribute if a.name == "perm"), None))
            perms[-1] = perms[-1] if node.op_type == "Transpose" else ()
            name = node.input[0]
        order = tuple(range(self._weights.rank(name)))
        for perm in reversed(perms):
            order = tuple(order[i] for i in perm) if perm else order[::-1] if perm is None else order
        return name, order

    def _look(self, node: onnx.NodeProto) -> None:
        if domain_of(node.domain) or node.op_type not in (*_WEIGHTED, *_LEFT):
            return
        sources = [self.source(name) if name else None for name in node.input]
        if node.op_type in _LEFT:
            for source in filter(None, sources):
                self.refused.setdefault(source[0], f"weights of {node.op_type} are not pruned")
            return
        at = next((i for i in (1, 0) if i < len(sources) and sources[i] and sources[1 - i] is None), None)
        if at is None or (at == 0 and node.op_type in ("Conv", "ConvTranspose")):
            return
        weight, perm = sources[at]  # type: ignore[misc]
        if self._weights.rank(weight) < 2:
            return
        if not self._weights.is_float(weight):
            self.refused.setdefault(weight, "its elements are no floats of 16 bits or more")
            return
        self.found.setdefault(weight, []).append(self._product(node, at, weight, perm))

    def _product(self, node: onnx.NodeProto, at: int, weight: str, perm: tuple[int, ...]) -> Product:
        attributes = {a.name: a.i for a in node.attribute}
        shape = tuple(self._weights.shape(weight)[axis] for axis in perm)
        axis = 1
        if node.op_type == "Conv":
            groups = attributes.get("group", 1)
            view = View(perm, (groups, shape[0] // groups, shape[1], prod(shape[2:])), (0, 3, 2, 1))
        elif node.op_type == "ConvTranspose":
            groups = attributes.get("group", 1)
            view = View(perm, (groups, shape[0] // groups, shape[1], prod(shape[2:])), (0, 3, 1, 2))
        else:
            turned = [bool(attributes.get(name, 0)) and node.op_type == "Gemm" for name in ("transA", "transB")]
            inner_last = (at == 0) != turned[at]  # whether the operand's last dimension is summed over
            view = View(perm, (prod(shape[:-2]), 1, *shape[-2:]), (0, 1, 3, 2) if inner_last else (0, 1, 2, 3))
            axis = -1 if (at == 1) != turned[1 - at] else -2
        x, name = node.input[1 - at], node.name or node.output[0]
        return Product(name, node.op_type, weight, view, x, axis, node.output[0])

    def _refuse_shared(self, graph: onnx.GraphProto) -> None:
        """Weights that other nodes read, too, or products in another way, stay."""
        reads: defaultdict[str, list[str]] = defaultdict(list)
        for name, reader in _reads(graph):
            source = self.source(name)
            if source and reader not in _MOVES:
                reads[source[0]].append(reader)
        for weight, products in list(self.found.items()):
            others = [reader for reader in reads[weight] if reader not in _WEIGHTED]
            ways = {(p.view, p.operator in ("Conv", "ConvTranspose")) for p in products}
            if others or len(ways) > 1 or len(reads[weight]) != len(products):
                what = f"{others[0]} reads it, too" if others else "it is read in different ways"
                self.refused[weight] = what
                del self.found[weight]

    def single(self, name: str) -> bool:
        """Whether a value has one reader, and is neither an input nor a result of the graph."""
        return self.readers[name] == 1 and name not in self._inputs and name not in self.results

    def is_input(self, name: str) -> bool:
        """Whether a value is an input of the graph, or made of one by nodes with no other operand but constants."""
        while name not in self._inputs:
            node = self.makers.get(name)
            others = [] if node is None else [n for n in node.input if n and self.source(n) is None]
            if node is None or len(others) != 1 or node.op_type in _WEIGHTED:
                return False
            name = others[0]
        return name not in self._weights

    def is_result(self, name: str, graph: onnx.GraphProto) -> bool:
        """Whether a value is a result of the graph, or becomes one by nodes with no other operand but constants."""
        while name not in self.results:
            nodes = [node for node in graph.node if name in node.input]
            if len(nodes) != 1 or nodes[0].op_type in _WEIGHTED or len(nodes[0].output) != 1:
                return False
            if any(n and n != name and self.source(n) is None for n in nodes[0].input):
                return False
            name = nodes[0].output[0]
        return True


def _reads(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Each operand and the operator that reads it; graphs inside nodes count as their node."""
    for node in graph.node:
        yield from ((name, node.op_type) for name in node.input if name)
        for inner in subgraphs_of(node):
            yield from ((name, node.op_type + " (a graph inside)") for name in _names_read(inner))
    yield from ((output.name, "the graph's results") for output in graph.output)


def _names_read(graph: onnx.GraphProto) -> Iterable[str]:
    return [name for name, _ in _reads(graph)]
