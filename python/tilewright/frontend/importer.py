# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an ONNX graph to a layer-1 module: one walk over the nodes, each through its operator's function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

import onnx

from tilewright.errors import InternalError, TilewrightError, UnsupportedError, UserError
from tilewright.mlir import ir

from .builder import Builder, nothing
from .declared import Declared
from .load import ModelSource, Shapes, check_model, initializer_array, input_specs, load_model, opset_versions
from .model import ImportedModel, TensorSpec
from .node import Node, label
from .registry import lookup
from .tensor import Tensor


def import_onnx(source: ModelSource, shapes: Shapes | None = None, context: ir.Context | None = None) -> ImportedModel:
    """Import an ONNX model as a layer-1 module.

    Args:
        source: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: sizes of symbolic dimensions, e.g. {"batch": 1}, or whole shapes by input name.
        context: where the module lives (default: a new one).

    Returns:
        The module, the bytes of its weights and the signature.

    Raises:
        UserError: not a valid model, or its shapes are not fixed.
        UnsupportedError: operators without a lowering, all listed at once.
    """
    model, folder = load_model(source)
    specs = input_specs(model, shapes)
    versions = opset_versions(model)
    _require_supported(model.graph.node, versions)
    check_model(model)
    with context or ir.Context(), ir.Location.unknown():
        return _Importer(model, folder, versions, Declared(model, specs, shapes or {})).run(specs)


def _require_supported(nodes: Sequence[onnx.NodeProto], versions: dict[str, int]) -> None:
    missing: dict[str, list[str]] = {}
    for node in nodes:
        domain = _domain(node)
        if lookup(domain, node.op_type, versions.get(domain, 1)) is None:
            name = f"{domain}.{node.op_type}" if domain else node.op_type
            missing.setdefault(name, []).append(label(node))
    if missing:
        rows = [
            f"  {name}: {', '.join(where[:8])}{', ...' if len(where) > 8 else ''}" for name, where in missing.items()
        ]
        raise UnsupportedError("operators without a lowering (with the nodes that use them):\n" + "\n".join(rows))


def _domain(node: onnx.NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


class _Importer:
    def __init__(self, model: onnx.ModelProto, folder: str, versions: dict[str, int], declared: Declared) -> None:
        self.graph = model.graph
        self.folder = folder
        self.versions = versions
        self.declared = declared
        self.module = ir.Module.create()
        self.builder = Builder(self.module)
        self.values: dict[str, Tensor] = {}
        self.uses = Counter(name for node in self.graph.node for name in node.input)
        self.uses.update(o.name for o in self.graph.output)
        self.consumers = {name: node for node in self.graph.node for name in node.input}
        self.absorbed: set[str] = set()  # first outputs of fused nodes

    def run(self, specs: list[TensorSpec]) -> ImportedModel:
        """Build @main and return everything."""
        function, block = self._function(specs)
        self.builder.entry = block
        self._initializers()
        with ir.InsertionPoint(block):
            for node in self.graph.node:
                if node.output[0] not in self.absorbed:
                    self._node(node)
            outputs = self._results(function)
        return ImportedModel(self.module, self.builder.weights, specs, outputs)

    def _function(self, specs: list[TensorSpec]) -> tuple[ir.Operation, ir.Block]:
        kinds = [self.builder.tensor_type(s.shape, s.dtype) for s in specs]
        with ir.InsertionPoint(self.module.body):
            names = [ir.DictAttr.get({"tile.name": ir.StringAttr.get(s.name)}) for s in specs]
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("main"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, [])),
                    "arg_attrs": ir.ArrayAttr.get(names),
                },
                regions=1,
            )
        block = ir.Block.create_at_start(function.regions[0], kinds)
        for spec, argument in zip(specs, block.arguments, strict=True):
            empty = prod(spec.shape) == 0
            value = Tensor(spec.dtype, spec.shape, argument, tuple(range(len(spec.shape))))
            self.values[spec.name] = nothing(spec.shape, spec.dtype) if empty else value
        return function, block

    def _initializers(self) -> None:
        if self.graph.sparse_initializer:
            names = ", ".join(s.values.name for s in self.graph.sparse_initializer)
            raise UnsupportedError(f"sparse initializers are not supported: {names}")
        for tensor in self.graph.initializer:
            self.values[tensor.name] = Tensor.known(initializer_array(tensor, self.folder))

    def _node(self, proto: onnx.NodeProto) -> None:
        domain = _domain(proto)
        version = self.versions.get(domain, 1)
        function = lookup(domain, proto.op_type, version)
        assert function is not None
        node = Node(proto, version, lambda kind: self._fuse_next(proto, kind), self.declared.shape)
        with ir.Location.name(node.label):
            results = self._call(function, node, self._inputs(proto))
        for name, result in zip(proto.output, results, strict=False):
            self.values.setdefault(name, result)  # a fused consumer shares its producer's result
        self._bind_fused(node, results[0])

    def _inputs(self, proto: onnx.NodeProto) -> list[Tensor | None]:
        for name in proto.input:
            if name and name not in self.values:
                raise UserError(f"{name} is used before any node makes it", location=label(proto))
        return [self.values[name] if name else None for name in proto.input]

    def _call(self, function: Callable, node: Node, inputs: list[Tensor | None]) -> Sequence[Tensor]:
        try:
            results = function(self.builder, node, *inputs)
        except TilewrightError as error:
            error.location = error.location or node.label
            raise
        except ValueError as error:  # NumPy's word for shapes that do not fit
            shapes = [list(x.shape) if x is not None else None for x in inputs]
            raise UserError(f"{node.proto.op_type}: {error} (input shapes {shapes})", location=node.label) from error
        except (AssertionError, IndexError, KeyError, TypeError, AttributeError) as error:
            message = f"{node.proto.op_type}: the importer failed: {type(error).__name__}: {error}"
            raise InternalError(message, location=node.label) from error
        return (results,) if isinstance(results, Tensor) else results

    def _fuse_next(self, proto: onnx.NodeProto, kind: str) -> tuple[Node, list[Tensor]] | None:
        """The only consumer of the node's result, with its other inputs, if it is a `kind` with known parameters.

        The caller then computes the consumer's result as its own.
        """
        name = proto.output[0]
        user = self.consumers.get(name)
        if self.uses[name] != 1 or user is None or user.op_type != kind or user.input[0] != name:
            return None
        others = [self.values[n] for n in user.input[1:] if n in self.values]
        if len(others) < len(user.input) - 1 or not all(x.is_known for x in others):
            return None
        self.absorbed.add(user.output[0])
        self.fused = user
        return Node(user, self.versions[""], lambda _: None), others

    fused: onnx.NodeProto | None = None

    def _bind_fused(self, node: Node, result: Tensor) -> None:
        if self.fused is not None:
            self.values[self.fused.output[0]] = result
            self.fused = None

    def _results(self, function: ir.Operation) -> list[TensorSpec]:
        values, specs, names = [], [], []
        for info in self.graph.output:
            x = self.values.get(info.name)
            if x is None:
                raise UserError(f"no node makes the output {info.name}")
            values.append(self._own(x, values))
            specs.append(TensorSpec(info.name, x.dtype, x.shape))
            names.append(ir.DictAttr.get({"tile.name": ir.StringAttr.get(info.name)}))
        ir.Operation.create("func.return", operands=values)
        old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        kind = ir.FunctionType.get(old.inputs, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        function.attributes["res_attrs"] = ir.ArrayAttr.get(names)
        return specs

    def _own(self, x: Tensor, taken: list[ir.Value]) -> ir.Value:
        """A value for one output alone: inputs, weights and values already returned are copied."""
        b = self.builder
        shared = x.is_known or isinstance(x.data, ir.BlockArgument) or any(v == x.data for v in taken)
        return b.value(b.copy(x, range(x.rank)) if shared and prod(x.shape) else x)
