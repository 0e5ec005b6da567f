# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of each node of a model, also where nodes cannot be imported."""

from __future__ import annotations

import pytest
from onnx import parser

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx
from tilewright.frontend.onnx.coverage import collect

HEADER = '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>'


def rows_of(text, functions=""):
    coverage = collect(parser.parse_model(f"{HEADER} {text} {functions}"))
    return coverage, {row.name: row for row in coverage.rows}


def test_kinds_and_types():
    coverage, rows = rows_of(
        """
        g (float[2,3] x, bool[2,3] m) => (float[2,3] y) {
          s = Shape(x)
          r = Relu(x)
          t = HardSwish(r)
          c = my.Twice(t)
          p = NonZero(m)
          y = Identity(c)
        }
        """,
        '<domain: "my", opset_import: ["" : 17]> Twice (a) => (b) { b = Add(a, a) }',
    )
    assert coverage.complete
    assert {n: row.kind for n, row in rows.items()} == {
        "s": "folded",
        "r": "operator",
        "t": "operator",
        "c": "model function",
        "c/b": "operator",
        "p": "operator",
        "y": "operator",
    }
    assert rows["y"].results == (("float32", (2, 3)),)
    assert rows["p"].results == (("int64", (2, None)),)
    assert (rows["c"].op, rows["c"].domain, rows["c"].version) == ("Twice", "my", 1)


FAILING = """
g (float[2,3] x, int64[1] k) => (float[2,3] y, float[2,3] z) {
  a = my.Unknown(x)
  b = Relu(a)
  c = ImageDecoder(b)
  y = Add(x, x)
  z = Identity(c)
}
"""


def test_the_import_goes_on_with_declared_types():
    text = FAILING.replace("(float[2,3] y, float[2,3] z) {", "(float[2,3] y, float[2,3] z) <float[2,3] a> {")
    coverage, rows = rows_of(text)
    assert not coverage.complete
    assert "no lowering" in rows["a"].reason
    assert rows["b"].results == (("float32", (2, 3)),)
    assert not rows["b"].reason
    assert rows["y"].kind == "operator"
    assert rows["z"].reason == "depends on a node that cannot be imported"
    assert [row.name for row in coverage.causes] == ["a", "c"]


def test_without_types_what_depends_is_said_to_depend():
    coverage, rows = rows_of(FAILING)
    assert [row.name for row in coverage.causes] == ["a"]
    assert "depends" in rows["b"].reason
    assert rows["b"].results == (None,)


def test_nodes_of_subgraphs_and_functions():
    coverage, rows = rows_of(
        """
        g (float[2,3] x, bool c) => (float[2,3] y) {
          f = my.Bad(x)
          y = If (c) <
            then_branch = t () => (float[2,3] p) { p = Relu(x) },
            else_branch = e () => (float[2,3] q) { r = my.Unknown(x)  q = Relu(r) }
          >
        }
        """,
        '<domain: "my", opset_import: ["" : 17]> Bad (a) => (b) { c = StringNormalizer(a)  b = Relu(c) }',
    )
    assert rows["y/p"].kind == "operator"
    assert "no lowering" in rows["y/r"].reason
    assert "no lowering" in rows["f/c"].reason
    assert rows["y"].kind == "operator"  # with the declared type of q in its place
    assert rows["f"].reason == "depends on a node that cannot be imported"
    assert not coverage.complete


def test_the_import_names_all_nodes_that_fail():
    text = """
    g (float[4,3] x, int64 k) => (float[n,3] y, float[m,3] z) {
      a = SplitToSequence(x, k)
      y = ConcatFromSequence<axis = 0>(a)
      b = SplitToSequence<axis = 1>(x, k)
      z = ConcatFromSequence<axis = 0>(b)
    }
    """
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(parser.parse_model(f"{HEADER} {text}"))
    message = str(caught.value)
    assert "2 nodes cannot be imported" in message
    assert "a (SplitToSequence): " in message
    assert "b (SplitToSequence): " in message
    assert "depends" not in message.replace("depends on the model's inputs", "")


def test_invalid_models_have_problems_beside_rows():
    coverage, rows = rows_of("g (float[2] x) => (float[2] y) { y = Relu(x)  y = Neg(x) }")
    assert coverage.problems
    assert not coverage.complete
    assert rows
    with pytest.raises(UserError, match="not an ONNX model"):
        collect(b"garbage")
