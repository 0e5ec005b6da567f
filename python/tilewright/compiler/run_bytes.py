# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that an operation of layer 1 or 2 reads and writes, each once."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tilewright.compiler.kernel_traffic import type_bytes
from tilewright.ir.generics import maps
from tilewright.mlir import ir
from tilewright.mlir.dialects.fractal import ArrayType

VIEWS = frozenset(
    "tensor.extract_slice tensor.expand_shape tensor.collapse_shape tensor.cast tensor.reshape tensor.insert_slice "
    "memref.subview memref.expand_shape memref.collapse_shape memref.cast memref.reinterpret_cast memref.view "
    "bufferization.to_tensor bufferization.to_buffer".split()
)
"""Operations whose result is a part of their first operand, or stands in its place."""
FREE = frozenset(
    "tensor.empty tensor.dim tensor.from_elements tensor.extract tensor.yield linalg.fill linalg.yield linalg.index "
    "tile.yield ml_program.global_load_const ml_program.global_load memref.get_global memref.alloc memref.alloca "
    "memref.dealloc memref.dim memref.load memref.store func.return".split()
)

_SILENT = VIEWS | FREE | {"tile.group"}


def bytes_read(op: ir.Operation) -> int:
    """Bytes that an operation reads: of each value from outside it once."""
    inner = list(nested(op))
    whole: dict[Any, int] = {}
    gathered: dict[Any, int] = {}
    inside = set(inner)
    for each in (op, *inner):
        name = each.name
        if name == "tensor.extract":
            root = _root(each.operands[0], op, inside)
            if root is not None:
                gathered[root] = gathered.get(root, 0) + _iterations(each) * type_bytes(_element(root))
        elif name not in _SILENT:
            roots = (_root(value, op, inside) for value in _inputs(each))
            whole.update((root, bytes_of(root)) for root in roots if root is not None)
    gathered = {root: min(moved, bytes_of(root)) for root, moved in gathered.items()}
    return sum({**gathered, **whole}.values())


def nested(op: ir.Operation | ir.Block) -> Iterator[ir.Operation]:
    """All operations inside one, outer ones first."""
    blocks = [op] if isinstance(op, ir.Block) else [block for region in op.regions for block in region.blocks]
    for block in blocks:
        for view in block.operations:
            yield view.operation
            yield from nested(view.operation)


def _inputs(op: ir.Operation) -> Iterator[Any]:
    """What an operation reads of its operands: not what it only writes to, nor a sum's beginning."""
    operands = list(op.operands)
    inits = len(op.results) if op.name.startswith("linalg.") else 0
    for number, value in enumerate(operands):
        if not (isinstance(value.type, ir.ShapedType) or is_list(value)):
            continue
        if number >= len(operands) - inits and (_is_blank(value) or not _reads_init(op, number)):
            continue
        yield value


def _is_blank(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name in ("linalg.fill", "tensor.empty")


def _reads_init(op: ir.Operation, number: int) -> bool:
    block = op.regions[0].blocks[0] if op.name == "linalg.generic" else None
    return block is None or any(True for _ in block.arguments[number].uses)


def _root(value: Any, op: ir.Operation, inside: set[ir.Operation]) -> Any:
    """What a value inside an operation is, or is a part of, outside of it; None: it is made inside."""
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            around = owner.owner.operation
            if around != op and around not in inside:
                return value
            if around.name != "tile.group":
                return None
            value = around.operands[ir.BlockArgument(value).arg_number]
        elif owner not in inside:
            return value
        elif owner.name in VIEWS:
            value = owner.operands[0]
        else:
            return None


def _iterations(op: ir.Operation) -> int:
    """How often the nest around an operation runs it."""
    around = op.parent.operation if op.parent is not None else None
    if around is None or around.name != "linalg.generic":
        return 1
    sizes: dict[int, int] = {}
    for value, indexing in zip(around.operands, maps(around), strict=False):
        shape = _sizes(value)
        for expr, size in zip(indexing.results, shape, strict=False):
            if isinstance(expr, ir.AffineDimExpr):
                sizes[expr.position] = size
    return prod(sizes.values())


def _sizes(value: Any) -> list[int]:
    shaped = ir.ShapedType(value.type)
    return [1 if shaped.is_dynamic_dim(i) else shaped.get_dim_size(i) for i in range(shaped.rank)]


def _element(value: Any) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def is_list(value: Any) -> bool:
    """Whether it is an array of the fractal dialect."""
    return ArrayType.isinstance(value.type)


def lengths_of(value: Any) -> tuple[int, ...]:
    """Lengths of the levels of an array, negative where a run brings them; nothing for any other value."""
    return tuple(ArrayType(value.type).lengths) if ArrayType.isinstance(value.type) else ()


def bytes_of(value: Any) -> int:
    """Of a tensor, a memref or lists; what is neither is no memory, and a size that is not known counts as one."""
    if is_list(value):
        return prod(max(n, 1) for n in lengths_of(value)) * type_bytes(ArrayType(value.type).leaf)
    return type_bytes(value.type) if isinstance(value.type, ir.ShapedType) else 0


def is_open(value: Any) -> bool:
    """Whether a size of it is not known."""
    if is_list(value):
        return any(n < 0 for n in lengths_of(value))
    kind = value.type
    return isinstance(kind, ir.ShapedType) and kind.has_rank and not kind.has_static_shape
