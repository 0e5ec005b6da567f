# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes on strings as nodes on codes: a string in an attribute or a constant becomes its number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.core.errors import UserError
from tilewright.frontend.onnx.node import label
from tilewright.frontend.onnx.text.kinds import STRING, attribute

#: Attributes that hold strings: the name under which their codes stand.
_LISTS = {
    "keys_strings": "keys_int64s",
    "values_strings": "values_int64s",
    "cats_strings": "cats_int64s",
    "pool_strings": "pool_int64s",
    "value_strings": "value_ints",
}
_TENSORS = ("keys_tensor", "values_tensor", "default_tensor", "value")
_UNUSED = b"_Unused"  # what ai.onnx.ml gives for a number without a string


class Words:
    """The strings of a model, each with a code."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    @property
    def all(self) -> tuple[str, ...]:
        """In the order of their codes."""
        return tuple(self._codes)

    def code(self, word: str | bytes) -> int:
        """The code of a string."""
        text = word.decode() if isinstance(word, bytes) else word
        return self._codes.setdefault(text, len(self._codes))

    def codes(self, words: Iterable[str | bytes]) -> list[int]:
        """The codes of strings."""
        return [self.code(word) for word in words]

    def tensor(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        """A tensor of strings as one of codes."""
        array = np.array(self.codes(tensor.string_data), np.int64).reshape(tuple(tensor.dims))
        return numpy_helper.from_array(array, tensor.name)


def encoded(node: onnx.NodeProto, words: Words, texts: set[str]) -> onnx.NodeProto:
    """A node of the compiled graph that works on codes.

    Args:
        node: reads or gives strings, or neither.
        words: of the model; grows.
        texts: names of the values that are strings.

    Raises:
        UserError: its attributes do not fit each other.
    """
    if node.op_type == "Cast" and node.input[0] in texts:
        return helper.make_node("Identity", list(node.input), list(node.output), name=node.name)
    if node.op_type == "CategoryMapper" or (node.op_type == "LabelEncoder" and attribute(node, "classes_strings")):
        return _mapper(node, words, texts)
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    result.attribute.extend(_attribute(node, a, words, texts) for a in node.attribute)
    gives_text = node.output[0] in texts if node.output else False
    if node.op_type == "LabelEncoder" and gives_text and attribute(node, "default_tensor") is None:
        default = attribute(node, "default_string")
        kept = [a for a in result.attribute if a.name not in ("default_string", "default_int64")]
        del result.attribute[:]
        code = words.code(default.s if default is not None else _UNUSED)
        result.attribute.extend([*kept, helper.make_attribute("default_int64", code)])
    return result


def _attribute(node: onnx.NodeProto, a: onnx.AttributeProto, words: Words, texts: set[str]) -> onnx.AttributeProto:
    if a.name in _LISTS and a.strings:
        return helper.make_attribute(_LISTS[a.name], words.codes(a.strings))
    if a.name == "classlabels_strings" and a.strings:
        trees = node.op_type.startswith("TreeEnsemble")
        return helper.make_attribute("classlabels_int64s" if trees else "classlabels_ints", words.codes(a.strings))
    if a.name == "value_string":
        return helper.make_attribute("value_int", words.code(a.s))
    if a.name in _TENSORS and a.HasField("t") and a.t.data_type == STRING:
        return helper.make_attribute(a.name, words.tensor(a.t))
    return a


def _mapper(node: onnx.NodeProto, words: Words, texts: set[str]) -> onnx.NodeProto:
    """CategoryMapper, and the first version of LabelEncoder, as the present LabelEncoder."""
    strings = attribute(node, "cats_strings") or attribute(node, "classes_strings")
    names = [] if strings is None else words.codes(strings.strings)
    numbers = attribute(node, "cats_int64s")
    numbers = list(range(len(names))) if numbers is None else list(numbers.ints)
    if len(names) != len(numbers):
        raise UserError(f"{node.op_type}: {len(names)} strings, but {len(numbers)} numbers", location=label(node))
    default = attribute(node, "default_int64")
    given = {"keys_int64s": names, "values_int64s": numbers, "default_int64": -1 if default is None else default.i}
    if node.input[0] not in texts:
        text = attribute(node, "default_string")
        code = words.code(_UNUSED if text is None else text.s)
        given = {"keys_int64s": numbers, "values_int64s": names, "default_int64": code}
    inputs, outputs = list(node.input), list(node.output)
    return helper.make_node("LabelEncoder", inputs, outputs, name=node.name, domain="ai.onnx.ml", **given)
