# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of `tile` on register tiles: values, each an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.integers import narrow, signed, unsigned
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles
from tilewright.reference.upstream.contraction import reduce_array


def _shape(node: Node) -> tuple[int, ...]:
    return node.once("shape", lambda: types.shape_of(node.result_type()))


def _integer(node: Node, name: str) -> int:
    return node.once(name, lambda: node.op.attributes[name].value)


def _integers(node: Node, name: str) -> list[int]:
    return node.once(name, lambda: types.integers(node.attribute(name)))


def _flag(node: Node, name: str) -> bool:
    return node.once(name, lambda: node.attribute(name) is not None)


def wide(x: np.ndarray) -> np.ndarray:
    """Low precision floats as float32, small integers as int64: what products are summed in."""
    if x.dtype == np.float32:
        return x
    if types.is_float(x.dtype):
        return x.astype(np.float32) if x.dtype.itemsize < 4 else x
    return signed(x).astype(np.int64)


def expand_sparse(values: np.ndarray, meta: np.ndarray, kept: int, group: int) -> np.ndarray:
    """Return the dense form of N:M sparse ``values``.

    Args:
        values: [rows, K * kept / group] elements, condensed along the second dimension.
        meta: same shape; position of each kept element within its group. Or, of int16 and an eighth of the columns,
            eight positions in each, two bits a position, the first in the lowest ones.
        kept: N, elements kept of each group.
        group: M, elements of a group.

    Raises:
        InterpreterError: a position lies outside of its group.
    """
    rows, condensed = values.shape
    position = meta.astype(np.int64)
    if meta.shape != values.shape:
        position = (position[..., None] >> 2 * np.arange(8) & 3).reshape(values.shape)
    if position.size and (position.min() < 0 or position.max() >= group):
        raise InterpreterError(f"metadata {position.min()}..{position.max()} is outside a group of {group}")
    column = np.arange(condensed) // kept * group + position
    out = np.zeros((rows, condensed // kept * group), values.dtype)
    np.add.at(out, (np.arange(rows)[:, None], column), values)
    return out


@handles("tile.mma")
def mma(_frame: Any, node: Node, a: np.ndarray, b: np.ndarray, c: np.ndarray, *meta: np.ndarray) -> np.ndarray:
    """a @ b + c, summed in at least float32 and rounded once; with ``meta``, ``a`` is condensed along k."""
    if meta:
        a = expand_sparse(a, meta[0], *_integers(node, "sparsity"))
    left, right = (_operand(node, x, name) for x, name in ((a, "a_unsigned"), (b, "b_unsigned")))
    total = np.matmul(left, right) + wide(c)
    if total.dtype == c.dtype:
        return total
    return total.astype(c.dtype) if types.is_float(c.dtype) else narrow(total, c.dtype)


@handles("tile.mma_wait")
def mma_wait(_frame: Any, _node: Node, source: np.ndarray) -> np.ndarray:
    """The product, complete: it was so at once."""
    return source


def _operand(node: Node, x: np.ndarray, name: str) -> np.ndarray:
    return unsigned(x).astype(np.int64) if _flag(node, name) else wide(x)


_KINDS = {
    "add": "add",
    "mul": "mul",
    "max": "max",
    "min": "min",
    "maxnum": "maxnum",
    "minnum": "minnum",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "umax": "maxu",
    "umin": "minu",
}


def reduce_kind(node: Node, name: str = "kind") -> str:
    """Return the combiner that the op's attribute ``name`` names."""
    return node.once("combiner", lambda: _KINDS[enum_name(node.op.attributes[name])])


def enum_name(attribute: ir.Attribute) -> str:
    """Return the keyword of an enum attribute such as ``#tile<reduce_kind add>``."""
    return str(attribute).replace("<", " ").replace(">", " ").replace('"', " ").split()[-1]


@handles("tile.reduce")
def reduce_(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """Reduced dimensions stay, with size 1."""
    return reduce_array(reduce_kind(node), x, _integers(node, "dims"))


@handles("tile.scan")
def scan(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """Running combination along a dimension; exclusive starts with the neutral element."""
    kind, dim = reduce_kind(node), _integer(node, "dim")
    work = np.flip(x, dim) if _flag(node, "reverse") else x
    out = np.empty_like(work)
    size = x.shape[dim]
    shift = int(_flag(node, "exclusive"))
    if shift and size:
        out[_at(x, dim, slice(0, 1))] = neutral(kind, x.dtype)
    for i in range(shift, size):
        out[_at(x, dim, slice(i, i + 1))] = reduce_array(kind, work[_at(x, dim, slice(0, i + 1 - shift))], [dim])
    return np.flip(out, dim) if _flag(node, "reverse") else out


def _at(x: np.ndarray, dim: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if d == dim else slice(None) for d in range(x.ndim))


def neutral(kind: str, dtype: np.dtype) -> Any:
    """Return the value that a combiner leaves the other operand as it is for."""
    if types.is_float(dtype):
        value = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}.get(kind.removesuffix("num"))
        if value is None:
            raise InterpreterError(f"no neutral element of {kind} on {dtype}")
        return np.float32(value).astype(dtype)
    if dtype == np.bool_:
        return np.bool_(kind in ("mul", "and", "minu", "max"))
    info, word = np.iinfo(dtype), dtype.type
    return {
        "mul": word(1),
        "max": word(info.min),
        "min": word(info.max),
        "and": word(-1),
        "minu": word(-1),
    }.get(kind, word(0))


@handles("tile.broadcast")
def broadcast(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """NumPy's rule: aligned at the right, size 1 expands, the rank may grow."""
    return np.broadcast_to(x, _shape(node))


@handles("tile.transpose")
def transpose(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """Permute dimensions."""
    return x.transpose(_integers(node, "permutation"))


@handles("tile.reshape")
def reshape(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """The same elements in row-major order."""
    return x.reshape(_shape(node))


@handles("tile.extract")
def extract(_frame: Any, node: Node, x: np.ndarray) -> Any:
    """A slice at static offsets, or the only element as a scalar."""
    if types.shaped(node.result_type()) is None:
        return x[tuple(_integers(node, "offsets")) or (0,) * x.ndim]
    return x[_window(_integers(node, "offsets"), _shape(node))]


@handles("tile.insert")
def insert(_frame: Any, node: Node, source: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A copy with a slice at static offsets replaced."""
    out = np.array(x)
    out[_window(_integers(node, "offsets"), source.shape)] = source
    return out


def _window(offsets: list[int], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


@handles("tile.splat")
def splat(_frame: Any, node: Node, value: Any) -> np.ndarray:
    """One value everywhere."""
    return np.broadcast_to(value, _shape(node))


@handles("tile.iota")
def iota(_frame: Any, node: Node) -> np.ndarray:
    """The position along a dimension."""
    shape, dim = _shape(node), _integer(node, "dim")
    line = np.arange(shape[dim]).astype(types.dtype_of(node.result_type()))
    return np.broadcast_to(line.reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape)


@handles("tile.select")
def select(_frame: Any, _node: Node, condition: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise choice."""
    return np.where(condition, a, b)


@handles("tile.convert")
def convert(_frame: Any, node: Node, x: np.ndarray) -> np.ndarray:
    """Between element types: floats round to nearest even, floats to integers toward zero, integers sign-extend.

    With ``unsigned`` integers are taken as unsigned on either side; i1 is 0 or 1, and "is not zero" as a target.
    """
    target = types.dtype_of(node.result_type())
    source_float, target_float = types.is_float(x.dtype), types.is_float(target)
    if target == np.bool_:
        return x != 0
    if source_float and target_float:
        return x.astype(target)
    if source_float:
        return narrow(np.trunc(x).astype(np.uint64 if _flag(node, "is_unsigned") else np.int64), target)
    integers = unsigned(x) if _flag(node, "is_unsigned") or x.dtype == np.bool_ else x
    return integers.astype(target)
