# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tensor` dialect. A tensor is never written in place: an op that changes one makes a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Block, Node
from tilewright.reference.registry import handles, terminators
from tilewright.reference.slices import (
    check_index,
    collapsed_shape,
    drop_units,
    mixed,
    put_slice,
    reassociation,
    sliced,
    static_sizes,
)

terminators("tensor.yield")


def result_shape(node: Node, dynamic: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of result 0, dynamic sizes taken from ``dynamic``."""
    return tuple(types.fill_dynamic(list(types.shape_of(node.result_type())), tuple(dynamic)))


def _dtype(node: Node) -> np.dtype:
    return node.once("dtype", lambda: types.dtype_of(node.result_type()))


@handles("tensor.empty")
def empty(_frame: Any, node: Node, *sizes: Any) -> np.ndarray:
    """A tensor of poison, so that a read of it shows."""
    return np.broadcast_to(types.poison(_dtype(node)), result_shape(node, sizes))


@handles("tensor.splat")
def splat(_frame: Any, node: Node, value: Any, *sizes: Any) -> np.ndarray:
    """One value everywhere."""
    return np.broadcast_to(value, result_shape(node, sizes))


@handles("tensor.from_elements")
def from_elements(_frame: Any, node: Node, *values: Any) -> np.ndarray:
    """Values in row-major order."""
    return np.array(values, _dtype(node)).reshape(result_shape(node, ()))


@handles("tensor.extract")
def extract(_frame: Any, _node: Node, tensor: np.ndarray, *index: Any) -> Any:
    """One element; inside a linalg body the indices are arrays and so is the result."""
    return tensor[check_index(index, tensor.shape)]


@handles("tensor.insert")
def insert(_frame: Any, _node: Node, value: Any, tensor: np.ndarray, *index: Any) -> np.ndarray:
    """A copy with one element replaced."""
    out = np.array(tensor)
    out[check_index(index, tensor.shape)] = value
    return out


@handles("tensor.extract_slice")
def extract_slice(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """A slice, maybe with unit dimensions dropped."""
    (source,), *groups = node.groups(operands)
    part = sliced(source, *mixed(node, groups))
    return drop_units(part, static_sizes(node), types.shape_of(node.result_type()))


@handles("tensor.insert_slice")
def insert_slice(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """A copy with a slice replaced."""
    source, target, *sizes = operands
    out = np.array(target)
    put_slice(node, source, out, *sizes)
    return out


@handles("tensor.expand_shape")
def expand_shape(_frame: Any, node: Node, tensor: np.ndarray, *dynamic: Any) -> np.ndarray:
    """Split dimensions."""
    static = types.integers(node.op.attributes["static_output_shape"])
    return tensor.reshape(types.fill_dynamic(static, dynamic))


@handles("tensor.collapse_shape")
def collapse_shape(_frame: Any, node: Node, tensor: np.ndarray) -> np.ndarray:
    """Join dimensions."""
    groups = node.once("groups", lambda: reassociation(node))
    return tensor.reshape(collapsed_shape(tensor.shape, groups))


@handles("tensor.reshape")
def reshape(_frame: Any, _node: Node, tensor: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """The same elements in row-major order under another shape."""
    return tensor.reshape([int(size) for size in shape])


@handles("tensor.cast")
def cast(_frame: Any, node: Node, tensor: np.ndarray) -> np.ndarray:
    """The same tensor with more or less known of its shape.

    Raises:
        InterpreterError: the actual shape contradicts the result type.
    """
    wanted = types.shape_of(node.result_type())
    if any(w not in (types.DYNAMIC, n) for w, n in zip(wanted, tensor.shape, strict=True)):
        raise InterpreterError(f"a tensor of shape {tensor.shape} is no {node.result_type()}")
    return tensor


@handles("tensor.bitcast")
def bitcast(_frame: Any, node: Node, tensor: np.ndarray) -> np.ndarray:
    """The same bits as elements of another type."""
    return tensor.view(_dtype(node))


@handles("tensor.dim", "memref.dim")
def dim(_frame: Any, _node: Node, shaped: np.ndarray, index: Any) -> Any:
    """The size of one dimension."""
    return np.int64(shaped.shape[check_index((index,), (shaped.ndim,))[0]])


@handles("tensor.rank", "memref.rank")
def rank(_frame: Any, _node: Node, shaped: np.ndarray) -> Any:
    """The number of dimensions."""
    return np.int64(shaped.ndim)


@handles("tensor.generate")
def generate(frame: Any, node: Node, *sizes: Any) -> np.ndarray:
    """The body's value at each index."""
    return _over_points(frame, node.body, result_shape(node, sizes), _dtype(node))


def _over_points(frame: Any, body: Block, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The value of a body at each index: at once for all where it is a formula, one by one where it branches."""
    out = np.empty(shape, dtype)
    if any(any(inner.regions) for inner in body.nodes):
        for index in np.ndindex(out.shape):
            (out[index],) = frame.run(body, [np.int64(i) for i in index])
        return out
    index = np.meshgrid(*map(np.arange, shape), indexing="ij", sparse=True) if shape else []
    (out[...],) = frame.run_arrays(body, index)
    return out


@handles("tensor.pad")
def pad(frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """The source amid the body's values (any function of the index; a constant in practice)."""
    (source,), low, high = node.groups(operands)
    low = types.fill_dynamic(types.integers(node.op.attributes["static_low"]), low)
    high = types.fill_dynamic(types.integers(node.op.attributes["static_high"]), high)
    if min([*low, *high], default=0) < 0:
        raise InterpreterError("tensor.pad with a negative amount")
    shape = [a + n + b for a, n, b in zip(low, source.shape, high, strict=True)]
    out = _over_points(frame, node.body, shape, source.dtype)
    out[tuple(slice(a, a + n) for a, n in zip(low, source.shape, strict=True))] = source
    return out


@handles("tensor.concat")
def concat(_frame: Any, node: Node, *parts: np.ndarray) -> np.ndarray:
    """Parts one after the other along a dimension."""
    return np.concatenate(parts, node.op.attributes["dim"].value)


@handles("tensor.gather")
def gather(_frame: Any, node: Node, source: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Slices at coordinates: the last dimension of ``indices`` names positions on ``gather_dims``.

    Gathered dimensions are kept with size 1, or dropped, as the result type says.
    """
    dims = types.integers(node.op.attributes["gather_dims"])
    positions = [indices[..., k].astype(np.int64) for k in range(len(dims))]
    check_index(positions, [source.shape[d] for d in dims])
    rest = [d for d in range(source.ndim) if d not in dims]
    out = source.transpose([*dims, *rest])[tuple(positions)]
    batch = indices.shape[:-1]
    inner = [1 if d in dims else source.shape[d] for d in range(source.ndim)]
    full = len(types.shape_of(node.result_type())) == len(batch) + source.ndim
    return out.reshape([*batch, *inner]) if full else out
