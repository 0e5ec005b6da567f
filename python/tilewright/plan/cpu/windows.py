# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a window that meet its image's implicit padding only (`tile.image`).

A dilated window over a small image reaches beyond it with most of its steps: of the nine points of a 3x3 window with
dilation 18 over 33x33 places, 2.9 lie inside on average ("Rethinking Atrous Convolution", Chen et al., 2017, section
3.3, sees such filters degenerate). What the padding holds is zero, so these steps add zeros, and each register tile
may leave out those that lie outside for all of its elements.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from tilewright.ir import decisions
from tilewright.ir.generics import body, constant_of, is_zeros, maker
from tilewright.ir.structure import Access, Kind, LinalgOp, index_constant, index_terms
from tilewright.mlir import ir

#: Steps that leave more of the work than this are not worth bounds of their own.
_WORTH = 0.97


class _Part(NamedTuple):
    """A slice that a tensor is put together of, along one dimension."""

    low: int
    high: int


def _is_zero(value: ir.Value) -> bool:
    """Whether a tensor is a fill with zeros, as an operation of its own or as what an elementwise one yields."""
    op = maker(value)
    if op is None or op.name != "linalg.generic":
        return is_zeros(value)
    block = body(op)
    return constant_of(block.operations[len(block.operations) - 1].operands[0]) == 0


def _image(value: ir.Value) -> list[_Part] | None:
    """Between which indices a tensor that parts were inserted into is other than zero; None where that is anywhere."""
    rank = ir.RankedTensorType(value.type).rank
    box: list[_Part] | None = None
    op = maker(value)
    while op is not None and op.name == "tensor.insert_slice":
        offsets, sizes, steps = (
            list(ir.DenseI64ArrayAttr(op.attributes[name]))
            for name in ("static_offsets", "static_sizes", "static_strides")
        )
        if len(op.operands) != 2:
            return None
        if not _is_zero(op.operands[0]):
            if steps != [1] * rank:
                return None
            parts = [_Part(o, o + n) for o, n in zip(offsets, sizes, strict=True)]
            box = (
                parts
                if box is None
                else [_Part(min(a.low, b.low), max(a.high, b.high)) for a, b in zip(box, parts, strict=True)]
            )
        value = op.operands[1]
        op = maker(value)
    # What is neither zero nor inserted has no contents.
    blank = op is not None and (op.name == "tensor.empty" or _is_zero(value))
    return box if blank else None


def _live(op: LinalgOp, terms: dict[int, int], constant: int, part: _Part, loop: int, register: list[int]) -> float:
    """The part of the steps of a window's loop that register tiles take, over all places along a dimension."""
    places = [d for d in terms if d != loop]
    if len(places) != 1:
        return 1.0
    place = places[0]
    taken = total = 0
    for start in range(0, op.extents[place], register[place]):
        size = min(register[place], op.extents[place] - start)
        first = constant + terms[place] * start
        low = max(ceil((part.low - first - terms[place] * (size - 1)) / terms[loop]), 0)
        high = min(floor((part.high - 1 - first) / terms[loop]) + 1, op.extents[loop])
        taken += max(high - low, 0) * size
        total += op.extents[loop] * size
    return taken / total


def _entries(op: LinalgOp, number: int, access: Access, register: list[int]) -> tuple[list[int], float]:
    """What `tile.image` says of an operand, and the part of the work that it leaves."""
    box = _image(access.value)
    found: list[int] = []
    left = 1.0
    for dim, part in enumerate(box or []):
        terms = index_terms(access.map.results[dim])
        windows = sorted(d for d in terms or {} if d in op.reductions)
        if terms is None or len(windows) != 1 or len(terms) < 2 or min(terms.values()) < 1:
            continue
        if register[windows[0]] != 1:
            continue
        live = _live(op, terms, index_constant(access.map.results[dim]), part, windows[0], register)
        if live < 1.0:
            found += [number, dim, *part]
            left *= live
    return found, left


def mark_image(op: LinalgOp, register: list[int], kinds: list[str]) -> None:
    """Notes which steps of a sum of products over a window lie outside of the image, where enough do.

    Args:
        op: the sum.
        register: its register tile.
        kinds: the layouts of its operands; one that is laid out anew keeps its steps.
    """
    if op.kind is not Kind.CONTRACTION or op.dynamic:
        return
    found: list[int] = []
    left = 1.0
    for number, (access, kind) in enumerate(zip(op.inputs, kinds, strict=True)):
        if kind == "unit" and not access.pure:
            entries, live = _entries(op, number, access, register)
            found += entries
            left *= live
    if left <= _WORTH:
        decisions.IMAGE.set(op.op, found)
