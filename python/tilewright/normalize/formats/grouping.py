# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of the groups that share a scale when a tensor is reshaped, cut or transposed.

A group has a number per dimension: 1, as many neighbours as share a scale, or None for the whole dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Group = tuple[int | None, ...]


def expanded(group: Group, dims: Sequence[Sequence[int]], shape: Sequence[int]) -> Group | None:
    """The groups of a tensor of which each dimension becomes `dims` of `shape`; None where no group says it."""
    found: list[int | None] = []
    for step, inner in zip(group, dims, strict=True):
        part = _split(step, [shape[d] for d in inner])
        if part is None:
            return None
        found += part
    return tuple(found)


def _split(step: int | None, sizes: Sequence[int]) -> list[int | None] | None:
    if step is None:
        return [None for _ in sizes]
    large = [at for at, size in enumerate(sizes) if size != 1]
    if len(large) < 2:
        return [step if at in large else None for at in range(len(sizes))]
    if min(sizes) < 0:
        return None
    for at in range(len(sizes) + 1):
        if prod(sizes[at:]) == step:
            return [1] * at + [None] * (len(sizes) - at)
    return None


def collapsed(group: Group, dims: Sequence[Sequence[int]], shape: Sequence[int]) -> Group | None:
    """The groups of a tensor of `shape` of which `dims` become one dimension each; None where no group says it."""
    found: list[int | None] = []
    for outer in dims:
        large = [d for d in outer if shape[d] != 1]
        steps = [group[d] for d in large]
        if all(step is None for step in steps):
            found.append(None)
            continue
        if len(large) == 1:
            found.append(steps[0])
            continue
        own = next((at for at, step in enumerate(steps) if step is None), len(steps))
        if min(shape[d] for d in large) < 0 or any(s != 1 for s in steps[:own]) or any(steps[own:]):
            return None
        found.append(prod(shape[d] for d in large[own:]))
    return tuple(found)


def cut(
    group: Group, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int], list[int]] | None:
    """Offsets, sizes and strides of the scales of a slice; None where it cuts a group."""
    found: tuple[list[int], list[int], list[int]] = [], [], []
    for step, offset, size, stride in zip(group, offsets, sizes, strides, strict=True):
        if step is None:
            one = (0, 1, 1)
        elif step == 1:
            one = (offset, size, stride)
        elif offset % step == 0 and stride == 1:
            one = (offset // step, -(-size // step), 1)
        else:
            return None
        for numbers, number in zip(found, one, strict=True):
            numbers.append(number)
    return found
