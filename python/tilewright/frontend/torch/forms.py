# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators of a graph torch's exporter has no ONNX form of, or draw random numbers."""

from __future__ import annotations

import threading
from typing import Any

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.torch.conversion import simple_onnx_of
from tilewright.frontend.torch.program import is_tensor, program_of_graph
from tilewright.frontend.torch.translations import read_once

#: Arguments, with the values for which an operator that may draw random numbers draws none.
_NOT_RANDOM = (("dropout_p", 0.0), ("dropout", 0.0), ("train", False), ("training", False))
_lock = threading.Lock()
_tried: dict[Any, str] = {}


def random_reason(node: Any) -> str:
    """Why an operator that draws from PyTorch's generator is none for a model, which has none; empty where it is one.

    Args:
        node: a node of a torch.fx.Graph of ATen operators.
    """
    if node.op != "call_function" or not _is_random(node):
        return ""
    return (
        f"{node.target} draws random numbers, and a compiled model would draw the same ones in each call; "
        "for layers such as Dropout call .eval(), or draw the numbers outside of what is compiled"
    )


def without_form(graph: Any) -> dict[Any, str]:
    """The operators that a model cannot have, each with its reason.

    An operator that the exporter's table does not name is tried alone, as what it decomposes into may have a form.

    Args:
        graph: a torch.fx.Graph of ATen operators, with the shape of each value.
    """
    found = {}
    known = _translated()
    for node in graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        reason = random_reason(node) or ("" if node.target.name() in known else _alone(node))
        if reason:
            found[node] = reason
    return found


def _translated() -> frozenset[str]:
    """The operators that the exporter's table names."""
    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        with read_once():
            return frozenset(str(name) for name in ONNXRegistry.from_torchlib().functions)
    except (ImportError, AttributeError):  # another version of torch: each operator is tried
        return frozenset()


def _is_random(node: Any) -> bool:
    import torch

    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    declared = node.target._schema.arguments
    given = {argument.name: argument.default_value for argument in declared if argument.has_default_value()}
    given |= {argument.name: value for argument, value in zip(declared, node.args, strict=False)}
    given |= node.kwargs
    return not any(name in given and given[name] == off for name, off in _NOT_RANDOM)


def _alone(node: Any) -> str:
    """Why the exporter fails for this operator by itself; empty where it does not."""
    import torch

    key = (str(node.target), str([_kind(each) for each in node.all_input_nodes]), str(node.args), str(node.kwargs))
    with _lock:
        if key in _tried:
            return _tried[key]
    graph = torch.fx.Graph()
    copies = {}
    for each in node.all_input_nodes:
        copies[each] = graph.placeholder(each.name)
        copies[each].meta = dict(each.meta)
    made = graph.node_copy(node, copies.__getitem__)
    results = [made] if is_tensor(made) else _items(graph, made)
    graph.output(tuple(results))
    reason = ""
    try:
        program = program_of_graph(torch.fx.GraphModule({}, graph), list(copies.values()), results)
        simple_onnx_of(program, f"the operator {node.target}")
    except UnsupportedError:
        reason = f"torch's exporter has no ONNX form of {node.target}"
    with _lock:
        _tried[key] = reason
    return reason


def _kind(node: Any) -> Any:
    value = node.meta.get("val")
    return (value.dtype, value.dim()) if is_tensor(node) else type(value)


def _items(graph: Any, node: Any) -> list[Any]:
    """The tensors of a node with several results."""
    import operator

    import torch

    found = []
    for place, value in enumerate(node.meta["val"] if isinstance(node.meta["val"], tuple | list) else ()):
        if isinstance(value, torch.Tensor):
            found.append(graph.call_function(operator.getitem, (node, place)))
            found[-1].meta["val"] = value
    return found
