# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of RE2 beside ONNX Runtime; what Python would read in another way is refused."""

from __future__ import annotations

import onnxruntime
import pytest
from text_models import BOOL, MS, STRING, check, graph, node, value, words

import tilewright as tw
from tilewright.core.errors import UnsupportedError
from tilewright.runtime.text.patterns import compiled, nested

SAMPLES = words("12", "١٢", "abc", "é", "É", " ", "\x0b", "xx", "x{,3}", "a\n", "a", "|", "[", "-", "_", "aa", "K", "")


def matching(pattern: str):
    return graph(
        [node("RegexFullMatch", "x", "y", pattern=pattern)], [value("x", STRING, None)], [value("y", BOOL, None)]
    )


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+",
        r"\w+",
        r"\W",
        r"\s",
        r"[\s]",
        r"\bé",
        r"\B",
        r"[[:alpha:]]+",
        "[a||b]",
        "[[a]",
        "[]a]",
        "x{,3}",
        "x{2}",
        "a$\n",
    ]
    + [r"a\z", r"\x{61}", "(?<n>a)", r"(?P<n>a)\n?", "(?i)k", "(?i)é", "(?i:A)+", "(?s).*", "(?m)a$\n", r"\_|\-"]
    + [r"(a|\()?a?", "a{1,}?"],
)
def test_like_re2(pattern):
    session = onnxruntime.InferenceSession(matching(pattern).SerializeToString())
    want = session.run(None, {"x": SAMPLES})[0].tolist()
    assert [compiled(pattern).fullmatch(word) is not None for word in SAMPLES] == want


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)a",
        r"(a)\1",
        "a++",
        "a**",
        "(?x)a b",
        r"\pL",
        "(",
        r"a\Z",
        "a(?i)b",
        r"\u0041",
        r"\Qa\E",
        "(?#c)a",
        "(?U)a+",
    ]
    + ["a{1001}", "(?P<n>a)(?P=n)", r"[\W]", r"[a-\d]", "[a--b]", "[[:^alpha:]]", "(?>a)", r"\12"],
)
def test_refused(pattern):
    with pytest.raises(UnsupportedError, match="the pattern .*write it with characters"):
        compiled(pattern)


def test_refused_when_compiled():
    with pytest.raises(UnsupportedError, match=r"RegexFullMatch: the pattern '\(\?=a\)a'") as error:
        tw.compile(matching("(?=a)a"))
    assert error.value.location == "the_RegexFullMatch_y"


@pytest.mark.parametrize("pattern,slow", [("(a+)+", True), ("((a|b*)c)+", True), ("(a+b)?", False), ("(ab)+c*", False)])
def test_repeated_repetitions(pattern, slow):
    assert nested(pattern) == slow


def cutting(**attributes):
    node_ = node("Tokenizer", "x", "y", MS, pad_value="#", mark=0, mincharnum=1, **attributes)
    return graph([node_], [value("x", STRING, 3)], [value("y", STRING, 3, None)])


@pytest.mark.parametrize(
    "attributes",
    [{"separators": ["(1|2)"]}, {"separators": ["b", "ab"]}, {"separators": ["ab", "b"]}, {"tokenexp": r"\w+"}],
)
def test_tokens(attributes):
    """Groups of a separator are no tokens; separators cut one after the other."""
    check(cutting(**attributes), words("a1b2c", "xab abé", "b"), target="cpu", shapes=None)


@pytest.mark.parametrize("separators", [["", "b"], ["x*"]])
def test_separators_of_nothing(separators):
    with pytest.raises(UnsupportedError, match="Tokenizer: the separator .* matches nothing at all"):
        tw.compile(cutting(separators=separators))
