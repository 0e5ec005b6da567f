# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values become IR that verifies, prints as it parses, and reads back as the same values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.mlir.dialects import arith, func
from tilewright.sim.coremesh.expressions import Binary, Const, Dim
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Loop,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)
from tilewright.sim.coremesh_ir.expressions import to_affine, to_expression
from tilewright.sim.coremesh_ir.read import read_program
from tilewright.sim.coremesh_ir.write import write_program

Y, X, TURN = Dim(0), Dim(1), Dim(2)
NEXT = Binary("mod", Binary("+", Dim(0), Const(1)), Const(5))


def step(index: int) -> Binary:
    return Binary("mod", Binary("+", TURN, Const(index)) if index else TURN, Const(2))


def between(first: int, last: int) -> Cores:
    return Cores((Binary("+", X, Const(-first)), Binary("+", Binary("*", X, Const(-1)), Const(last))))


def at(column: int) -> Cores:
    return Cores(zero=(Binary("+", X, Const(-column)) if column else X,))


#: Tiles go once around, are doubled on the way, and are summed along each row into the last core.
PROGRAM = Program(
    "everything",
    3,
    5,
    (Buffer("A", (2, 3), np.dtype(np.float32), 2), Buffer("S", (2, 3), np.dtype(np.float32), 1, 96)),
    (
        Route("ring", "x", NEXT, "ring", (3, 4, 5), Binary("mod", Dim(0), Const(3))),
        Route("right", "x", Binary("+", Dim(0), Const(-1))),
    ),
    (Place("A", (5, 14), Slot("A"), (Y, X), "ring"), Place("S", (5, 14), Slot("S"), (Y, X))),
    (
        Place(
            "last",
            (5, 3),
            Slot("S"),
            (Y, Binary("+", Binary("*", X, Const(-1)), Const(4))),
        ),
        Place("both", (5, 14), Slot("A"), (Y, X), "ring"),
        Place("both", (5, 14), Slot("A", Const(1)), (Y, X), "ring"),
    ),
    (
        Loop(
            5,
            (
                Send(Cores(order="ring"), "ring", Slot("A", step(0)), "s"),
                Recv(Cores(order="ring"), "ring", Slot("A", step(1)), "s"),
                Wait(("s",), "round"),
            ),
        ),
        Send(at(0), "right", Slot("S"), "t"),
        Relay(between(1, 3), "right", "right", Slot("S"), "t"),
        Recv(at(4), "right", Slot("S"), "u", "add"),
        Wait(("t", "u"), "collective"),
        Compute(Cores(), "double", (Slot("A", Const(1)),), (Slot("A", Const(0)),), Cost(), lambda a: (a + a,)),
        Compute(Cores(), "double", (Slot("A", Const(0)),), (Slot("A", Const(1)),), Cost(), lambda a: (a,)),
    ),
)


def body(compute: Compute, arguments: list[ir.Value]) -> list[ir.Value]:
    (tile,) = arguments
    return [arith.addf(tile, tile) if compute.reads[0].index == Const(1) else tile]


def module_of(program: Program) -> ir.Module:
    """A function that is the program."""
    module = ir.Module.create()
    names = list(dict.fromkeys(place.name for place in program.inputs))
    shapes = {place.name: place.shape for place in program.inputs}
    with ir.InsertionPoint(module.body):
        types = [ir.RankedTensorType.get(shapes[name], ir.F32Type.get()) for name in names]
        function = func.FuncOp("f", (types, []))
        with ir.InsertionPoint(function.add_entry_block()):
            write_program(program, dict(zip(names, function.arguments, strict=True)), body)
            func.ReturnOp([])
    return module


def program_of(module: ir.Module) -> ir.Operation:
    return module.body.operations[0].regions[0].blocks[0].operations[0].operation


def plain(program: Program) -> Program:
    """Without what functions and names of tokens are."""

    def strip(body):
        out = []
        for one in body:
            if isinstance(one, Loop):
                one = replace(one, body=strip(one.body))
            elif isinstance(one, Compute):
                one = replace(one, run=abs, cost=Cost())
            elif isinstance(one, Wait):
                one = replace(one, tokens=())
            else:
                one = replace(one, token="")
            out.append(one)
        return tuple(out)

    return replace(program, body=strip(program.body))


def test_back_again():
    with ir.Context(), ir.Location.unknown():
        module = module_of(PROGRAM)
        module.operation.verify()
        assert str(ir.Module.parse(str(module))) == str(module)
        back = read_program(program_of(module))
        assert plain(back) == plain(PROGRAM)


def test_same_values():
    rng = np.random.default_rng(3)
    tensors = {name: rng.standard_normal((5, 14)).astype(np.float32) for name in "AS"}
    with ir.Context(), ir.Location.unknown():
        module = module_of(PROGRAM)
        back = read_program(program_of(module))
        for name, value in run(PROGRAM, tensors).items():
            np.testing.assert_array_equal(run(back, tensors)[name], value)
        np.testing.assert_array_equal(run(back, tensors)["both"], 2 * tensors["A"])
        padded = np.pad(tensors["S"], ((0, 0), (0, 1))).reshape(5, 5, 3)
        np.testing.assert_allclose(run(back, tensors)["last"], padded.sum(1), rtol=1e-5, atol=1e-5)


def test_a_missing_input():
    with ir.Context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        with pytest.raises(UserError, match=r"program everything: no tensor for its input A; given: \[\]"):
            write_program(PROGRAM, {}, body)


@pytest.mark.parametrize("value", [Const(-7), Binary("+", Binary("mod", Y, Const(4)), Binary("floordiv", X, Const(3)))])
def test_expressions(value):
    with ir.Context():
        (expr,) = ir.AffineMap.get(2, 0, [to_affine(value)]).results
        assert to_expression(expr) == value


def test_rounding_upwards():
    with ir.Context():
        (expr,) = ir.AffineMap.get(1, 0, [ir.AffineExpr.get_ceil_div(ir.AffineExpr.get_dim(0), 4)]).results
        up = to_expression(expr)
    assert [up([value]) for value in (-5, -4, 0, 1, 4, 5)] == [-1, -1, 0, 1, 1, 2]


def test_places_of_one_output_in_several_orders():
    first, last = PROGRAM.outputs[1:]
    wrong = replace(PROGRAM, outputs=(PROGRAM.outputs[0], first, replace(last, order="linear")))
    with ir.Context(), ir.Location.unknown(), pytest.raises(UserError, match="output both count cores in several"):
        module_of(wrong)
