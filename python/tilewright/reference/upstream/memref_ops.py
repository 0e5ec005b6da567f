# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `memref` dialect. A memref is an array whose memory is shared with its views and written in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.affine import read_map
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.slices import (
    check_index,
    collapsed_shape,
    drop_units,
    mixed,
    reassociation,
    sliced,
    static_sizes,
)
from tilewright.reference.upstream.tensor_ops import cast, result_shape


def allocate(node: Node, sizes: tuple[Any, ...]) -> np.ndarray:
    """Return fresh memory full of poison, of the shape and dtype of result 0."""
    return types.uninitialised(result_shape(node, sizes), types.dtype_of(node.result_type()))


@handles("memref.alloc", "memref.alloca")
def alloc(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """Fresh memory."""
    return allocate(node, node.groups(operands)[0])


@handles("memref.dealloc", "memref.prefetch")
def no_effect(_frame: Any, _node: Node, *_operands: Any) -> None:
    """Nothing that can be seen from inside."""


@handles("memref.load")
def load(_frame: Any, _node: Node, memory: np.ndarray, *index: Any) -> Any:
    """One element."""
    return memory[check_index(index, memory.shape)]


@handles("memref.store")
def store(_frame: Any, _node: Node, value: Any, memory: np.ndarray, *index: Any) -> None:
    """Write one element."""
    memory[check_index(index, memory.shape)] = value


@handles("memref.copy")
def copy(_frame: Any, _node: Node, source: np.ndarray, target: np.ndarray) -> None:
    """Write all of ``source`` to ``target``, which may overlap."""
    target[...] = source.copy() if np.may_share_memory(source, target) else source


@handles("memref.subview")
def subview(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """A slice that shares memory."""
    (source,), *groups = node.groups(operands)
    part = sliced(source, *mixed(node, groups))
    return drop_units(part, static_sizes(node), types.shape_of(node.result_type()))


@handles("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
def same_memory(frame: Any, node: Node, memory: np.ndarray) -> Any:
    """The same memory under another type."""
    return cast(frame, node, memory) if node.results else None


@handles("memref.view")
def view(_frame: Any, node: Node, memory: np.ndarray, offset: Any, *sizes: Any) -> np.ndarray:
    """Part of a buffer of bytes as an array."""
    shape, dtype = result_shape(node, sizes), types.dtype_of(node.result_type())
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if offset < 0 or offset + count > memory.size:
        raise InterpreterError(f"bytes {offset}..{offset + count} are outside a buffer of {memory.size}")
    return memory[int(offset) : int(offset) + count].view(dtype).reshape(shape)


def _as_view(memory: np.ndarray, shape: Any) -> np.ndarray:
    out = memory.view()
    try:
        out.shape = tuple(shape)
    except AttributeError as error:
        raise InterpreterError(f"memory of strides {memory.strides} has no view of shape {tuple(shape)}") from error
    return out


@handles("memref.expand_shape")
def expand_shape(_frame: Any, node: Node, memory: np.ndarray, *dynamic: Any) -> np.ndarray:
    """Split dimensions; shares memory."""
    return _as_view(memory, types.fill_dynamic(types.integers(node.op.attributes["static_output_shape"]), dynamic))


@handles("memref.collapse_shape")
def collapse_shape(_frame: Any, node: Node, memory: np.ndarray) -> np.ndarray:
    """Join dimensions; shares memory."""
    return _as_view(memory, collapsed_shape(memory.shape, node.once("groups", lambda: reassociation(node))))


@handles("memref.reshape")
def reshape(_frame: Any, _node: Node, memory: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Another shape over the same memory."""
    return _as_view(memory, [int(size) for size in shape])


@handles("memref.transpose")
def transpose(_frame: Any, node: Node, memory: np.ndarray) -> np.ndarray:
    """Dimensions permuted; shares memory."""
    terms = read_map(node.op.attributes["permutation"].value)
    return memory.transpose([term.value for term in terms])


@handles("memref.reinterpret_cast")
def reinterpret_cast(_frame: Any, node: Node, *operands: Any) -> np.ndarray:
    """The buffer that ``source`` points into, with an own offset, sizes and strides (in elements)."""
    (source,), *groups = node.groups(operands)
    (offset,), sizes, strides = mixed(node, groups)
    root = flat_root(source)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if 0 not in sizes else offset
    if offset < 0 or last >= max(root.size, 1):
        raise InterpreterError(f"elements {offset}..{last} are outside a buffer of {root.size}")
    item = root.itemsize
    return types.strided(root[offset:], sizes, [s * item for s in strides])


def flat_root(memory: np.ndarray) -> np.ndarray:
    """Return the whole buffer that ``memory`` is a view of, as one contiguous dimension."""
    root = memory
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root.reshape(-1).view(memory.dtype)


@handles("memref.extract_strided_metadata")
def extract_strided_metadata(_frame: Any, _node: Node, memory: np.ndarray) -> list[Any]:
    """Base buffer, offset, sizes and strides, counted in elements."""
    root = flat_root(memory)
    offset = (memory.ctypes.data - root.ctypes.data) // memory.itemsize
    strides = [s // memory.itemsize for s in memory.strides]
    return [root, *map(np.int64, (offset, *memory.shape, *strides))]


_ATOMIC = {
    0: np.add,  # addf
    1: np.add,  # addi
    2: np.bitwise_and,
    3: lambda _old, new: new,
    4: np.maximum,  # maximumf
    5: np.fmax,  # maxnumf
    6: np.maximum,  # maxs
    8: np.minimum,  # minimumf
    9: np.fmin,  # minnumf
    10: np.minimum,  # mins
    12: np.multiply,  # mulf
    13: np.multiply,  # muli
    14: np.bitwise_or,
    15: np.bitwise_xor,
}


@handles("memref.atomic_rmw")
def atomic_rmw(_frame: Any, node: Node, value: Any, memory: np.ndarray, *index: Any) -> Any:
    """Combine one element with ``value``; returns what was there before."""
    kind = node.op.attributes["kind"].value
    if kind not in _ATOMIC:
        raise InterpreterError(f"the reference has no atomic combination number {kind}")
    position = check_index(index, memory.shape)
    old = memory[position]
    memory[position] = _ATOMIC[kind](old, value)
    return old
