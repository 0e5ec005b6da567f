# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Undefined registers: computing with them is no mistake, using what comes out is."""

import numpy as np
import pytest
from ptx_text import kernel, rule, run

from tilewright.sim import ptx as emulate

# %r5 has a value in odd threads only
SOME = """
  and.b32 %r1, %t, 1;
  setp.eq.u32 %p0, %r1, 1;
  @%p0 mov.u32 %r5, 7;
  mad.wide.u32 %rd10, %t, 4, %rd1;
"""


def _run(body):
    return run(kernel(SOME + body), [np.zeros(1), np.zeros(32, np.uint32)])[1]


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [%rd10], %r5;",
        "add.u32 %r6, %r5, 1; st.global.u32 [%rd10], %r6;",
        "mov.u32 %r6, %r5; mad.lo.u32 %r7, %r6, 3, %r1; st.global.u32 [%rd10], %r7;",
        "setp.eq.u32 %p2, %r5, 7; @%p2 st.global.u32 [%rd10], %t;",
        "mad.wide.u32 %rd11, %r5, 4, %rd1; st.global.u32 [%rd11], %t;",
        "shfl.sync.idx.b32 %r6, %r5, 0, 31, -1;",
    ],
)
def test_using_the_result_is_found(body):
    with pytest.raises(emulate.EmulationError, match="register") as excinfo:
        _run(body)
    assert rule(excinfo) == "uninitialised" and excinfo.value.thread % 2 == 0


def test_computing_and_dropping_is_allowed():
    out = _run("add.u32 %r6, %r5, 1;\n  mul.lo.u32 %r6, %r6, 2;\n  @%p0 st.global.u32 [%rd10], %r6;")
    np.testing.assert_array_equal(out, np.where(np.arange(32) % 2, 16, 0))


def test_a_value_written_later_is_a_value():
    out = _run("add.u32 %r6, %r5, 1;\n  mov.u32 %r6, 3;\n  st.global.u32 [%rd10], %r6;")
    assert (out == 3).all()
