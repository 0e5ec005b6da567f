# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an import did with each node of a model, or why it could not: rows that an observer of the import notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from tilewright.core.errors import TilewrightError, UnsupportedError
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.load import node_domain
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.scope import DEPENDS, Observer, Results, Session
from tilewright.frontend.onnx.sequences import Absent, Lost, TensorList, Value


@dataclass(frozen=True)
class Row:
    """One node, also of subgraphs and functions.

    Attributes:
        name: the node's name or first output; inside a function or a subgraph behind the name of its node: "a/b".
        op: the operator.
        domain: its domain; the standard's is "".
        version: the opset version of the domain.
        kind: "operator" (a lowering of its own), "folded" (its results are known at compile time), "fused" (part of
            another node), "model function" or "standard function" (its body is imported), "" where it cannot be.
        results: element type and shape of each result, None for sizes that are known at run time only; None for a
            result whose type is not known.
        reason: why the node cannot be imported; "" where it can.
    """

    name: str
    op: str
    domain: str
    version: int
    kind: str
    results: tuple[tuple[str, tuple[int | None, ...]] | None, ...]
    reason: str = ""


@dataclass
class Coverage:
    """All nodes of a model, in the order of their import; problems that concern no node."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the whole model can be imported."""
        return not self.problems and not any(row.reason for row in self.rows)

    @property
    def causes(self) -> list[Row]:
        """The nodes that cannot be imported, without those that only depend on such nodes."""
        return [row for row in self.rows if row.reason and DEPENDS not in row.reason]


class Collector(Observer):
    """Notes every node, and puts placeholders of the declared types in the place of results that fail.

    Attributes:
        rows: by name; a body that is imported several times has its last word.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def done(self, session: Session, node: Node, kind: str, results: Results) -> None:
        """Note a node that was imported."""
        tensors = [x for x in results if x is not None]
        folded = bool(tensors) and all(isinstance(x, Tensor) and x.is_known for x in tensors)
        self._add(node, "folded" if folded and kind == "operator" else kind, results, "")

    def failed(self, session: Session, node: Node, error: TilewrightError) -> Results:
        """Note a node that fails, and why."""
        text = error.message.removeprefix(f"{node.proto.op_type}: ")
        results = [placeholder(session, name) if name else None for name in node.proto.output]
        self._add(node, "", results, text)
        return results

    def _add(self, node: Node, kind: str, results: Results, reason: str) -> None:
        shown = tuple(_described(x) for x in results if x is not None)
        proto = node.proto
        self.rows[node.label] = Row(
            node.label, proto.op_type, node_domain(proto), node.version, kind, shown, " ".join(reason.split())
        )


def _described(x: Value) -> tuple[str, tuple[int | None, ...]] | None:
    if isinstance(x, TensorList):
        return f"sequence of {len(x)}", ()
    if isinstance(x, Tensor):
        return x.dtype.name, tuple(n if isinstance(n, int) else None for n in x.shape)
    return ("nothing", ()) if isinstance(x, Absent) else None


def placeholder(session: Session, name: str) -> Value:
    """A tensor of the declared type of a name, whatever is in it; Lost where the type is not known."""
    found = session.declared.type(name)
    if found is None or found.shape is None or not found.number or found.number == onnx.TensorProto.STRING:
        return Lost()
    b = session.builder
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(found.number))
        x = b.blank([1 if n is None else n for n in found.shape], dtype)
    except (KeyError, UnsupportedError):  # no such type
        return Lost()
    open_axes = [d for d, n in enumerate(found.shape) if n is None]
    return b.loosen(x, open_axes) if open_axes else x


def explain(error: UnsupportedError, rows: Sequence[Row]) -> UnsupportedError:
    """The same error, or one that lists all nodes that fail, where there are several."""
    if len(rows) < 2:
        return error
    lines = [f"  {row.name} ({row.op}): {row.reason}" for row in rows[:20]]
    if len(rows) > 20:
        lines.append(f"  ... and {len(rows) - 20} more")
    return UnsupportedError(f"{len(rows)} nodes cannot be imported:\n" + "\n".join(lines), location=error.location)
