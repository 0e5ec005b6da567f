# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: several at once, in the order in which networks have them and plans fuse them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .families import numpy_type
from .graphs import FLOATS, Graph, Misfit, Value

_EXTENTS = (1, 2, 3, 7, 16, 17, 33, 64, 127)
_WIDTHS = (1, 7, 8, 16, 17, 32, 33, 64)
_ENDS = ("Relu", "Sigmoid", "Tanh", "Gelu", "Erf", "Identity", "Softplus")


def _one(g: Graph, kind: str, *inputs: Value | None, **attributes: object) -> Value:
    return g.apply(kind, inputs, exact=False, **attributes)[0]


def _matrix(g: Graph, dtype: int, *shape: int) -> Value:
    """An operand of a product: small numbers, so that sums of 16-bit types stay near; a constant or an input."""
    if g.choose.random() < 0.5:
        return g.constant((g.array(dtype, shape) / 4).astype(numpy_type(dtype)), dtype)
    return g.new(dtype, shape)


def _rows(g: Graph) -> Value:
    """Rows of numbers: [batch, rows, width], or [rows, width]."""
    found = [v for v in g.values if v.dtype in FLOATS and v.rank in (2, 3) and 0 not in v.shape]
    if found and g.choose.random() < 0.5:
        return g.choose.choice(found)
    lead = g.choose.choice(((), (1,), (2,), (3,)))
    return g.new(g.choose.choice(FLOATS), (*lead, g.choose.choice(_EXTENTS), g.choose.choice(_WIDTHS)))


def linear(g: Graph) -> None:
    """A product, a bias, a function, another value added."""
    x = _rows(g)
    columns = g.choose.choice(_WIDTHS)
    y = _one(g, "MatMul", x, _matrix(g, x.dtype, x.shape[-1], columns))
    if g.choose.random() < 0.7:
        y = _one(g, "Add", y, _matrix(g, x.dtype, columns))
    y = _one(g, g.choose.choice(_ENDS), y)
    if g.choose.random() < 0.5:
        _one(g, g.choose.choice(("Add", "Mul")), y, g.like(y))


def attention_by_hand(g: Graph) -> None:
    """Scores, a mask or none, a softmax, the product with values; heads are cut out of one tensor or given."""
    dtype = g.choose.choice((1, 1, TensorProto.FLOAT16, TensorProto.BFLOAT16))
    batch, heads, width = g.choose.choice((1, 2)), g.choose.choice((1, 3)), g.choose.choice((8, 16, 17, 32))
    rows, keys = g.choose.choice(_EXTENTS[:-1]), g.choose.choice(_EXTENTS)
    q, k, v = (g.new(dtype, (batch, n, heads * width)) for n in (rows, keys, keys))
    split = g.ints([0, 0, heads, width])
    q, k, v = (_one(g, "Reshape", x, split) for x in (q, k, v))
    q, v = (_one(g, "Transpose", x, perm=[0, 2, 1, 3]) for x in (q, v))
    scores = _one(g, "MatMul", q, _one(g, "Transpose", k, perm=[0, 2, 3, 1]))
    scores = _one(g, "Mul", scores, g.constant(np.array(width**-0.5, numpy_type(dtype)), dtype))
    mask = g.choose.choice(("none", "added", "chosen"))
    if mask == "added":
        scores = _one(g, "Add", scores, g.new(dtype, g.choose.choice(((rows, keys), (batch, 1, 1, keys), (keys,)))))
    elif mask == "chosen":
        least = g.constant(np.array(-1e4, numpy_type(dtype)), dtype)
        scores = _one(g, "Where", g.new(TensorProto.BOOL, (batch, 1, rows, keys)), scores, least)
    y = _one(g, "MatMul", _one(g, "Softmax", scores, axis=-1), v)
    _one(g, "Reshape", _one(g, "Transpose", y, perm=[0, 2, 1, 3]), g.ints([0, 0, heads * width]))


def norm_by_hand(g: Graph) -> None:
    """A normalization in single steps, over one axis or two."""
    x = _rows(g)
    axes = g.ints(g.choose.choice(([-1], [-2], [-2, -1])))
    centered = _one(g, "Sub", x, _one(g, "ReduceMean", x, axes, keepdims=1))
    square = _one(g, "ReduceMean", _one(g, "Mul", centered, centered), axes, keepdims=1)
    spread = _one(g, "Sqrt", _one(g, "Add", square, g.constant(np.array(0.1, numpy_type(x.dtype)), x.dtype)))
    y = _one(g, "Div", centered, spread)
    _one(g, "Add", _one(g, "Mul", y, g.new(x.dtype, (x.shape[-1],))), g.like(y))


def softmax_by_hand(g: Graph) -> None:
    """A softmax in single steps, along any axis, whose exponentials someone else reads, too."""
    x = _rows(g)
    axis = g.ints([g.choose.randrange(-x.rank, 0)])
    powers = _one(g, "Exp", _one(g, "Sub", x, _one(g, "ReduceMax", x, axis, keepdims=1)))
    y = _one(g, "Div", powers, _one(g, "ReduceSum", powers, axis, keepdims=1))
    _one(g, "Add", y, g.choose.choice((powers, x, y)))


def block_of_images(g: Graph) -> None:
    """A convolution of any window, a norm, a function, the image added, a pooling."""
    dtype, channels = g.choose.choice(FLOATS), g.choose.choice((1, 3, 4, 8, 16, 17))
    groups = g.choose.choice((1, 1, channels))
    filters = groups * g.choose.choice((1, 2)) if groups > 1 else g.choose.choice((1, 4, channels, 32))
    sizes = g.choose.choice((5, 7, 9, 16)), g.choose.choice((5, 8, 17))
    x = g.new(dtype, (g.choose.choice((1, 2)), channels, *sizes))
    window = [g.choose.choice((1, 2, 3, 5)) for _ in sizes]
    attributes = {"group": groups, "strides": [g.choose.choice((1, 1, 2, 3)) for _ in sizes]}
    if g.choose.random() < 0.3:
        attributes["auto_pad"] = g.choose.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        attributes["pads"] = [g.choose.randrange(min(window)) for _ in range(4)]
    attributes["dilations"] = [g.choose.choice((1, 1, 2)) for _ in sizes]
    if any(n < (w - 1) * d + 1 for n, w, d in zip(sizes, window, attributes["dilations"], strict=True)):
        raise Misfit
    bias = [_matrix(g, dtype, filters)] if g.choose.random() < 0.5 else []
    y = _one(g, "Conv", x, _matrix(g, dtype, filters, channels // groups, *window), *bias, **attributes)
    if g.choose.random() < 0.4:
        scale = g.constant(np.linspace(0.5, 1.5, filters).astype(numpy_type(dtype)), dtype)
        y = _one(g, "BatchNormalization", y, scale, _matrix(g, dtype, filters), _matrix(g, dtype, filters), scale)
    y = _one(g, g.choose.choice(_ENDS), y)
    if y.shape == x.shape:
        y = _one(g, "Add", y, x)
    if g.choose.random() < 0.3:
        _one(g, g.choose.choice(("GlobalAveragePool", "GlobalMaxPool")), y)


def rotation(g: Graph) -> None:
    """Halves of rows, one of them negated, joined the other way round, and added to the rows."""
    x = _rows(g)
    if x.shape[-1] % 2:
        raise Misfit
    half = x.shape[-1] // 2
    first, second = g.apply("Split", [x, g.ints([half, half])], axis=-1, outputs=2, exact=True)
    rotated = _one(g, "Concat", _one(g, "Neg", second), first, axis=-1)
    table = _matrix(g, x.dtype, *x.shape[-2:])
    _one(g, "Add", _one(g, "Mul", x, table), _one(g, "Mul", rotated, table))


def joined_slices(g: Graph) -> None:
    """Slices along several axes, forward and backward, joined again."""
    x = g.pick(FLOATS, lambda v: 0 not in v.shape, low=2)
    parts = []
    for _ in range(g.choose.choice((2, 3))):
        steps = [g.choose.choice((1, 1, 2, -1, -2, -3)) for _ in range(x.rank - 1)]
        starts = [g.choose.choice((0, 1)) if s > 0 else -g.choose.choice((1, 2)) for s in steps]
        ends = [1 << 40 if s > 0 else -(1 << 40) for s in steps]
        axes = [*range(1, x.rank)]
        (part,) = g.apply("Slice", [x, *(g.ints(n) for n in (starts, ends, axes, steps))], exact=True)
        parts.append(part)
    same = [p for p in parts if p.shape[1:] == parts[0].shape[1:]]
    if 0 in parts[0].shape:
        raise Misfit
    y = g.apply("Concat", same, axis=0, exact=True)[0]
    g.apply(g.choose.choice(("Abs", "Neg", "Relu")), [y], exact=True)


PATTERNS: tuple[Callable[[Graph], None], ...] = (
    linear, attention_by_hand, norm_by_hand, softmax_by_hand, block_of_images, rotation, joined_slices,
)  # fmt: skip
