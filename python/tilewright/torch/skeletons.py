# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that were converted to ONNX, by content: an equal one is not converted again."""

from __future__ import annotations

import operator
import re
import threading
from collections import OrderedDict
from typing import Any

from tilewright.core.cache import digest
from tilewright.frontend.torch.graph import Graph, array_of, convert

_KEPT = 256
_SYMBOL = re.compile(r"\b[su]\d+\b")
_known: OrderedDict[str, Graph] = OrderedDict()
_lock = threading.Lock()


def skeleton(module: Any) -> Graph:
    """The graph as an ONNX model without weights.

    Args:
        module: a torch.fx.GraphModule of ATen operators, with the shape of each value.

    Raises:
        UnsupportedError: torch's exporter cannot convert it.
    """
    key = _content(module)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = convert(module, key)
    with _lock:
        _known[key] = found
        if len(_known) > _KEPT:
            _known.popitem(last=False)
    return found


def _content(module: Any) -> str:
    """What a graph computes, on what: its code, types and strides, with symbols by their order, and its constants."""
    parts = [module.code]
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            parts.append(_described(value))
        elif node.op == "get_attr":
            parts.append(_bytes(operator.attrgetter(node.target)(module)))
        elif node.op == "output":
            parts += [_described(each.meta.get("val")) for each in node.args[0] if hasattr(each, "meta")]
    names: dict[str, str] = {}
    text = _SYMBOL.sub(lambda found: names.setdefault(found.group(), f"size{len(names)}"), "\n".join(parts))
    return digest("torch", text)


def _described(value: Any) -> str:
    if not hasattr(value, "stride"):
        return str(value)
    return f"{value.dtype} {tuple(value.shape)} {value.stride()}"


def _bytes(value: Any) -> str:
    import torch

    if not isinstance(value, torch.Tensor):
        return value.code if hasattr(value, "code") else repr(value)
    return digest(_described(value), array_of(value).tobytes())
