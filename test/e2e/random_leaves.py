# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statements of random programs that compute with tensors; results stay small, and have no steps."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from random_lists import Program, Value

UNARY = (
    "ft.tanh({x})",
    "ft.sigmoid({x})",
    "ft.relu({x})",
    "ft.exp(-ft.abs({x}))",
    "ft.log(1.0 + ft.abs({x}))",
    "ft.sqrt(ft.abs({x}) + 0.25)",
    "ft.where({x} > 0.0, {x}, 0.25 * {x})",
    "-{x}",
    "0.5 * {x} + 1.0",
    "{x} / (1.0 + ft.abs({x}))",
    "ft.tanh({x}) ** 2",
)
BINARY = (
    "{x} + {y}",
    "{x} - 0.5 * {y}",
    "ft.tanh({x}) * {y}",
    "ft.maximum({x}, {y})",
    "ft.minimum({x}, {y})",
    "{x} / (1.0 + ft.abs({y}))",
    "ft.where({x} > {y}, {x}, {y})",
)


def _tensor(p: Program, least: int = 0) -> Value | None:
    return p.some(lambda value: not value.lengths and len(value.shape) >= least)


def _unary(p: Program) -> bool:
    x = _tensor(p)
    if x is None:
        return False
    p.new(p.pick(*UNARY).format(x=x.name), (), x.shape)
    return True


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def _binary(p: Program) -> bool:
    """Of two tensors that fit, or of one and a constant."""
    x = _tensor(p)
    if x is None:
        return False
    y = p.some(lambda value: not value.lengths and _broadcast(x.shape, value.shape) is not None)
    shape = None if y is None else _broadcast(x.shape, y.shape)
    if y is None or shape is None or p.pick(True, False, False):
        name, shape = p.constant(*x.shape), x.shape
    else:
        name = y.name
    sides = p.pick({"x": x.name, "y": name}, {"x": name, "y": x.name})
    p.new(p.pick(*BINARY).format(**sides), (), shape)
    return True


def _reduction(p: Program) -> bool:
    """Along some dimensions; what is summed is scaled down."""
    x = _tensor(p, 1)
    if x is None:
        return False
    axes = tuple(sorted(p.choose.sample(range(len(x.shape)), p.pick(1, len(x.shape)))))
    kind, keep = p.pick("sum", "max", "min", "mean"), p.pick(True, False)
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape) if keep or d not in axes)
    scale = f"{1 / prod(x.shape[d] for d in axes):.3f} * " if kind == "sum" else ""
    p.new(f"{scale}ft.{kind}({x.name}, axis={axes}, keepdims={keep})", (), shape)
    return True


def _rows(p: Program) -> bool:
    """Softmax, and functions of rows."""
    x = _tensor(p, 1)
    if x is None:
        return False
    if p.pick(True, False):
        p.new(f"ft.softmax({x.name}, axis={p.choose.randrange(len(x.shape))})", (), x.shape)
    else:
        p.new(f"{x.name} - ft.{p.pick('rowmax', 'rowsum')}({x.name})", (), x.shape)
    return True


def _product(p: Program) -> bool:
    """With a constant on the right, or with another tensor of as many columns."""
    x = _tensor(p, 1)
    if x is None:
        return False
    y = p.some(lambda value: not value.lengths and len(value.shape) == 2 and value.shape[-1] == x.shape[-1])
    if y is not None and p.pick(True, False):
        p.new(f"ft.tanh({x.name} @ {y.name}.T)", (), (*x.shape[:-1], y.shape[0]))
        return True
    columns = p.pick(1, 3, 4)
    p.new(f"{x.name} @ {p.constant(x.shape[-1], columns)}", (), (*x.shape[:-1], columns))
    return True


def _transpose(p: Program) -> bool:
    x = _tensor(p, 2)
    if x is None:
        return False
    order = p.choose.sample(range(len(x.shape)), len(x.shape))
    p.new(f"ft.transpose({x.name}, {tuple(order)})", (), tuple(x.shape[d] for d in order))
    return True


def _reshape(p: Program) -> bool:
    """To a row, a column, or with sizes in reverse."""
    x = _tensor(p)
    if x is None:
        return False
    count = prod(x.shape)
    shape = p.pick((count,), (1, count), (count, 1), x.shape[::-1], (1, *x.shape))
    p.new(f"ft.reshape({x.name}, {shape})", (), shape)
    return True


def _part(p: Program) -> bool:
    """One row, some columns, all of them from the last, or a new dimension."""
    x = _tensor(p, 1)
    if x is None:
        return False
    first, *inner = x.shape
    parts = {
        "[0]": tuple(inner),
        "[-1:]": (1, *inner),
        "[::-1]": (first, *inner),
        "[::2]": ((first + 1) // 2, *inner),
        "[..., None]": (*x.shape, 1),
        "[..., ::-1]": x.shape,
    }
    index, shape = p.pick(*parts.items())
    p.new(f"{x.name}{index}", (), shape)
    return True


def _concat(p: Program) -> bool:
    """Of tensors of one shape, which may be constants."""
    x = _tensor(p, 1)
    if x is None:
        return False
    y = p.some(lambda value: not value.lengths and value.shape == x.shape)
    other = p.constant(*x.shape) if y is None or p.pick(True, False, False) else y.name
    axis = p.choose.randrange(len(x.shape))
    shape = tuple(2 * n if d == axis else n for d, n in enumerate(x.shape))
    if prod(shape) > 24:
        return False
    p.new(f"ft.concat([{', '.join(p.pick((x.name, other), (other, x.name)))}], axis={axis})", (), shape)
    return True


LEAF_STEPS: list[Callable[[Program], bool]] = [
    *(_unary, _unary, _binary, _binary, _binary, _reduction, _rows),
    *(_product, _product, _transpose, _reshape, _part, _concat),
]
