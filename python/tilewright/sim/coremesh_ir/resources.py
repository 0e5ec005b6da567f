# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of buffers and colors of routes of a program, as attributes of the ops that it was read from."""

from __future__ import annotations

from tilewright.mlir import ir
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh_ir.expressions import to_affine


def write_resources(op: ir.Operation, program: Program) -> None:
    """Write what a fitted program has; colors that were there are replaced, or taken away where it has none.

    Args:
        op: a `coremesh.program`.
        program: the same, every buffer with an address.
    """
    buffers = {buffer.name: buffer for buffer in program.buffers}
    routes = {route.name: route for route in program.routes}
    i64 = ir.IntegerType.get_signless(64)
    for view in op.regions[0].blocks[0].operations:
        inner = view.operation
        if inner.name == "coremesh.buffer":
            address = buffers[ir.StringAttr(inner.attributes["sym_name"]).value].address
            assert address is not None
            inner.attributes["address"] = ir.IntegerAttr.get(i64, address)
        elif inner.name == "coremesh.route":
            _write_colors(inner, routes[ir.StringAttr(inner.attributes["sym_name"]).value])


def _write_colors(op: ir.Operation, route: Route) -> None:
    for old in ("colors", "color"):
        if old in op.attributes:
            del op.attributes[old]
    if route.colors:
        op.attributes["colors"] = ir.DenseI64ArrayAttr.get(list(route.colors))
        op.attributes["color"] = ir.AffineMapAttr.get(ir.AffineMap.get(2, 0, [to_affine(route.color)]))
