# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in IR run as the values that the simulator takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.sim.coremesh.expressions import Binary, Const, Dim
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.program import Cores, Loop, Place, Program, Recv, Route, Send, Slot, Wait
from tilewright.sim.coremesh_ir.read import programs, read_program

CANNON = """
func.func @f(%a: tensor<{m}x{k}x{t}>, %b: tensor<{k}x{n}x{t}>) -> tensor<{m}x{n}x{t}> {{
  %r = coremesh.program "cannon" grid({p}, {p}) (%x = %a, %y = %b)
      : (tensor<{m}x{k}x{t}>, tensor<{k}x{n}x{t}>) -> tensor<{m}x{n}x{t}>
      attributes {{input_names = ["A", "B"], output_names = ["C"]}} {{
    coremesh.buffer @A : tensor<{mt}x{kt}x{t}> slots 2
    coremesh.buffer @B : tensor<{kt}x{nt}x{t}> slots 2
    coremesh.buffer @C : tensor<{mt}x{nt}x{t}>
    coremesh.route @left along x ring from (p + 1) mod {p}
    coremesh.route @up along y ring from (p + 1) mod {p}
    coremesh.place %x in @A block(y, (x + y) mod {p}) ring : tensor<{m}x{k}x{t}>
    coremesh.place %y in @B block((x + y) mod {p}, x) ring : tensor<{k}x{n}x{t}>
    coremesh.compute "zero" () to (@C) {{
      %zero = arith.constant dense<0.0> : tensor<{mt}x{nt}x{t}>
      coremesh.yield %zero : tensor<{mt}x{nt}x{t}>
    }}
    coremesh.loop {p} {{
      %0 = coremesh.send @A[i mod 2] on @left
      %1 = coremesh.send @B[i mod 2] on @up
      %2 = coremesh.recv @A[(i + 1) mod 2] from @left
      %3 = coremesh.recv @B[(i + 1) mod 2] from @up
      coremesh.compute "multiply" (%u = @A[i mod 2] : tensor<{mt}x{kt}x{t}>,
          %v = @B[i mod 2] : tensor<{kt}x{nt}x{t}>, %w = @C : tensor<{mt}x{nt}x{t}>) to (@C) {{
        %p = linalg.matmul ins(%u, %v : tensor<{mt}x{kt}x{t}>, tensor<{kt}x{nt}x{t}>)
            outs(%w : tensor<{mt}x{nt}x{t}>) -> tensor<{mt}x{nt}x{t}>
        coremesh.yield %p : tensor<{mt}x{nt}x{t}>
      }}
      coremesh.wait round %0, %1, %2, %3
    }}
    %c = coremesh.collect @C block(y, x) ring : tensor<{m}x{n}x{t}>
    coremesh.yield %c : tensor<{m}x{n}x{t}>
  }}
  return %r : tensor<{m}x{n}x{t}>
}}
"""


def cannon(p: int, m: int, k: int, n: int, t: str) -> str:
    """The product of m x k x n on p x p cores."""
    return CANNON.format(p=p, m=m, k=k, n=n, t=t, mt=-(-m // p), kt=-(-k // p), nt=-(-n // p))


def read(text: str) -> Program:
    with ir.Context():
        module = ir.Module.parse(text)
        return read_program(programs(module)[0])


@pytest.mark.parametrize("t", ["f32", "f16", "f64"])
@pytest.mark.parametrize(
    ("p", "m", "k", "n"), [(1, 3, 5, 2), (2, 4, 4, 4), (3, 7, 11, 5), (4, 13, 1, 6), (5, 11, 17, 23)]
)
def test_a_product(p, m, k, n, t):
    rng = np.random.default_rng(p)
    dtype = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[t]
    a, b = (rng.integers(-3, 4, size).astype(dtype) for size in ((m, k), (k, n)))
    out = run(read(cannon(p, m, k, n, t)), {"A": a, "B": b})
    assert out["C"].dtype == dtype
    np.testing.assert_array_equal(out["C"], a @ b)


def test_each_op_is_one_value():
    program = read(cannon(3, 7, 11, 5, "f32"))
    assert (program.name, program.height, program.width) == ("cannon", 3, 3)
    assert [(b.name, b.shape, b.slots, b.address) for b in program.buffers] == [
        ("A", (3, 4), 2, None),
        ("B", (4, 2), 2, None),
        ("C", (3, 2), 1, None),
    ]
    following = Binary("mod", Binary("+", Dim(0), Const(1)), Const(3))
    assert program.routes == (Route("left", "x", following, "ring"), Route("up", "y", following, "ring"))
    _, loop = program.body
    assert isinstance(loop, Loop) and loop.count == 3
    send, _, recv, _, compute, wait = loop.body
    assert send == Send(Cores(), "left", Slot("A", Binary("mod", Dim(2), Const(2))), "send0")
    assert isinstance(recv, Recv) and recv.token == "recv2" and recv.combine is None
    assert wait == Wait(("send0", "send1", "recv2", "recv3"), "round")
    assert compute.cost.macs == 3 * 4 * 2 and compute.cost.vector_calls == 4 * 2 and compute.cost.dtype_bits == 32
    assert program.outputs == (Place("C", (7, 5), Slot("C"), (Dim(0), Dim(1)), "ring"),)


def test_everything_that_the_dialect_has_is_read():
    text = (Path(__file__).parents[3] / "dialects/CoreMesh/ops.mlir").read_text()
    program = read(text)
    assert [b.address for b in program.buffers] == [64, None]
    assert program.routes[0].colors == (9, 10, 11) and program.routes[0].color == Binary("mod", Dim(0), Const(3))
    assert [place.name for place in program.inputs] == ["in0", "in1"]
    assert [place.name for place in program.outputs] == ["out0", "out1", "out1"]
    loop, zero, relay, wait = program.body
    send, _, inner, waited, both = loop.body
    assert send.cores == Cores((Binary("+", Dim(1), Const(-1)),), (Dim(0),), "ring")
    assert inner.body[0].combine == "max" and inner.body[1].overhead == ""
    assert waited.overhead == "round" and wait.overhead == "collective"
    assert (relay.incoming, relay.outgoing, relay.combine) == ("down", "root", "max")
    assert both.reads[0].buffer == "A" and [slot.buffer for slot in both.writes] == ["V", "A"]
    assert zero.cost.elements == 2 and zero.cost.vector_calls == 1


def test_what_is_no_program_is_refused():
    with ir.Context():
        module = ir.Module.parse("func.func @f() { return }")
        with pytest.raises(UserError, match="expected a coremesh.program, got func.func"):
            read_program(module.body.operations[0])
