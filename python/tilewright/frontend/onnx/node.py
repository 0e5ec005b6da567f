# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One ONNX node as an operator's function sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnx

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.declared import DeclaredShape
from tilewright.frontend.onnx.load import initializer_array

if TYPE_CHECKING:
    from tilewright.frontend.onnx.scope import Scope
    from tilewright.frontend.onnx.subgraphs import Subgraph


class Node:
    """Attributes, version and neighbourhood of a node.

    Attributes:
        proto: the ONNX node.
        version: the opset version of its domain.
        label: how messages and locations call the node.
    """

    def __init__(self, proto: onnx.NodeProto, version: int, scope: Scope) -> None:
        self.proto = proto
        self.version = version
        self.label = scope.label(proto)
        self._scope = scope
        self._attributes = {a.name: a for a in proto.attribute}

    def fuse_next(self, kind: str) -> tuple[Node, list[Tensor]] | None:
        """Take over the only consumer of this node's first output, if it is a `kind` with known parameters.

        Returns it with its other inputs; the caller then computes its result as its own.
        """
        return self._scope.fuse_next(self.proto, kind)

    def graph(self, name: str) -> Subgraph:
        """A graph attribute, as a function from values to values."""
        found = self._attributes.get(name)
        if found is None or not found.HasField("g"):
            self.wrong(f"the attribute {name} is missing")
        return self._scope.subgraph(found.g, self.label)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value; bytes come as str."""
        if name not in self._attributes:
            return default
        value = onnx.helper.get_attribute_value(self._attributes[name])
        if isinstance(value, bytes):
            return value.decode()
        return [v.decode() if isinstance(v, bytes) else v for v in value] if isinstance(value, list) else value

    def tensor(self, name: str) -> np.ndarray | None:
        """The elements of an attribute that is a tensor; None where it is absent."""
        value = self.attr(name)
        return None if value is None else initializer_array(value, self._scope.session.folder)

    def declared(self, output: int = 0) -> DeclaredShape | None:
        """The shape that the model states, or shape inference finds, for an output.

        None for each size that stays open, None alone where the rank is open too.
        """
        names = self.proto.output
        return self._scope.declared(names[output]) if output < len(names) and names[output] else None

    def declared_size(self, output: int, axis: int) -> int | None:
        """One size of `declared`. Raises UserError where that has no such dimension."""
        shape = self.declared(output)
        if shape is not None and not 0 <= axis < len(shape):
            self.wrong(f"axis {axis} is out of range for the {len(shape)} dimensions that the model declares")
        return None if shape is None else shape[axis]

    def declared_rank(self, output: int = 0) -> int | None:
        """The number of dimensions of `declared`."""
        shape = self.declared(output)
        return None if shape is None else len(shape)

    def axis(self, value: int, rank: int) -> int:
        """A non-negative axis. Raises UserError where it is out of range."""
        if not -rank <= value < max(rank, 1):
            self.wrong(f"axis {value} is out of range for {rank} dimensions")
        return value + rank if value < 0 else value

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Non-negative axes, sorted."""
        return sorted({self.axis(int(v), rank) for v in values})

    def ints(self, x: Tensor | None, what: str) -> list[int]:
        """The elements of a required input that must be known at compile time."""
        if x is None:
            self.wrong(f"the input for {what} is missing")
        return [int(v) for v in self.array(x, what).reshape(-1)]

    def array(self, x: Tensor, what: str) -> np.ndarray:
        """The known elements of an input. Raises UnsupportedError where they depend on the model's inputs."""
        if not x.is_known:
            self.unsupported(f"{what} depends on the model's inputs; it must be known at compile time")
        return x.numpy()

    def unsupported(self, message: str) -> NoReturn:
        """Raise UnsupportedError at this node."""
        raise UnsupportedError(f"{self.proto.op_type}: {message}", location=self.label)

    def wrong(self, message: str) -> NoReturn:
        """Raise UserError at this node: the model breaks ONNX's rules."""
        raise UserError(f"{self.proto.op_type}: {message}", location=self.label)


def label(proto: onnx.NodeProto) -> str:
    """The node's name, or its first output's where it has none."""
    return proto.name or next((o for o in proto.output if o), proto.op_type)
