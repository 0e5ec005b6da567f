# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences and optionals, which the compiled program does not know."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from support import compare, import_onnx, interpret

from tilewright.core.errors import UnsupportedError, UserError

F32 = np.float32
X, Y, Z = np.arange(6, dtype=F32).reshape(2, 3), np.ones((2, 3), F32), np.full((4, 3), 2, F32)


def parsed(text, opset=17):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def run(text, arrays, opset=17):
    """Import, interpret, compare with ONNX Runtime; sequences among its results count as their tensors."""
    model = parsed(text, opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = [x for r in session.run(None, arrays) for x in (r if isinstance(r, list) else [r])]
    imported = import_onnx(model)
    assert imported.module.operation.verify()
    compare(interpret(imported, arrays), expected, 1e-6, 0)
    return imported


def position(value):
    return f"p = Constant<value = int64 {{{value}}}>()"


@pytest.mark.parametrize(
    "body",
    [
        "s = SequenceConstruct(x, z)  y = ConcatFromSequence<axis = 0>(s)",
        "s = SequenceConstruct(x, w, x)  y = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
        "e = SequenceEmpty()  s = SequenceInsert(e, x)  t = SequenceInsert(s, z)  y = ConcatFromSequence<axis = 0>(t)",
        position(-1) + "s = SequenceConstruct(x, z)  t = SequenceInsert(s, w, p)  y = ConcatFromSequence<axis = 0>(t)",
        position(0) + "s = SequenceConstruct(x, z)  t = SequenceErase(s, p)  y = ConcatFromSequence<axis = 0>(t)",
        "s = SequenceConstruct(x, z, w)  t = SequenceErase(s)  y = ConcatFromSequence<axis = 0>(t)",
        position(-2) + "s = SequenceConstruct(x, z, w)  y = SequenceAt(s, p)",
        "s = SequenceConstruct(x, z, w)  n = SequenceLength(s)  y = Cast<to = 1>(n)",
        position(1) + "s = SplitToSequence(z, p)  i = Identity(s)  y = ConcatFromSequence<axis = 1>(i)",
        position(3) + "s = SplitToSequence(z, p)  y = SequenceAt(s, q)",
        "s = SplitToSequence<axis = 1, keepdims = 0>(x)  y = ConcatFromSequence<axis = 0>(s)",
        "k = Constant<value = int64[2] {1, 3}>() s = SplitToSequence(z, k)  y = SequenceAt(s, q)",
    ],
)
def test_sequences(body):
    text = "g (float[2,3] x, float[2,3] w, float[4,3] z) => (float[...] y) { q = Constant<value = int64 {1}>() BODY }"
    text = text.replace("float[...] y", "float y" if "SequenceLength" in body else "y").replace("BODY", body)
    model = text.replace("(y)", "(float[a,b] y)").replace("[a,b] y", "[a,b,c] y" if "new_axis" in body else "[a,b] y")
    model = model.replace("float[a,b] y", "float[a] y") if "keepdims = 0" in body else model
    run(model, {"x": X, "w": Y, "z": Z})


@pytest.mark.parametrize("at", [0, 1, 2, -1])
def test_run_time_position(at):
    body = "s = SequenceConstruct(x, w, v)  y = SequenceAt(s, p)"
    text = f"g (float[2,3] x, float[2,3] w, float[2,3] v, int64 p) => (float[2,3] y) {{ {body} }}"
    run(text, {"x": X, "w": Y, "v": 3 * Y, "p": np.array(at)})


@pytest.mark.parametrize("at", [0, 1, -2])
def test_run_time_position_among_different_sizes(at):
    body = "s = SequenceConstruct(x, z)  a = SequenceAt(s, p)  i = SequenceInsert(s, x, p)  e = SequenceErase(i, p)"
    text = (
        f"g (float[2,3] x, float[4,3] z, int64 p) => (float[n,3] a, seq(float[m,3]) i, seq(float[k,3]) e) {{ {body} }}"
    )
    run(text, {"x": X, "z": Z, "p": np.array(at)})


def test_a_sequence_as_a_result_is_one_result_per_tensor():
    imported = run(
        "g (float[2,3] x, float[4,3] z) => (seq(float[n,3]) s) { s = SequenceConstruct(x, z) }", {"x": X, "z": Z}
    )
    assert [(o.name, o.shape) for o in imported.outputs] == [("s[0]", (2, 3)), ("s[1]", (4, 3))]


def test_a_sequence_as_an_input_takes_its_shapes_from_the_caller():
    model = parsed("g (seq(float[n,3]) s) => (float[m,3] y) { y = ConcatFromSequence<axis = 0>(s) }")
    with pytest.raises(UnsupportedError, match=r'shapes=\{"s": \[\[2, 3\], \[2, 3\]\]\}'):
        import_onnx(model)
    imported = import_onnx(model, shapes={"s": [[2, 3], [4, 3]]})
    assert [i.name for i in imported.inputs] == ["s[0]", "s[1]"]
    (y,) = interpret(imported, {"s[0]": X, "s[1]": Z})
    np.testing.assert_array_equal(y, np.concatenate([X, Z]))
    with pytest.raises(UserError, match=r"s\[0\] the shape \[2, 4\]"):
        import_onnx(model, shapes={"s": [[2, 4]]})


def test_a_loop_over_sequences_is_written_out():
    text = """
    g (float[2,3] x) => (float[m,3] y) {
      n = Constant<value = int64 {3}>()
      c = Cast<to = 9>(n)
      e = SequenceEmpty()
      s = Loop (n, c, e) <
        body = b (int64 i, bool go, seq(float[2,3]) t) => (bool more, seq(float[2,3]) u) {
          f = Cast<to = 1>(i)
          r = Add(x, f)
          u = SequenceInsert(t, r)
          more = Identity(go)
        }
      >
      y = ConcatFromSequence<axis = 0>(s)
    }
    """
    imported = run(text, {"x": X})
    assert "scf" not in str(imported.module)
    with pytest.raises(UnsupportedError, match="trip count and a condition that are known at compile time"):
        import_onnx(
            parsed(text.replace("(float[2,3] x)", "(float[2,3] x, int64 n)").replace("n = Constant", "k = Constant"))
        )


def test_sequence_map():
    text = """
    g (float[2,3] x, float[4,3] z, float[3] w) => (seq(float[n,3]) y, seq(float[n,3]) r) {
      s = SequenceConstruct(x, z)
      y, r = SequenceMap (s, w) <
        body = b (float[n,3] a, float[3] c) => (float[n,3] p, float[n,3] q) { p = Mul(a, c)  q = Sub(a, c) }
      >
    }
    """
    run(text, {"x": X, "z": Z, "w": np.float32([1, 2, 3])})


def test_branches_that_make_sequences():
    text = """
    g (bool c, float[2,3] x, float[4,3] z) => (seq(float[n,3]) y) {
      y = If (c) <
        then_branch = t () => (seq(float[n,3]) p) { p = SequenceConstruct(x, z) },
        else_branch = e () => (seq(float[n,3]) q) { q = SequenceConstruct(z, z) }
      >
    }
    """
    for condition in (True, False):
        run(text, {"c": np.array(condition), "x": X, "z": Z})
    longer = text.replace("q = SequenceConstruct(z, z)", "q = SequenceConstruct(z, z, z)")
    with pytest.raises(UnsupportedError, match="a sequence of 2 and a sequence of 3"):
        import_onnx(parsed(longer))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("e = SequenceEmpty()  y = ConcatFromSequence<axis = 0>(e)", "empty"),
        ("s = SequenceConstruct(x)  p = Constant<value = int64 {2}>()  y = SequenceAt(s, p)", "out of range"),
        ("s = SequenceConstruct(x)  y = Relu(s)", "takes tensors"),
    ],
)
def test_wrong_uses(body, message):
    with pytest.raises(UserError, match=f"{message}|invalid"):
        import_onnx(parsed(f"g (float[2,3] x) => (float[2,3] y) {{ {body} }}"))


def test_optionals():
    text = """
    g (float[2,3] x) => (float[2,3] y, bool some, bool none) {
      o = Optional(x)
      some = OptionalHasElement(o)
      y = OptionalGetElement(o)
      n = Optional<type = float[2,3]>()
      none = OptionalHasElement(n)
    }
    """
    y, some, none = interpret(import_onnx(parsed(text, 18)), {"x": X})
    np.testing.assert_array_equal(y, X)
    assert (some, none) == (True, False)


def test_optional_inputs_are_present_unless_the_caller_says_otherwise():
    text = "g (optional(float[2,3]) x) => (bool y) { y = OptionalHasElement(x) }"
    assert interpret(import_onnx(parsed(text, 18)), {"x": X})[0]
    absent = import_onnx(parsed(text, 18), shapes={"x": None})
    assert not absent.inputs
    assert not interpret(absent, {})[0]
