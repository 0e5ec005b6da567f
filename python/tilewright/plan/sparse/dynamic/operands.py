# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of products that a run may fill with zeros: found, and encoded as such."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile import Dynamic, Tesa
from tilewright.ir import decisions
from tilewright.ir.generics import body, create, is_zeros, kinds, loops_of, maker, maps, positions, walk
from tilewright.ir.target_info import device_of, options_of
from tilewright.ir.views import create_joined, create_split
from tilewright.mlir import ir
from tilewright.normalize.sparsity.known import Known, evaluate
from tilewright.passes import remark
from tilewright.passes.weights import known_array
from tilewright.plan.sparse.dynamic.cost import index_share
from tilewright.plan.sparse.dynamic.pit_axes import sparse_axes
from tilewright.plan.sparse.forms.making import filled
from tilewright.reference.types import dtype_of

#: Share of the dense product's time that finding the zeros may cost: no run is slower by more.
_MOST_INDEX = 0.03
#: Rows whose zeros are looked for together where each element is zero or not by itself.
_ROWS = {"cpu": 8, "gpu": 32}


def encode_operands(op: ir.Operation) -> None:
    """Encode operands, product by product."""
    device = device_of(op, "tile-plan-dynamic")
    if options_of(op).precision != "f32":
        return
    for product in walk(op, "linalg.generic"):
        found = _found(product, device)
        if found is not None:
            _encode(product, found)


@dataclass(frozen=True)
class _Found:
    """What is found of a product: in which blocks zeros come, where from, and what the index costs."""

    unit: tuple[int, int]
    why: str
    share: float


def _found(op: ir.Operation, device: Device) -> _Found | None:
    if device.kind not in _ROWS or not _is_product(op):
        return None
    m, n, k = _sizes(op)
    element = str(ir.RankedTensorType(op.results[0].type).element_type)
    share = index_share(m, n, k, element, device)
    if share > _MOST_INDEX or len(sparse_axes(op, 0)) < 2:
        return None
    kind = _zeros_of(maker(op.operands[0]))
    if kind is None or not _is_finite(op.operands[1]):
        return None
    unit = (1, k) if kind == "rows" else (min(_ROWS[device.kind], m), 1)
    why = "rows are masked" if kind == "rows" else "a ReLU makes zeros"
    return _Found(unit, why, share)


def _is_product(op: ir.Operation) -> bool:
    """Whether it is `a [rows ..., k] @ b [k, n]` of known sizes, added to zeros or to what is there."""
    if len(op.operands) != 3 or sum(kinds(op)) != 1 or not all(m.is_projected_permutation for m in maps(op)):
        return False
    shapes = [ir.RankedTensorType(value.type) for value in op.operands]
    if not all(shape.has_static_shape and isinstance(shape.element_type, ir.F32Type) for shape in shapes):
        return False
    if len(body(op).operations) != 3 or not is_zeros(op.operands[2]):
        return False
    a, b, c = (positions(m) for m in maps(op))
    k = kinds(op).index(True)
    return len(a) >= 2 and a[-1] == k and len(b) == 2 and b[0] == k and c == [*a[:-1], b[1]]


def _sizes(op: ir.Operation) -> tuple[int, int, int]:
    *rows, k = ir.RankedTensorType(op.operands[0].type).shape
    return int(np.prod(rows)), ir.RankedTensorType(op.results[0].type).shape[-1], k


def _is_finite(value: ir.Value) -> bool:
    array = known_array(value)
    return array is not None and bool(np.isfinite(array).all())


def _zeros_of(op: ir.Operation | None) -> str | None:
    """Where a run may put zeros into what an elementwise operation makes: "rows", "elements", or None."""
    if op is None or op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)):
        return None
    written = maps(op)[-1]
    if not written.is_permutation:
        return None
    last = positions(written)[-1]
    for at, access in enumerate(maps(op)[:-1]):
        loops = frozenset().union(*map(loops_of, access.results))
        if loops and last not in loops and _is_zero_where(op, at):
            return "rows"
    return "elements" if _is_relu(op) else None


def _is_zero_where(op: ir.Operation, operand: int) -> bool:
    """Whether the result is zero wherever an input is."""
    arguments = list(body(op).arguments)
    known = [
        Known.all(np.zeros(1, dtype_of(argument.type))) if at == operand else Known.nothing(1, dtype_of(argument.type))
        for at, argument in enumerate(arguments)
    ]
    return bool(evaluate(body(op), known, {}, 1)[0].zero[0])


def _is_relu(op: ir.Operation) -> bool:
    """Whether the last step is a maximum with zero."""
    end = body(op).operations[len(body(op).operations) - 1].operation
    last = maker(end.operands[0])
    if last is None or last.name not in ("arith.maximumf", "arith.maxnumf"):
        return False
    made = [maker(value) for value in last.operands]
    return any(one is not None and one.name == "arith.constant" and one.attributes["value"].value == 0 for one in made)


def _encode(op: ir.Operation, found: _Found) -> None:
    """The product as a `sparse_tile.matmul`, rows joined."""
    with ir.InsertionPoint(op), op.location:
        a, b, c = op.operands
        rows = list(ir.RankedTensorType(a.type).shape)[:-1]
        m, n, k = _sizes(op)
        groups = [list(range(len(rows))), [len(rows)]]
        element = ir.RankedTensorType(a.type).element_type
        flat = create_joined(a, groups) if len(rows) > 1 else a
        start = filled(create("tensor.empty", [], ir.RankedTensorType.get([m, n], element))) if len(rows) > 1 else c
        encoded = create("sparse_tile.pack", [flat], Tesa.one(Dynamic(found.unit)).type([m, k], element))
        result = ir.Operation.create("sparse_tile.matmul", results=[start.type], operands=[encoded, b, start])
        f64 = ir.F64Type.get()
        entries = {
            "cover": ir.StringAttr.get(f"dynamic {list(found.unit)}"),
            "why": ir.StringAttr.get(found.why),
            "index_share": ir.FloatAttr.get(f64, round(found.share, 4)),
        }
        decisions.SPARSITY.set(result, ir.DictAttr.get(entries))
        back = result.results[0]
        if len(rows) > 1:
            back = create_split(back, groups, [*rows, n])
    remark(
        op, f"zeros are looked for when it runs ({found.why}); the weight is held for this and for the dense product"
    )
    op.results[0].replace_all_uses_with(back)
    op.erase()
