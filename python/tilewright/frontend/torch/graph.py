# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a functional graph of PyTorch, with sizes that stay open, to an ONNX model without weights."""

from __future__ import annotations

import copy
import importlib.metadata
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tilewright.core import cache
from tilewright.core.errors import UnsupportedError
from tilewright.frontend.torch.conversion import simple_onnx_of
from tilewright.frontend.torch.forms import random_reason
from tilewright.frontend.torch.layouts import order_of, owners
from tilewright.frontend.torch.plain import make_plain
from tilewright.frontend.torch.program import is_tensor, program_of_graph
from tilewright.runtime.interop import to_numpy

#: What an output of the graph is: from what the model returned, laid out, and what the graph was called with.
Output = Callable[[Sequence[Any], Sequence[Any]], Any]


@dataclass
class Graph:
    """A graph as an ONNX model, and how its arguments and outputs correspond.

    Attributes:
        model: all tensors that the graph takes are inputs, weights too; None where the graph computes nothing.
        inputs: for each input of the model which argument of the graph it is.
        numbers: those of them that are a Python integer which no tensor has as its size.
        constants: arrays for the inputs of the model that come after those: tensors that the graph holds itself.
        orders: for each result of the model the order of its dimensions in memory, see `layouts.order_of`.
        outputs: for each output of the graph how it is made of these results.
        operators: number of operations in the graph.
    """

    model: onnx.ModelProto | None
    inputs: list[int]
    numbers: list[int] = field(default_factory=list)
    constants: list[np.ndarray] = field(default_factory=list)
    orders: list[tuple[int, ...] | None] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    operators: int = 0


def convert(module: Any, key: str = "") -> Graph:
    """Convert a graph that AOTAutograd made: functional, of ATen operators, with the shape of each value.

    Args:
        module: a torch.fx.GraphModule. Its placeholders are tensors, and integers that a call brings.
        key: a digest of what it is; given one, the model is kept in the cache for other processes.

    Raises:
        UnsupportedError: torch's exporter has no rule for an operator, or is not installed; an operator draws random
            numbers, an end of the graph is complex, or results are on another device than the arguments.
    """
    import torch

    _refuse_random(module.graph)
    graph = copy.deepcopy(module.graph)
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    held, constants = _lift(graph, module, arguments)
    sizes = _sizes(arguments)
    _read_sizes(graph, arguments, sizes, held)
    kept = [number for number, node in enumerate(arguments) if node is not None]
    numbers = [number for number in kept if not is_tensor(arguments[number])]
    results, outputs = _outputs(graph, [node and node.name for node in arguments], sizes)
    operators = sum(node.op == "call_function" for node in graph.nodes)
    if not results:
        return Graph(None, kept, numbers, constants, [], outputs, operators)
    graph.eliminate_dead_code()
    inputs = [*(arguments[number] for number in kept), *held]
    _check_ends(inputs, results)
    program = program_of_graph(torch.fx.GraphModule(module, graph), inputs, results)
    model = _model(program, f"a graph of {operators} operators", key)
    if (len(model.graph.input), len(model.graph.output)) != (len(inputs), len(results)):
        raise UnsupportedError("torch's ONNX exporter left out inputs or outputs of a graph")
    orders = [order_of(node.meta["val"]) for node in results]
    return Graph(model, kept, numbers, constants, orders, outputs, operators)


def _model(program: Any, what: str, key: str) -> onnx.ModelProto:
    """The ONNX model of a program: that of the cache, or a new one, which goes there."""
    place = _place(key)
    data = cache.find_kernel(place) if key else None
    if data is not None:
        return onnx.ModelProto.FromString(data)
    model = simple_onnx_of(program, what)
    make_plain(model)
    if key:
        cache.add_kernel(place, model.SerializeToString())
    return model


def _place(key: str) -> str:
    """Where the cache has the model of a graph: by the versions of all that converts it."""
    import torch

    try:
        exporter = importlib.metadata.version("onnxscript")
    except importlib.metadata.PackageNotFoundError:
        exporter = "none"
    return cache.digest("torch graph", key, torch.__version__, exporter, cache.compiler_id())


def array_of(tensor: Any) -> np.ndarray:
    """A tensor that a graph holds as an array, also while PyTorch traces with tensors that have no values."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        return to_numpy(tensor, "a constant", np.dtype(np.float32))[0]


def _refuse_random(graph: Any) -> None:
    """Raise UnsupportedError where an operator draws from PyTorch's generator, whose state a model does not have."""
    for node in graph.nodes:
        if reason := random_reason(node):
            raise UnsupportedError(reason)


def _check_ends(inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise UnsupportedError where an end is complex, which torch's exporter makes pairs of, or results move away."""
    devices = {node.meta["val"].device for node in inputs if is_tensor(node)}
    expected = next((str(device) for device in devices if device.type != "cpu"), "cpu")
    for node in (*inputs, *results):
        value = node.meta["val"]
        if is_tensor(node) and value.dtype.is_complex:
            raise UnsupportedError(
                f"{node.name}, an argument or result of a graph, is of dtype {value.dtype}, which compiled models have "
                "inside only: use torch.view_as_real and torch.view_as_complex around what is compiled"
            )
    for node in results:
        if str(node.meta["val"].device) != expected:
            raise UnsupportedError(
                f"{node.name}, a result of a graph, is on {node.meta['val'].device}, and its arguments are on "
                f"{expected}: move tensors outside of what is compiled"
            )


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


def _symbol(size: Any) -> Any:
    """The symbol that a size is; None for a number or an expression."""
    node = getattr(size, "node", None)
    return node.expr if node is not None and getattr(node.expr, "is_Symbol", False) else None


def _sizes(arguments: Sequence[Any]) -> dict[Any, tuple[int, int | None]]:
    """Where each symbol is found: an argument, and which of its dimensions (None: the argument is that number)."""
    found: dict[Any, tuple[int, int | None]] = {}
    for number, node in enumerate(arguments):
        if is_tensor(node):
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
        if is_tensor(node):
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
    bases = owners(graph, [value for value in node.args[0] if hasattr(value, "meta") and is_tensor(value)])
    results: list[Any] = []

    def made(value: Any) -> Output:
        if value.op == "placeholder" and value.name in arguments:
            return _argument(arguments.index(value.name))
        if value not in results:
            results.append(value)
        return _result(results.index(value))

    def output(value: Any) -> Output:
        if not hasattr(value, "meta"):
            return _constant(value)
        base = bases.get(value)
        if base is not None and (base.op != "placeholder" or _follows(base.meta["val"], value.meta["val"], sizes)):
            return _view(made(base), base.meta["val"], value.meta["val"], sizes)
        if is_tensor(value) or value.name in arguments:
            return made(value)
        return _size(value.meta["val"], sizes)

    outputs = [output(value) for value in node.args[0]]
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


def _result(number: int) -> Output:
    return lambda results, arguments: results[number]


def _follows(owner: Any, value: Any, sizes: dict[Any, tuple[int, int | None]]) -> bool:
    """Whether a view's place follows from sizes; PyTorch makes views of arguments itself where it does not."""
    numbers = (*value.shape, *value.stride(), value.storage_offset(), owner.storage_offset())
    symbols = (n.node.expr.free_symbols for n in numbers if hasattr(n, "node"))
    return all(symbol in sizes for found in symbols for symbol in found)


def _view(base: Output, owner: Any, value: Any, sizes: dict[Any, tuple[int, int | None]]) -> Output:
    """A view of what `base` makes; `owner` and `value` are the tensors that PyTorch traced with for both."""
    parts = [[_size(number, sizes) for number in numbers] for numbers in (value.shape, value.stride())]
    offset = _size(value.storage_offset() - owner.storage_offset(), sizes)

    def viewed(results: Sequence[Any], arguments: Sequence[Any]) -> Any:
        found = base(results, arguments)
        shape, strides = ([number(results, arguments) for number in part] for part in parts)
        return found.as_strided(shape, strides, found.storage_offset() + offset(results, arguments))

    return viewed
