# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If, Loop and Scan beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from support import compare, import_onnx, interpret, normalize

from tilewright.core.errors import UnsupportedError, UserError

F32 = np.float32


def parsed(text, opset=17):
    """A model in ONNX's text syntax."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def run(text, arrays, opset=17, normalized=True):
    """Import, interpret, compare with ONNX Runtime. Returns the text of the imported module."""
    model = parsed(text, opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, arrays)
    imported = import_onnx(model)
    assert imported.module.operation.verify()
    compare(interpret(imported, arrays), expected, 1e-5, 1e-6)
    text = str(imported.module)
    if normalized:
        compare(interpret(normalize(imported), arrays), expected, 1e-5, 1e-6)
    return text


IF = """
g (bool c, float[2,3] x, float[3] w) => (float[2,3] y) {
  y = If (c) <
    then_branch = t () => (float[2,3] a) { s = Add(x, w)  a = Relu(s) },
    else_branch = e () => (float[2,3] b) { b = Mul(x, w) }
  >
}
"""


@pytest.mark.parametrize("condition", [True, False])
def test_if_of_a_runtime_condition(condition):
    text = run(IF, {"c": np.array(condition), "x": np.float32([[1, -2, 3], [4, 5, -6]]), "w": np.float32([1, 2, 3])})
    assert "scf.if" in text


@pytest.mark.parametrize("condition", [1, 0])
def test_if_of_a_known_condition_leaves_one_branch(condition):
    text = IF.replace("(bool c, ", "(").replace(
        "  y = If", f"  k = Constant<value = int64 {{{condition}}}>()\n  c = Cast<to = 9>(k)\n  y = If", 1
    )
    text = run(text, {"x": np.ones((2, 3), F32), "w": np.float32([1, 2, 3])})
    assert "scf.if" not in text


@pytest.mark.parametrize("condition", [True, False])
def test_branches_of_different_sizes(condition):
    text = """
    g (bool c, float[4] x) => (float[n] y) {
      r = If (c) <
        then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[8] b) { b = Concat<axis = 0>(x, x) }
      >
      y = Mul(r, r)
    }
    """
    run(text, {"c": np.array(condition), "x": np.arange(4, dtype=F32)})


def test_branches_of_different_ranks_are_refused():
    text = """
    g (bool c, float[4] x) => (float[n] y) {
      y = If (c) <
        then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[2,2] b) { s = Constant<value = int64[2] {2, 2}>() b = Reshape(x, s) }
      >
    }
    """
    with pytest.raises(UnsupportedError, match=r"float32\[4\] and float32\[2, 2\], chosen at run time"):
        import_onnx(parsed(text))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("inner", [True, False])
def test_what_follows_branches_of_different_ranks_follows_in_each(size, inner):
    """The optional squeeze that exporters emit; the second choice is made within a branch that is known."""
    choice = """
      r = If (c) <
        then_branch = t () => (float[k] a) { a = Squeeze<axes = [0]>(w) },
        else_branch = e () => (float[k,4] b) { b = Identity(w) }
      >
    """
    if inner:
        choice = f"""
        yes = Constant<value = int64 {{1}}>()
        known = Cast<to = 9>(yes)
        r = If (known) < then_branch = g1 () => (float[k] r1) {{ {choice.replace("r =", "r0 =")} r1 = Neg(r0) }},
                         else_branch = g2 () => (float[k] r2) {{ r2 = Identity(x) }} >
        """
    text = f"""
    g (int64[2] s, float[4] x, float[{4 * size}] data) => (float y, float z) {{
      w = Reshape(data, s)
      h = Shape(w)
      zero = Constant<value = int64 {{0}}>()
      one = Constant<value = int64 {{1}}>()
      n = Gather(h, zero)
      c = Equal(n, one)
      {choice}
      q = Mul(r, x)
      z = ReduceSum<keepdims = 0>(q)
      v = Sub(q, z)
      y = ReduceMax<keepdims = 0>(v)
    }}
    """
    arrays = {"s": np.array([size, 4]), "x": np.arange(4, dtype=F32), "data": np.arange(4 * size, dtype=F32)}
    assert run(text, arrays, 12).count("scf.if") == 1


COUNTED = """
g (float[3] x) => (float[3] y, float[n,3] all) {
  n = Constant<value = int64 {5}>()
  yes = Constant<value = int64 {1}>()
  c = Cast<to = 9>(yes)
  y, all = Loop (n, c, x) <
    body = b (int64 i, bool go, float[3] s) => (bool more, float[3] t, float[3] u) {
      f = Cast<to = 1>(i)
      t = Add(s, f)
      u = Mul(t, x)
      more = Identity(go)
    }
  >
}
"""


def test_counted_loop():
    text = run(COUNTED, {"x": np.float32([1, 2, 3])})
    assert "scf.for" in text
    assert "scf.while" not in text
    assert "tensor<5x3xf32>" in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_loops(count):
    run(COUNTED.replace("{5}", f"{{{count}}}"), {"x": np.float32([1, 2, 3])})


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loop_of_a_runtime_count(count):
    text = COUNTED.replace("(float[3] x)", "(float[3] x, int64 n)").replace("n = Constant<value = int64 {5}>()", "")
    text = run(text, {"x": np.float32([1, 2, 3]), "n": np.array(count)})
    assert "scf.for" in text


WHILE = """
g (float[3] x, float limit, int64 n, bool begin) => (float[3] y, float[m] sums) {
  y, sums = Loop (n, begin, x) <
    body = b (int64 i, bool go, float[3] s) => (bool more, float[3] t, float u) {
      t = Add(s, x)
      u = ReduceSum<keepdims = 0>(t)
      more = Less(u, limit)
    }
  >
}
"""


@pytest.mark.parametrize(("limit", "count", "begin"), [(20, 100, True), (20, 3, True), (-1, 9, True), (20, 9, False)])
def test_while_loop(limit, count, begin):
    arrays = {"x": np.float32([1, 2, 3]), "limit": F32(limit), "n": np.array(count), "begin": np.array(begin)}
    text = run(WHILE, {k: np.asarray(v) for k, v in arrays.items()})
    assert "scf.while" in text


def test_loop_that_only_its_condition_ends():
    text = WHILE.replace("int64 n, ", "").replace("Loop (n, begin, x)", 'Loop ("", begin, x)')
    run(text, {"x": np.float32([1, 2, 3]), "limit": np.array(30, F32), "begin": np.array(True)})


GROWING = """
g (float[2] x, int64 n) => (float[m] y) {
  yes = Constant<value = int64 {1}>()
  c = Cast<to = 9>(yes)
  y = Loop (n, c, x) <
    body = b (int64 i, bool go, float[k] s) => (bool more, float[l] t) {
      d = Mul(x, x)
      t = Concat<axis = 0>(s, d)
      more = Identity(go)
    }
  >
}
"""


@pytest.mark.parametrize("count", [0, 3])
def test_state_that_grows(count):
    run(GROWING, {"x": np.float32([1, 2]), "n": np.array(count)})


def test_short_growing_loop_stays_static():
    text = GROWING.replace(", int64 n)", ")").replace("yes =", "n = Constant<value = int64 {3}>()\n  yes =", 1)
    assert "scf" not in run(text, {"x": np.float32([1, 2])})


def test_nested_loops_and_captures():
    text = """
    g (float[3] x, int64 n) => (float[3] y) {
      yes = Constant<value = int64 {1}>()
      c = Cast<to = 9>(yes)
      y = Loop (n, c, x) <
        body = b (int64 i, bool go, float[3] s) => (bool more, float[3] t) {
          more = Identity(go)
          f = Cast<to = 1>(i)
          t = Loop (i, go, s) <
            body = inner (int64 j, bool go2, float[3] r) => (bool more2, float[3] q) {
              g = Cast<to = 1>(j)
              h = Add(f, g)
              p = Mul(h, x)
              q = Add(r, p)
              more2 = Identity(go2)
            }
          >
        }
      >
    }
    """
    run(text, {"x": np.float32([1, 2, 3]), "n": np.array(4)})


def test_states_that_never_change_stay_known():
    """The shape that a body reads from an unchanged state is known."""
    text = """
    g (float[6] x, int64 n) => (float[2,3] y) {
      yes = Constant<value = int64 {1}>()
      c = Cast<to = 9>(yes)
      shape = Constant<value = int64[2] {2, 3}>()
      z = Reshape(x, shape)
      y, last = Loop (n, c, z, shape) <
        body = b (int64 i, bool go, float[2,3] s, int64[2] k) => (bool more, float[2,3] t, int64[2] k2) {
          w = Reshape(x, k)
          t = Add(s, w)
          k2 = Identity(k)
          more = Identity(go)
        }
      >
    }
    """
    run(text, {"x": np.arange(6, dtype=F32), "n": np.array(2)})


def test_loop_that_changes_rank_is_refused():
    text = GROWING.replace("t = Concat<axis = 0>(s, d)", "a = Constant<value = int64[1] {0}>() t = Unsqueeze(s, a)")
    with pytest.raises(UnsupportedError, match="number of dimensions of state 0"):
        import_onnx(parsed(text))


def test_wrong_number_of_states():
    model = parsed(COUNTED)
    del model.graph.node[3].input[2:]
    with pytest.raises((UserError, UnsupportedError)):
        import_onnx(model)


SCAN = """
g (float[3] s, float[4,3] x, float[3,4] z) => (float[3] last, float[4,3] y, float[3,4] w) {
  last, y, w = Scan <num_scan_inputs = 2, ATTRIBUTES
    body = b (float[3] t, float[3] a, float[3] c) => (float[3] u, float[3] p, float[3] q) {
      h = Mul(a, c)
      u = Add(t, h)
      p = Identity(u)
      q = Sub(u, a)
    }
  > (s, x, z)
}
"""


@pytest.mark.parametrize(
    "attributes",
    [
        "scan_input_axes = [0, 1], scan_output_axes = [0, 1],",
        "scan_input_axes = [0, -1], scan_output_axes = [0, -1], scan_input_directions = [1, 0],",
        "scan_input_axes = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [0, 1],",
    ],
)
def test_scan(attributes):
    random = np.random.default_rng(0)
    shapes = {"s": (3,), "x": (4, 3), "z": (3, 4)}
    arrays = {n: random.standard_normal(s).astype(F32) for n, s in shapes.items()}
    run(SCAN.replace("ATTRIBUTES", attributes), arrays)


@pytest.mark.parametrize("count", [1, 3])
def test_scan_of_a_run_time_length(count):
    text = """
    g (float[4] x, float s) => (float last, float[n] sums, float[n,2] pairs) {
      p = NonZero(x)
      t = Transpose(p)
      v = GatherND(x, t)
      last, sums, pairs = Scan <num_scan_inputs = 1,
        body = b (float a, float e) => (float c, float d, float[2] f) {
          c = Add(a, e)
          d = Identity(c)
          z = Constant<value = int64[1] {0}>()
          g = Unsqueeze(c, z)
          h = Unsqueeze(e, z)
          f = Concat<axis = 0>(g, h)
        }
      > (s, v)
    }
    """
    x = np.zeros(4, F32)
    x[1 : 1 + count] = [5, 6, 7][:count]
    assert "scf.for" in run(text, {"x": x, "s": np.array(1, F32)})


def test_rows_whose_sizes_are_known_in_the_loop_only():
    """The branches of the body differ in size, and so do the types of rows, which are all alike when it runs."""
    text = """
    g (float[4] x, int64 n, bool wide) => (float[n,m] y) {
      yes = Constant<value = int64 {1}>()
      go0 = Cast<to = 9>(yes)
      y = Loop (n, go0) <
        body = b (int64 i, bool go) => (bool more, float[k] r) {
          more = Identity(go)
          r = If (wide) <
            then_branch = t () => (float[8] p) { p = Concat<axis = 0>(x, x) },
            else_branch = e () => (float[4] q) { f = Cast<to = 1>(i)  q = Mul(x, f) }
          >
        }
      >
    }
    """
    for wide in (True, False):
        run(text, {"x": np.arange(4, dtype=F32), "n": np.array(3), "wide": np.array(wide)})


@pytest.mark.parametrize("lengths", [None, [4, 2, 0]])
def test_scan_of_a_batch(lengths):
    given = "" if lengths is None else ", int64[3] n"
    text = f"""
    g (float[3,2] s, float[3,4,2] x{given}) => (float[3,2] last, float[3,4,2] y) {{
      last, y = Scan <num_scan_inputs = 1, directions = [1],
        body = b (float[2] t, float[2] a) => (float[2] u, float[2] p) {{
          u = Add(t, a)
          p = Identity(u)
        }}
      > ({'""' if lengths is None else "n"}, s, x)
    }}
    """
    random = np.random.default_rng(0)
    arrays = {"s": random.standard_normal((3, 2)).astype(F32), "x": random.standard_normal((3, 4, 2)).astype(F32)}
    if lengths is not None:
        arrays["n"] = np.array(lengths)
    imported = import_onnx(parsed(text, 8))
    last, y = interpret(imported, arrays)
    for entry in range(3):
        count = 4 if lengths is None else lengths[entry]
        state, expected = arrays["s"][entry], np.zeros((4, 2), F32)
        for i in range(count):
            state = state + arrays["x"][entry, count - 1 - i]
            expected[i] = state
        np.testing.assert_allclose(last[entry], state, rtol=1e-6)
        np.testing.assert_allclose(y[entry], expected, rtol=1e-6)


def test_initializers_of_subgraphs():
    model = parsed(COUNTED)
    body = model.graph.node[3].attribute[0].g
    body.node[1].input[1] = "offset"
    body.initializer.append(onnx.numpy_helper.from_array(np.float32([10, 20, 30]), "offset"))
    y, rows = interpret(import_onnx(model), {"x": np.float32([1, 2, 3])})
    np.testing.assert_array_equal(y, [51, 102, 153])
    assert rows.shape == (5, 3)


@pytest.mark.parametrize("bound", [10, 1 << 40])
def test_room_for_a_loop_that_ends_early(bound):
    """Few iterations get their room before the loop; for a bound that is no real one the result grows."""
    text = WHILE.replace("int64 n, ", "").replace("{\n", f"{{\n  n = Constant<value = int64 {{{bound}}}>()\n", 1)
    arrays = {"x": np.float32([1, 2, 3]), "limit": np.array(20, F32), "begin": np.array(True)}
    assert ("tensor<10xf32>" in run(text, arrays)) == (bound == 10)


def test_slow_code_has_remarks():
    endless = WHILE.replace("int64 n, ", "").replace("Loop (n, begin, x)", 'Loop ("", begin, x)')
    assert "grows by a copy per iteration" in import_onnx(parsed(endless)).remarks["y"]
    assert not import_onnx(parsed(COUNTED)).remarks


def test_import_is_deterministic():
    assert str(import_onnx(parsed(WHILE)).module) == str(import_onnx(parsed(WHILE)).module)
