# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with any kept elements on a CPU: rows of activations across lanes, positions as addresses.

For each row of the sparse matrix and each kept element of it, the value is broadcast and multiplied with a row of the
dense one, read from the nearest cache at the address that the position names; sums stay in registers.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Mask
from tilewright.ir.generics import create, maker
from tilewright.mlir import ir
from tilewright.plan.cost.sparse_pairs import MOST_LOADS, are_tried, loads_alone, loads_of_pairs, vectors_of_pairs
from tilewright.plan.sparse.encoded import is_constant
from tilewright.plan.sparse.forms.cpu.lanes import (
    is_as_packed,
    is_worth_packing,
    packed_lanes,
    turned_source,
    turning_user,
)
from tilewright.plan.sparse.forms.cpu.packing import known_source, mask_lists, nm_lists, paired_lists
from tilewright.plan.sparse.forms.cpu.pairs import Pairs, paired, positions_of
from tilewright.plan.sparse.forms.cpu.rows_in_lanes_kernel import RowsKernel, rows_text, up
from tilewright.plan.sparse.forms.cpu.rows_of_blocks import edges, panels_of, reason_for_blocks
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import kernel, launch, result_of, tasks_of

_NEAR = 0.5
"""Of the nearest cache, the part that a block of the dense operand takes; lists and sums pass through the rest."""

_SUMS = (8, 6, 4)
"""Vectors of sums in registers, from which the widths of a task are chosen: 8 hide the latency of multiply-adds."""

_WHOLE = 4
"""The same for unstructured operands, whose lists are long enough to hide the latency, or end by surprise."""

_DENSE = 0.12
"""Kept part of an unstructured operand from which its lists are cut to blocks that lie in the nearest cache.

Below it the ends of lists, each mispredicted, cost more than reading from the second cache.
"""

_NEAR_OF_PAIRS = 2 / 3
"""The same where rows are summed in pairs: longer lists, and blocks of a power of two on caches of 48 KiB."""

_LIST = 4
"""Terms of a block that what a list costs besides is as long as."""

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


class RowsInLanes:
    """Kept elements one by one, each with as many columns of the dense operand as registers hold."""

    name = "rows_in_lanes"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What is not taken: GPUs, several regions, N:M along the other axis, unknown positions.

        Blocks are taken where the operation names the family: single elements then go on with their sums.
        """
        if device.kind == "cpu" and len(product.tesa.regions) == 1 and edges(product) is not None:
            return reason_for_blocks(product, device) or _reason_sizes(product)
        return reason_for_rows(product, device)

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Lists of kept elements and a launch."""
        if edges(product) is not None:
            return _lower_blocks(product, None, device)
        plan = plan_rows(product, device)
        element = ir.Type.parse(plan.element)
        if plan.kept == 0:
            return product.op.operands[2]
        if plan.count is None:
            lists = mask_lists(product, element, plan.block)
        else:
            pairs = plan_pairs(product, plan, device)
            if pairs is not None:
                return _launched(product, pairs[0], paired_lists(product, element, pairs[0].width, pairs[1]), device)
            lists = nm_lists(product, element, plan.block, plan.unroll, plan.position)
        more = [] if lists.starts is None else [lists.starts]
        return _launched(product, plan, [lists.values, lists.positions, *more], device)


def lower_mixture(blocks: Product, single: Product, device: Device) -> ir.Value | None:
    """Blocks and single elements in one pass; None where one of them has another kernel, or is cut along the depth."""
    if reason_for_rows(single, device) or reason_for_blocks(blocks, device) or _reason_sizes(blocks):
        return None
    plan = plan_rows(single, device)
    if plan.blocks > 1 or plan.kept == 0:
        return None
    return _lower_blocks(blocks, single, device)


def _lower_blocks(blocks: Product, single: Product | None, device: Device) -> ir.Value:
    """A kernel of panels that goes on with single elements, if there are any."""
    plan = plan_rows(blocks if single is None else single, device)
    element = ir.Type.parse(plan.element)
    panels, inputs = panels_of(blocks, device, element)
    block = max(panels.reach, blocks.k)
    plan = replace(plan, block=block, panels=panels, single=single is not None, adds=blocks.init is not None)
    if single is not None:
        lists = mask_lists(single, element, block)
        assert lists.starts is not None
        inputs += [lists.values, lists.positions, lists.starts]
    return _launched(blocks, plan, inputs, device)


def reason_for_rows(product: Product, device: Device) -> str | None:
    """Why kept elements cannot be listed by rows of the sparse operand; None where they can."""
    if device.kind != "cpu":
        return f"it is for CPUs, not for {device.name}"
    if len(product.tesa.regions) != 1:
        return "the encoding has several regions"
    return _reason_pattern(product) or _reason_sizes(product)


def _reason_pattern(product: Product) -> str | None:
    (region,) = product.tesa.regions
    if isinstance(region.pattern, Mask):
        return _reason_mask(product)
    if not isinstance(region.pattern, NM):
        return f"the pattern is {region.pattern.kind}"
    if any(size != 1 for size in region.pattern.unit):
        return "units are blocks"
    if region.pattern.axis != (1 if product.left else 0):
        return "the windows do not lie along the sum"
    constant = is_constant(product.encoded)
    if not constant and region.format is not None:
        return "codes that a run brings are not unpacked"
    return None if constant or _assembled(product) else "a run packs the sparse operand"


def _reason_mask(product: Product) -> str | None:
    """Without the weights it is not known how many elements are kept; parts of a run are taken as they are."""
    if product.tesa.regions[0].format is not None:
        return "codes of unstructured elements are not unpacked"
    if known_source(product) is not None:
        return None
    if not product.left or not _assembled(product):
        return "it is not known which elements are kept"
    given, sums = str(ir.RankedTensorType(product.parts[0].type).element_type), type_of_sums(product)
    return None if given == sums else f"kept elements that a run brings are {given}, sums are {sums}"


def _assembled(product: Product) -> bool:
    made = maker(product.encoded)
    return made is not None and made.name == "sparse_tile.assemble"


def type_of_sums(product: Product) -> str:
    """The type that products are summed in: wide enough for both operands and the result."""
    kinds = (product.dense.type, product.encoded.type)
    elements = [product.element, *(str(ir.RankedTensorType(kind).element_type) for kind in kinds)]
    return "f64" if "f64" in elements else "f32"


def _reason_sizes(product: Product) -> str | None:
    rows = product.m if product.left else product.n
    if rows < 0 or product.k < 0:
        return "sizes of the sparse operand are not known"
    if 0 in (rows, product.k, product.n if product.left else product.m):
        return "there is nothing to multiply"
    elements = {str(ir.RankedTensorType(v.type).element_type) for v in (product.dense, product.op.results[0])}
    strange = sorted(elements - SIZES.keys())
    return f"elements are {strange[0]}" if strange else None


def plan_rows(product: Product, device: Device) -> RowsKernel:
    """Widths, blocks and tasks for a product that :meth:`RowsInLanes.reason_against` has nothing against."""
    pattern, element = product.tesa.regions[0].pattern, type_of_sums(product)
    size = SIZES[element]
    lanes = device.units.vector_bits // (8 * size)
    rows, columns = (product.m, product.n) if product.left else (product.n, product.m)
    if isinstance(pattern, NM):
        sums, block = _blocked(device, pattern, product.k, lanes, size)
        count = block // pattern.m * pattern.n
        unroll, bits = next(u for u in (4, 2, 1) if count % u == 0), 16
        kept = _over(product.k, block) * rows * count
    else:
        source = known_source(product)
        kept = -1 if source is None else int((source != 0).sum())
        sums, block = _whole(device, product.k, lanes, size), product.k
        if isinstance(pattern, Mask) and kept >= _DENSE * rows * product.k:
            sums, block = _WHOLE, _block(_near(device, size) // (_WHOLE * lanes), (1, 1), product.k)
        count, unroll, bits = None, 1, 32
    tasks = _over(max(columns, 1), sums * lanes)
    if columns >= 0:
        sums = _over(columns, tasks * lanes)
    width = sums * lanes
    return RowsKernel(
        rows=rows,
        depth=product.k,
        columns=columns,
        width=width,
        lanes=lanes,
        block=block,
        panel=max(device.level("l2").bytes // 3 // (block * width * size), 1),
        chunk=_chunk(rows, width * size, tasks, lanes, device),
        count=count,
        unroll=unroll,
        position=bits,
        kept=kept,
        element=element,
        given=str(ir.RankedTensorType(product.dense.type).element_type),
        result=product.element,
        across=not product.left,
        across_y=not product.left,
        adds=product.init is not None,
    )


def plan_pairs(product: Product, plan: RowsKernel, device: Device) -> tuple[RowsKernel, Pairs] | None:
    """The same in pairs of rows; None where weights are not known, or rows have too little in common to gain by it."""
    (region,), source = product.tesa.regions, known_source(product)
    pattern = region.pattern
    if source is None or not isinstance(pattern, NM) or region.format is not None or plan.rows == 1:
        return None
    size = SIZES[plan.element]
    alone = plan.width // plan.lanes
    vectors = _over(plan.columns, plan.lanes) if plan.columns >= 0 else alone
    sums = min(vectors_of_pairs(device.units.registers, vectors), alone)
    width = sums * plan.lanes
    most = min(int(device.level("l1").bytes * _NEAR_OF_PAIRS) // (width * size), (1 << 16) // width)
    block = _even_block(most, pattern.m, product.k)
    if block > most or block >= product.k or not are_tried(pattern, alone, sums):
        return None
    chunk = _chunk(plan.rows, width * size, _over(max(plan.columns, 1), width), plan.lanes, device)
    pairs = paired(positions_of(source if product.left else source.T, pattern, block), block, chunk)
    count = block // pattern.m * pattern.n
    if loads_of_pairs(sums, float(pairs.shared.mean()) / count) > MOST_LOADS * loads_alone(alone):
        return None
    panel = max(device.level("l2").bytes // 3 // (block * width * size), 1)
    made = dict(width=width, block=block, panel=panel, chunk=chunk, count=count, shared=pairs.least)
    return replace(plan, **made), pairs


def _even_block(most: int, window: int, depth: int) -> int:
    """Terms of a block, whole windows: few blocks, and little behind the depth; above `most` where there is none."""
    least = _over(depth, max(most // window * window, window))
    blocks = [(parts, up(_over(depth, parts), window)) for parts in range(least, 2 * least + 1)]
    return min(blocks, key=lambda one: one[0] * (one[1] + _LIST))[1]


def predicted_cycles(sums: int, kept: float) -> float:
    """Cycles per kept element and vector of columns.

    Args:
        sums: vectors of columns of a task.
        kept: elements of a list, on average.
    """
    return 0.57 * (1 + 1.75 / sums) + 1.65 / kept


def _blocked(device: Device, pattern: NM, depth: int, lanes: int, size: int) -> tuple[int, int]:
    """Vectors of sums and terms of a block for N:M, so that a block lies in the nearest cache.

    A block has whole windows, and lists with a multiple of four elements where they can.
    """
    steps = (pattern.m * next(s for s in (1, 2, 4) if s * pattern.n % 4 == 0), pattern.m)
    choices = [(sums, _block(_near(device, size) // (sums * lanes), steps, depth)) for sums in _SUMS]
    density = pattern.n / pattern.m
    return min(choices, key=lambda one: predicted_cycles(one[0], density * min(one[1], depth)))


def _near(device: Device, size: int) -> int:
    """Elements of a block of the dense operand."""
    return int(device.level("l1").bytes * _NEAR) // size


def _block(most: int, steps: tuple[int, int], depth: int) -> int:
    """Terms of a block: equal sizes, multiples of the first step where that is not too much, else of the second."""
    step, least = steps
    if step > most or step > depth:
        step = least
    blocks = _over(depth, max(most // step * step, step))
    return up(_over(depth, blocks), step)


def _whole(device: Device, depth: int, lanes: int, size: int) -> int:
    """Vectors of sums where a list is over the whole depth: what is read in it lies in half of the second cache."""
    fitting = device.level("l2").bytes // 2 // (depth * lanes * size)
    return max(min(_WHOLE, fitting), 1)


def _chunk(rows: int, bytes_of_row: int, tasks: int, lanes: int, device: Device) -> int:
    """Rows of a task: sums fit in a third of the second cache, and every core has two tasks where there are so many."""
    fitting = max(device.level("l2").bytes // 3 // bytes_of_row, lanes)
    parts = max(_over(2 * device.units.count, tasks), _over(rows, fitting))
    return min(rows, max(up(_over(rows, parts), lanes), 4 * lanes))


def _over(size: int, by: int) -> int:
    return -(-size // by)


def _launched(product: Product, plan: RowsKernel, lists: list[ir.Value], device: Device) -> ir.Value:
    """A launch; transposes of what it reads and of its result, which are there around it, are left to it."""
    dense, turn = product.dense, None
    if not product.left:
        source = turned_source(dense)
        turn = turning_user(product.op) if product.init is None and plan.columns >= 0 else None
        dense = dense if source is None else source
        plan = replace(plan, across=source is None, across_y=turn is None)
    plan = replace(plan, packed=is_worth_packing(plan) or (not plan.across and is_as_packed(plan)))
    name = kernel(rows_text(plan), "sparse_rows")
    added = [] if product.init is None else [product.init]
    if plan.packed:
        dense = packed_lanes(product, dense, plan, device)
    place = result_of(product)
    if turn is not None:
        place = create("tensor.empty", [], turn.results[0].type)
    grid = [tasks_of(product, plan.width), plan.parts]
    result = launch(name, grid, [*lists, dense, *added], [place])[0]
    if turn is None:
        return result
    turn.results[0].replace_all_uses_with(result)
    turn.erase()
    return product.op.operands[2]  # of its type: nobody reads the product itself
