# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can be compiled: an ONNX file, its bytes, a ModelProto, a program of lists, or layer 1 as MLIR text."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import mmap
import os
import re
import shutil
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.compiler import list_programs, starting
from tilewright.compiler.external_data import external_files
from tilewright.compiler.large_models import in_file
from tilewright.core.cache import digest
from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import UserError
from tilewright.ir.text import parse
from tilewright.runtime.manifest import TensorSpec

if TYPE_CHECKING:
    from tilewright.mlir import ir

Shapes = Mapping[str, Any]
_BLOCK = 8 << 20


@dataclass
class Imported:
    """A module of layer 1: weights, signature, remarks by node, symbolic dimensions, what is done around it."""

    module: ir.Module
    weights: dict[str, np.ndarray]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    remarks: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    dims: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    boundary: dict[str, Any] | None = None


@dataclass(frozen=True)
class Source:
    """A model as the user gave it.

    Attributes:
        value: path, bytes or ModelProto; for MLIR the text.
        kind: ``onnx`` or ``mlir``.
        name: what reports call it.
        weights: bytes of external globals of MLIR text.
        traced: whether the text is a program that was traced: MLIR printed it, with the sizes that the user gave.
        types: element types of inputs and outputs, by name, where users see others than the text has: those with signs.
        form: that calls return results in, see :mod:`tilewright.runtime.structure`; empty: `Outputs`.
        folder: of a file of MLIR text, where what it names is looked for.
    """

    value: Any
    kind: str
    name: str
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    traced: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    folder: Path | None = None

    @functools.cached_property
    def content_id(self) -> str:
        """A digest of the model's bytes, external data included."""
        if self.kind == "mlir":
            arrays = [part for name, array in sorted(self.weights.items()) for part in (name, array.tobytes())]
            return digest("mlir", self.value, *arrays, *(f"{name} {kind}" for name, kind in sorted(self.types.items())))
        form = [self.form] if self.form else []
        if isinstance(self.value, Path):
            return digest("onnx", *_file_ids(self.value), *form)
        data = self.value if isinstance(self.value, bytes) else self.value.SerializeToString(deterministic=True)
        return digest("onnx", _bytes_id(data), *form)

    @functools.cached_property
    def is_kernel_alone(self) -> bool:
        """Whether this is MLIR text with kernels, but nothing that launches them.

        Raises:
            UserError: it has the words of one, and is no valid module.
        """
        if self.kind != "mlir" or "tile.kernel" not in self.value:
            return False
        module = parse(self.value, self.name)  # its operations do not keep it alive
        top = [op.operation for op in module.body.operations]
        names = {op.attributes["sym_name"].value for op in top if "sym_name" in op.attributes}
        return "main" not in names and any(op.name == "tile.kernel" for op in top)

    def load(
        self, shapes: Shapes | None, symbolic: bool = False, many_threads: bool = False, start: str | None = None
    ) -> Imported:
        """Import the model.

        Args:
            shapes: sizes of symbolic dimensions, or their ranges.
            symbolic: what `shapes` leaves open is known at run time only.
            many_threads: the machine has thousands; some operators are lowered to more work, in parallel.
            start: the phase behind which MLIR text is IR; None: it is a model.

        Raises:
            UserError: the model is malformed, or its shapes are not fixed; or it is IR of another border.
            UnsupportedError: it holds operators that have no lowering.
        """
        if self.kind == "mlir":
            return _load_mlir(self, None if self.traced else shapes, start)
        return _load_onnx(self, shapes, symbolic, many_threads)


def open_source(
    model: Any,
    weights: Mapping[str, np.ndarray] | None = None,
    example_inputs: Any = None,
    shapes: Shapes | None = None,
    dynamic_shapes: Any = None,
) -> Source:
    """Return the source for what the user gave.

    Args:
        model: what :func:`tilewright.compile` takes.
        weights: arrays of external globals of MLIR text, by name.
        example_inputs: of a torch module.
        shapes: lengths of the lists of a program of `tilewright.fractal`; other models get theirs when they are loaded.
        dynamic_shapes: of a torch module, which sizes stay open.

    Raises:
        UserError: no such file, or nothing that can be compiled.
        UnsupportedError: a torch module that torch cannot export.
    """
    if list_programs.is_program(model):
        program = list_programs.traced(model, shapes)
        types = list_programs.unsigned_types(program)
        source = Source(program.module_text, "mlir", program.name, traced=True, types=types)
        weights = list_programs.signless(program.weights)
    elif _is_torch(model):
        source = _exported(model, example_inputs, dynamic_shapes)
    elif dynamic_shapes is not None:
        raise UserError(f"dynamic_shapes= is for torch modules, not for a {type(model).__name__}; see shapes=")
    elif example_inputs is not None:
        raise UserError(f"example_inputs= is for torch modules, not for a {type(model).__name__}")
    else:
        source = _open(model)
    if weights is None:
        return source
    if source.kind != "mlir" or not isinstance(weights, Mapping):
        raise UserError("weights= takes arrays by name, for the external globals of an MLIR module")
    given = {name: np.asarray(array) for name, array in weights.items()}
    return replace(source, weights={**source.weights, **given})


_TORCH = (("torch.nn", "Module"), ("torch.export", "ExportedProgram"), ("torch.onnx", "ONNXProgram"))


def _is_torch(model: Any) -> bool:
    return _torch_kind(model) is not None


def _torch_kind(model: Any) -> str | None:
    """Which class of PyTorch's that can be compiled an object is of; PyTorch need not be installed."""
    names = [(base.__module__, base.__name__) for base in type(model).__mro__]
    return next((n for prefix, n in _TORCH for place, name in names if place.startswith(prefix) and name == n), None)


def _exported(model: Any, example_inputs: Any, dynamic_shapes: Any) -> Source:
    with _onnx_needed():
        from tilewright.frontend.torch import export
    kind = _torch_kind(model)
    if kind == "Module":
        return _torch_source(*export.export(model, example_inputs, dynamic_shapes), type(model).__name__)
    for name, value in (("example_inputs", example_inputs), ("dynamic_shapes", dynamic_shapes)):
        if value is not None:
            raise UserError(f"{name}= is for torch modules: this {kind} was exported with its own")
    convert = export.export_program if kind == "ExportedProgram" else export.of_onnx_program
    return _torch_source(*convert(model), str(kind))


def _torch_source(value: Any, form: str, name: str) -> Source:
    return _in_memory(value, name, form)


def _in_memory(model: Any, name: str, form: str = "") -> Source:
    """The source of a ModelProto; one that is too large for a message is in a file as long as the source is there."""
    path = in_file(model)
    source = Source(path or model, "onnx", name, form=form)
    if path is not None:
        weakref.finalize(source, shutil.rmtree, path.parent, ignore_errors=True)
    return source


@contextlib.contextmanager
def _onnx_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise UserError("compiling ONNX models needs the package onnx: pip install onnx") from None


def _open(model: Any) -> Source:
    if isinstance(model, str) and "\n" in model:
        return Source(model, "mlir", "module")
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if not path.is_file():
            raise UserError(f"there is no model file {path}")
        if path.suffix == ".mlir":
            text = _text(path)
            return Source(
                text, "mlir", path.stem, weights=starting.weights_beside(text, path.parent), folder=path.parent
            )
        return Source(path, "onnx", path.stem)
    if isinstance(model, bytes | bytearray | memoryview):
        return Source(bytes(model), "onnx", "model")
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return _in_memory(model, model.graph.name or "model")
    raise UserError(
        f"cannot compile an object of type {type(model).__name__}: give the path of an ONNX file, its bytes, "
        "an onnx.ModelProto, a torch.nn.Module or ExportedProgram, a function made by tilewright.fractal.function, or "
        "the text of an MLIR module of layer 1"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not MLIR text: {error}") from None


def _file_ids(path: Path) -> list[str]:
    """Return digests of a model's file and of the files that it refers to."""
    with open(path, "rb") as file:
        try:
            data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            data = b""
        others = [path.parent / name for name in external_files(data)]
    return [_bytes_id(data), *(_bytes_id(other.read_bytes()) for other in others if other.is_file())]


def _bytes_id(data: Any) -> str:
    """Hash blocks in parallel: half a gigabyte of weights takes a while."""
    view = memoryview(data)
    starts = range(0, len(view), _BLOCK)
    with ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)))) as threads:
        hashes = threads.map(lambda start: hashlib.sha256(view[start : start + _BLOCK]).digest(), starts)
        return digest(str(len(view)), *hashes)


def _load_onnx(source: Source, shapes: Shapes | None, symbolic: bool, many_threads: bool) -> Imported:
    with _onnx_needed():
        from tilewright.frontend import import_onnx
    value = os.fspath(source.value) if isinstance(source.value, Path) else source.value
    imported = import_onnx(value, shapes=shapes, symbolic=symbolic, many_threads=many_threads)
    specs = _specs(imported.inputs), _specs(imported.outputs)
    known = imported.remarks, imported.ranges, imported.dims, imported.boundary
    return Imported(imported.module, imported.weights, *specs, *known)


def _specs(specs: Any) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(spec.name, from_numpy(spec.dtype), tuple(spec.shape)) for spec in specs)


def _load_mlir(source: Source, shapes: Shapes | None, start: str | None) -> Imported:
    from tilewright.mlir import ir

    if shapes:
        raise UserError("shapes= is for ONNX models: an MLIR module has static shapes")
    module = parse(source.value, source.name, printed=source.traced)
    _check_weights(module, source.weights)
    signed = starting.read_signed(module, source.name, start)
    if signed is not None:
        return Imported(module, dict(source.weights), **signed)
    function = next((op for op in module.body.operations if _is_main(op)), None)
    if function is None:
        raise UserError(f"{source.name} has no func.func @main to compile")
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = _tensor_specs(kind.inputs, function, "arg_attrs", "input")
    outputs = _tensor_specs(kind.results, function, "res_attrs", "output")
    inputs, outputs = (
        tuple(replace(spec, dtype=source.types.get(spec.name, spec.dtype)) for spec in specs)
        for specs in (inputs, outputs)
    )
    return Imported(module, dict(source.weights), inputs, outputs)


def _check_weights(module: ir.Module, weights: Mapping[str, np.ndarray]) -> None:
    """Raise UserError where an array is not of the type that the module gives its global: it is read as that."""
    from tilewright.mlir import ir

    for op in module.body.operations:
        if op.operation.name != "ml_program.global":
            continue
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        kind = ir.TypeAttr(op.operation.attributes["type"]).value
        array = weights.get(name)
        if array is None or not isinstance(kind, ir.RankedTensorType):
            continue
        given = TensorSpec(name, _signless(from_numpy(array.dtype)), array.shape)
        wanted = TensorSpec(name, _element(kind.element_type), tuple(kind.shape))
        if given != wanted:
            raise UserError(f"weights= gives {given}, but the module declares {wanted}")


def _signless(kind: str) -> str:
    """An element type as globals have it: integers of IR have no sign."""
    return f"i{kind[1:]}" if re.fullmatch(r"u\d+", kind) else kind


_COMPLEX = {"complex<f32>": "c64", "complex<f64>": "c128"}


def _element(kind: ir.Type) -> str:
    text = str(kind)
    return _COMPLEX.get(text) or text.replace("ui", "u").lower()


def _is_main(op: Any) -> bool:
    return op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == "main"


def _tensor_specs(types: Any, function: Any, attributes: str, what: str) -> tuple[TensorSpec, ...]:
    from tilewright.ir import decisions
    from tilewright.mlir import ir

    given = function.attributes[attributes] if attributes in function.attributes else [None] * len(types)
    specs = []
    for i, (kind, attrs) in enumerate(zip(types, given, strict=True)):
        listed = list_programs.shape_of(kind)
        if listed is None and not isinstance(kind, ir.RankedTensorType):
            raise UserError(f"{what} {i} of @main is {kind}; a tensor of known rank is needed")
        name = f"{what}{i}"
        if attrs is not None and decisions.NAME in attrs:
            name = ir.StringAttr(attrs[decisions.NAME]).value
        if listed is not None:
            specs.append(TensorSpec(name, _element(listed[1]), listed[0]))
            continue
        sizes = (-1 if kind.is_dynamic_dim(d) else kind.get_dim_size(d) for d in range(kind.rank))
        specs.append(TensorSpec(name, _element(kind.element_type), tuple(sizes), list_programs.shortest_of(attrs)))
    return tuple(specs)
