# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that kernels call: parameters, registers of their own, returns, functions that call functions."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import kernel_text, run

from tilewright.core.errors import UserError
from tilewright.sim.ptx.syntax.parser import parse

#: A place from on, and a number: threads from the third on return at once, others add the number.
ADD = """
.func add(.param .b64 add_param_0, .param .b32 add_param_1)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  mov.u32 %r0, %tid.x;
  setp.lt.u32 %p1, %r0, 3;
  @%p1 bra $go;
  ret;
$go:
  ld.param.b64 %d0, [add_param_0];
  ld.param.b32 %r1, [add_param_1];
  mul.wide.u32 %d1, %r0, 4;
  add.s64 %d0, %d0, %d1;
  ld.global.u32 %r2, [%d0];
  add.u32 %r2, %r2, %r1;
  st.global.u32 [%d0], %r2;
  ret;
}
"""
#: The same twice, by calls.
TWICE = """
.func twice(.param .b64 twice_param_0, .param .b32 twice_param_1)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.b64 %d0, [twice_param_0];
  ld.param.b32 %r1, [twice_param_1];
  CALLS
  ret;
}
"""


def call(name: str, *arguments: str) -> str:
    """As LLVM writes it: parameters of one name, in a scope of their own."""
    kinds = [".b64" if argument.startswith("%d") else ".b32" for argument in arguments]
    declared = "".join(f".param {kind} param{i}; " for i, kind in enumerate(kinds))
    stored = "".join(
        f"st.param{kind} [param{i}], {argument}; "
        for i, (kind, argument) in enumerate(zip(kinds, arguments, strict=True))
    )
    passed = ", ".join(f"param{i}" for i in range(len(arguments)))
    return f"{{ {declared}{stored}call.uni {name}, ({passed}); }}\n"


def text(body: str, *functions: str) -> str:
    """A kernel, and functions that stand behind it."""
    return kernel_text("ld.param.u64 %d0, [p0];\n" + body, threads=5) + "".join(functions)


def test_calls_with_other_arguments() -> None:
    """Registers of a function are no others' of the same name; who returned early goes on with the rest."""
    body = f"mov.u32 %r0, 10;\nmov.u32 %r1, 200;\nadd.s64 %d1, %d0, 8;\n{call('add', '%d0', '%r0')}bar.sync 0;\n"
    body += f"{call('add', '%d1', '%r1')}bar.sync 0;\n{call('add', '%d0', '%r0')}"
    (out,) = run(text(body, ADD), np.zeros(6, np.int32))
    np.testing.assert_array_equal(out, [20, 20, 220, 200, 200, 0])


def test_functions_call_functions() -> None:
    both = TWICE.replace("CALLS", call("add", "%d0", "%r1") * 2)
    body = f"mov.u32 %r0, 7;\n{call('twice', '%d0', '%r0')}bar.sync 0;\n{call('twice', '%d0', '%r0')}"
    (out,) = run(text(body, both, ADD), np.zeros(5, np.int32))
    np.testing.assert_array_equal(out, [28, 28, 28, 0, 0])


def test_wrong_calls() -> None:
    with pytest.raises(UserError, match="'add' has 2 parameters, the call others"):
        parse(text(call("add", "%d0"), ADD))
    again = TWICE.replace("CALLS", call("twice", "%d0", "%r1"))
    with pytest.raises(UserError, match="calls of 'twice' are nested more than 16 times"):
        parse(text(f"mov.u32 %r0, 7;\n{call('twice', '%d0', '%r0')}", again))
