# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model needs and nothing provides: operators without a lowering, found before anything is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.onnx.catalog import REASONS
from tilewright.frontend.onnx.functions import Functions, standard_body
from tilewright.frontend.onnx.load import node_domain, opset_versions, subgraphs_of, versions_of
from tilewright.frontend.onnx.node import label
from tilewright.frontend.onnx.registry import lookup

_ADVICE = "A function of the model (ModelProto.functions) may say what an operator does in terms of others."


def require_supported(model: onnx.ModelProto) -> None:
    """Raise UnsupportedError that lists all operators without a lowering, also of subgraphs and functions."""
    inventory = _Inventory(Functions(model))
    inventory.nodes(model.graph.node, opset_versions(model), "")
    if inventory.missing:
        rows = [_row(domain, name, where) for (domain, name), where in inventory.missing.items()]
        lines = ["operators without a lowering (with the nodes that use them):", *rows, _ADVICE]
        raise UnsupportedError("\n".join(lines))


def _row(domain: str, name: str, where: Sequence[str]) -> str:
    full = f"{domain}.{name}" if domain else name
    reason = REASONS.get((domain, name))
    nodes = ", ".join(where[:8]) + (", ..." if len(where) > 8 else "")
    return f"  {full}: {nodes} ({reason})" if reason else f"  {full}: {nodes}"


class _Inventory:
    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.missing: dict[tuple[str, str], list[str]] = {}
        self._visited: set[tuple[str, str, str, int]] = set()

    def nodes(self, nodes: Sequence[onnx.NodeProto], versions: Mapping[str, int], prefix: str) -> None:
        for node in nodes:
            self._node(node, versions, prefix)
            for graph in subgraphs_of(node):
                self.nodes(graph.node, versions, f"{prefix}{label(node)}/")

    def _node(self, node: onnx.NodeProto, versions: Mapping[str, int], prefix: str) -> None:
        domain = node_domain(node)
        version = versions.get(domain, 1)
        body = self.functions.of_model(node)
        if body is None and lookup(domain, node.op_type, version):
            return
        key = (domain, node.op_type, node.overload, version)
        body = body or standard_body(node, version, None)
        if body is None:
            self.missing.setdefault((domain, node.op_type), []).append(prefix + label(node))
        elif key not in self._visited:
            self._visited.add(key)
            self.nodes(body.node, {**versions, **versions_of(body.opset_import)}, f"{prefix}{label(node)}/")
