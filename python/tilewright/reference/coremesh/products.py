# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, caches, and what each core computes alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.coremesh.layout import Layout, Split
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles


@handles("coremesh.gemm", "coremesh.gemv")
def gemm(_frame: Any, node: Node, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product, whatever the algorithm."""
    return _product(left, right, types.dtype_of(node.result_type()))


@handles("coremesh.gemm_t")
def gemm_t(_frame: Any, node: Node, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product with the transposed right operand."""
    return _product(left, right.T, types.dtype_of(node.result_type()))


def _product(left: np.ndarray, right: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats of few bits are summed in float32 and rounded once; integers wrap."""
    if not types.is_float(dtype):
        return (left.astype(np.int64) @ right.astype(np.int64)).astype(dtype)
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    return (left.astype(wide) @ right.astype(wide)).astype(dtype)


@handles("coremesh.kv_append")
def kv_append(_frame: Any, _node: Node, row: np.ndarray, cache: np.ndarray, length: Any) -> np.ndarray:
    """The cache with one row more; where it lies is the policy's matter."""
    if not 0 <= int(length) < len(cache):
        raise InterpreterError(
            f"a cache of {len(cache)} tokens that holds {int(length)} cannot take another: make its type larger"
        )
    out = cache.copy()
    out[int(length)] = row
    return out


@handles("coremesh.local")
def local(frame: Any, node: Node, *inputs: np.ndarray) -> Any:
    """The body on the blocks of each core; results that cores have copies of must be equal."""
    sources, targets = node.once("layouts", lambda: (_layouts(node.op.operands), _layouts(node.op.results)))
    grid = (sources or targets)[0]
    made: list[dict[tuple[int, int], np.ndarray]] = [{} for _ in targets]
    for y in range(grid.height):
        for x in range(grid.width):
            blocks = [layout.shard(array, (y, x)) for layout, array in zip(sources, inputs, strict=True)]
            for parts, value in zip(made, frame.run(node.body, blocks), strict=True):
                parts[y, x] = np.asarray(value)
    shapes = [types.shape_of(result.type) for result in node.op.results]
    try:
        out = [layout.assemble(parts, shape) for layout, parts, shape in zip(targets, made, shapes, strict=True)]
    except UserError as error:
        raise InterpreterError(f"coremesh.local: {error}") from None
    return out[0] if len(out) == 1 else out


@handles("coremesh.block_gemm")
def block_gemm(frame: Any, node: Node, *inputs: np.ndarray) -> Any:
    """The body on the blocks of each core, summed in the order of blocks."""
    sources, target = node.once("layouts", lambda: (_plain(node.op.operands), _plain(node.op.results)[0]))
    shape, side = types.shape_of(node.result_type()), target.height
    made: dict[tuple[int, int], np.ndarray] = {}
    for y in range(side):
        for x in range(side):
            total = np.zeros(target.block_shape(shape), types.dtype_of(node.result_type()))
            for at in range(side):
                left = sources[0].shard(inputs[0], (y, at))
                rights = [layout.shard(one, (at, x)) for layout, one in zip(sources[1:], inputs[1:], strict=True)]
                (total,) = frame.run(node.body, [left, *rights, total])
            made[y, x] = np.asarray(total)
    return target.assemble(made, shape)


def _plain(values: Any) -> list[Layout]:
    """Layouts as if cores were counted as they stand, and nothing was aligned yet: which block is which."""
    return [replace(one, splits=tuple(map(_in_place, one.splits))) for one in _layouts(values)]


def _in_place(split: Split | None) -> Split | None:
    return None if split is None else Split(split.axis, blocks=split.blocks)


def _layouts(values: Any) -> list[Layout]:
    return [layout for layout in (Layout.of(value.type) for value in values) if layout is not None]
