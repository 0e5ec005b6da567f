# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inverses of windows: Col2Im and MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import I64
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.common.window import loop_extents
from tilewright.frontend.onnx.registry import Builder, Node, op


def _digits(m, value: Scalar, bases: Sequence[Scalar | int]) -> list[Scalar]:
    """A row-major place as one index per dimension."""
    digits = []
    for base in reversed(bases[1:]):
        digits.append(m.rem(value, base))
        value = m.div(value, base)
    return [value, *reversed(digits)]


@op("Col2Im", since=18)
@widened
def col2im(b: Builder, node: Node, x: Tensor, image_shape: Tensor, block_shape: Tensor) -> Tensor:
    """Columns [n, c * block, blocks] summed into the image that they were cut from: each place asks its blocks."""
    image, block = b.shape_values(image_shape), b.shape_values(block_shape)
    rank = len(image)
    if x.rank != 3 or len(block) != rank:
        node.wrong(f"columns {list(x.shape)}, an image and a block of {rank} and {len(block)} dimensions do not fit")
    strides, dilations = (node.attr(name) or [1] * rank for name in ("strides", "dilations"))
    pads = node.attr("pads") or [0] * 2 * rank
    if min(*strides, *dilations, 1) < 1 or any(isinstance(n, int) and n < 1 for n in block):
        node.wrong(f"a block {block}, strides {strides} and dilations {dilations} must be positive")
    shape = b.settle((x.shape[0], x.shape[1] // prod(block), *image), node.declared(0), node)
    if isinstance(shape[1], int) and shape[1] < 1:
        node.wrong(f"{x.shape[1]} rows do not make one channel of blocks {block}")
    taps, image = x.shape[1] // shape[1], shape[2:]
    counts = [
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, d, low, high in zip(image, block, strides, dilations, pads[:rank], pads[rank:], strict=True)
    ]
    axis = rank + 2
    space, x = Space([*shape, taps], frozenset([axis])), b.stored(x)
    wide = lambda n: n if isinstance(n, int) else b.math.cast(b.idx(n), I64)  # noqa: E731
    blocks, limits, per_channel = [wide(n) for n in block], [wide(n) for n in counts], wide(taps)

    def body(m, *rest):
        at = [m.cast(b.counter(space, d), I64) for d in range(axis + 1)]
        hit, column = None, at[0] * 0
        for i, k in enumerate(_digits(m, at[axis], blocks)):
            distance = at[2 + i] + pads[i] - k * dilations[i]
            step = m.div(distance, strides[i])
            fits = m.logical_and(distance >= 0, m.eq(step * strides[i], distance))
            fits = m.logical_and(fits, step < limits[i])
            hit = fits if hit is None else m.logical_and(hit, fits)
            column = column * limits[i] + step
        assert hit is not None
        value = b.read(x, [at[0], at[1] * per_channel + at[axis], m.where(hit, column, 0)])
        return rest[-1] + m.where(hit, value, 0.0)

    return b.generic(space, loop_extents(b, [(axis, taps)]), range(axis), x.dtype, body, 0.0)


@op("MaxUnpool", since=9)
def max_unpool(b: Builder, node: Node, x: Tensor, indices: Tensor, output_shape: Tensor | None = None) -> Tensor:
    """Zeros with the elements at their places in the flattened result; a larger result holds that at its origin."""
    rank, kernel = x.rank - 2, node.attr("kernel_shape")
    strides, pads = node.attr("strides") or [1] * rank, node.attr("pads") or [0] * 2 * rank
    inner: list[Size] = list(x.shape[:2])
    for i, n in enumerate(x.shape[2:]):
        inner.append((n - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i])
    total, count = prod(inner), x.size
    elements, places = b.array(b.reshape(x, (count,))), b.array(b.reshape(indices, (count,)))

    def place(i: Scalar, y: Tensor) -> list[Tensor]:
        return [b.put(b.at(elements, [i]), y, [b.wrapped_index(b.at(places, [i]), total)])]

    (y,) = b.for_(0, count, [b.full(0, [total], x.dtype)], place)
    y = b.reshape(y, inner)
    if output_shape is None:
        return y
    shape = b.settle(b.shape_values(output_shape), node.declared(0), node)
    return b.pad(y, [0] * x.rank, [n - old for n, old in zip(shape, inner, strict=True)], 0)
