# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model with strings and maps as a model of numbers, and what Python does around it.

A string is a code (int64) inside: its place among the strings that the model names; others get a code for the time of a
call. Moving, comparing and looking up are then what they are for numbers. Operators that need the strings themselves
run in Python: before the code, where they follow from inputs and constants alone; behind it, where they give results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.onnx.load import initializer_array
from tilewright.frontend.onnx.node import label
from tilewright.frontend.onnx.text.encoding import Words, encoded
from tilewright.frontend.onnx.text.kinds import MAPS, NEEDS, STRING, concerns, is_map, is_text, text_values
from tilewright.frontend.onnx.text.steps import Shape, is_step, numpy_kind, result_number, shapes_of, step_of
from tilewright.runtime.text.boundary import MAP, NUMBERS, TEXT, Boundary, Value

_I64 = onnx.TensorProto.INT64
_LABELS = 2  # the first version of ai.onnx.ml whose LabelEncoder has keys and values


def lowered(
    model: onnx.ModelProto, shapes: Mapping[str, Any] | None = None, folder: str = ""
) -> tuple[onnx.ModelProto, Boundary | None]:
    """A model of numbers alone, and the boundary around it; the model itself and None where it has no strings or maps.

    Args:
        model: any model; it stays as it is.
        shapes: sizes of symbolic dimensions, or whole shapes by the names of inputs.
        folder: of its external data.

    Raises:
        UnsupportedError: strings are used where no code may stand for them, or nothing is left to compile.
        UserError: attributes of a node do not fit each other.
    """
    return _Lowering(model, shapes or {}, folder).run() if concerns(model) else (model, None)


def of_code(shapes: Mapping[str, Any] | None, boundary: Boundary | None) -> Mapping[str, Any] | None:
    """The sizes that concern the code: of what Python reads alone, none is left to give."""
    if boundary is None or not shapes:
        return shapes
    return {name: size for name, size in shapes.items() if name in boundary.passed or name not in boundary.names}


@dataclass
class _Parts:
    """The nodes by where they run."""

    before: list[onnx.NodeProto] = field(default_factory=list)
    code: list[onnx.NodeProto] = field(default_factory=list)
    after: list[onnx.NodeProto] = field(default_factory=list)


class _Lowering:
    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, Any], folder: str) -> None:
        self.model = model
        self.folder = folder
        self.shapes = shapes
        self.graph = model.graph
        self.texts = text_values(model.graph)
        self.words = Words()
        self.makers = {name: node for node in model.graph.node for name in node.output if name}
        constant = {t.name: t for t in model.graph.initializer}
        constant |= {n.output[0]: t for n in model.graph.node if (t := _constant(n)) is not None}
        self.constants = constant
        self.given = [i for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
        self.maps = {i.name: _map_kind(i) for i in self.given if is_map(i)}
        self._early: dict[str, bool] = {}

    # Where each node runs -----------------------------------------------------------------------------------------

    def run(self) -> tuple[onnx.ModelProto, Boundary]:
        parts = self._parts()
        late = {name for node in parts.after for name in node.output}
        early = {name for node in parts.before for name in node.output}
        outputs = [o.name for o in self.graph.output]
        wanted = {name for node in parts.after for name in node.input} | set(outputs)
        made = {name for node in parts.code for name in node.output if name}
        results = [name for node in parts.code for name in node.output if name in wanted and name in made]
        passed = self._passed(parts.code, made)
        boundary = Boundary(
            words=(),
            inputs=tuple(self._value(i) for i in self.given),
            before=tuple(step_of(node, self.maps) for node in parts.before),
            passed=tuple(passed),
            results=tuple(results),
            after=tuple(step_of(node, self.maps) for node in parts.after),
            outputs=tuple(self._value(o) for o in self.graph.output),
            texts=frozenset(self.texts & {*passed, *results, *late, *early, *(i.name for i in self.given)}),
            constants=self._read_constants([*parts.before, *parts.after]),
        )
        lowered_model = self._model(parts, passed, results)
        return lowered_model, Boundary(**{**boundary.__dict__, "words": self.words.all})

    def _parts(self) -> _Parts:
        """Each node's place; those before the code that only others before it need stay there."""
        late: set[str] = set()
        forced: set[int] = set()
        places = {}
        for node in self.graph.node:
            if _constant(node) is not None:
                places[id(node)] = "code"
            elif any(name in late for name in node.input):
                self._require_step(node)
                places[id(node)] = "after"
            elif self._needs_python(node):
                places[id(node)] = "before" if self._is_early(node) else "after"
                self._require_step(node)
                if places[id(node)] == "before":
                    self._force(node, forced)
            else:
                places[id(node)] = "code"
            if places[id(node)] == "after":
                late |= set(node.output)
        return self._pruned(places, forced)

    def _pruned(self, places: dict[int, str], forced: set[int]) -> _Parts:
        """Nodes in order; what no one of the code's results needs is left out of it."""
        parts = _Parts()
        parts.before = [n for n in self.graph.node if id(n) in forced or places[id(n)] == "before"]
        parts.after = [n for n in self.graph.node if places[id(n)] == "after"]
        early = {name for node in parts.before for name in node.output}
        needed = {o.name for o in self.graph.output} | {name for node in parts.after for name in node.input}
        needed -= early
        for node in reversed(self.graph.node):
            runs = places[id(node)] == "code" and any(name in needed for name in node.output)
            if runs and not (id(node) in forced and not set(node.output) - early):
                parts.code.insert(0, node)
                needed |= set(node.input) | {n for g in _graphs(node) for n in g} - early
                needed -= early
        return parts

    def _needs_python(self, node: onnx.NodeProto) -> bool:
        """Whether a node needs strings or maps themselves."""
        if node.op_type in NEEDS or node.op_type in MAPS:
            return True
        if node.op_type != "Cast":
            return False
        reads, gives = node.input[0] in self.texts, node.output[0] in self.texts
        return reads != gives

    def _is_early(self, node: onnx.NodeProto) -> bool:
        """Whether all that a node reads is there before the code runs."""
        return all(self._is_given(name) for name in node.input if name)

    def _is_given(self, name: str) -> bool:
        if name not in self._early:
            node = self.makers.get(name)
            known = node is None or name in self.constants
            self._early[name] = known or (node is not None and is_step(node) and self._is_early(node))
        return self._early[name]

    def _force(self, node: onnx.NodeProto, forced: set[int]) -> None:
        """Run in Python what a step reads, too."""
        forced.add(id(node))
        for name in node.input:
            maker = self.makers.get(name)
            if maker is not None and name not in self.constants and id(maker) not in forced:
                self._force(maker, forced)

    def _require_step(self, node: onnx.NodeProto) -> None:
        if is_step(node):
            return
        maker = self._computed(node)
        raise UnsupportedError(
            f"{node.op_type}: it reads strings that Python makes behind the compiled code, of what {maker.op_type} "
            f"({label(maker)}) computes in it; there strings are only moved, joined and taken apart",
            location=label(node),
        )

    def _computed(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """The first node before this one that compiled code runs, and that keeps what follows from running early."""
        late = [name for name in node.input if name and not self._is_given(name)]
        maker = self.makers[late[0]]
        return self._computed(maker) if is_step(maker) else maker

    # The parts ----------------------------------------------------------------------------------------------------

    def _passed(self, code: list[onnx.NodeProto], made: set[str]) -> list[str]:
        """Inputs of the code: those of the model, then what was made before."""
        read = {name for node in code for name in (*node.input, *(n for g in _graphs(node) for n in g))}
        first = [i.name for i in self.given if i.name in read]
        return [*first, *sorted(n for n in read if n in self.makers and n not in made and n not in self.constants)]

    def _read_constants(self, nodes: list[onnx.NodeProto]) -> dict[str, Any]:
        """What steps read of constants, and constants that no node gives as results."""
        names = {name for node in nodes for name in node.input if name in self.constants}
        given = {i.name for i in self.given}
        names |= {o.name for o in self.graph.output if o.name in self.constants.keys() - self.makers.keys() - given}
        return {name: _listed(self.constants[name], self.folder) for name in sorted(names)}

    def _value(self, info: onnx.ValueInfoProto) -> Value:
        if is_map(info):
            return Value(info.name, MAP)
        kind = TEXT if is_text(info) or info.name in self.texts else NUMBERS
        return Value(info.name, kind, _shape(info))

    def _model(self, parts: _Parts, passed: list[str], results: list[str]) -> onnx.ModelProto:
        """The numbers: the graph between inputs and results."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        del graph.node[:], graph.input[:], graph.output[:], graph.initializer[:]
        kept = [v for v in graph.value_info if v.name not in self.texts]
        del graph.value_info[:]
        graph.value_info.extend(kept)
        graph.input.extend(self._inputs(passed, parts.before))
        read = {name for node in parts.code for name in (*node.input, *(n for g in _graphs(node) for n in g))}
        for tensor in self.graph.initializer:
            if tensor.name in read or tensor.name in results:
                graph.initializer.append(self.words.tensor(tensor) if tensor.data_type == STRING else tensor)
        graph.node.extend(encoded(node, self.words, self.texts) for node in parts.code)
        declared = {o.name: o for o in (*self.graph.output, *self.graph.value_info)}
        graph.output.extend(self._output(name, declared.get(name)) for name in results)
        for entry in model.opset_import:
            if entry.domain == "ai.onnx.ml":
                entry.version = max(entry.version, _LABELS)
        return model

    def _inputs(self, passed: list[str], before: list[onnx.NodeProto]) -> list[onnx.ValueInfoProto]:
        infos = {i.name: i for i in self.given}
        shapes: dict[str, Shape] = {i.name: self._fixed(i) for i in self.given}
        numbers = {i.name: i.type.tensor_type.elem_type for i in self.given}
        read = {name for node in before for name in node.input if name in self.constants}
        known = {name: _array(self.constants[name], self.folder) for name in read}
        shapes |= {name: array.shape for name, array in known.items()}
        for node in before:
            shapes.update(zip(node.output, shapes_of(node, shapes, known), strict=False))
            first = numbers.get(node.input[0], _I64)
            kinds = [result_number(node, self.maps, first), _I64]
            numbers.update(zip(node.output, kinds, strict=False))
        result = []
        for name in passed:
            number = _I64 if name in self.texts else numbers[name]
            if name in infos and name not in self.texts:
                result.append(infos[name])
                continue
            result.append(
                helper.make_tensor_value_info(
                    name, number, [n if isinstance(n, int) else n or f"{name}[{d}]" for d, n in enumerate(shapes[name])]
                )
            )
        return result

    def _fixed(self, info: onnx.ValueInfoProto) -> Shape:
        """The shape of an input with the sizes that are given."""
        whole = self.shapes.get(info.name)
        if isinstance(whole, Sequence) and all(isinstance(n, int) for n in whole):
            return tuple(whole)
        sizes = {name: n for name, n in self.shapes.items() if isinstance(n, int)}
        return tuple(sizes.get(n, n) if isinstance(n, str) else n for n in _shape(info))

    def _output(self, name: str, info: onnx.ValueInfoProto | None) -> onnx.ValueInfoProto:
        if info is None or not info.type.HasField("tensor_type"):
            return onnx.ValueInfoProto(name=name) if name not in self.texts else _of_codes(name)
        if name not in self.texts:
            return info
        result = _of_codes(name)
        if info.type.tensor_type.HasField("shape"):
            result.type.tensor_type.shape.CopyFrom(info.type.tensor_type.shape)
        return result


def _of_codes(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _I64, None)


def _shape(info: onnx.ValueInfoProto) -> Shape:
    dims = info.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims)


def _graphs(node: onnx.NodeProto) -> list[set[str]]:
    """The names that a node's subgraphs read."""
    from tilewright.frontend.onnx.scope import read_names

    return [set(read_names(a.g.node)) for a in node.attribute if a.HasField("g")]


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The value of a Constant that steps may read."""
    if node.op_type != "Constant" or len(node.attribute) != 1:
        return None
    a = node.attribute[0]
    if a.HasField("t"):
        return a.t
    strings = list(a.strings) or ([a.s] if a.name == "value_string" else [])
    if strings:
        return helper.make_tensor("", STRING, [len(strings)] if a.strings else [], strings)
    numbers = {"value_ints": _I64, "value_int": _I64, "value_floats": 1, "value_float": 1}.get(a.name)
    if numbers is None:
        return None
    values = list(a.ints) or list(a.floats) or [a.i if a.name == "value_int" else a.f]
    return helper.make_tensor("", numbers, [len(values)] if a.name.endswith("s") else [], values)


def _array(tensor: onnx.TensorProto, folder: str) -> np.ndarray:
    if tensor.data_type == STRING:
        return np.array([s.decode() for s in tensor.string_data], object).reshape(tuple(tensor.dims))
    return initializer_array(tensor, folder)


def _listed(tensor: onnx.TensorProto, folder: str) -> dict[str, Any]:
    """A constant as JSON has it."""
    array = _array(tensor, folder)
    kind = "" if tensor.data_type == STRING else array.dtype.name
    return {"data": array.reshape(-1).tolist(), "dtype": kind, "shape": list(array.shape)}


def _map_kind(info: onnx.ValueInfoProto) -> str:
    """The element type of a map's values; empty for strings."""
    kind = info.type.map_type if info.type.HasField("map_type") else info.type.sequence_type.elem_type.map_type
    number = kind.value_type.tensor_type.elem_type
    return "" if number == STRING else numpy_kind(onnx.NodeProto(op_type="map"), number)
