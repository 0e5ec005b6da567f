# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: those that move elements, and those that sort and count."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from .families import NUMBERS
from .graphs import BOOL, FLOATS, SIGNED, Graph, Misfit, Value

ANY = (*NUMBERS, BOOL)


def transpose(g: Graph) -> None:
    """A permutation of the dimensions."""
    x = g.pick(ANY)
    g.apply("Transpose", [x], perm=g.choose.sample(range(x.rank), x.rank), exact=True)


def reshape(g: Graph) -> None:
    """Other sizes with the same product; one of them may be -1."""
    x = g.pick(ANY)
    rest, sizes = prod(x.shape), []
    for _ in range(g.choose.randint(0, 3)):
        divisors = [d for d in range(1, min(rest, 64) + 1) if rest % d == 0] or [0]
        sizes.append(g.choose.choice(divisors))
        rest = rest // sizes[-1] if sizes[-1] else 0
    sizes.append(rest)
    if prod(sizes) != prod(x.shape):
        raise Misfit
    if 0 in sizes:
        g.apply("Reshape", [x, g.ints(sizes)], allowzero=1, exact=True)
        return
    if g.choose.random() < 0.3:
        sizes[g.choose.randrange(len(sizes))] = -1
    g.apply("Reshape", [x, g.ints(sizes)], exact=True)


def ones(g: Graph) -> None:
    """Unsqueeze and Squeeze."""
    x = g.pick(ANY)
    if g.choose.random() < 0.5:
        g.apply("Unsqueeze", [x, g.ints([g.choose.randint(-x.rank - 1, x.rank)])], exact=True)
    else:
        g.apply("Squeeze", [x, g.ints([d for d, n in enumerate(x.shape) if n == 1])], exact=True)


def cut(g: Graph) -> None:
    """Slice along one axis, forward or backward."""
    x = g.pick(ANY, low=1)
    axis = g.axis(x)
    n = x.shape[axis]
    start, end = g.choose.randint(-n - 1, n + 1), g.choose.randint(-n - 1, n + 1)
    step = g.choose.choice((1, 1, 2, 3, -1, -2))
    g.apply("Slice", [x, g.ints([start]), g.ints([end]), g.ints([axis]), g.ints([step])], exact=True)


def concat(g: Graph) -> None:
    """Two or three tensors that differ along one axis."""
    x = g.pick(ANY, low=1)
    axis = g.axis(x)
    others = []
    for _ in range(g.choose.randint(1, 2)):
        shape = list(x.shape)
        shape[axis] = g.choose.choice((0, 1, 3, 8))
        others.append(g.like(x, shape))
    g.apply("Concat", [x, *others], axis=axis, exact=True)


def split(g: Graph) -> None:
    """Parts of given sizes."""
    x = g.pick(ANY, lambda v: any(n > 1 for n in v.shape), low=1)
    axis = g.choose.choice([d for d, n in enumerate(x.shape) if n > 1])
    first = g.choose.randint(0, x.shape[axis])
    g.apply("Split", [x, g.ints([first, x.shape[axis] - first])], axis=axis, outputs=2, exact=True)


def pad(g: Graph) -> None:
    """Around, with each mode."""
    x = g.pick((*FLOATS, *SIGNED), lambda v: 0 not in v.shape, low=1)
    mode = g.choose.choice(("constant", "edge", "reflect", "wrap"))
    pads = [g.choose.choice((0, 0, 1, 2)) for _ in range(2 * x.rank)]
    if mode in ("reflect", "wrap"):
        pads = [min(p, n - 1) for p, n in zip(pads, x.shape * 2, strict=True)]
    elif g.choose.random() < 0.2:
        pads = [-1 if n > 2 and g.choose.random() < 0.4 else p for p, n in zip(pads, x.shape * 2, strict=True)]
    inputs: list[Value | None] = [x, g.ints(pads)]
    if mode == "constant" and g.choose.random() < 0.4:
        inputs.append(g.new(x.dtype, ()))
    g.apply("Pad", inputs, mode=mode, exact=True)


def expand(g: Graph) -> None:
    """Broadcast to a larger shape."""
    x = g.pick(ANY)
    shape = [g.choose.choice((2, 3)) if n == 1 else n for n in x.shape]
    g.apply("Expand", [x, g.ints([*g.choose.choice(((), (2,), (1, 3))), *shape])], exact=True)


def tile(g: Graph) -> None:
    """Repeat along each axis."""
    x = g.pick(ANY)
    g.apply("Tile", [x, g.ints([g.choose.choice((1, 1, 2, 3)) for _ in x.shape])], exact=True)


def indices(g: Graph, shape: tuple[int, ...], limit: int) -> Value:
    """Positions below a limit, negative ones too."""
    if limit == 0:
        raise Misfit
    count = prod(shape)
    numbers = [g.choose.randrange(-limit, limit) for _ in range(count)]
    return g.parameter(np.array(numbers, np.int64).reshape(shape))


def gather(g: Graph) -> None:
    """Elements at given positions."""
    x = g.pick(ANY, low=1)
    axis = g.axis(x)
    if g.choose.random() < 0.5:
        g.apply("Gather", [x, indices(g, g.shape(0, 2), x.shape[axis])], axis=axis, exact=True)
        return
    shape = list(x.shape)
    shape[axis] = g.choose.choice((1, 4))
    g.apply("GatherElements", [x, indices(g, tuple(shape), x.shape[axis])], axis=axis, exact=True)


def scatter(g: Graph) -> None:
    """Elements put, added, multiplied or compared at given positions; the indices may leave out the last rows."""
    x = g.pick((*FLOATS, *SIGNED), low=1)
    axis = g.axis(x) % x.rank
    shape = [n if d == axis or n < 2 else n - g.choose.choice((0, 0, 1)) for d, n in enumerate(x.shape)]
    kind = g.choose.choice(("none", "add", "mul", "max", "min"))
    shape[axis] = 1 if kind == "none" else g.choose.choice((1, 4))
    where = indices(g, tuple(shape), x.shape[axis])
    exact = x.dtype in SIGNED or kind in ("none", "max", "min")
    g.apply("ScatterElements", [x, where, g.like(x, shape)], axis=axis, reduction=kind, exact=exact)


def cumulative(g: Graph) -> None:
    """Sums of what stands before."""
    x = g.pick((*FLOATS[:4], *SIGNED[2:]), low=1)
    axis = g.constant(np.array(g.axis(x), np.int64))
    flags = {"exclusive": g.choose.randint(0, 1), "reverse": g.choose.randint(0, 1)}
    g.apply("CumSum", [x, axis], exact=x.dtype in SIGNED, **flags)


def top(g: Graph) -> None:
    """The largest elements and their places."""
    x = g.pick((*FLOATS[:4], *SIGNED[2:]), lambda v: v.exact and v.given and 0 not in v.shape, low=1)
    axis = g.axis(x)
    k = g.ints([g.choose.randint(1, x.shape[axis])])
    g.apply("TopK", [x, k], axis=axis, largest=g.choose.randint(0, 1), outputs=2, exact=True)


def triangle(g: Graph) -> None:
    """The part above or below a diagonal."""
    x = g.pick(ANY, low=2)
    g.apply(
        "Trilu", [x, g.constant(np.array(g.choose.randint(-2, 2), np.int64))], upper=g.choose.randint(0, 1), exact=True
    )


def depth(g: Graph) -> None:
    """Between channels and space."""
    dtype = g.choose.choice(FLOATS)
    if g.choose.random() < 0.5:
        g.apply(
            "DepthToSpace", [g.new(dtype, (1, 8, 2, 3))], blocksize=2, mode=g.choose.choice(("DCR", "CRD")), exact=True
        )
    else:
        g.apply("SpaceToDepth", [g.new(dtype, (2, 3, 4, 6))], blocksize=2, exact=True)


MOVE: tuple[Callable[[Graph], None], ...] = (
    transpose, reshape, ones, cut, concat, split, pad, expand, tile, gather, scatter, cumulative, top, triangle, depth,
)  # fmt: skip
