# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops in loops that start from the outer one's state: in place where nothing else reads it, from a copy elsewhere."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx.reference
import pytest

import tilewright as tw

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
nested (float[6] x) => (float[6] y) {{
  n = Constant <value_int = 3> ()
  m = Constant <value_int = 4> ()
  go = Constant <value = bool {{1}}> ()
  y = Loop (n, go, x) <body = outer (int64 i, bool c, float[6] s) => (bool d, float[6] r) {{
    d = Identity (c)
    t = Loop (m, c, s) <body = inner (int64 j, bool e, float[6] u) => (bool f, float[6] v) {{
      f = Identity (e)
      {step}
    }}>
    r = {next}
  }}>
}}
"""
#: Each step of the inner loop.
STEPS = {
    "element": "z = Constant <value_ints = [0]> () k = Unsqueeze (j, z) q = Constant <value_floats = [2.5]> () "
    "v = ScatterElements (u, k, q)",
    "branch": "total = ReduceSum <keepdims = 0> (u) limit = Constant <value_float = 9.0> () low = Less (total, limit) "
    "v = If (low) <then_branch = more () => (float[6] a) { one = Constant <value_float = 1.0> () a = Add (u, one) }, "
    "else_branch = same () => (float[6] b) { b = Identity (u) }>",
}
NEXT = {"in place": "Identity (t)", "read later": "Add (t, s)"}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("following", NEXT)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a"])
def test_nested_loops(step: str, following: str, target: str) -> None:
    model = onnx.parser.parse_model(MODEL.format(step=STEPS[step], next=NEXT[following]))
    x = np.random.default_rng(31).standard_normal(6).astype(np.float32)
    want = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    options = {} if target == "cpu" else {"emulate": True}
    np.testing.assert_allclose(tw.compile(model, target, **options)(x)[0], want, rtol=1e-6)
