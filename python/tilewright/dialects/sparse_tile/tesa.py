# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The encoding of a tensor: regions of a pattern and a format each, as Python values and as an attribute of the IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.core.dtypes import name_of_mlir
from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.patterns import NM, Block, Dense, Dynamic, Mask, Pattern
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import TesaAttr

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_MLIR = {"f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "f8e8m0fnu": "f8E8M0FNU"}


@dataclass(frozen=True)
class Region:
    """A part of a tensor: its pattern, and the format of its values (None: elements as they are)."""

    pattern: Pattern
    format: Format | None = None


@dataclass(frozen=True)
class Tesa:
    """Tensor with sparsity attribute: the tensor is the sum of its regions (SparTA, OSDI 2022, section 3)."""

    regions: tuple[Region, ...]

    @classmethod
    def one(cls, pattern: Pattern, format: Format | None = None) -> Tesa:
        """An encoding of one region."""
        return cls((Region(pattern, format),))

    @classmethod
    def of(cls, type_: ir.Type) -> Tesa | None:
        """Return the encoding of a tensor's type; None where it has none of this dialect."""
        encoding = type_.encoding if isinstance(type_, ir.RankedTensorType) else None
        return cls.read(encoding) if isinstance(encoding, TesaAttr) else None

    @classmethod
    def read(cls, attribute: TesaAttr) -> Tesa:
        """Return what an attribute says."""
        return cls(tuple(_region(ir.DictAttr(entry)) for entry in ir.ArrayAttr(attribute.entries)))

    def attribute(self) -> TesaAttr:
        """Return the attribute, in the current context.

        Raises:
            ValueError: a number is out of range; names it.
        """
        return TesaAttr.get(ir.ArrayAttr.get([_entries(region) for region in self.regions]))

    def type(self, shape: Sequence[int], element: ir.Type) -> ir.RankedTensorType:
        """Return the type of an encoded tensor; sizes that are not known are `ShapedType.get_dynamic_size()`.

        Raises:
            UserError: the encoding does not fit the shape; says why.
        """
        try:
            return ir.RankedTensorType.get(list(shape), element, self.attribute(), loc=ir.Location.unknown())
        except ir.MLIRError as error:
            raise UserError(f"no tensor of shape {list(shape)} has this encoding: {error}") from None


def _region(entries: ir.DictAttr) -> Region:
    return Region(_pattern(_plain(entries["pattern"])), _format(entries) if "format" in entries else None)


def _plain(entries: ir.Attribute) -> dict[str, Any]:
    """A dictionary of numbers, lists and texts."""
    result: dict[str, Any] = {}
    for entry in ir.DictAttr(entries):
        value = entry.attr
        if isinstance(value, ir.DenseI64ArrayAttr):
            result[entry.name] = tuple(value)
        elif isinstance(value, ir.TypeAttr):
            result[entry.name] = str(value.value)
        else:
            result[entry.name] = value.value
    return result


def _pattern(given: Mapping[str, Any]) -> Pattern:
    kinds = {"nm": NM, "block": Block, "dynamic": Dynamic, "mask": Mask, "dense": Dense}
    return kinds[given["kind"]](**{name: value for name, value in given.items() if name != "kind"})


def _format(region: ir.DictAttr) -> Format:
    given = _plain(region["format"])
    storage, zero_points = name_of_mlir(given["storage"]), given.get("zero_points")
    scales = given.get("scales")
    if given["unsigned"]:
        storage = storage.replace("i", "u")
        zero_points = zero_points and (f"u{zero_points[1:]}" if zero_points in ("i2", "i4", "i8") else zero_points)
    group = tuple(None if size == _DYNAMIC else size for size in given["group"])
    return Format(storage, scales and name_of_mlir(scales), zero_points and name_of_mlir(zero_points), group)


def _entries(region: Region) -> ir.DictAttr:
    found = {"pattern": _pattern_entries(region.pattern)}
    if region.format:
        found["format"] = _format_entries(region.format)
    return ir.DictAttr.get(found)


def _pattern_entries(pattern: Pattern) -> ir.DictAttr:
    entries: dict[str, ir.Attribute] = {"kind": ir.StringAttr.get(pattern.kind)}
    for name, value in vars(pattern).items():
        entries[name] = ir.DenseI64ArrayAttr.get(list(value)) if isinstance(value, tuple) else _number(value)
    return ir.DictAttr.get(entries)


def _number(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _type(name: str) -> ir.TypeAttr:
    """A scalar type by our name; unsigned integers are signless in the IR."""
    return ir.TypeAttr.get(ir.Type.parse(_MLIR.get(name, name.replace("u", "i"))))


def _format_entries(given: Format) -> ir.DictAttr:
    entries: dict[str, ir.Attribute] = {
        "storage": _type(given.storage),
        "unsigned": ir.BoolAttr.get(given.storage.startswith("u")),
        "group": ir.DenseI64ArrayAttr.get([_DYNAMIC if size is None else size for size in given.group]),
    }
    if given.scales:
        entries["scales"] = _type(given.scales)
    if given.zero_points:
        entries["zero_points"] = _type(given.zero_points)
    return ir.DictAttr.get(entries)
