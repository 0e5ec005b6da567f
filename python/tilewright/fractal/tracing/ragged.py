# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results whose lengths only a run knows, stored in tensors of known sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.fractal.ragged import NUMBERS, room_for
from tilewright.fractal.tracing.values import ListValue, TensorValue, Value
from tilewright.fractal.types import ListType, Own, TensorType, list_of, most_in, most_of

if TYPE_CHECKING:
    from tilewright.fractal.tracing.compute import Tracer


def stored(tracer: Tracer, name: str, value: Value) -> dict[str, Value]:
    """The outputs that a result is, by name: itself, or all its tensors in a line and where each list begins.

    Raises:
        UserError: it is not known how many tensors it has at most.
    """
    if not isinstance(value, ListValue) or all(isinstance(length, int) for length in value.type.lengths):
        return {name: value}
    place = value.value.owner.location
    room = room_for(name, value.type, f"{place.filename}:{place.start_line}")
    outermost = value.type.lengths[0]
    if isinstance(outermost, int):
        flat, *offsets = _flat(tracer, value, room)
        return {name: flat} | {f"{name}.offsets{level}": offset for level, offset in enumerate(offsets)}
    # A list of one list: its offsets say how long that is.
    inner = ListType((Own(most_of(outermost)), *value.type.lengths[1:]), value.type.leaf)
    whole = tracer.cast_list(tracer.repeat(value, 1), list_of(1, inner))
    flat, ends, *offsets = _flat(tracer, whole, room)
    parts = {name: flat, f"{name}.length": tracer.index(ends, slice(1, 2))}
    return parts | {f"{name}.offsets{level}": offset for level, offset in enumerate(offsets)}


def _flat(tracer: Tracer, value: ListValue, room: int) -> list[Value]:
    """The tensors, with room for so many, then the offsets of each inner level."""
    lists = [most_in(value.type.lengths[:level]) or 0 for level in range(1, value.depth)]
    kinds = [ListType((room,), value.type.leaf), *(TensorType((count + 1,), NUMBERS) for count in lists)]
    op = tracer.op("fractal.to_ragged", [value.value], [tracer.mlir(kind) for kind in kinds])
    made = [tracer.symbol(result, kind) for result, kind in zip(op.results, kinds, strict=True)]
    assert all(isinstance(offset, TensorValue) for offset in made[1:])
    return made
