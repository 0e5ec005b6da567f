# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on strings as operators on codes, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from text_models import FLOAT, INT64, ML, STRING, check, graph, node, rows_of_maps, value, words

from tilewright.core.errors import UnsupportedError, UserError

COLOURS = words("red", "blue", "mauve", "red")  # one that no model knows


def encoder(x: int, y: int, ml: int = 3, op: str = "LabelEncoder", **attributes):
    return graph([node(op, "x", "y", ML, **attributes)], [value("x", x, 4)], [value("y", y, 4)], ml=ml)


def test_label_encoder():
    keys, numbers = ["red", "green", "blue"], [3, 1, 2]
    check(encoder(STRING, INT64, keys_strings=keys, values_int64s=numbers), COLOURS)
    check(encoder(STRING, INT64, keys_strings=keys, values_int64s=numbers, default_int64=7), COLOURS)
    check(encoder(STRING, STRING, keys_strings=keys, values_strings=["r", "g", "b"]), COLOURS)
    floats = {"values_floats": [0.5, 1.5, 2.5], "default_float": -1.0}
    check(encoder(STRING, FLOAT, keys_strings=keys, **floats), COLOURS)
    backwards = {"keys_int64s": numbers, "values_strings": keys, "default_string": "?"}
    check(encoder(INT64, STRING, **backwards), np.array([1, 2, 3, 4]))


def test_label_encoder_of_tensors():
    keys = helper.make_tensor("k", STRING, [2], [b"red", b"blue"])
    values, default = numpy_helper.from_array(np.array([5, 6])), numpy_helper.from_array(np.array([-9]))
    given = {"keys_tensor": keys, "values_tensor": values, "default_tensor": default}
    check(encoder(STRING, INT64, ml=4, **given), COLOURS, want=[np.array([5, 6, -9, 5])])
    given = {"keys_tensor": values, "values_tensor": keys, "default_string": "?"}
    check(encoder(INT64, STRING, ml=4, **given), np.array([6, 5, 4, 5]), want=[words("blue", "red", "?", "red")])


def test_old_encoders():
    check(encoder(STRING, INT64, ml=1, classes_strings=["blue", "red"]), COLOURS)
    check(encoder(INT64, STRING, ml=1, classes_strings=["blue", "red"]), np.array([1, 0, 3, 1]))
    mapped = {"op": "CategoryMapper", "cats_strings": ["red", "blue"], "cats_int64s": [4, 5]}
    check(encoder(STRING, INT64, **mapped), COLOURS)
    check(encoder(INT64, STRING, **mapped), np.array([4, 5, 6, 4]))


def test_one_hot_encoder():
    nodes = [node("OneHotEncoder", "x", "y", ML, cats_strings=["blue", "red"], zeros=1)]
    check(graph(nodes, [value("x", STRING, 4)], [value("y", FLOAT, 4, 2)]), COLOURS)


def test_moves_and_comparisons():
    """Strings that the model does not know come out as they went in."""
    nodes = [
        node("Equal", "x known", "hit"),
        node("Where", "hit other x", "chosen"),
        node("Concat", "chosen other", "long", axis=0),
        node("Gather", "long places", "y"),
        node("Shape", "x", "n"),
    ]
    constants = [
        helper.make_tensor("known", STRING, [1], [b"red"]),
        helper.make_tensor("other", STRING, [4], [b"a", b"b", b"c", "ä".encode()]),
        numpy_helper.from_array(np.array([[7, 0], [2, 3]]), "places"),
    ]
    outputs = [value("y", STRING, 2, 2), value("hit", 9, 4), value("n", INT64, 1)]
    check(graph(nodes, [value("x", STRING, 4)], outputs, constants), COLOURS)


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["no", "yes", "so"]}, {"classlabels_ints": [4, 9, 7]}])
def test_classifier_with_maps(labels):
    random = np.random.default_rng(0)
    x, weights = random.standard_normal((5, 4)).astype(np.float32), random.standard_normal(12).tolist()
    key = STRING if "classlabels_strings" in labels else INT64
    zipped = {name.replace("ints", "int64s"): values for name, values in labels.items()}
    classifier = {"coefficients": weights, "intercepts": [0.1, 0.2, 0.3], "post_transform": "SOFTMAX"}
    nodes = [
        node("LinearClassifier", "x", "label scores", ML, **classifier, **labels),
        node("ZipMap", "scores", "likely", ML, **zipped),
    ]
    outputs = [value("label", key, 5), rows_of_maps("likely", key)]
    compiled = check(graph(nodes, [value("x", FLOAT, 5, 4)], outputs), x)
    assert [spec.dtype for spec in compiled.outputs] == ["string" if key == STRING else "i64", "map"]


def test_labels_of_few_scores():
    """Two labels, one score."""
    given = {"coefficients": [1.0, -2.0], "intercepts": [0.1], "classlabels_strings": ["no", "yes"]}
    nodes = [node("LinearClassifier", "x", "label scores", ML, post_transform="LOGISTIC", **given)]
    x = np.random.default_rng(1).standard_normal((6, 2)).astype(np.float32)
    outputs = [value("label", STRING, 6), value("scores", FLOAT, 6, 2)]
    check(graph(nodes, [value("x", FLOAT, 6, 2)], outputs), x)


def test_strings_without_a_meaning():
    nodes = [node("Unique", "x", "y")]
    with pytest.raises(UnsupportedError, match="Unique: it reads x, which holds strings"):
        check(graph(nodes, [value("x", STRING, 4)], [value("y", STRING, None)]), COLOURS, want=[])


def test_what_a_call_gets_wrong():
    model = check(encoder(STRING, INT64, keys_strings=["red"], values_int64s=[1]), COLOURS)
    with pytest.raises(UserError, match="takes strings, got int"):
        model(np.array([1, 2, 3, 4]))
    with pytest.raises(UserError, match=r"must have shape \[4\], got \[2\]"):
        model(["a", "b"])
    with pytest.raises(UserError, match="no input 'z'"):
        model(z=COLOURS)
    with pytest.raises(UserError, match="missing input x"):
        model()
    with pytest.raises(UserError, match="by position and by name"):
        model(COLOURS, x=COLOURS)
    with pytest.raises(UserError, match="out= takes numbers"):
        model(COLOURS, out=np.zeros(4, np.int64))
    assert model([b"red", "red", "x", "y"])[0].tolist() == [1, 1, -1, -1]
