# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an ONNX graph to a layer-1 module: one walk over the nodes, each through its operator's function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod

import onnx

from tilewright.core.errors import InternalError, OpenShapesError, TilewrightError, UnsupportedError, UserError
from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.dims import Size, has_zero, is_static
from tilewright.frontend.builder.iteration import erase_discarded
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.model import ImportedModel, Symbol, TensorSpec
from tilewright.frontend.onnx.collector import Collector, Coverage, explain
from tilewright.frontend.onnx.declared import Declared
from tilewright.frontend.onnx.functions import Functions
from tilewright.frontend.onnx.inventory import require_supported
from tilewright.frontend.onnx.load import ModelSource, check_model, load_model, opset_versions
from tilewright.frontend.onnx.registry import NEWEST_OPSET
from tilewright.frontend.onnx.scope import Observer, Scope, Session, failure
from tilewright.frontend.onnx.sequences import Absent, TensorList
from tilewright.frontend.onnx.signature import Input, Shapes, graph_inputs
from tilewright.frontend.onnx.text import lowered, of_code, remarks_of
from tilewright.frontend.onnx.unrolled import unrolled
from tilewright.ir import decisions
from tilewright.mlir import ir


def import_onnx(
    source: ModelSource,
    shapes: Shapes | None = None,
    context: ir.Context | None = None,
    *,
    symbolic: bool = False,
    many_threads: bool = False,
) -> ImportedModel:
    """Import an ONNX model as a layer-1 module.

    Args:
        source: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: sizes of symbolic dimensions, e.g. {"batch": 1}, or whole shapes by input name. For a sequence the
            shapes of its tensors, which become the inputs x[0], x[1], ...; None for an optional that holds nothing.
        context: where the module lives (default: a new one).
        symbolic: dimensions that `shapes` leaves open become sizes known at run time only; a pair there is a range.
        many_threads: operators with a lowering for machines of thousands of threads, which does more work, get it.

    Returns:
        The module, the bytes of its weights and the signature.

    Raises:
        UserError: not a valid model, or its shapes are not fixed.
        UnsupportedError: operators without a lowering, all listed at once.
    """
    model, folder = load_model(source)
    model, boundary = lowered(model, shapes, folder)
    shapes = of_code(shapes, boundary)
    require_supported(model)  # before all that a user could do in vain
    try:
        inputs = graph_inputs(model, shapes, symbolic)
    except OpenShapesError as error:
        error.boundary = boundary.data() if boundary else None
        raise
    check_model(model)
    with context or ir.Context(), ir.Location.unknown():
        try:
            imported = import_graph(model, folder, inputs, shapes, Observer(), many_threads)
            if boundary is None:
                return imported
            remarks = imported.remarks | remarks_of((*boundary.before, *boundary.after))
            return replace(imported, boundary=boundary.data(), remarks=remarks)
        except RecursionError as error:
            raise UnsupportedError("the model's graphs or functions are nested too deeply") from error
        except MemoryError as error:
            raise UnsupportedError("importing the model takes more memory than there is") from error
        except UnsupportedError as error:
            collector = Collector()
            with suppress(TilewrightError):
                import_graph(model, folder, inputs, shapes, collector)
            raise explain(error, Coverage(list(collector.rows.values())).causes) from error


def import_graph(
    model: onnx.ModelProto,
    folder: str,
    inputs: list[Input],
    shapes: Shapes | None,
    observer: Observer,
    many_threads: bool = False,
) -> ImportedModel:
    """Import a model that was read and checked; the observer hears of every node."""
    importer = _Importer(model, folder, Declared(model, inputs, shapes or {}), observer)
    importer.builder.many_threads = many_threads
    return importer.run(inputs)


class _Importer:
    def __init__(self, model: onnx.ModelProto, folder: str, declared: Declared, observer: Observer) -> None:
        self.graph = model.graph
        self.module = ir.Module.create()
        self.builder = Builder(self.module)
        self.named: dict[str, tuple[int | str, ...]] = {}  # results with sizes that a run brings
        outputs = [o.name for o in self.graph.output]
        session = Session(self.builder, folder, Functions(model), declared, observer)
        self.scope = Scope(session, self.graph.node, outputs, opset_versions(model), declared=declared.shape)

    def run(self, inputs: list[Input]) -> ImportedModel:
        """Build @main and return everything."""
        specs = [spec for x in inputs for spec in x.specs]
        function, block = self._function(specs)
        self._bind(inputs, block)
        self.builder.entry = block
        self._remark_version()
        self.scope.bind_initializers(self.graph)
        try:
            with ir.InsertionPoint(block):
                self.scope.run()
                outputs = self._results(function)
            self._verify()
        finally:
            erase_discarded(self.builder)
        given = [replace(s, shape=tuple(n if isinstance(n, int) else -1 for n in s.shape)) for s in specs]
        dims = {
            s.name: tuple(n.name if isinstance(n, Symbol) else n for n in s.shape)
            for s in specs
            if any(isinstance(n, Symbol) for n in s.shape)
        }
        dims |= self.named
        b = self.builder
        remarks = unrolled(self.graph) | b.remarks
        return ImportedModel(self.module, b.weights, given, outputs, remarks, b.symbols.ranges, dims)

    def _verify(self) -> None:
        """The first node that became invalid IR is either one that ONNX does not allow, or a bug."""
        try:
            self.module.operation.verify()
        except ir.MLIRError as error:
            where = error.error_diagnostics[0].location
            call = self.scope.session.calls.get(where.name_str if where.is_a_name() else "")
            if call is None:
                raise InternalError(f"the importer made invalid IR: {error}") from error
            raise failure(*call, error) from error

    def _remark_version(self) -> None:
        version = self.scope.versions[""]
        if version > NEWEST_OPSET:
            self.builder.remark(f"opset {version} is newer than {NEWEST_OPSET}, by whose rules the model is compiled")

    def _function(self, specs: list[TensorSpec]) -> tuple[ir.Operation, ir.Block]:
        kinds = [self._input_type(s) for s in specs]
        with ir.InsertionPoint(self.module.body):
            names = [ir.DictAttr.get({decisions.NAME: ir.StringAttr.get(s.name)}) for s in specs]
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("main"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, [])),
                    "arg_attrs": ir.ArrayAttr.get(names),
                },
                regions=1,
            )
        return function, ir.Block.create_at_start(function.regions[0], kinds)

    def _input_type(self, spec: TensorSpec) -> ir.Type:
        unknown = ir.ShapedType.get_dynamic_size()
        sizes = [unknown if isinstance(n, Symbol) else n for n in spec.shape]
        return ir.RankedTensorType.get(sizes, self.builder.tensor_type((), spec.dtype).element_type)

    def _bind(self, inputs: list[Input], block: ir.Block) -> None:
        """The values of the graph's inputs."""
        arguments = iter(block.arguments)
        symbols = self.builder.symbols
        for x in inputs:
            tensors = []
            for spec in x.specs:
                argument = next(arguments)
                with ir.InsertionPoint(block):
                    tensors.append(_argument(spec, symbols.sizes(spec, argument), argument))
            whole = tensors[0] if x.kind == "tensor" else TensorList(tuple(tensors), x.dtype)
            self.scope.values[x.name] = Absent() if x.kind == "absent" else whole

    def _results(self, function: ir.Operation) -> list[TensorSpec]:
        values, specs, names = [], [], []
        for name, x in self._outputs():
            values.append(self._own(x, values))
            specs.append(TensorSpec(name, x.dtype, tuple(n if isinstance(n, int) else -1 for n in x.shape)))
            if -1 in specs[-1].shape:
                self.named[name] = self._names(name, x.shape)
            names.append(ir.DictAttr.get({decisions.NAME: ir.StringAttr.get(name)}))
        self.builder.emit_checks()
        ir.Operation.create("func.return", operands=values)
        old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        kind = ir.FunctionType.get(old.inputs, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        function.attributes["res_attrs"] = ir.ArrayAttr.get(names)
        return specs

    def _names(self, output: str, shape: Sequence[Size]) -> tuple[int | str, ...]:
        """The sizes of a result in terms of the inputs' symbols, else as the model calls them, else -1."""
        infos = [info for info in self.graph.output if info.name == output]
        declared = [d.dim_param for info in infos for d in info.type.tensor_type.shape.dim]
        stated = declared if len(declared) == len(shape) else [""] * len(shape)
        texts = [self.builder.symbols.text(n) for n in shape]
        return tuple(
            n if isinstance(n, int) else text or name or -1 for n, text, name in zip(shape, texts, stated, strict=True)
        )

    def _outputs(self) -> Iterator[tuple[str, Tensor]]:
        """Name and value of each result. A sequence is a result per tensor: y[0], y[1], ..."""
        for info in self.graph.output:
            x = self.scope.values.get(info.name)
            if isinstance(x, Tensor):
                yield info.name, x
            elif isinstance(x, TensorList):
                yield from ((f"{info.name}[{i}]", item) for i, item in enumerate(x))
            elif isinstance(x, Absent):
                raise UnsupportedError(f"the output {info.name} is an optional that holds nothing")
            else:
                raise UserError(f"no node makes the output {info.name}")

    def _own(self, x: Tensor, taken: list[ir.Value]) -> ir.Value:
        """A value for one output alone: inputs, weights and values already returned are copied."""
        b = self.builder
        empty = has_zero(x.shape)
        shared = x.is_known or isinstance(x.data, ir.BlockArgument) or any(v == x.data for v in taken)
        return b.value(b.copy(x, range(x.rank)) if shared and not empty else x)


def _argument(spec: TensorSpec, sizes: Sequence[Size], value: ir.Value) -> Tensor:
    if is_static(sizes) and prod(sizes) == 0:
        return nothing(sizes, spec.dtype)
    return Tensor(spec.dtype, tuple(sizes), value, tuple(range(len(sizes))))
