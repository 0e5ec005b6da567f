# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that need strings or maps themselves: in Python, before the code and behind it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from text_models import BOOL, FLOAT, INT64, ML, MS, STRING, check, graph, node, one_map, value, words

import tilewright as tw
from tilewright.core.errors import UnsupportedError, UserError

TEXT = words("The cat sat on the mat", "a dog and a cat", "the CAT")


def vectorizer(tokens: dict, pool: list[str], **more):
    """As skl2onnx writes it: rows, one case, tokens, counts."""
    counts = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    nodes = [
        node("Reshape", "x flat", "rows"),
        node("StringNormalizer", "rows", "lower", case_change_action="LOWER", is_case_sensitive=0, **more),
        node("Tokenizer", "lower", "tokens", MS, mark=0, pad_value="#", mincharnum=1, **tokens),
        node("Flatten", "tokens", "table"),
        node("TfIdfVectorizer", "table", "y", **counts, pool_strings=pool, ngram_indexes=list(range(len(pool)))),
    ]
    constants = [numpy_helper.from_array(np.array([-1]), "flat")]
    return graph(nodes, [value("x", STRING, None, 1)], [value("y", FLOAT, None, len(pool))], constants)


@pytest.mark.parametrize(
    "tokens,pool",
    [
        ({"tokenexp": "[a-zA-Z0-9_]+"}, ["cat", "dog", "the", "mat"]),
        ({"tokenexp": "."}, ["a", "t", "#", " "]),
        ({"separators": ["[ ]"]}, ["cat", "dog", "the", "mat"]),
    ],
)
def test_words_counted(tokens, pool):
    model = vectorizer(tokens, pool, locale="C")
    x = TEXT.reshape(-1, 1)
    lower = [word.lower() for word in TEXT]
    split = [list(t) if tokens.get("tokenexp") == "." else t.split() for t in lower]
    width = max(map(len, split))
    padded = [row + ["#"] * (width - len(row)) for row in split]
    want = np.array([[row.count(word) for word in pool] for row in padded], np.float32)
    check(model, x, want=[want], target="cpu", shapes=None)  # how many tokens there are, a run says


def test_what_can_be_compiled_is_said_without_sizes():
    """How many tokens a run finds is no size that a user could give."""
    verdict = tw.check(vectorizer({"separators": ["[ ]"]}, ["cat", "dog"]))
    assert verdict
    assert verdict.assumed == ["tokens[0]", "tokens[1]"]


def test_strings_taken_apart():
    """Each step gives the code another input."""
    nodes = [
        node("StringConcat", "x tail", "joined"),
        node("RegexFullMatch", "joined", "hit", pattern=r"[a-z]+!"),
        node("Cast", "hit", "as_float", to=FLOAT),
        node("StringSplit", "x", "pieces count", delimiter=" "),
        node("Cast", "count", "number", to=FLOAT),
        node("Add", "as_float number", "y"),
        node("Equal", "pieces known", "same"),
    ]
    text = words("cat", "the dog", "12")
    constants = [helper_text("tail", "!"), helper_text("known", "dog")]
    outputs = [value("y", FLOAT, 3), value("same", BOOL, 3, None)]
    same = np.array([[False, False], [False, True], [False, False]])
    check(
        graph(nodes, [value("x", STRING, 3)], outputs, constants),
        text,
        want=[np.float32([2, 2, 1]), same],
        target="cpu",
        shapes=None,
    )


def helper_text(name: str, word: str):
    from onnx import helper

    return helper.make_tensor(name, STRING, [1], [word.encode()])


def test_casts():
    """A number is read before the code, and written behind it."""
    nodes = [node("Cast", "x", "n", to=FLOAT), node("Mul", "n n", "square"), node("Cast", "square", "y", to=STRING)]
    model = graph(nodes, [value("x", STRING, 4)], [value("y", STRING, 4)])
    compiled = check(model, words("1.5", "-2", "1e3", "0.1"))
    with pytest.raises(UserError, match="reads a number from 'two'"):
        compiled(words("1", "two", "3", "4"))


def test_casts_of_whole_numbers():
    nodes = [node("Cast", "x", "n", to=INT64), node("Add", "n n", "twice"), node("Cast", "twice", "y", to=STRING)]
    check(graph(nodes, [value("x", STRING, 2)], [value("y", STRING, 2)]), words("12", "-7"))


def test_numbers_as_categories():
    """An input that becomes strings before it is looked up."""
    nodes = [
        node("Cast", "x", "text", to=STRING),
        node("LabelEncoder", "text", "y", ML, keys_strings=["3", "5"], values_int64s=[0, 1]),
    ]
    check(graph(nodes, [value("x", INT64, 3)], [value("y", INT64, 3)]), np.array([5, 3, 4]))


def test_maps():
    vectorized = {"string_vocabulary": ["a", "b", "c"]}
    nodes = [node("DictVectorizer", "x", "v", ML, **vectorized), node("Add", "v v", "y")]
    model = graph(nodes, [one_map("x", STRING, FLOAT)], [value("y", FLOAT, 1, 3)])
    compiled = check(model, {"a": 1.5, "c": 4.0, "d": 9.0}, target="cpu", shapes=None)
    with pytest.raises(UserError, match="input x takes a dict, got str"):
        compiled("a")
    for form, more in (("DENSE", {}), ("SPARSE", {"map_form": "SPARSE", "max_map": 5})):
        nodes = [node("CastMap", "x", "v", ML, cast_to="TO_FLOAT", **more), node("Add", "v v", "y")]
        model = graph(nodes, [one_map("x", INT64, FLOAT)], [value("y", FLOAT, 1, 5 if form == "SPARSE" else 2)])
        check(model, {3: 1.5, 1: 4.0}, target="cpu", shapes=None)


def test_nothing_to_compile():
    model = graph([node("StringConcat", "x x", "y")], [value("x", STRING, 2)], [value("y", STRING, 2)])
    assert tw.compile(model)(words("ab", "c"))[0].tolist() == ["abab", "cc"]


def test_strings_behind_the_code_are_at_the_end():
    nodes = [
        node("Relu", "x", "r"),
        node("Cast", "r", "text", to=STRING),
        node("LabelEncoder", "text", "y", ML, keys_strings=["1"], values_int64s=[2]),
    ]
    model = graph(nodes, [value("x", FLOAT, 3)], [value("y", INT64, 3)])
    with pytest.raises(UnsupportedError, match=r"LabelEncoder: .* of what Relu \(the_Relu_r\) computes in it"):
        tw.compile(model)


@pytest.mark.parametrize(("mover", "sizes"), [("Tile", [2]), ("Expand", [4])])
def test_repeated_before_the_code(mover, sizes):
    nodes = [
        node(mover, "x sizes", "many"),
        node("StringNormalizer", "many", "upper", case_change_action="UPPER"),
        node("LabelEncoder", "upper", "y", ML, keys_strings=["A", "B"], values_floats=[1.0, 2.0]),
    ]
    constants = [helper.make_tensor("sizes", INT64, [1], sizes)]
    given, want = (words("a", "b"), [1, 2, 1, 2]) if mover == "Tile" else (words("b"), [2] * 4)
    model = graph(nodes, [value("x", STRING, len(given))], [value("y", FLOAT, None)], constants)
    check(model, given, want=[np.array(want, np.float32)])


def test_saved_and_loaded(tmp_path):
    """The way around the code stands in the artifact."""
    nodes = [
        node("LabelEncoder", "x", "n", ML, keys_strings=["a", "b"], values_floats=[1.5, 2.5], default_float=0.0),
        node("Mul", "n n", "y"),
        node("ZipMap", "z", "likely", ML, classlabels_strings=["no", "yes"]),
        node("Concat", "y n", "z", axis=1),
    ]
    nodes = [nodes[0], nodes[1], nodes[3], nodes[2]]
    from text_models import rows_of_maps

    model = graph(nodes, [value("x", STRING, "rows", 1)], [rows_of_maps("likely", STRING)])
    compiled = tw.compile(model)
    loaded = tw.load(compiled.save(tmp_path / "text.tw"))
    for rows in (1, 3):
        x = words(*"abc"[:rows]).reshape(-1, 1)
        assert loaded(x)[0] == compiled(x)[0] == [{"no": v * v, "yes": v} for v in (1.5, 2.5, 0.0)[:rows]]
    assert str(loaded.inputs[0]) == "x: [rows, 1] string" and loaded.outputs[0].dtype == "map"


def test_inputs_are_made_up():
    """Strings for a trial run; maps are refused."""
    from tilewright.report.measure import random_inputs
    from tilewright.runtime import TensorSpec

    made = random_inputs([TensorSpec("x", "string", (2, 3))])["x"]
    assert made.shape == (2, 3) and set(made.reshape(-1)) <= {"0", "1"}
    with pytest.raises(UserError, match="input x is a dict"):
        random_inputs([TensorSpec("x", "map", ())])


def test_command_line(tmp_path, capsys):
    """Strings are made up and shown; what no file or comparison holds is said."""
    from tilewright.cli import main

    nodes = [
        node("LabelEncoder", "x", "n", ML, keys_strings=["0", "1"], values_floats=[1.5, 2.5], default_float=0.0),
        node("LabelEncoder", "x", "y", ML, keys_strings=["0", "1"], values_strings=["no", "yes"]),
        node("ZipMap", "n", "z", ML, classlabels_strings=["so"]),
    ]
    from text_models import rows_of_maps

    model = graph(nodes, [value("x", STRING, 2, 1)], [value("y", STRING, 2, 1), rows_of_maps("z", STRING)])
    path = tmp_path / "text.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["run", str(path), "--target", "reference"]) == 0
    said = capsys.readouterr().out
    assert "y: [2, 1] string  [" in said and "z: 2 dicts  {'so': " in said
    for more, why in ((["--compare", "onnxruntime"], "compares numbers"), (["-o", str(tmp_path / "y.npz")], "no .npz")):
        assert main(["run", str(path), "--target", "reference", *more]) != 0
        assert why in capsys.readouterr().err


def test_constants_in_files(tmp_path):
    """What steps read of constants may lie beside the model; a constant may be a result, too, that users own."""
    nodes = [
        node("StringConcat", "x x", "t"),
        node("Reshape", "t sizes", "u"),
        node("LabelEncoder", "u", "y", ML, keys_strings=["aa", "bb"], values_floats=[1.0, 2.0]),
    ]
    constants = [numpy_helper.from_array(np.array([2, -1]), "sizes"), helper_text("kind", "word")]
    outputs = [value("y", FLOAT, 2, 2), value("kind", STRING, 1)]
    model = graph(nodes, [value("x", STRING, 4)], outputs, constants)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    compiled = tw.compile(tmp_path / "m.onnx")
    for _ in range(2):
        y, kind = compiled(words("a", "b", "a", "b"))
        assert np.asarray(y).tolist() == [[1, 2], [1, 2]] and kind.tolist() == ["word"]
        kind[0] = "mine"


def test_numbers_that_steps_read():
    """Lists are numbers as for any model; what no type holds is an error of the input."""
    written = tw.compile(graph([node("Cast", "x", "y", to=STRING)], [value("x", INT64, 2)], [value("y", STRING, 2)]))
    assert written([1, 2])[0].tolist() == ["1", "2"]
    read = tw.compile(graph([node("Cast", "x", "y", to=INT64)], [value("x", STRING, 1)], [value("y", INT64, 1)]))
    for word in ("9" * 30, "1_0"):
        with pytest.raises(UserError, match="Cast"):
            read(words(word))


def test_picked_by_an_input():
    """What is picked has the indices' dimensions, though no constant says how many."""
    from tilewright.frontend.onnx.text import lowered

    nodes = [
        node("Gather", "x j", "picked"),
        node("RegexFullMatch", "picked", "hit", pattern="a+"),
        node("Not", "hit", "y"),
    ]
    inputs = [value("x", STRING, 3), value("j", INT64, "m", 2)]
    model, _ = lowered(graph(nodes, inputs, [value("y", BOOL, None, None)]))
    (hit,) = model.graph.input
    assert [d.dim_param or d.dim_value for d in hit.type.tensor_type.shape.dim] == ["m", 2]
