# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: sampling, losses, and the rarer functions of elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .families import NUMBERS, numpy_type
from .graphs import BOOL, FLOATS, SIGNED, UNSIGNED, Graph

_RARE = ("ThresholdedRelu", "Shrink", "IsNaN", "IsInf", "Not", "BitwiseNot", "Swish")


def rare(g: Graph) -> None:
    """Functions of an element that are seldom used; most jump."""
    kind = g.choose.choice(_RARE)
    dtypes = {"Not": (BOOL,), "BitwiseNot": (*SIGNED, *UNSIGNED)}.get(kind, FLOATS)
    x = g.pick(dtypes, lambda v: v.exact)
    keywords = {"Shrink": {"lambd": 0.7, "bias": 0.2}, "ThresholdedRelu": {"alpha": 0.4}}.get(kind, {})
    g.apply(kind, [x], exact=kind not in ("Shrink", "Swish"), **keywords)


def pairs(g: Graph) -> None:
    """Powers, slopes, shifts, remainders with the sign of the dividend."""
    kind = g.choose.choice(("Pow", "PRelu", "BitShift", "Mod"))
    if kind == "Pow":
        x = g.pick(FLOATS, lambda v: v.exact)
        g.apply(kind, [x, g.constant(np.array(g.choose.choice((0.5, 2, 3, -1)), np.float32))], exact=False)
    elif kind == "PRelu":
        x = g.pick(FLOATS)
        g.apply(kind, [x, g.like(x, g.broadcastable(x.shape))], exact=False)
    elif kind == "BitShift":
        x = g.pick(UNSIGNED)
        by = g.constant(np.array(g.choose.randint(0, 7), numpy_type(x.dtype)))
        g.apply(kind, [x, by], direction=g.choose.choice(("LEFT", "RIGHT")), exact=True)
    else:
        x = g.pick((*FLOATS[:4], *SIGNED), lambda v: v.exact)
        g.apply(kind, [x, g.constant(np.array(3, numpy_type(x.dtype)))], fmod=1, exact=x.dtype in SIGNED)


def crop(g: Graph) -> None:
    """CenterCropPad along some axes."""
    x = g.pick((*NUMBERS, BOOL), low=1)
    axes = sorted(g.choose.sample(range(x.rank), g.choose.randint(1, x.rank)))
    sizes = [g.choose.choice((1, 2, 5, 8)) for _ in axes]
    g.apply("CenterCropPad", [x, g.ints(sizes)], axes=axes, exact=True)


def sample(g: Graph) -> None:
    """GridSample in two dimensions."""
    dtype = g.choose.choice(FLOATS[:4])
    batch = g.choose.choice((1, 2))
    x = g.new(dtype, (batch, 2, g.choose.choice((1, 3, 5)), g.choose.choice((2, 4))))
    grid = g.constant((g.array(dtype, (batch, 3, g.choose.choice((1, 4)), 2)) / 4).astype(numpy_type(dtype)), dtype)
    keywords = {"mode": g.choose.choice(("linear", "cubic")), "align_corners": g.choose.randint(0, 1)}
    padding = g.choose.choice(("zeros", "border", "reflection"))
    g.apply("GridSample", [x, grid], padding_mode=padding, exact=False, **keywords)


def loss(g: Graph) -> None:
    """Losses of classes, with weights and an ignored class now and then."""
    dtype, classes = g.choose.choice(FLOATS[:4]), g.choose.choice((1, 3, 5))
    space = [g.choose.choice((1, 4)) for _ in range(g.choose.randint(0, 2))]
    scores = g.new(dtype, (3, classes, *space))
    labels = np.array([g.choose.randrange(classes) for _ in range(3 * int(np.prod(space)))], np.int64)
    inputs = [scores, g.parameter(labels.reshape(3, *space))]
    if g.choose.random() < 0.3:
        inputs.append(g.constant(np.linspace(0.5, 1.5, classes).astype(numpy_type(dtype)), dtype))
    kind = g.choose.choice(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"))
    g.apply(kind, inputs, reduction=g.choose.choice(("none", "sum", "mean")), exact=False)


def columns(g: Graph) -> None:
    """Col2Im: sums of overlapping blocks."""
    block = [g.choose.choice((1, 2)), g.choose.choice((1, 3))]
    image = [g.choose.choice((4, 5)), g.choose.choice((3, 6))]
    strides = [g.choose.choice((1, 2)) for _ in block]
    counts = [(n - k) // s + 1 for n, k, s in zip(image, block, strides, strict=True)]
    x = g.new(g.choose.choice(FLOATS), (2, 2 * block[0] * block[1], counts[0] * counts[1]))
    g.apply("Col2Im", [x, g.ints(image), g.ints(block)], strides=strides, exact=False)


def rotary(g: Graph) -> None:
    """RotaryEmbedding (from version 23 on)."""
    dtype, width = g.choose.choice((1, 10, 16)), g.choose.choice((2, 8))
    x = g.new(dtype, (2, g.choose.choice((1, 3)), 5, width))
    tables = [g.new(dtype, (2, 5, width // 2)) for _ in range(2)]
    g.apply("RotaryEmbedding", [x, *tables], interleaved=g.choose.randint(0, 1), exact=False)


def suppression(g: Graph) -> None:
    """NonMaxSuppression: a result whose size the data say."""
    batch, classes, count = g.choose.choice((1, 2)), g.choose.choice((1, 3)), g.choose.choice((1, 2, 7, 33))
    data = np.random.default_rng(g.choose.randrange(1 << 32))
    corners = np.sort(data.integers(0, 9, (batch, count, 2, 2)), axis=2).reshape(batch, count, 4).astype(np.float32)
    scores = data.permutation(batch * classes * count).reshape(batch, classes, count).astype(np.float32)
    inputs = [g.parameter(corners), g.parameter(scores), g.ints([g.choose.choice((0, 1, 3, 40))])]
    inputs.append(g.parameter(np.array([g.choose.choice((0.0, 0.3, 0.9))], np.float32)))
    if g.choose.random() < 0.5:
        inputs.append(g.parameter(np.array([g.choose.choice((-1.0, 3.5))], np.float32)))
    g.close(g.open("NonMaxSuppression", inputs, center_point_box=g.choose.randint(0, 1)), TensorProto.INT64, 2)


def determinant(g: Graph) -> None:
    """Det of a batch of small matrices."""
    n = g.choose.choice((1, 2, 3))
    x = g.new(g.choose.choice((TensorProto.FLOAT, TensorProto.DOUBLE)), (*g.choose.choice(((), (2,), (0,))), n, n))
    g.apply("Det", [x], exact=False)


VISION: tuple[Callable[[Graph], None], ...] = (
    rare,
    pairs,
    crop,
    sample,
    loss,
    columns,
    rotary,
    suppression,
    determinant,
)
