# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scattering all of whose indices are one number: a slice is written, in place where nothing reads what was there.

So the caches of a decoder grow: key and value of a position are written to it, and the index of that position has been
broadcast to all elements of them, since ScatterElements wants one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.frontend.builder.dims import same_shape
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.stacking import pick, replaced
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder
from tilewright.ir.generics import body
from tilewright.mlir import ir


def one_number(b: Builder, x: Tensor) -> Scalar | None:
    """The number that all elements are; None where they may be several, or there are none."""
    if x.is_known:
        values = np.unique(x.numpy())
        return b.math.scalar(values[0].item(), x.dtype) if values.size == 1 else None
    source = _broadcast_of(x.data)
    if source is not None:
        return b.item(Tensor(x.dtype, (1,) * source.type.rank, source, tuple(range(source.type.rank))))
    return b.item(x) if all(n == 1 for n in x.shape) else None


def _broadcast_of(value: ir.Value) -> ir.Value | None:
    """The tensor of one element that a value has everywhere."""
    op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2:
        return None
    block, source = body(op), op.operands[0]
    given = block.operations[0].operands[0]
    copies = len(block.operations) == 1 and given == block.arguments[0]
    return source if copies and isinstance(source.type, ir.RankedTensorType) and set(source.type.shape) <= {1} else None


def fills_slice(data: Tensor, updates: Sequence[object], axis: int) -> bool:
    """Whether updates of these sizes are one slice of `data` across `axis`, of elements that there are."""
    others = [d for d in range(data.rank) if d != axis]
    whole = same_shape([updates[d] for d in others], [data.shape[d] for d in others])  # type: ignore[arg-type]
    return whole and updates[axis] == 1 and data.is_static and 0 not in data.shape


def write_slice(
    b: Builder,
    data: Tensor,
    place: Scalar,
    inside: Scalar,
    update: Tensor,
    axis: int,
    combine: Callable[[Scalar, Scalar], Scalar] | None,
) -> Tensor:
    """`data` with `update` for, or joined to, what is at a place along `axis`; `update` has no such dimension."""
    b.require(inside, "an index lies outside of the data")
    data = b.array(data)
    if combine is not None:
        old = pick(b, data, axis, place)
        update = b.elementwise(lambda m, x, y: combine(x, y), old, update, dtype=data.dtype)
    return replaced(b, data, b.array(update), axis, place)
