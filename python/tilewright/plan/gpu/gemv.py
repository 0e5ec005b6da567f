# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that read one large tensor once: products with a vector (decoding), and reductions of rows or columns.

Their tiles are those with the least predicted time (`plan/cost/gemv.py`).
"""

from __future__ import annotations

from math import prod

from tilewright.ir import decisions
from tilewright.ir.decodes import steps_of
from tilewright.ir.structure import Kind, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.cost.gemv import Gemv, Operand, rank_gemv
from tilewright.plan.cost.prediction import choice_fields
from tilewright.plan.cost.tiling import GpuTiling
from tilewright.plan.gpu.tiles import make_tiling
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, read_only_by
from tilewright.plan.model.traffic import element_bytes, tensor_bytes


def find_gemv(nest: Nest) -> Gemv | None:
    """What a nest streams; None where it reads elements again and again (windows, products of matrices) or gathers."""
    op = nest.root
    if not op.reductions or op.dynamic or nest.gathers or any(m.tables or m.dynamic for m in nest.members):
        return None
    found = _operands(nest)
    if not found:
        return None
    dims, large = max(found, key=lambda pair: prod(op.extents[d] for d in pair[1].loops))
    lanes = [d for d in reversed(dims) if d is not None and op.extents[d] > 1]
    if not lanes or prod(op.extents[d] for d in large.loops) != op.points or len(lanes) != len(set(lanes)):
        return None
    lane, rest = lanes[0], lanes[1:]
    rest.sort(key=lambda d: (d in op.reductions) == (lane in op.reductions))
    other = next((d for d in rest if nest.fits([lane], d)), None)
    if not nest.fits([], lane) or not {lane, other} & op.reductions:
        return None
    summed = [d for d in rest if d in op.reductions and nest.fits([lane], d)]
    further = summed[0] if summed and lane in op.reductions and other not in op.reductions else None
    results = [m for m in nest.members if not read_only_by(m, nest.members)]
    written = sum(tensor_bytes(m.result) for m in results)
    return Gemv(
        op.extents,
        op.reductions,
        lane,
        other,
        large,
        tuple(operand for _, operand in found if operand is not large),
        written + sum(prod(op.extents[d] for d in operand.loops) * operand.width for _, operand in found),
        written,
        sum(_terms(m) for m in nest.members if m.points == op.points),
        max(element_bytes(op.result), 4),
        further,
    )


def _operands(nest: Nest) -> list[tuple[tuple[int | None, ...], Operand]]:
    """What the nest reads from outside, each tensor once: its dimensions as loops of the root; [] where one is none."""
    made = [member.result for member in nest.members]
    seen: list[ir.Value] = []
    found = []
    for op, loops in nest.bindings.items():
        for access in op.inputs:
            if access.value in made or access.value in seen or not access.dims:
                continue
            if not access.pure or any(d is not None and d not in loops for d in access.dims):
                return []
            seen.append(access.value)
            dims = tuple(None if d is None else loops[d] for d in access.dims)
            used = frozenset(d for d in dims if d is not None)
            found.append((dims, Operand(used, element_bytes(access.value))))
    return found


def _terms(op: LinalgOp) -> int:
    """Instructions for a point: a product with a vector widens an element and adds it, multiplied."""
    if op.kind is Kind.CONTRACTION:
        return 2
    return steps_of(op.op)


def choose_gemv(nest: Nest, gpu: Gpu, number: int = 0) -> GpuTiling | None:
    """The tiling of a nest that streams; None where it does not, or where no tile fits.

    Args:
        nest: the only one of its task.
        gpu: the machine.
        number: of the candidate, the one with the least predicted time first.
    """
    gemv = find_gemv(nest)
    ranked = rank_gemv(gemv, gpu) if gemv is not None else ()
    if gemv is None or not ranked:
        return None
    number = min(number, len(ranked) - 1)
    chosen = ranked[number]
    tiling = make_tiling(nest.root, chosen.tile, None)
    tiling.warps = chosen.warps
    other = ranked[number + 1] if number + 1 < len(ranked) else None
    found = chosen.prediction
    runner_up, seconds = (other.text(gemv), other.prediction.seconds) if other is not None else ("", None)
    fields = choice_fields(chosen.text(gemv), len(ranked), number, runner_up, seconds)
    more = [f"tasks = {found.tasks} : i64", f"under_way = {found.under_way} : i64", *fields]
    tiling.marks[decisions.PREDICTION] = found.attribute(more)
    return tiling
