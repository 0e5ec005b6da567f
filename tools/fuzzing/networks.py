# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: what networks are made of beside products and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from onnx import TensorProto

from .families import NUMBERS, numpy_type
from .graphs import BOOL, FLOATS, SIGNED, Graph, Misfit, Value

_EQUATIONS = (
    "ij,jk->ik",
    "ij,kj->ik",
    "bij,bjk->bik",
    "bij,bkj->ibk",
    "...ij,...jk->...ik",
    "i,j->ij",
    "ij,ij->",
    "ij,j->i",
)
_EQUATIONS += ("ij->j", "bij->jb")
_MOVES = ("ij->ji", "ii->i")


def einsum(g: Graph) -> None:
    """Sums of products by an equation."""
    equation = g.choose.choice((*_EQUATIONS, *_MOVES))
    sizes = {letter: g.choose.choice((0, 1, 2, 5, 8, 17)) for letter in "bijk"}
    dtype = g.choose.choice((*FLOATS, *SIGNED[2:]))
    values = []
    for term in equation.split("->")[0].split(","):
        batch = (2, 3)[: g.choose.randint(0, 2)] if "..." in term and not values else ()
        values.append(g.new(dtype, (*batch, *(sizes[c] for c in term.strip(".")))))
    g.apply("Einsum", values, equation=equation, exact=dtype in SIGNED or equation in _MOVES)


def resize(g: Graph) -> None:
    """To other sizes, by the nearest element or between elements."""
    rank = g.choose.randint(1, 2)
    x = g.new(
        g.choose.choice((*FLOATS, TensorProto.INT8)), (1, 2, *(g.choose.choice((1, 3, 4, 7)) for _ in range(rank)))
    )
    mode = g.choose.choice(("nearest", "linear", "cubic")) if x.dtype in FLOATS else "nearest"
    place = g.choose.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"))
    keywords = {"mode": mode, "coordinate_transformation_mode": place, "exact": mode == "nearest"}
    if mode == "nearest":
        keywords["nearest_mode"] = g.choose.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    elif g.choose.random() < 0.3:
        keywords["antialias"] = 1
    if g.choose.random() < 0.5:
        sizes = [*x.shape[:2], *(g.choose.choice((1, 2, 5, 8, 9)) for _ in range(rank))]
        g.apply("Resize", [x, None, None, g.ints(sizes)], **keywords)
    else:
        scales = [1.0, 1.0, *(g.choose.choice((0.5, 1.0, 1.5, 2.0, 3.0)) for _ in range(rank))]
        g.apply("Resize", [x, None, g.parameter(np.array(scales, np.float32))], **keywords)


def recurrent(g: Graph) -> None:
    """RNN, GRU, LSTM of each direction, with lengths, bias and initial state now and then."""
    kind, gates = g.choose.choice((("RNN", 1), ("GRU", 3), ("LSTM", 4)))
    direction = g.choose.choice(("forward", "reverse", "bidirectional"))
    steps, batch, width, hidden = (g.choose.choice(n) for n in ((1, 2, 5), (1, 3), (1, 4), (1, 2, 5)))
    ways, dtype = (2 if direction == "bidirectional" else 1), g.choose.choice((1, 1, 11, 10))
    shapes = [(steps, batch, width), (ways, gates * hidden, width), (ways, gates * hidden, hidden)]
    inputs: list[Value | None] = [g.new(dtype, shape) for shape in shapes]
    inputs.append(g.new(dtype, (ways, 2 * gates * hidden)) if g.choose.random() < 0.5 else None)
    lengths = np.array([g.choose.randint(1, steps) for _ in range(batch)], np.int32)
    inputs.append(g.parameter(lengths) if g.choose.random() < 0.4 else None)
    inputs.append(g.new(dtype, (ways, batch, hidden)) if g.choose.random() < 0.5 else None)
    before = {"linear_before_reset": g.choose.randint(0, 1)} if kind == "GRU" else {}
    g.apply(kind, inputs, outputs=2, hidden_size=hidden, direction=direction, exact=False, **before)


def transposed_convolution(g: Graph) -> None:
    """ConvTranspose with strides, groups, rests."""
    rank, groups = g.choose.randint(1, 2), g.choose.choice((1, 1, 2))
    dtype = g.choose.choice(FLOATS)
    x = g.new(dtype, (g.choose.choice((1, 2)), 2 * groups, *(g.choose.choice((1, 3, 5)) for _ in range(rank))))
    w = g.new(dtype, (2 * groups, g.choose.choice((1, 3)), *(g.choose.choice((1, 2, 3)) for _ in range(rank))))
    strides = [g.choose.choice((1, 2, 3)) for _ in range(rank)]
    more = [g.choose.randint(0, s - 1) for s in strides]
    pads = [g.choose.choice((0, 0, 1)) for _ in range(2 * rank)]
    dilations = [g.choose.choice((1, 1, 2)) for _ in range(rank)]
    shapes = {"strides": strides, "output_padding": more, "pads": pads, "dilations": dilations}
    g.apply("ConvTranspose", [x, w], group=groups, exact=False, **shapes)


def attention(g: Graph) -> None:
    """Attention (from version 23 on), with heads shared, a mask, or causal."""
    dtype, shared = g.choose.choice((1, 1, 10, 16)), g.choose.choice((1, 2))
    batch, heads, rows, keys, width = (g.choose.choice(n) for n in ((1, 2), (2, 4), (1, 3, 8), (1, 5, 8), (2, 8)))
    q = g.new(dtype, (batch, heads, rows, width))
    k, v = (g.new(dtype, (batch, heads // shared, keys, w)) for w in (width, g.choose.choice((width, 3))))
    mask = [g.new(g.choose.choice((dtype, BOOL)), (rows, keys))] if g.choose.random() < 0.3 else []
    causal = g.choose.randint(0, 1) if rows <= keys else 0
    g.apply("Attention", [q, k, v, *mask], is_causal=causal, softcap=g.choose.choice((0.0, 0.0, 2.0)), exact=False)


def norm(g: Graph) -> None:
    """Normalizations with statistics of groups, instances, rows or neighbours."""
    kind = g.choose.choice(
        ("LRN", "GroupNormalization", "InstanceNormalization", "RMSNormalization", "BatchNormalization")
    )
    dtype, channels = g.choose.choice(FLOATS), g.choose.choice((2, 4, 6))
    x = g.new(
        dtype, (g.choose.choice((1, 2)), channels, *(g.choose.choice((1, 3, 5)) for _ in range(g.choose.randint(1, 2))))
    )
    per_channel = [g.new(dtype, (channels,)) for _ in range(2)]
    if kind == "LRN":
        g.apply(kind, [x], size=g.choose.choice((1, 3, 5)), exact=False)
    elif kind == "GroupNormalization":
        g.apply(kind, [x, *per_channel], num_groups=g.choose.choice((1, 2)), exact=False)
    elif kind == "InstanceNormalization":
        g.apply(kind, [x, *per_channel], epsilon=0.1, exact=False)
    elif kind == "RMSNormalization":
        axis = g.axis(x)
        g.apply(kind, [x, g.new(dtype, x.shape[axis:])], axis=axis, exact=False)
    else:
        variance = g.constant(np.linspace(0.5, 2, channels).astype(numpy_type(dtype)), dtype)
        g.apply(kind, [x, *per_channel, g.new(dtype, (channels,)), variance], exact=False)


def reverse(g: Graph) -> None:
    """ReverseSequence."""
    x = g.pick((*NUMBERS, BOOL), lambda v: v.rank >= 2, low=2)
    time = g.choose.randint(0, 1)
    lengths = g.parameter(
        np.array([g.choose.randint(min(1, x.shape[time]), x.shape[time]) for _ in range(x.shape[1 - time])], np.int64)
    )
    g.apply("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time, exact=True)


def one_hot(g: Graph) -> None:
    """Rows of zeros with a one; positions outside give none."""
    depth, shape = g.choose.choice((1, 3, 8)), g.shape(0, 2)
    where = g.new(g.choose.choice(SIGNED[2:]), shape)
    values = g.new(g.choose.choice(NUMBERS), (2,))
    g.apply(
        "OneHot",
        [where, g.parameter(np.array(depth, np.int64)), values],
        axis=g.choose.randint(-1, len(shape)),
        exact=True,
    )


def _coordinates(g: Graph, x: Value, depth: int, batch: int, distinct: bool) -> np.ndarray:
    sizes = x.shape[batch : batch + depth]
    if 0 in sizes:
        raise Misfit
    places = list(np.ndindex(*sizes))
    count = g.choose.randint(0, min(4, len(places))) if distinct else g.choose.choice((0, 1, 3))
    lead = x.shape[:batch]
    chosen = [
        g.choose.sample(places, count) if distinct else g.choose.choices(places, k=count) for _ in range(prod(lead))
    ]
    return np.array(chosen, np.int64).reshape(*lead, count, depth)


def gather_nd(g: Graph) -> None:
    """Slices at coordinates."""
    x = g.pick((*NUMBERS, BOOL), low=1)
    depth = g.choose.randint(1, x.rank)
    batch = g.choose.randint(0, min(1, x.rank - depth))
    g.apply("GatherND", [x, g.parameter(_coordinates(g, x, depth, batch, False))], batch_dims=batch, exact=True)


def scatter_nd(g: Graph) -> None:
    """Slices put, added or compared at coordinates; several at one place only where the order does not matter."""
    x = g.pick((*FLOATS, *SIGNED), low=1)
    depth = g.choose.randint(1, x.rank)
    kind = g.choose.choice(("none", "add", "max", "min"))
    where = _coordinates(g, x, depth, 0, kind == "none")
    updates = g.like(x, (*where.shape[:-1], *x.shape[depth:]))
    g.apply("ScatterND", [x, g.parameter(where), updates], reduction=kind, exact=kind != "add" or x.dtype in SIGNED)


def products(g: Graph) -> None:
    """Products of what stands before (from version 26 on)."""
    x = g.pick((*FLOATS[:4], *SIGNED[2:]), low=1)
    flags = {"exclusive": g.choose.randint(0, 1), "reverse": g.choose.randint(0, 1)}
    g.apply("CumProd", [x, g.parameter(np.array(g.axis(x), np.int64))], exact=x.dtype in SIGNED, **flags)


NETWORKS: tuple[Callable[[Graph], None], ...] = (
    einsum, resize, recurrent, transposed_convolution, attention, norm, reverse, one_hot, gather_nd, scatter_nd,
    products,
)  # fmt: skip
