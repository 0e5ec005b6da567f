# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph some of whose operators PyTorch has to run: in parts, one behind the other, of which the others compile."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Run = Callable[..., Sequence[Any]]


@dataclass
class Part:
    """A part of a graph.

    Attributes:
        compiled: whether it is to be compiled.
        nodes: its operators, in their order.
        inputs: the nodes outside of it that it takes, tensors and integers.
        outputs: its nodes that others take.
        module: it, as a torch.fx.GraphModule.
        run: what runs it.
        done: nodes that nothing takes after it.
    """

    compiled: bool
    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    module: Any = None
    run: Run | None = None
    done: list[Any] = field(default_factory=list)


def cut(module: Any, outside: Collection[Any]) -> list[Part]:
    """Cut a graph into as few parts as its data flow allows; those outside stay in their order.

    Args:
        module: a torch.fx.GraphModule of ATen operators, functional, with the shape of each value.
        outside: nodes that are not compiled.
    """
    parts = _parts(module.graph, outside)
    places = {node: place for place, part in enumerate(parts) for node in part.nodes}
    for place, part in enumerate(parts):
        _build(module, part, lambda node, place=place: places.get(node, place) != place)
    last: dict[Any, Part] = {}
    for part in parts:
        last |= dict.fromkeys((*part.inputs, *part.outputs), part)
    kept = set(next(node for node in module.graph.nodes if node.op == "output").all_input_nodes)
    for node, part in last.items():
        if node not in kept:
            part.done.append(node)
    return parts


def runner(module: Any, parts: Sequence[Part]) -> Run:
    """What runs the parts as the graph: its arguments in, its outputs out."""
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    outputs = next(node for node in module.graph.nodes if node.op == "output").args[0]
    constants = [node for node in module.graph.nodes if node.op == "get_attr" and node in outputs]
    held = {node: operator.attrgetter(node.target)(module) for node in constants}

    def run(*given: Any) -> Sequence[Any]:
        values = {**held, **dict(zip(arguments, given, strict=True))}
        for part in parts:
            assert part.run is not None
            results = part.run(*(values[node] for node in part.inputs))
            values |= zip(part.outputs, results, strict=True)
            for node in part.done:
                values.pop(node, None)
        return [values[node] if hasattr(node, "meta") else node for node in outputs]

    return run


def _parts(graph: Any, outside: Collection[Any]) -> list[Part]:
    """Parts by depth: a node is in the part behind those that it takes from, or in theirs if it is of their kind."""
    depth: dict[Any, int] = {}
    ordered = 1  # random numbers are drawn in the order of the graph
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            depth[node] = depth[node.args[0]]
            continue
        least = max((depth.get(each, 0) for each in node.all_input_nodes), default=0)
        if node in outside:
            ordered = depth[node] = max(least + (least % 2 == 0), ordered)
        else:
            depth[node] = least + least % 2
    found: dict[int, Part] = {}
    for node, place in sorted(depth.items(), key=lambda item: item[1]):
        found.setdefault(place, Part(place % 2 == 0)).nodes.append(node)
    return list(found.values())


def _build(module: Any, part: Part, is_elsewhere: Callable[[Any], bool]) -> None:
    """Make the module of a part; integers that follow from sizes, and tensors that the graph holds, come with it."""
    import torch

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    own = set(part.nodes)
    needed = _closure(part.nodes, own, is_elsewhere)
    part.inputs = [node for node in module.graph.nodes if node in needed and _is_input(node, is_elsewhere)]
    for node in part.inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    inside = own | needed - set(part.inputs)
    for node in module.graph.nodes:
        if node in inside:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    part.outputs = [node for node in part.nodes if _is_taken(node, own)]
    graph.output(tuple(copies[node] for node in part.outputs))
    part.module = torch.fx.GraphModule(module, graph)


def _is_size(node: Any) -> bool:
    """Whether a node is an integer that an operator makes of sizes."""
    import torch

    return node.op == "call_function" and isinstance(node.meta.get("val"), torch.SymInt | int)


def _is_input(node: Any, is_elsewhere: Callable[[Any], bool]) -> bool:
    return node.op == "placeholder" or (node.op == "call_function" and is_elsewhere(node) and not _is_size(node))


def _closure(nodes: Iterable[Any], own: Collection[Any], is_elsewhere: Callable[[Any], bool]) -> set[Any]:
    """The nodes outside of a part that it needs: tensors, and what its integers are made of."""
    found: set[Any] = set()
    open_nodes = list(nodes)
    while open_nodes:
        for each in open_nodes.pop().all_input_nodes:
            if each in own or each in found:
                continue
            found.add(each)
            if not _is_input(each, is_elsewhere):
                open_nodes.append(each)
    return found


def _is_taken(node: Any, own: Collection[Any]) -> bool:
    """Whether something outside of its part takes a node, that cannot make it itself."""
    others = [user for user in node.users if user not in own]
    results = isinstance(node.meta.get("val"), tuple | list)
    return bool(others) and not results and (not _is_size(node) or any(user.op == "output" for user in others))
