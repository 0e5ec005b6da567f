# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes as steps that Python runs around the compiled code, and what is known of the shapes that they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.onnx.load import initializer_array
from tilewright.frontend.onnx.node import label
from tilewright.frontend.onnx.text.kinds import STRING, attribute
from tilewright.runtime.text.boundary import Step
from tilewright.runtime.text.patterns import nested
from tilewright.runtime.text.steps import STEPS, patterns_of

Shape = tuple[int | str | None, ...]
_MAP_KINDS = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": ""}


def is_step(node: onnx.NodeProto) -> bool:
    """Whether Python can run a node."""
    return node.op_type in STEPS


def step_of(node: onnx.NodeProto, kinds: dict[str, str]) -> Step:
    """A node as a step.

    Args:
        node: of an operator that Python can run.
        kinds: the element type of the values of each map, by name; empty for strings.

    Raises:
        UnsupportedError: an element type that NumPy does not have, or a pattern that Python reads in another way.
    """
    given = {a.name: _plain(a) for a in node.attribute}
    if node.op_type == "Cast":
        given = {"kind": "" if given["to"] == STRING else numpy_kind(node, given["to"])}
    elif node.op_type == "ZipMap":
        given = {"labels": given.get("classlabels_strings") or given.get("classlabels_int64s") or []}
    elif node.op_type == "DictVectorizer":
        keys = given.get("string_vocabulary") or given.get("int64_vocabulary") or []
        given = {"keys": keys, "kind": kinds.get(node.input[0], "float32")}
    elif node.op_type == "CastMap":
        given["kind"] = _MAP_KINDS[given.get("cast_to", "TO_FLOAT")]
    try:
        patterns_of(node.op_type, given)
    except UnsupportedError as error:
        raise UnsupportedError(f"{node.op_type}: {error.message}", location=label(node)) from None
    return Step(node.op_type, tuple(node.input), tuple(node.output), given, label(node))


def remarks_of(steps: Iterable[Step]) -> dict[str, str]:
    """What a user should know of slow steps, by the node's name."""
    found = {}
    for step in steps:
        slow = next((p for p in patterns_of(step.op, step.attributes) if nested(p)), None)
        if slow is not None:
            found[step.label] = f"{slow!r} repeats a repetition: strings that nearly match take long, by their length"
    return found


def numpy_kind(node: onnx.NodeProto, number: int) -> str:
    """The name of an element type."""
    name = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name
    if name not in np.sctypeDict:
        raise UnsupportedError(f"{node.op_type}: strings do not become {name} here", location=label(node))
    return name


def result_number(node: onnx.NodeProto, kinds: dict[str, str], of_input: int) -> int:
    """The element type of a step's first result that holds numbers."""
    if node.op_type == "Cast":
        to = attribute(node, "to")
        return onnx.TensorProto.FLOAT if to is None else to.i
    if node.op_type == "RegexFullMatch":
        return onnx.TensorProto.BOOL
    if node.op_type in ("DictVectorizer", "CastMap"):
        kind = step_of(node, kinds).attributes["kind"]
        return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind or "int64"))
    return of_input


def _plain(a: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return initializer_array(value, "").tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value


def shapes_of(node: onnx.NodeProto, shapes: dict[str, Shape], constants: dict[str, np.ndarray]) -> list[Shape]:
    """The shapes of a step's results, None for each size that only a run knows."""
    first = shapes.get(node.input[0], ())
    name = node.op_type
    if name == "StringNormalizer":
        return [(*first[:-1], None)]
    if name == "StringSplit":
        return [(*first, None), first]
    if name == "Tokenizer":
        return [(*first, None)]
    if name in ("DictVectorizer", "CastMap"):
        return [_of_map(node)]
    if name in ("StringConcat", "Concat"):
        ranks = [len(shapes.get(i, ())) for i in node.input]
        return [(None,) * max(ranks)]
    if name == "Gather":
        axis = _int(node, "axis", 0) % max(len(first), 1)
        return [(*first[:axis], *shapes.get(node.input[1], ()), *first[axis + 1 :])]
    return [_moved(node, first, constants)]


def _of_map(node: onnx.NodeProto) -> Shape:
    keys = attribute(node, "string_vocabulary") or attribute(node, "int64_vocabulary")
    if keys is not None:
        return (1, len(keys.strings) or len(keys.ints))
    form, most = attribute(node, "map_form"), attribute(node, "max_map")
    return (1, most.i if form is not None and form.s == b"SPARSE" and most is not None else None)


def _moved(node: onnx.NodeProto, x: Shape, constants: dict[str, np.ndarray]) -> Shape:
    name = node.op_type
    if name == "Flatten":
        return (x[0] if _int(node, "axis", 1) == 1 and x else None, None)
    if name == "Transpose":
        perm = attribute(node, "perm")
        return tuple(x[d] for d in (perm.ints if perm is not None else reversed(range(len(x)))))
    if name in ("Reshape", "Squeeze", "Unsqueeze"):
        return _reshaped(node, x, constants)
    if name in ("Tile", "Expand"):
        return _repeated(node, x, constants)
    if name == "ArrayFeatureExtractor":
        indices = constants.get(node.input[1])
        rows = (1,) if len(x) == 1 else x[:-1]
        return (*rows, None if indices is None else indices.size)
    return x


def _repeated(node: onnx.NodeProto, x: Shape, constants: dict[str, np.ndarray]) -> Shape:
    given = constants.get(node.input[1])
    if given is None:
        raise UnsupportedError(f"{node.op_type} of strings by sizes that are computed", location=label(node))
    return (None,) * max(len(x), given.size)


def _int(node: onnx.NodeProto, name: str, default: int) -> int:
    found = attribute(node, name)
    return default if found is None else found.i


def _reshaped(node: onnx.NodeProto, x: Shape, constants: dict[str, np.ndarray]) -> Shape:
    given = constants.get(node.input[1]) if len(node.input) > 1 else None
    old = attribute(node, "axes")
    values = [int(n) for n in (given.reshape(-1) if given is not None else old.ints if old is not None else [])]
    if node.op_type == "Reshape":
        if given is None:
            raise UnsupportedError("Reshape of strings to a shape that is computed", location=label(node))
        return tuple(n if n > 0 else x[d] if n == 0 and d < len(x) else None for d, n in enumerate(values))
    if node.op_type == "Squeeze":
        dropped = {v % len(x) for v in values} if values else {d for d, n in enumerate(x) if n == 1}
        return tuple(n for d, n in enumerate(x) if d not in dropped)
    rank, rest = len(x) + len(values), iter(x)
    added = {v % rank for v in values}
    return tuple(1 if d in added else next(rest) for d in range(rank))
