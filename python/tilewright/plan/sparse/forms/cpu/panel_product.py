# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with panels on a CPU: tiles by a law of the core's pipes, tasks by the caches, the launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.devices.device import Device
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.passes import remark
from tilewright.plan.sparse.forms.cpu.panel_kernel import CHUNK, PanelKernel
from tilewright.plan.sparse.forms.cpu.panel_lists import Lists
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import kernel, launch

#: Of the vector registers, those that hold sums; the others hold a slice of each operand.
_SUMS = 0.75
_MOST_VECTORS = 8
#: Cycles of a multiply-add, of which two start at once.
_LATENCY = 4
#: Bytes that come from the L2 cache in a cycle, and the part of it that a slab may take.
_FROM_L2, _SLAB = 24, 0.2
#: The part of it that the slabs of a task may take where values come from beyond, and how many there are at most.
_SLABS, _MOST_SLABS = 0.4, 4
#: What sums across the result lose: slabs and results are transposed in registers.
_CROSSING = 0.95
_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@dataclass(frozen=True)
class PanelTile:
    """The register tile of a panel and a slab.

    Attributes:
        width: columns of a panel.
        height: rows of a slab.
        wide: whether the panel's columns are the lanes.
        efficiency: the part of the core's multiply-adds that are the product's own: of the cycles per slice of the
            depth, the greater one of multiply-adds and of loads (two a cycle each), and of lanes that have a column.
    """

    width: int
    height: int
    wide: bool
    efficiency: float


@dataclass(frozen=True)
class Core:
    """What the law of tiles needs of a core.

    Attributes:
        lanes: elements of a vector, of the type of the sums.
        registers: vector registers.
        slab: elements of a slab along the rows that fit their share of the L2 cache; what it says depends on the depth.
        line: elements that come from the L2 cache in a cycle.
    """

    lanes: int
    registers: int
    slab: int
    line: float

    @property
    def sums(self) -> int:
        """Vectors of sums."""
        return int(self.registers * _SUMS)

    def efficiency(self, vectors: int, broadcasts: int, rows: int) -> float:
        """Multiply-adds of whole vectors, of what the cycles of one slice of the depth had room for.

        Args:
            vectors: of lanes.
            broadcasts: elements that they are multiplied by.
            rows: of a slab.
        """
        busy = vectors * broadcasts / 2
        chains = _LATENCY if vectors * broadcasts < 2 * _LATENCY else 0.0
        return busy / max(busy, (vectors + broadcasts) / 2, chains, rows / self.line)


def panel_tile(columns: int, rows: int, left: bool, core: Core) -> PanelTile:
    """The best register tile of panels that share a list across `columns` columns.

    Args:
        columns: of the unit or block.
        rows: of the dense operand; below zero where a run brings the number.
        left: whether the sparse operand is on the left: then the dense one's rows lie side by side in memory.
        core: what runs it.
    """
    found = []
    for width in (d for d in range(1, columns + 1) if columns % d == 0):
        vectors = -(-width // core.lanes)
        if not left and vectors <= core.sums // 2:
            found.append(_wide(width, vectors, rows, core))
        if width <= core.sums:
            found.append(_tall(width, rows, left, core))
    return max(found, key=lambda tile: (round(tile.efficiency, 2), tile.wide, -abs(tile.width - 2 * core.lanes)))


def _wide(width: int, vectors: int, rows: int, core: Core) -> PanelTile:
    """Columns in lanes."""
    height = core.sums // vectors
    if rows > 0:
        height = -(-rows // -(-rows // height))
    return PanelTile(width, height, True, core.efficiency(vectors, height, height) * width / (vectors * core.lanes))


def _tall(width: int, rows: int, left: bool, core: Core) -> PanelTile:
    """Rows of the dense operand in lanes."""
    least = -(-2 * _LATENCY // width)
    vectors = max(1, min(_MOST_VECTORS, core.sums // width, max(core.slab // core.lanes, least)))
    filled = 1.0
    if rows > 0:
        slabs = -(-rows // (vectors * core.lanes))
        vectors = -(-rows // (slabs * core.lanes))
        filled = rows / (slabs * vectors * core.lanes)
    height = vectors * core.lanes
    efficiency = core.efficiency(vectors, width, height) * filled * (1.0 if left else _CROSSING)
    return PanelTile(width, height, False, efficiency)


def reason_against_panels(product: Product, device: Device) -> str | None:
    """What rules out every kernel of this kind."""
    element = ir.RankedTensorType(product.dense.type).element_type
    if device.kind != "cpu":
        return "it is for CPUs"
    if len(product.tesa.regions) != 1:
        return "the operand is a union of regions: one product for each"
    if str(element) not in _WIDTHS or product.element not in _WIDTHS:
        return f"it multiplies floats of 16 bits and more, not {element}"
    columns = product.m if product.left else product.n
    if min(product.k, columns) < 1 or 0 in (product.m, product.n):
        return "sizes of the sparse operand are to be known, and none is to be zero"
    return None


def core_of(product: Product, device: Device) -> Core:
    """The core that a product runs on."""
    size = 8 if product.element == "f64" else 4
    slab = int(device.level("l2").bytes * _SLAB / (product.k * size))
    return Core(device.lanes(8 * size), device.units.registers, slab, _FROM_L2 / size)


def tile_of(product: Product, device: Device, columns: int) -> PanelTile:
    """The register tile of a product with lists across `columns` columns."""
    rows = product.n if product.left else product.m
    return panel_tile(columns, rows, product.left, core_of(product, device))


def multiply(
    product: Product, device: Device, columns: int, depth: int, lists_of: Callable[[Product, int], Lists]
) -> ir.Value:
    """Make the kernel, the operations that pack what it reads, and the launch; returns the result.

    Args:
        product: it has no reason against it.
        device: a CPU.
        columns: that share a list.
        depth: of the sparse operand with what it holds behind the end of the dense one's.
        lists_of: makes the lists for panels of a width.
    """
    _tell_of_slow_types(product, device)
    tile = tile_of(product, device, columns)
    lists = lists_of(product, tile.width)
    made = _kernel(product, device, tile, lists, columns // tile.width, -(-max(depth, product.k) // CHUNK) * CHUNK)
    name = kernel(made.text(), f"sparse_{'left' if product.left else 'right'}_{product.k}x{made.columns}")
    inputs = [product.dense, lists.values, lists.at, *([lists.starts] if lists.starts is not None else [])]
    inputs += [_cuts(made, lists.weights), *([product.init] if product.init is not None else [])]
    kind = ir.RankedTensorType(product.op.results[0].type)
    rows = _rows(product, kind)
    target = create("tensor.empty", [] if isinstance(rows, int) else [rows], kind)
    grid = _groups(rows, made.height * made.group)
    (result,) = launch(name, [grid, made.ranges], inputs, [target])
    return result


def _tell_of_slow_types(product: Product, device: Device) -> None:
    """A remark where a dense product would have instructions that these kernels do not use."""
    element = str(ir.RankedTensorType(product.dense.type).element_type)
    peaks = dict(device.units.peak)
    if element == "bf16" and peaks.get("bf16", 0.0) > peaks.get("f32", 0.0):
        remark(product.op, "bf16 is widened and multiplied as f32; dense products of it have faster instructions here")


def _kernel(product: Product, device: Device, tile: PanelTile, lists: Lists, shared: int, reach: int) -> PanelKernel:
    wide = "f64" if product.element == "f64" else "f32"
    dense, value = (str(ir.RankedTensorType(v.type).element_type) for v in (product.dense, lists.values))
    rows, columns = (product.n, product.m) if product.left else (product.m, product.n)
    held = ir.RankedTensorType(lists.values.type)
    stored = int(np.prod([max(s, 1) for s in held.shape])) * _WIDTHS[value] // 8
    slab = reach * tile.height * _WIDTHS[wide] // 8
    slabs = -(-rows // tile.height) if rows > 0 else -1
    panels = -(-columns // tile.width)
    group, ranges = _tasks(device, slab, stored, slabs, -(-panels // shared))
    return PanelKernel(
        left=product.left, rows=rows, depth=product.k, columns=columns, width=tile.width, shared=shared, run=lists.run,
        count=lists.count, entries=lists.entries, height=tile.height, group=group, reach=reach, wide=tile.wide,
        ranges=ranges, types=(dense, value, product.element, wide), init=product.init is not None,
    )  # fmt: skip


def _tasks(device: Device, slab: int, stored: int, slabs: int, lists: int) -> tuple[int, int]:
    """Slabs of a task and ranges of panels.

    A few slabs share each read of a panel's values, and fit the L2 cache beside them. All units have work, twice if
    there is enough: then the last tasks keep no one waiting for long.
    """
    l2, units = device.level("l2").bytes, device.units.count
    group = int(np.clip(l2 * (_SLABS if stored > l2 // 2 else _SLAB) / slab, 1, _MOST_SLABS))
    if slabs < 0:
        return group, min(units, lists)
    group = max(1, min(group, slabs // (2 * units)))
    tasks = -(-slabs // group)
    return group, 1 if tasks >= 2 * units else min(lists, -(-2 * units // tasks))


def _rows(product: Product, kind: ir.RankedTensorType) -> int | ir.Value:
    """Rows of the dense operand, across the depth."""
    at = 1 if product.left else 0
    if kind.shape[at] >= 0:
        return kind.shape[at]
    index = ir.IndexType.get()
    dim = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, at)})
    return create("tensor.dim", [product.dense, dim], index)


def _groups(rows: int | ir.Value, step: int) -> int | ir.Value:
    """Groups of `step` rows."""
    if isinstance(rows, int):
        return -(-rows // step)
    index = ir.IndexType.get()
    number = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, step)})
    return create("arith.ceildivui", [rows, number], index)


def _cuts(made: PanelKernel, weights: np.ndarray | None) -> ir.Value:
    """Where each range of panels starts: ranges of about as many entries, of whole lists."""
    known = np.full(made.lists, 1) if weights is None else np.asarray(weights) + 1
    total = np.concatenate([[0], np.cumsum(known)])
    ends = np.searchsorted(total, np.linspace(0, total[-1], made.ranges + 1)[1:-1])
    cuts = [0, *(int(end) for end in ends), made.lists]
    assert all(a <= b for a, b in pairwise(cuts))
    panels = [cut * made.shared // made.together * made.together for cut in cuts[:-1]] + [made.panels]
    kind = ir.RankedTensorType.get([len(panels)], ir.IntegerType.get_signless(32))
    value = ir.DenseElementsAttr.get(np.array(panels, np.int32), type=kind)
    return create("arith.constant", [], kind, {"value": value})
