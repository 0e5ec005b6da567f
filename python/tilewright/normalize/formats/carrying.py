# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formats through what moves elements: each op that moves dequantized elements as one that moves codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.patterns import Dense
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, create_transposed, is_copy, maker, maps, place_of, positions, uses, walk
from tilewright.ir.structure import Kind, describe
from tilewright.ir.views import RESHAPES, create_with_ones, groups_of
from tilewright.mlir import ir
from tilewright.normalize.formats.grouping import collapsed, cut, expanded

_STATIC = ("static_offsets", "static_sizes", "static_strides")
_NAMED = ("linalg.matmul", "linalg.batch_matmul", "linalg.vecmat", "linalg.matvec")
#: Ops that read the same value where what they read is the same.
_SAME = ("arith.constant", "ml_program.global_load_const", *RESHAPES)


@dataclass(frozen=True)
class Coded:
    """A dense tensor that is codes with a format.

    Attributes:
        codes: the tensor of codes.
        numbers: scales and zero points, as many as the format has, of the rank of the codes.
        format: with a number or None for each dimension in `group`.
        element: the type of the elements.
    """

    codes: ir.Value
    numbers: tuple[ir.Value, ...]
    format: Format
    element: ir.Type

    @property
    def shape(self) -> list[int]:
        """Sizes of the tensor."""
        return list(ir.RankedTensorType(self.codes.type).shape)

    def dequantized(self) -> ir.Value:
        """The elements, at the current insertion point."""
        group = self.format.group if any(self.format.group) else ()
        kind = Tesa.one(Dense(), replace(self.format, group=group)).type(self.shape, self.element)
        whole = create("sparse_tile.assemble", [self.codes, *self.numbers], kind)
        return create("sparse_tile.dequantize", [whole], ir.RankedTensorType.get(self.shape, self.element))


def coded(value: ir.Value) -> Coded | None:
    """The codes that the elements of a tensor are made of; None where it is not dequantized."""
    op = maker(value)
    made = maker(op.operands[0]) if op is not None and op.name == "sparse_tile.dequantize" else None
    return None if made is None else _assembled(made)


def _assembled(made: ir.Operation) -> Coded | None:
    if made.name != "sparse_tile.assemble":
        return None
    kind, tesa = ir.RankedTensorType(made.results[0].type), Tesa.of(made.results[0].type)
    if tesa is None or len(tesa.regions) != 1 or not isinstance(tesa.regions[0].pattern, Dense):
        return None
    format = tesa.regions[0].format
    if format is None or not kind.rank:
        return None
    codes, *numbers = made.operands
    return Coded(codes, tuple(numbers), replace(format, group=format.group or (None,) * kind.rank), kind.element_type)


def carry(root: ir.Operation) -> None:
    """Carry all formats as far as they go; then drop what rounds codes to themselves."""
    found = walk(root, "sparse_tile.dequantize")
    while found:
        op = found.pop()
        for user, number in list(uses(op.results[0])):
            made = _carried(op, user, number)
            if made is not None:
                found.append(made)
        if not any(True for _ in uses(op.results[0])):
            op.erase()
    for op in walk(root, "sparse_tile.quantize"):
        _drop(op)
    for name in ("sparse_tile.dequantize", "sparse_tile.assemble"):
        for op in walk(root, name):
            if not any(True for _ in uses(op.results[0])):
                op.erase()


def _carried(op: ir.Operation, user: ir.Operation, number: int) -> ir.Operation | None:
    """Let a user move codes; the dequantization behind it, None where it stays as it is."""
    rule = _RULES.get(user.name) if number == 0 else None
    given = coded(op.results[0])
    if rule is None or given is None or len(user.results) != 1 or not _takes_codes(user.results[0]):
        return None
    with user.location, ir.InsertionPoint(user):
        moved = rule(user, given)
        if moved is None:
            return None
        new = moved.dequantized()
    user.results[0].replace_all_uses_with(new)
    user.erase()
    return maker(new)


def _takes_codes(value: ir.Value) -> bool:
    """Whether all that reads a tensor, maybe moved on, takes codes."""
    readers = list(uses(value))
    return bool(readers) and all(_reads_codes(user, number) for user, number in readers)


def _reads_codes(user: ir.Operation, number: int) -> bool:
    if user.name == "sparse_tile.quantize" or user.name in _NAMED or user.name.startswith("linalg.conv_"):
        return number < 2
    if user.name == "linalg.generic" and len(user.operands) == 3 and number < 2:
        return describe(user, 0).kind is Kind.CONTRACTION
    return number == 0 and user.name in _RULES and len(user.results) == 1 and _takes_codes(user.results[0])


# Moves ------------------------------------------------------------------------------------------------------------


def _reshape(op: ir.Operation, given: Coded) -> Coded | None:
    if len(op.operands) != 1:
        return None  # sizes that a run brings
    dims, shape = groups_of(op.attributes["reassociation"]), list(ir.RankedTensorType(op.results[0].type).shape)
    opens = op.name == "tensor.expand_shape"
    group = expanded(given.format.group, dims, shape) if opens else collapsed(given.format.group, dims, given.shape)
    if group is None or (min(shape, default=1) < 0 and any(group)):
        return None
    format = replace(given.format, group=group)
    sizes = list(format.scale_shape([max(n, 1) for n in shape]))

    def reshaped(value: ir.Value, sizes: list[int]) -> ir.Value:
        kind = ir.RankedTensorType.get(sizes, ir.RankedTensorType(value.type).element_type)
        attributes = {"reassociation": op.attributes["reassociation"]}
        if opens:
            attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(sizes)
        return create(op.name, [value], kind, attributes)

    numbers = tuple(reshaped(v, sizes) for v in given.numbers)
    return replace(given, codes=reshaped(given.codes, shape), numbers=numbers, format=format)


def _slice(op: ir.Operation, given: Coded) -> Coded | None:
    if len(op.operands) != 1:
        return None
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in _STATIC)
    result = ir.RankedTensorType(op.results[0].type)
    kept = _kept(sizes, list(result.shape))
    at = cut(given.format.group, offsets, sizes, strides) if kept is not None else None
    if kept is None or at is None:
        return None

    def sliced(value: ir.Value, static: Sequence[Sequence[int]]) -> ir.Value:
        kind = ir.RankedTensorType.get([static[1][d] for d in kept], ir.RankedTensorType(value.type).element_type)
        attributes = {name: ir.DenseI64ArrayAttr.get(list(one)) for name, one in zip(_STATIC, static, strict=True)}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
        return create("tensor.extract_slice", [value], kind, attributes)

    format = replace(given.format, group=tuple(given.format.group[d] for d in kept))
    numbers = tuple(sliced(v, at) for v in given.numbers)
    return replace(given, codes=sliced(given.codes, (offsets, sizes, strides)), numbers=numbers, format=format)


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The dimensions that a slice keeps; None where sizes do not tell."""
    found: list[int] = []
    for d, size in enumerate(sizes):
        if len(found) < len(shape) and size == shape[len(found)]:
            found.append(d)
        elif size != 1:
            return None
    return found if len(found) == len(shape) else None


def _copy(op: ir.Operation, given: Coded) -> Coded | None:
    """A copy into a tensor of its own, transposing or not."""
    place = place_of(op)
    if not is_copy(op) or place is None or place.operands:
        return None
    read, written = (positions(m) for m in maps(op))
    order = [read.index(loop) for loop in written]  # which dimension of the source is each of the result's
    format = replace(given.format, group=tuple(given.format.group[d] for d in order))

    if order == sorted(order):
        return given
    numbers = tuple(_turned(v, order) for v in given.numbers)
    return replace(given, codes=create_transposed(given.codes, order), numbers=numbers, format=format)


def _turned(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """Scales with their dimensions in another order: a view where only those of size 1 change places."""
    shape = ir.RankedTensorType(value.type).shape
    large = [d for d in order if shape[d] != 1]
    if large == sorted(large):
        return create_with_ones(value, [shape[d] for d in order])
    return create_transposed(value, order)


_RULES: dict[str, Callable[[ir.Operation, Coded], Coded | None]] = {
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.extract_slice": _slice,
    "linalg.generic": _copy,
}


# What rounds codes to themselves ----------------------------------------------------------------------------------


def _drop(op: ir.Operation) -> None:
    """Drop a quantize of elements that codes of the same format stand for already.

    ``round((q - z) * s / s) + z`` is q: two roundings err by less than half of a step of an integer of nine bits.
    """
    given = coded(op.operands[0])
    tesa = Tesa.of(op.results[0].type)
    if given is None or tesa is None or given.format.is_float or str(given.element) != "f32":
        return
    wanted = tesa.regions[0].format
    numbers = list(op.operands)[1:]
    if wanted is None or replace(wanted, group=wanted.group or (None,) * len(given.shape)) != given.format:
        return
    if wanted.scales != "f32" or not all(same(a, b) for a, b in zip(numbers, given.numbers, strict=True)):
        return
    with op.location, ir.InsertionPoint(op):
        whole = create("sparse_tile.assemble", [given.codes, *numbers], op.results[0].type)
    op.results[0].replace_all_uses_with(whole)
    op.erase()


def same(a: ir.Value, b: ir.Value) -> bool:
    """Whether two values are equal: one value, or constants that say the same."""
    if a == b:
        return True
    one, other = maker(a), maker(b)
    if one is None or other is None or one.name != other.name or one.name not in _SAME:
        return False
    if _attributes(one) != _attributes(other) or len(one.operands) != len(other.operands) or a.type != b.type:
        return False
    return all(same(x, y) for x, y in zip(one.operands, other.operands, strict=True))


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
