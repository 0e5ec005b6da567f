# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the results of a graph lie in memory: the order of their dimensions, and which of them share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tilewright.core.errors import UnsupportedError
from tilewright.runtime.interop import to_torch


def laid_out(result: Any, order: tuple[int, ...] | None) -> Any:
    """A tensor of a result of a model, an array or a tensor.

    Args:
        result: in the usual order of its dimensions.
        order: see :func:`order_of`; None: the usual one, which needs no copy.
    """
    import numpy as np
    import torch

    found = to_torch(result) if isinstance(result, np.ndarray) else result
    if order is None:
        return found
    return torch.empty_permuted(found.shape, order, dtype=found.dtype, device=found.device).copy_(found)


def order_of(value: Any) -> tuple[int, ...] | None:
    """The dimensions from the outermost in memory to the innermost; None for the usual order.

    What reads a tensor afterwards relies on its strides.
    """
    strides, sizes = _hints(value.stride()), _hints(value.shape)
    if None in strides or None in sizes:
        return None
    seen = [axis for axis, size in enumerate(sizes) if size > 1]
    if all(strides[a] >= strides[b] for a, b in zip(seen, seen[1:], strict=False)):
        return None
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def owners(graph: Any, outputs: Sequence[Any]) -> dict[Any, Any]:
    """For outputs that are views of an argument or share memory with another output: the node that made that memory.

    PyTorch takes it that they do: what changes one of them in place later is seen in the others.

    Args:
        graph: a torch.fx.Graph with the value of each node.
        outputs: the nodes of tensors that it returns.

    Raises:
        UnsupportedError: results share memory that is not laid out as one tensor.
    """
    first: dict[Any, Any] = {}
    for node in graph.nodes:
        first.setdefault(_memory(node), node)
    taken = Counter(_memory(node) for node in graph.nodes if node.op == "placeholder")
    groups: dict[Any, list[Any]] = {}
    for node in dict.fromkeys(outputs):
        if node.op != "placeholder" and taken[_memory(node)] < 2:  # of which argument a view is, PyTorch knows
            groups.setdefault(_memory(node), []).append(node)
    found: dict[Any, Any] = {}
    for memory, nodes in groups.items():
        owner = first[memory]
        views = [node for node in nodes if node is not owner]
        if owner.op == "placeholder":
            found |= {node: owner for node in views if node.meta["val"].dtype == owner.meta["val"].dtype}
        elif views and len(nodes) > 1:
            found |= {node: _checked(owner, node) for node in views}
    return found


def _memory(node: Any) -> Any:
    """What is the same for nodes whose tensors share memory."""
    import torch

    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return node
    return value.untyped_storage()._cdata


def _checked(owner: Any, view: Any) -> Any:
    """The owner, where strides of a tensor in its order can be those of a view."""
    value = owner.meta["val"]
    strides, sizes = _hints(value.stride()), _hints(value.shape)
    order = order_of(value) or tuple(range(len(sizes)))
    dense, step = not (None in strides or None in sizes), 1
    for axis in reversed(order if dense else ()):
        dense = dense and (sizes[axis] < 2 or strides[axis] == step)
        step *= sizes[axis]
    if not dense or value.dtype != view.meta["val"].dtype:
        raise UnsupportedError(
            f"results of a graph share memory of {owner.name}, which is not one tensor of their dtype without gaps"
        )
    return owner


def _hints(values: Sequence[Any]) -> list[Any]:
    """Numbers, of symbols those that a first call brought; None where there is none."""
    return [getattr(getattr(value, "node", None), "hint", value) for value in values]
