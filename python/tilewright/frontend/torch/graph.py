# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a functional graph of PyTorch, with sizes that stay open, to an ONNX model without weights."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.torch.conversion import onnx_of
from tilewright.runtime.interop import to_numpy

#: What an output of the graph is: from what the model returned and what the graph was called with.
Output = Callable[[Sequence[Any], Sequence[Any]], Any]


@dataclass
class Graph:
    """A graph as an ONNX model, and how its arguments and outputs correspond.

    Attributes:
        model: all tensors that the graph takes are inputs, weights too; None where the graph computes nothing.
        inputs: for each input of the model which argument of the graph it is.
        numbers: those of them that are a Python integer which no tensor has as its size.
        constants: arrays for the inputs of the model that come after those: tensors that the graph holds itself.
        outputs: for each output of the graph how it is made.
        operators: number of operations in the graph.
    """

    model: onnx.ModelProto | None
    inputs: list[int]
    numbers: list[int] = field(default_factory=list)
    constants: list[np.ndarray] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    operators: int = 0


def convert(module: Any) -> Graph:
    """Convert a graph that AOTAutograd made: functional, of ATen operators, with the shape of each value.

    Args:
        module: a torch.fx.GraphModule. Its placeholders are tensors, and integers that a call brings.

    Raises:
        UnsupportedError: torch's exporter has no rule for an operator, or is not installed.
    """
    import torch

    graph = copy.deepcopy(module.graph)
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    held, constants = _lift(graph, module, arguments)
    sizes = _sizes(arguments)
    _read_sizes(graph, arguments, sizes, held)
    kept = [number for number, node in enumerate(arguments) if node is not None]
    numbers = [number for number in kept if not _is_tensor(arguments[number])]
    results, outputs = _outputs(graph, [node and node.name for node in arguments], sizes)
    operators = sum(node.op == "call_function" for node in graph.nodes)
    if not results:
        return Graph(None, kept, numbers, constants, outputs, operators)
    graph.eliminate_dead_code()
    inputs = [*(arguments[number] for number in kept), *held]
    program = _program(torch.fx.GraphModule(module, graph), inputs, results)
    model = onnx_of(program, f"a graph of {operators} operators")
    if (len(model.graph.input), len(model.graph.output)) != (len(inputs), len(results)):
        raise UnsupportedError("torch's ONNX exporter left out inputs or outputs of a graph")
    return Graph(model, kept, numbers, constants, outputs, operators)


def array_of(tensor: Any) -> np.ndarray:
    """A tensor that a graph holds as an array, also while PyTorch traces with tensors that have no values."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        return to_numpy(tensor, "a constant", np.dtype(np.float32))[0]


def _lift(graph: Any, module: Any, arguments: list[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """Let tensors that the graph holds be arguments behind the others; returns these and their values."""
    import torch
    from torch._guards import detect_fake_mode

    mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    held: list[Any] = []
    arrays: list[np.ndarray] = []
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = operator.attrgetter(node.target)(module)
        if not isinstance(value, torch.Tensor):  # the body of a branch
            continue
        anchor = held[-1] if held else arguments[-1] if arguments else None
        with graph.inserting_after(anchor) if anchor is not None else graph.inserting_before(next(iter(graph.nodes))):
            lifted = graph.placeholder(f"constant_{len(held)}")
        lifted.meta["val"] = node.meta["val"] if "val" in node.meta else mode.from_tensor(value, static_shapes=True)
        node.replace_all_uses_with(lifted)
        graph.erase_node(node)
        held.append(lifted)
        arrays.append(array_of(value))
    return held, arrays


def _is_tensor(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.Tensor)


def _symbol(size: Any) -> Any:
    """The symbol that a size is; None for a number or an expression."""
    node = getattr(size, "node", None)
    return node.expr if node is not None and getattr(node.expr, "is_Symbol", False) else None


def _sizes(arguments: Sequence[Any]) -> dict[Any, tuple[int, int | None]]:
    """Where each symbol is found: an argument, and which of its dimensions (None: the argument is that number)."""
    found: dict[Any, tuple[int, int | None]] = {}
    for number, node in enumerate(arguments):
        if _is_tensor(node):
            for axis, size in enumerate(node.meta["val"].shape):
                if _symbol(size) is not None:
                    found.setdefault(_symbol(size), (number, axis))
    for number, node in enumerate(arguments):
        if _symbol(node.meta.get("val")) is not None:
            found.setdefault(_symbol(node.meta["val"]), (number, None))
    return found


def _read_sizes(graph: Any, arguments: list[Any], sizes: dict[Any, tuple[int, int | None]], held: list[Any]) -> None:
    """Take sizes from the tensors that have them; arguments that nothing reads any more become None."""
    import torch

    last = held[-1] if held else arguments[-1] if arguments else None
    for number, node in enumerate(arguments):
        if _is_tensor(node):
            continue
        if node.users and not isinstance(node.meta.get("val"), int | torch.SymInt):
            kind = type(node.meta.get("val")).__name__
            raise UnsupportedError(f"an argument of a graph is a {kind}: only tensors and integers can be compiled")
        tensor, axis = sizes.get(_symbol(node.meta.get("val")), (number, None))
        if axis is not None and node.users:
            with graph.inserting_after(last):
                last = graph.call_function(torch.ops.aten.sym_size.int, (arguments[tensor], axis))
            last.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(last)
        if not node.users:
            graph.erase_node(node)
            arguments[number] = None


def _outputs(graph: Any, arguments: list[str | None], sizes: dict[Any, tuple[int, int | None]]) -> tuple[list, list]:
    """The nodes that the model computes, each once, and how to make the outputs of the graph."""
    node = next(node for node in graph.nodes if node.op == "output")
    results: list[Any] = []
    outputs: list[Output] = []
    for value in node.args[0]:
        if not hasattr(value, "meta"):
            outputs.append(_constant(value))
        elif value.op == "placeholder" and value.name in arguments:
            outputs.append(_argument(arguments.index(value.name)))
        elif _is_tensor(value):
            if value not in results:
                results.append(value)
            outputs.append(_result(results.index(value), value.meta["val"]))
        else:
            outputs.append(_size(value.meta["val"], sizes))
    node.args = (tuple(results),)
    return results, outputs


def _constant(value: Any) -> Output:
    return lambda results, arguments: value


def _argument(number: int) -> Output:
    return lambda results, arguments: arguments[number]


def _size(value: Any, sizes: dict[Any, tuple[int, int | None]]) -> Output:
    """A whole number that follows from sizes."""
    expression = getattr(getattr(value, "node", None), "expr", None)
    if expression is None:
        return _constant(value)
    if not all(symbol in sizes for symbol in expression.free_symbols):
        raise UnsupportedError(f"an output of a graph is the number {expression}, which follows from data")
    places = {symbol: sizes[symbol] for symbol in expression.free_symbols}

    def evaluate(results: Sequence[Any], arguments: Sequence[Any]) -> int:
        found = {s: arguments[n] if axis is None else arguments[n].shape[axis] for s, (n, axis) in places.items()}
        return int(expression.xreplace({symbol: _integer(value) for symbol, value in found.items()}))

    return evaluate


def _integer(value: Any) -> Any:
    import sympy

    return sympy.Integer(int(value))


def _result(number: int, value: Any) -> Output:
    """A tensor in the layout that PyTorch expects of it: what reads it afterwards relies on its strides."""
    order = _order(value)
    if order is None:
        return lambda results, arguments: results[number]

    def laid_out(results: Sequence[Any], arguments: Sequence[Any]) -> Any:
        import torch

        found = results[number]
        return torch.empty_permuted(found.shape, order, dtype=found.dtype).copy_(found)

    return laid_out


def _order(value: Any) -> tuple[int, ...] | None:
    """The dimensions from the outermost in memory to the innermost; None for the usual order."""
    strides = [getattr(getattr(stride, "node", None), "hint", stride) for stride in value.stride()]
    sizes = [getattr(getattr(size, "node", None), "hint", size) for size in value.shape]
    if None in strides or None in sizes:
        return None
    seen = [axis for axis, size in enumerate(sizes) if size > 1]
    if all(strides[a] >= strides[b] for a, b in zip(seen, seen[1:], strict=False)):
        return None
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def _program(module: Any, arguments: Sequence[Any], results: Sequence[Any]) -> Any:
    """The graph as a torch.export.ExportedProgram: all its arguments are inputs of the user."""
    import torch.utils._pytree as pytree
    from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
    from torch.export import graph_signature as signature

    def described(node: Any) -> Any:
        kind = signature.TensorArgument if _is_tensor(node) else signature.SymIntArgument
        return kind(name=node.name)

    inputs = [signature.InputSpec(signature.InputKind.USER_INPUT, described(node), None) for node in arguments]
    outputs = [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, described(node), None) for node in results]
    _, in_spec = pytree.tree_flatten((tuple(node.meta["val"] for node in arguments), {}))
    _, out_spec = pytree.tree_flatten(tuple(results))
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=signature.ExportGraphSignature(inputs, outputs),
        state_dict={},
        range_constraints={},
        module_call_graph=[ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))],
    )
