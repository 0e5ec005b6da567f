# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The walk over the nodes of one graph, subgraph or function body: names to values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError
from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.branches import Branch, Diverging, choose
from tilewright.frontend.onnx.declared import Declared, DeclaredShape
from tilewright.frontend.onnx.functions import Functions
from tilewright.frontend.onnx.load import graph_initializers, node_domain, subgraphs_of
from tilewright.frontend.onnx.node import Node, label
from tilewright.frontend.onnx.registry import OpFunction, lookup, takes_structures
from tilewright.frontend.onnx.sequences import Lost, TensorList, Value
from tilewright.frontend.onnx.spec_checks import broken_rule
from tilewright.frontend.onnx.subgraphs import Subgraph
from tilewright.mlir import ir

Results = Sequence[Value | None]

_CHOICES = 6  # nested, of what follows a choice: each doubles the code
DEPENDS = "depends on a node that cannot be imported"


class Observer:
    """Hears of every node; the base class does nothing. See collector.py."""

    def done(self, session: Session, node: Node, kind: str, results: Results) -> None:
        """A node was imported: by its operator's function, as a function, or as part of another node."""

    def failed(self, session: Session, node: Node, error: TilewrightError) -> Results:
        """A node cannot be imported: raise the error, or give values in place of its results."""
        raise error


@dataclass
class Session:
    """What all scopes of one import share."""

    builder: Builder
    folder: str
    functions: Functions
    declared: Declared
    observer: Observer = field(default_factory=Observer)
    calls: dict[str, tuple[Node, Sequence[Value | None]]] = field(default_factory=dict)  # by label: what was imported
    choices: int = 0  # how many scf.if hold the rest of a graph, at the node being imported


class Scope:
    """The values of one graph by name, and its nodes' walk. Names of enclosing graphs are visible.

    Args:
        session: what all scopes share.
        nodes: in topological order.
        outputs: names of the graph's results.
        versions: opset version by domain.
        outer: the scope around a subgraph.
        prefix: where the nodes are, for messages: "call/" for a function body.
        declared: shapes by name (default: none).
    """

    def __init__(
        self,
        session: Session,
        nodes: Sequence[onnx.NodeProto],
        outputs: Sequence[str],
        versions: Mapping[str, int],
        *,
        outer: Scope | None = None,
        prefix: str = "",
        declared: Callable[[str], DeclaredShape | None] = lambda _: None,
    ) -> None:
        self.session = session
        self.nodes = nodes
        self.outputs = outputs
        self.versions = versions
        self.outer = outer
        self.prefix = prefix
        self.declared = declared
        self.values: dict[str, Value | None] = {}
        self._uses = Counter(read_names(nodes))
        self._uses.update(outputs)
        self._consumers = {name: node for node in nodes for name in node.input}
        self._absorbed: dict[str, Node] = {}  # nodes fused into another one, by their first output
        self._fused: onnx.NodeProto | None = None

    def another(
        self,
        nodes: Sequence[onnx.NodeProto],
        outputs: Sequence[str],
        *,
        versions: Mapping[str, int] | None = None,
        outer: Scope | None = None,
        prefix: str,
        declared: Callable[[str], DeclaredShape | None],
    ) -> Scope:
        """A scope of the same import, for other nodes; see the class. The opset versions are this one's by default."""
        versions = self.versions if versions is None else versions
        return Scope(self.session, nodes, outputs, versions, outer=outer, prefix=prefix, declared=declared)

    def run(self) -> None:
        """Import all nodes."""
        for i, proto in enumerate(self.nodes):
            first = next((name for name in proto.output if name), "")
            if first in self._absorbed:
                node = self._absorbed[first]
                self.session.observer.done(self.session, node, "fused", [self.value(first, node.label)])
                continue
            try:
                self._node(proto)
            except Diverging as choice:
                if self._follow(choice, proto, self.nodes[i + 1 :]):
                    return

    def _follow(self, choice: Diverging, proto: onnx.NodeProto, rest: Sequence[onnx.NodeProto]) -> bool:
        """Import the nodes behind a node once for each of its possible results, up to the outputs of this graph.

        Returns whether it was possible; where it was not, there may be stand-ins for the node's results.
        """
        try:
            results = self._chosen(choice, proto, rest)
        except Diverging as error:
            if self.outer is not None or self.prefix:
                raise  # the graph around this one can try the same
            node = Node(proto, self.versions.get(node_domain(proto), 1), self)
            self._bind(proto, self.session.observer.failed(self.session, node, error.plain()))
            return False
        self.values.update(zip(self.outputs, results, strict=True))
        return True

    def _chosen(self, choice: Diverging, proto: onnx.NodeProto, rest: Sequence[onnx.NodeProto]) -> Results:
        session = self.session
        if session.choices >= _CHOICES:
            raise choice

        def after(branch: Branch) -> list[Value | None]:
            scope = self.another(rest, self.outputs, outer=self, prefix=self.prefix, declared=self.declared)
            scope.values = {name: x for name, x in zip(proto.output, branch(), strict=False) if name}
            scope._absorbed = dict(self._absorbed)
            scope.run()
            return [scope.value(name, self.label(proto)) for name in self.outputs]

        session.builder.remark("its branches differ in rank: what follows is compiled twice, once for each")
        session.choices += 1
        try:
            branches = [lambda branch=branch: after(branch) for branch in choice.branches]
            return choose(session.builder, choice.condition, branches)
        except Diverging as error:
            error.location = error.location or choice.location
            raise
        finally:
            session.choices -= 1

    def value(self, name: str, where: str) -> Value | None:
        """The value of a name here or in an enclosing graph. Raises UserError where there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise UserError(f"{name} is used before any node makes it", location=where)

    def label(self, proto: onnx.NodeProto) -> str:
        """How messages and locations call a node of this scope."""
        return self.prefix + label(proto)

    def subgraph(self, graph: onnx.GraphProto, where: str) -> Subgraph:
        """A graph attribute of a node of this scope."""
        return Subgraph(self, graph, where)

    def bind_initializers(self, graph: onnx.GraphProto) -> None:
        """Bind the graph's weights that no input has overridden."""
        for name, array in graph_initializers(graph, self.session.folder):
            if name not in self.values:
                self.values[name] = Tensor.known(array)

    # Nodes ----------------------------------------------------------------------------------------------------

    def _node(self, proto: onnx.NodeProto) -> None:
        version = self.versions.get(node_domain(proto), 1)
        node = Node(proto, version, self)
        with ir.Location.name(node.label):
            try:
                kind, results = self._results(node)
            except TilewrightError as error:
                error.location = error.location or node.label
                if isinstance(error, Diverging):
                    raise
                kind, results = "", self.session.observer.failed(self.session, node, error)
        if kind:
            self.session.observer.done(self.session, node, kind, results)
        self._bind(proto, results)
        self._bind_fused(results)

    def _bind(self, proto: onnx.NodeProto, results: Results) -> None:
        for name, result in zip(proto.output, results, strict=False):
            if name:
                self.values.setdefault(name, result)  # a fused consumer shares its producer's result

    def _results(self, node: Node) -> tuple[str, Results]:
        inputs = [self.value(name, node.label) if name else None for name in node.proto.input]
        if any(isinstance(x, Lost) for x in inputs):
            node.unsupported(DEPENDS)
        functions = self.session.functions
        body = functions.of_model(node.proto)
        function = None if body else lookup(node_domain(node.proto), node.proto.op_type, node.version)
        if function is not None:
            kind, results = "operator", self._call(function, node, inputs)
        else:
            kind = "model function" if body else "standard function"
            body = body or functions.of_standard(node, inputs)
            results = functions.call(self, node, body, inputs)
        if any(isinstance(x, Lost) for x in results):
            node.unsupported(DEPENDS)
        return kind, [self._refined(node, i, x) for i, x in enumerate(results)]

    def _call(self, function: OpFunction, node: Node, inputs: Sequence[Value | None]) -> Results:
        if not takes_structures(function) and not all(x is None or isinstance(x, Tensor) for x in inputs):
            node.wrong("takes tensors, and an input is a sequence or an optional")
        self.session.calls[node.label] = node, inputs
        try:
            results = function(self.session.builder, node, *inputs)
        except TilewrightError:
            raise
        except ValueError as error:  # NumPy's word for shapes that do not fit
            shapes = [_shape_text(x) for x in inputs]
            raise UserError(f"{node.proto.op_type}: {error} (input shapes {', '.join(shapes)})") from error
        except (
            AssertionError, ArithmeticError, LookupError, StopIteration, TypeError, AttributeError, ir.MLIRError
        ) as error:  # fmt: skip
            raise failure(node, inputs, error) from error
        except MemoryError as error:
            shapes = ", ".join(map(_shape_text, inputs))
            message = f"importing it takes more memory than there is (input shapes {shapes})"
            raise UnsupportedError(f"{node.proto.op_type}: {message}", location=node.label) from error
        return results if isinstance(results, (list, tuple)) else (results,)

    def _refined(self, node: Node, output: int, x: Value | None) -> Value | None:
        """A result of run-time sizes under the sizes that the model states for it, checked when the model runs."""
        if not isinstance(x, Tensor) or x.is_static:
            return x
        shape = node.declared(output)
        if shape is None or len(shape) != x.rank:
            return x
        return self.session.builder.refine(x, shape, node)

    # Fusion ---------------------------------------------------------------------------------------------------

    def fuse_next(self, proto: onnx.NodeProto, kind: str) -> tuple[Node, list[Tensor]] | None:
        """The only consumer of the node's result, with its other inputs, if it is a `kind` with known parameters.

        The caller then computes the consumer's result as its own.
        """
        name = proto.output[0]
        user = self._consumers.get(name)
        if self._uses[name] != 1 or user is None or user.op_type != kind or user.input[0] != name:
            return None
        if node_domain(user) or self.session.functions.of_model(user) or any(user.output[1:]):
            return None
        others = [self.values.get(n) for n in user.input[1:]]
        tensors = [x for x in others if isinstance(x, Tensor) and x.is_known]
        if len(tensors) < len(others):
            return None
        node = Node(user, self.versions.get("", 1), self)
        self._absorbed[user.output[0]] = node
        self._fused = user
        return node, tensors

    def _bind_fused(self, results: Results) -> None:
        if self._fused is not None:
            self.values[self._fused.output[0]] = results[0]
            self._fused = None


def failure(node: Node, inputs: Sequence[Value | None], error: Exception) -> TilewrightError:
    """The error for a node that could not be imported, or became invalid IR: whose fault is it?"""
    broken = broken_rule(node.proto, node.version, inputs)
    if broken:
        return UserError(f"{node.proto.op_type}: {broken}", location=node.label)
    if isinstance(error, OverflowError):  # Python's and NumPy's word for numbers that do not fit
        return UserError(f"{node.proto.op_type}: a number is out of range: {error}", location=node.label)
    message = f"{node.proto.op_type}: the importer failed: {type(error).__name__}: {error}"
    return InternalError(message, location=node.label)


def read_names(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Names that nodes and their subgraphs read, each as often as it is read."""
    for node in nodes:
        yield from node.input
        for graph in subgraphs_of(node):
            yield from read_names(graph.node)
            yield from (o.name for o in graph.output)


def _shape_text(x: Value | None) -> str:
    if isinstance(x, Tensor):
        return str([n if isinstance(n, int) else "?" for n in x.shape])
    return "a sequence" if isinstance(x, TensorList) else "none"
