# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks in the kernel of single elements: a mixture of both passes once over the dense operand and the result.

SparTA (OSDI 2022, section 4.3) adds the results of a kernel for each region of a cover. Here the rows of the sparse
matrix that share blocks keep their sums in registers while the blocks are summed, and go on, one by one, with their
single elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import Block, Mask
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, create_copy
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.cpu.panel_lists import block_lists, is_constant
from tilewright.plan.sparse.forms.cpu.panel_product import reason_against_panels
from tilewright.plan.sparse.forms.form import Product


@dataclass(frozen=True)
class Panels:
    """Rows of the sparse matrix that share blocks, as the kernel reads them.

    Attributes:
        rows: of a panel; each has sums of its own in registers.
        run: neighbours along the depth for each entry of a list.
        shared: panels, neighbours, that have a list in common.
        lists: how many lists.
        entries: of all lists.
        reach: a bound of what lists name, at least the depth.
    """

    rows: int
    run: int
    shared: int
    lists: int
    entries: int
    reach: int

    def arguments(self, element: str) -> list[str]:
        """Values [shared, entries * run, rows], entries' first slices and where lists start."""
        return [
            f"%bvalues: {self.values(element)}",
            f"%bat: memref<{self.entries}xi32>",
            f"%bstarts: memref<{self.lists + 1}xi32>",
        ]

    def values(self, element: str) -> str:
        """The type of values."""
        return f"memref<{self.shared}x{self.entries * self.run}x{self.rows}x{element}>"


def edges(product: Product) -> tuple[int, int] | None:
    """Rows of the sparse matrix and slices of the depth that a block has; None where the pattern is not of blocks."""
    (region,) = product.tesa.regions
    if not isinstance(region.pattern, Block):
        return None
    first, second = region.pattern.shape
    return (first, second) if product.left else (second, first)


def rows_together(device: Device) -> int:
    """Rows whose sums are held at once: half of the registers, with four vectors each."""
    return max(device.units.registers // 8, 1)


def reason_for_blocks(product: Product, device: Device) -> str | None:
    """Why blocks are not summed row by row; None where they can be. Who does not ask for it gets tiles of blocks."""
    why = reason_against_panels(product, device)
    if why is not None:
        return why
    block = edges(product)
    if block is None or "kernel" not in product.op.attributes:
        return "units are blocks"
    if block[0] % rows_together(device):
        return f"blocks are no multiple of {rows_together(device)} rows"
    return None if is_constant(product) else "it is not known which blocks are kept"


def panels_of(product: Product, device: Device, element: ir.Type) -> tuple[Panels, list[ir.Value]]:
    """What the kernel is made for, and its arguments: values in the type of sums, entries, starts."""
    block, pattern = edges(product), product.tesa.regions[0].pattern
    assert block is not None and isinstance(pattern, Block)
    rows = rows_together(device)
    lists = block_lists(product, pattern, rows)
    assert lists.starts is not None
    values, kind = lists.values, ir.RankedTensorType(lists.values.type)
    wide = ir.RankedTensorType.get(kind.shape, element)
    if kind != wide:
        values = create_copy(values, create("tensor.empty", [], wide), "arith.extf")
    count = ir.RankedTensorType(lists.starts.type).shape[0] - 1
    reach = -(-product.k // lists.run) * lists.run
    panels = Panels(rows, lists.run, block[0] // rows, count, lists.entries, reach)
    return panels, [values, lists.at, lists.starts]


def goes_on(op: ir.Operation) -> ir.Operation | None:
    """The product of single elements that adds to a product of blocks, by the same family; None: there is none."""
    users = [use.owner.operation for use in op.results[0].uses]
    if len(users) != 1 or users[0].name != "sparse_tile.matmul" or users[0].operands[2] != op.results[0]:
        return None
    names = [str(one.attributes["kernel"]) for one in (op, users[0]) if "kernel" in one.attributes]
    if names != ['"rows_in_lanes"'] * 2 or users[0].operands[0] == op.results[0]:
        return None
    number = _encoded(op)
    if number != _encoded(users[0]) or op.operands[1 - number] != users[0].operands[1 - number]:
        return None
    patterns = [_pattern(one.operands[number]) for one in (op, users[0])]
    return users[0] if isinstance(patterns[0], Block) and isinstance(patterns[1], Mask) else None


def _encoded(op: ir.Operation) -> int:
    return 0 if Tesa.of(op.operands[0].type) is not None else 1


def _pattern(value: ir.Value) -> object:
    """The pattern of an encoding of one region."""
    tesa = Tesa.of(value.type)
    return tesa.regions[0].pattern if tesa is not None and len(tesa.regions) == 1 else None
