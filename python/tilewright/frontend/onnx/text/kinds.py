# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of a graph are strings or maps."""

from __future__ import annotations

import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.onnx.load import subgraphs_of
from tilewright.frontend.onnx.node import label

STRING = onnx.TensorProto.STRING

#: Operators that only move elements: the positions of the inputs that they move.
_MOVES = {
    **dict.fromkeys(("Identity", "Reshape", "Squeeze", "Unsqueeze", "Gather", "GatherND", "GatherElements"), (0,)),
    **dict.fromkeys(("Transpose", "Flatten", "Slice", "Expand", "Tile", "Split", "Compress"), (0,)),
    "ArrayFeatureExtractor": (0,),
    "Where": (1, 2),
}
#: Operators on strings that see only whether they are equal, or how many they are: codes do.
_COMPARES = {"Equal", "LabelEncoder", "CategoryMapper", "OneHotEncoder", "TfIdfVectorizer", "Shape", "Size"}
#: Operators that need the strings (or maps) themselves.
NEEDS = {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "Tokenizer"}
MAPS = {"ZipMap", "DictVectorizer", "CastMap"}


def attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    """An attribute of a node."""
    return next((a for a in node.attribute if a.name == name), None)


def has_strings(node: onnx.NodeProto, *names: str) -> bool:
    """Whether one of these attributes holds strings."""
    found = [a for a in node.attribute if a.name in names]
    return any(a.strings or (a.HasField("t") and a.t.data_type == STRING) for a in found)


def is_text(value: onnx.ValueInfoProto) -> bool:
    """Whether a value is declared as a tensor of strings."""
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type == STRING


def is_map(value: onnx.ValueInfoProto) -> bool:
    """Whether a value is declared as a map, or a sequence of maps."""
    kind = value.type
    return kind.HasField("map_type") or (
        kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("map_type")
    )


def concerns(model: onnx.ModelProto) -> bool:
    """Whether a model has strings or maps anywhere in its main graph."""
    graph = model.graph
    if any(is_text(v) or is_map(v) for v in (*graph.input, *graph.output)):
        return True
    if any(t.data_type == STRING for t in graph.initializer):
        return True
    return any(n.op_type in NEEDS | MAPS or _gives_text(n, set()) or _holds_text(n) for n in graph.node)


def _holds_text(node: onnx.NodeProto) -> bool:
    names = ("keys_strings", "keys_tensor", "cats_strings", "pool_strings", "classes_strings")
    return has_strings(node, *names) and node.op_type in _COMPARES


def text_values(graph: onnx.GraphProto) -> set[str]:
    """The names of all values that are strings.

    Raises:
        UnsupportedError: strings go into a node that has no meaning on codes, or into a subgraph.
    """
    texts = {v.name for v in graph.input if is_text(v)} | {t.name for t in graph.initializer if t.data_type == STRING}
    for node in graph.node:
        if _gives_text(node, texts):
            texts |= set(node.output if node.op_type in _MOVES or node.op_type == "Concat" else node.output[:1])
        _require_meaning(node, texts)
    return texts


def _gives_text(node: onnx.NodeProto, texts: set[str]) -> bool:
    """Whether the first result is strings."""
    name, inputs = node.op_type, node.input
    if name in _MOVES:
        return any(inputs[i] in texts for i in _MOVES[name] if i < len(inputs))
    if name == "Concat":
        return any(i in texts for i in inputs)
    if name == "Constant":
        return has_strings(node, "value", "value_strings") or attribute(node, "value_string") is not None
    if name == "Cast":
        to = attribute(node, "to")
        return to is not None and to.i == STRING
    if name in ("LabelEncoder", "CategoryMapper"):
        return _labels(node, texts)
    if name == "CastMap":
        to = attribute(node, "cast_to")
        return to is not None and to.s == b"TO_STRING"
    return name in NEEDS - {"RegexFullMatch"} or (
        name.endswith("Classifier") and has_strings(node, "classlabels_strings")
    )


def _labels(node: onnx.NodeProto, texts: set[str]) -> bool:
    if node.op_type == "LabelEncoder" and attribute(node, "classes_strings") is None:
        return has_strings(node, "values_strings", "values_tensor")
    return node.input[0] not in texts


def _require_meaning(node: onnx.NodeProto, texts: set[str]) -> None:
    known = {*_MOVES, *_COMPARES, *NEEDS, *MAPS, "Concat", "Cast"}
    read = [name for name in node.input if name in texts]
    inner = [n for g in subgraphs_of(node) for n in _names(g) if n in texts]
    if inner or (read and node.op_type not in known):
        where = f"a subgraph of it reads {inner[0]}" if inner else f"it reads {read[0]}"
        raise UnsupportedError(
            f"{node.op_type}: {where}, which holds strings, and has no meaning on them here; strings may be moved, "
            "compared, looked up (LabelEncoder, OneHotEncoder, ...) and taken apart before the numbers begin",
            location=label(node),
        )


def _names(graph: onnx.GraphProto) -> set[str]:
    found = {name for node in graph.node for name in node.input}
    return found.union(*(_names(g) for node in graph.node for g in subgraphs_of(node)))
