# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-plan-reductions` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.plan.mesh.collectives.layouts import KINDS, Laid, laid
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.reduction_cost import allreduce_cycles, choose, reduce_cycles

_OPS = ("coremesh.allreduce", "coremesh.reduce", "coremesh.gemv")


def _length(op: ir.Operation) -> int:
    """Cores of each line that reduces."""
    source = laid(op.operands[0])
    dimension = len(source.shape) - 1 if op.name == "coremesh.gemv" else ir.IntegerAttr(op.attributes["dim"]).value
    return source.length(source.axis_of(dimension))


def _wavelets(result: Laid) -> int:
    """Words of 32 bits that each core's part of the result is."""
    size = result.dtype.itemsize
    for part in result.tile:
        size *= part
    return max(1, -(-size // 4))


def _write(op: ir.Operation, scheme: Scheme) -> None:
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    op.attributes["algorithm"] = ir.IntegerAttr.get(i32, KINDS.index(scheme.kind))
    for name in ("k", "groups"):
        if name in op.attributes:
            del op.attributes[name]
    if scheme.kind == "k_tree":
        op.attributes["k"] = ir.IntegerAttr.get(i64, scheme.levels)


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit all reductions."""
    for found in (one for name in _OPS for one in walk(op, name)):
        if "fixed" not in found.attributes:
            try:
                _decide(options, found)
            except TilewrightError as error:
                raise located(error, found) from error


def _decide(options: Any, op: ir.Operation) -> None:
    result, length = laid(op.results[0]), _length(op)
    wavelets = _wavelets(result)
    scheme = choose(length, wavelets, options.ramp, options.channels, everywhere=op.name != "coremesh.reduce")
    cost = reduce_cycles if op.name == "coremesh.reduce" else allreduce_cycles
    _write(op, scheme)
    remark(
        op,
        f"{wavelets} wavelets along {length} cores by {scheme}: {cost(scheme, length, wavelets, options.ramp):.0f} "
        "cycles by the model",
    )
