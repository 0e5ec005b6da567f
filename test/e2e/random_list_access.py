# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statements of random programs that say which elements of lists are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random_lists import Program, Value


def _made(p: Program, text: str, lengths: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """A variable for a list, unless it is large."""
    if not p.fits(lengths, shape):
        return False
    p.new(text, lengths, shape)
    return True


def _filling(p: Program, xs: Value) -> str:
    """What stands outside of a list."""
    fill = p.some(lambda value: value.type == (xs.lengths[1:], xs.shape))
    numbers = [] if len(xs.lengths) > 1 else ["fill=0.5"]
    return p.pick("wrap=True", *numbers, *([f"fill={fill.name}"] * 2 if fill else []))


def _shift(p: Program) -> bool:
    xs = p.some_list()
    if xs is None:
        return False
    return _made(p, f"ft.shift({xs.name}, {p.pick(-2, -1, 1, 2, 5)}, {_filling(p, xs)})", *xs.type)


def _reverse(p: Program) -> bool:
    xs = p.some_list()
    return xs is not None and _made(p, f"ft.reverse({xs.name})", *xs.type)


def _slice(p: Program) -> bool:
    """Python's slices, which may be empty."""
    xs = p.some_list()
    if xs is None:
        return False
    first, last = (p.pick(None, None, *range(-3, 4)) for _ in range(2))
    bounds = slice(first, last, p.pick(None, 1, 2, 3, -1, -1, -2))
    length = len(range(*bounds.indices(xs.lengths[0])))
    text = ":".join("" if n is None else str(n) for n in (first, last, bounds.step))
    return _made(p, f"{xs.name}[{text}]", (length, *xs.lengths[1:]), xs.shape)


def _at(p: Program) -> bool:
    xs = p.some_list(least=1)
    if xs is None:
        return False
    place = p.choose.randrange(-xs.lengths[0], xs.lengths[0])
    text = p.pick(f"{xs.name}[{place}]", f"ft.head({xs.name})", f"ft.last({xs.name})")
    return _made(p, text, xs.lengths[1:], xs.shape)


def _window(p: Program) -> bool:
    """With all parameters."""
    xs = p.some_list()
    if xs is None:
        return False
    size, stride, dilation = p.pick(1, 2, 3), p.pick(1, 1, 2), p.pick(1, 1, 2)
    low, high = p.pick((0, 0), (1, 1), (0, 2), (3, 0))
    filling = f", {_filling(p, xs)}" if low or high else ""
    if xs.lengths[0] == 0 and "wrap" in filling:
        return False
    windows = max(0, (xs.lengths[0] + low + high - dilation * (size - 1) - 1) // stride + 1)
    padding = f"size={size}, stride={stride}, dilation={dilation}, padding=({low}, {high}){filling}"
    return _made(p, f"ft.window({xs.name}, {padding})", (windows, size, *xs.lengths[1:]), xs.shape)


def _shifted_slide(p: Program) -> bool:
    xs = p.some_list(least=1)
    if xs is None:
        return False
    size, dilation = p.pick(2, 3), p.pick(1, 2)
    text = f"ft.shifted_slide({xs.name}, {size}, {dilation})"
    return _made(p, text, (xs.lengths[0], size, *xs.lengths[1:]), xs.shape)


def _divisor(p: Program, length: int) -> int:
    return p.choose.choice([n for n in range(1, length + 1) if length % n == 0])


def _interleave(p: Program) -> bool:
    """In groups of equal length, or of one element each."""
    xs = p.some_list(least=1)
    if xs is None:
        return False
    length, *inner = xs.lengths
    by = _divisor(p, length)
    return _made(p, f"ft.interleave({xs.name}, {by})", (by, length // by, *inner), xs.shape)


def _deinterleave(p: Program) -> bool:
    return _merge(p, "deinterleave")


def _flatten(p: Program) -> bool:
    return _merge(p, "flatten")


def _merge(p: Program, function: str) -> bool:
    xss = p.some_list(depth=2)
    if xss is None:
        return False
    first, second, *inner = xss.lengths
    return _made(p, f"ft.{function}({xss.name})", (first * second, *inner), xss.shape)


def _split(p: Program) -> bool:
    xs = p.some_list()
    if xs is None:
        return False
    length, *inner = xs.lengths
    into = _divisor(p, length) if length else p.pick(1, 3)
    return _made(p, f"ft.split({xs.name}, {into})", (into, length // into, *inner), xs.shape)


def _repeat(p: Program) -> bool:
    x = p.some(lambda value: True)
    if x is None:
        return False
    times = p.pick(1, *p.pool)
    return _made(p, f"ft.repeat({x.name}, {times})", (times, *x.lengths), x.shape)


def _join(p: Program) -> bool:
    """Of up to three lists that may differ in length."""
    xs = p.some_list()
    if xs is None:
        return False
    inner = xs.lengths[1:], xs.shape
    others = [p.some(lambda v: bool(v.lengths) and (v.lengths[1:], v.shape) == inner) for _ in range(p.pick(1, 2))]
    parts = [xs, *(value for value in others if value is not None)]
    p.choose.shuffle(parts)
    lengths = (sum(value.lengths[0] for value in parts), *inner[0])
    return _made(p, f"ft.join({', '.join(value.name for value in parts)})", lengths, xs.shape)


def _gather(p: Program) -> bool:
    xs = p.some_list(least=1)
    if xs is None:
        return False
    places = [p.choose.randrange(xs.lengths[0]) for _ in range(p.pick(1, 2, 4))]
    return _made(p, f"ft.gather({xs.name}, {places})", (len(places), *xs.lengths[1:]), xs.shape)


def _product(p: Program) -> bool:
    xs, ys = p.some_list(least=1), p.some_list(least=1)
    if xs is None or ys is None:
        return False
    kinds = [((xs.lengths[0], ys.lengths[0], *value.lengths[1:]), value.shape) for value in (xs, ys)]
    return all(p.fits(*kind) for kind in kinds) and p.assign(f"ft.product({xs.name}, {ys.name})", kinds)


def _stack(p: Program) -> bool:
    """Values of one type become a list."""
    x = p.some(lambda value: True)
    if x is None or 0 in x.lengths:
        return False
    y = p.some(lambda value: value.type == x.type) or x
    return _made(p, f"ft.stack([{x.name}, {y.name}, {x.name}])", (3, *x.lengths), x.shape)


def _slices(p: Program) -> bool:
    """A dimension of a tensor becomes a level."""
    x = p.some(lambda value: not value.lengths and len(value.shape) > 0)
    if x is None:
        return False
    dim = p.choose.randrange(len(x.shape))
    return _made(p, f"ft.slices({x.name}, {dim})", (x.shape[dim],), (*x.shape[:dim], *x.shape[dim + 1 :]))


def _tensor(p: Program) -> bool:
    """All levels become dimensions."""
    xs = p.some(lambda value: 0 < len(value.lengths) + len(value.shape) < 4 and bool(value.lengths))
    if xs is None or 0 in xs.lengths:
        return False
    return _made(p, f"ft.tanh(ft.tensor({xs.name}))", (), (*xs.lengths, *xs.shape))


ACCESS_STEPS: list[Callable[[Program], bool]] = [
    *(_shift, _reverse, _slice, _slice, _at, _window, _window, _shifted_slide, _interleave, _deinterleave),
    *(_flatten, _split, _repeat, _join, _gather, _product, _stack, _slices, _tensor),
]
