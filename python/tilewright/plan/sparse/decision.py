# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile.sparsity`: how a product with a pruned weight is computed, as a value and as an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.patterns import Block, Pattern
from tilewright.dialects.sparse_tile.tesa import Region, Tesa
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import TesaAttr

DENSE = "dense"


@dataclass(frozen=True)
class Sparsity:
    """What is decided of a product `x [m, k] @ w [k, n]` whose constant operand has zeros.

    Attributes:
        cover: patterns of the regions, of the weight as [k, n]; none: the product is left dense.
        kernels: a family for each region; none: the first that takes it.
        least: for each region of blocks, elements that a block replaces at equal cost; none: half of a block.
        kept: units of each region that are kept.
        density: part of the weight that is not zero.
        ns: predicted time.
        runner_up: patterns of the next best; none: the dense product.
        runner_up_ns: its predicted time.
        dense_ns: predicted time of the dense product.
        reason: why it is left dense, or what the choice follows from.
    """

    cover: tuple[Pattern, ...]
    kernels: tuple[str, ...] = ()
    least: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    density: float = 1.0
    ns: int = 0
    runner_up: tuple[Pattern, ...] | None = None
    runner_up_ns: int = 0
    dense_ns: int = 0
    reason: str = ""

    def write(self, op: ir.Operation) -> None:
        """Set the decision on an operation."""
        i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
        fields: dict[str, ir.Attribute] = {
            "cover": _cover(self.cover),
            "density": ir.FloatAttr.get(f64, float(f"{self.density:.4g}")),
        }
        if self.kernels:
            fields["kernels"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in self.kernels])
        for name, numbers in (("least", self.least), ("kept", self.kept)):
            if any(numbers):
                fields[name] = ir.DenseI64ArrayAttr.get(list(numbers))
        for name, number in (("ns", self.ns), ("dense_ns", self.dense_ns)):
            if number:
                fields[name] = ir.IntegerAttr.get(i64, number)
        if self.runner_up is not None:
            fields["runner_up"] = _cover(self.runner_up)
            fields["runner_up_ns"] = ir.IntegerAttr.get(i64, self.runner_up_ns)
        if self.reason:
            fields["reason"] = ir.StringAttr.get(self.reason)
        decisions.SPARSITY.set(op, ir.DictAttr.get(fields))

    @classmethod
    def read(cls, op: ir.Operation) -> Sparsity:
        """The decision of an operation, as it was made or edited.

        Raises:
            UserError: a field is missing, of a wrong type, or the fields do not fit each other.
        """
        entries = {named.name: named.attr for named in ir.DictAttr(decisions.SPARSITY.read(op))}
        if "cover" not in entries:
            raise _wrong(op, 'has no cover: write cover = "dense" or cover = #sparse_tile.tesa<...>')
        cover = _patterns(op, entries["cover"])
        kernels = tuple(_texts(op, entries.get("kernels")))
        least, kept = (tuple(_integers(op, name, entries.get(name))) for name in ("least", "kept"))
        for name, found in (("kernels", kernels), ("least", least)):
            if found and len(found) != len(cover):
                raise _wrong(op, f"has {len(found)} {name} for a cover of {len(cover)} regions: one for each, or none")
        runner_up = _patterns(op, entries["runner_up"]) if "runner_up" in entries else None
        numbers = {n: entries[n].value for n in ("density", "ns", "runner_up_ns", "dense_ns", "reason") if n in entries}
        return cls(cover, kernels, least, kept, runner_up=runner_up, **numbers)

    def least_of(self, region: int) -> int:
        """Elements that a block of a region replaces at equal cost."""
        pattern = self.cover[region]
        if not isinstance(pattern, Block):
            return 0
        half = -(-pattern.shape[0] * pattern.shape[1] // 2)
        return max(self.least[region] if self.least else half, 1)


def text_of(cover: Sequence[Pattern]) -> str:
    """A cover as people read it: `nm<2 : 4, axis = 0>, mask`."""
    if not cover:
        return DENSE
    return str(_cover(cover)).partition("tesa<")[2].removesuffix(">")


def _wrong(op: ir.Operation, text: str) -> Exception:
    return located(UserError(f"`{decisions.SPARSITY}` {text}"), op)


def _cover(patterns: Sequence[Pattern]) -> ir.Attribute:
    return Tesa(tuple(Region(p) for p in patterns)).attribute() if patterns else ir.StringAttr.get(DENSE)


def _patterns(op: ir.Operation, given: ir.Attribute) -> tuple[Pattern, ...]:
    if isinstance(given, ir.StringAttr) and given.value == DENSE:
        return ()
    if not isinstance(given, TesaAttr):
        raise _wrong(op, f'has a cover {given}: it must be "dense" or #sparse_tile.tesa<...>')
    regions = Tesa.read(given).regions
    if any(region.format for region in regions):
        raise _wrong(op, f"has number formats in its cover {given}: a cover is of patterns alone")
    return tuple(region.pattern for region in regions)


def _texts(op: ir.Operation, given: ir.Attribute | None) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, ir.ArrayAttr) or any(not isinstance(entry, ir.StringAttr) for entry in given):
        raise _wrong(op, f"has kernels {given}: it must be an array of names")
    return [entry.value for entry in given]


def _integers(op: ir.Operation, name: str, given: ir.Attribute | None) -> list[int]:
    if given is None:
        return []
    if not isinstance(given, ir.DenseI64ArrayAttr):
        raise _wrong(op, f"has {name} = {given}: it must be an array<i64: ...>")
    return list(given)
