# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides the tiles of each loop nest (`tile.rtile`) and the layouts of matrix operands (`tile.layouts`).

Tiles are constructed from the description of the machine, not searched: `tiles.py` and `products.py` make one for each
nest, and the performance model (`roller/`) takes another where it promises enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.ir.attributes import members_of_nest
from tilewright.ir.bounds import Bounds
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.ir.target_info import find_device, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, located, option, register
from tilewright.plan.cost.cost import Schedule
from tilewright.plan.cost.decide import Decider
from tilewright.plan.cpu.overlap import mark_overlap
from tilewright.plan.cpu.products import (
    align_lanes,
    contraction_roles,
    copies_apart,
    is_copied,
    layouts,
    prefetched,
    tile_contraction,
    tile_products,
)
from tilewright.plan.cpu.register_tiles import block_sums
from tilewright.plan.cpu.run_time_sizes import settle, tails
from tilewright.plan.cpu.unseen import unseen
from tilewright.plan.cpu.windows import mark_image
from tilewright.plan.model.names import kernel_name
from tilewright.plan.model.nest import roots_of
from tilewright.plan.model.tiles import (
    ENOUGH_TASKS,
    Machine,
    Tiling,
    cut_blocks,
    line_rows,
    restrict_to_rows,
    tile_elementwise,
    tile_reduce,
)
from tilewright.plan.model.traffic import Levels, is_streamed, tensor_bytes
from tilewright.plan.model.widened import settle as forget_reason


def _bytes_read(members: Sequence[LinalgOp]) -> int:
    """Bytes of all tensors that come into a group."""
    made = {op.result for op in members}
    return sum(tensor_bytes(v) for v in {a.value for op in members for a in op.inputs} - made)


def tile_op(op: LinalgOp, members: Iterable[LinalgOp], machine: Machine, weights: Weights) -> Tiling:
    """The tiling of a nest of `members` whose root is `op`."""
    if op.kind is Kind.CONTRACTION:
        return tile_contraction(op, machine, weights)
    wide = machine.lanes_for(members)
    if op.kind is Kind.REDUCE:
        return tile_reduce(op, machine, wide)
    return tile_elementwise(op, list(members), machine, wide)


def _decided(
    decider: Decider,
    op: LinalgOp,
    members: list[LinalgOp],
    tiling: Tiling,
    machine: Machine,
    weights: Weights,
    free: bool,
) -> Tiling:
    """The tiling that the performance model says, with the prediction on `op`."""
    if tiling.mma is not None:
        return tiling  # the model knows single products only
    nest = members_of_nest(op, members)
    copied = lane = None
    if op.kind is Kind.CONTRACTION:
        roles = contraction_roles(op)
        lane = roles.lane
        copied = roles.lane_operand if is_copied(op, roles, machine, weights) else None
    block = tuple(tiling.block) if tiling.block else None
    own = Schedule(tuple(tiling.task), tuple(tiling.register), tuple(tiling.order), copied, block)
    kernel = _text(members, decisions.KERNEL)
    kinds = layouts(op, tiling, machine, weights)[0] if op.kind is Kind.CONTRACTION else []
    packed = frozenset(a.value for a, kind in zip(op.inputs, kinds, strict=False) if kind != "unit")
    keep = bool(unseen(op, tiling, weights))
    chosen = decider.decide(kernel, op, nest, own, free=free, packed=packed, task=members, keep=keep, lane=lane)
    if chosen == own:
        return tiling
    return Tiling(list(chosen.task), list(chosen.register), list(chosen.order), tiling.unroll)


def _text(members: list[LinalgOp], name: str) -> str:
    return next(ir.StringAttr(m.op.attributes[name]).value for m in members if name in m.op.attributes)


def followers(root: LinalgOp, members: list[LinalgOp]) -> list[LinalgOp] | None:
    """The members that use the result of `root`: elementwise, over the same points; None where one is not."""
    shape = tuple(ir.RankedTensorType(root.result.type).shape)
    values, after = {root.result}, []
    for member in members:
        if not any(a.value in values for a in member.inputs):
            continue
        whole = tuple(range(len(shape)))
        if member.extents != shape or member.reductions or member.output.dims != whole or member.tables:
            return None
        if any(a.value in values and a.dims != whole for a in member.inputs) or len(member.op.results) != 1:
            return None
        values.add(member.result)
        after.append(member)
    inner = {m.result for m in members} - values
    if any(a.value in inner for m in after for a in m.inputs):
        return None
    ends = [m for m in after if not any(a.value == m.result for n in after for a in n.inputs)]
    return after if len(ends) <= 1 and (not ends or ends[0] is after[-1]) else None


def _write(op: LinalgOp, tiling: Tiling, machine: Machine, bounds: Bounds, alone: bool) -> None:
    """The decision as attributes of the root; `alone` tells a task of one nest."""
    set_attribute(op.op, decisions.RTILE, str(tiling))
    if op.dynamic:
        set_attribute(op.op, decisions.TAILS, tails(op, tiling.register, machine.lanes))
        most = bounds.of_loops(op)
        if any(most[d] >= 0 for d in op.dynamic):
            decisions.BOUNDS.set(op.op, most)
    if tiling.grid and alone:
        decisions.GRID.set(op.op, tiling.grid)
    if tiling.together and alone:
        decisions.TASKS_INSIDE.set(op.op)


@register
@dataclass(frozen=True)
class PlanTiles(Pass):
    """Give each operation of a nest its tile sizes (`tile.rtile`), and matrix operands their layouts.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %e = tensor.empty() : tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
          tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>)
        attrs = {tile.kernel = "map_64", tile.nest = 0 : i64,
                 tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>, tile.task = 0 : i64} {
    ```
    """

    name: ClassVar[str] = "tile-plan-tiles"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    lanes: int = device_option(16, facts.f32_lanes, "f32 lanes of a vector register")
    registers: int = device_option(32, facts.registers, "vector registers")
    l1_bytes: int = device_option(49152, facts.l1_bytes, "bytes of the L1 data cache of a core")
    l1_ways: int = device_option(12, facts.l1_ways, "lines that may lie in each set of the L1 data cache")
    l2_bytes: int = device_option(1048576, facts.task_bytes, "bytes of the L2 cache of a core")
    l3_bytes: int = device_option(33554432, facts.last_bytes, "bytes of the largest cache")
    l3_rate: float = device_option(120.0, facts.last_rate, "bytes per nanosecond that a core moves to and from it")
    memory_rate: float = device_option(41.0, facts.memory_rate, "the same for memory")
    choices: tuple[str, ...] = option(
        (), "KERNEL:NUMBER, the candidate that a kernel takes instead of the first (default: those of tile.options)"
    )
    cores: int = device_option(2, facts.unit_count, "cores that share the work")
    dots: tuple[str, ...] = device_option(
        (), facts.dots, "element types (bf16, i8) whose products in groups an instruction adds"
    )
    matrix: tuple[str, ...] = device_option(
        (), facts.matrix, "element types (bf16, i8) that a matrix unit (AMX) multiplies"
    )

    def run(self, op: ir.Operation) -> None:
        """Give tiles to the nests of each task that `tile-plan-fusion` made."""
        machine = Machine(
            self.lanes,
            self.registers,
            self.l2_bytes,
            self.cores,
            self.l1_bytes,
            self.l1_ways,
            frozenset(self.dots),
            frozenset(self.matrix),
            find_device(op),
        )
        weights = Weights()
        decider, bounds = self._decider(op), Bounds(op)
        for block in blocks(op):
            tasks: dict[int, list[LinalgOp]] = {}
            for member in linalg_ops(block, weights):
                if decisions.TASK.on(member.op):
                    tasks.setdefault(decisions.TASK.read(member.op), []).append(member)
            for members in tasks.values():
                self._tile_task(members, machine, weights, decider, bounds)

    def _decider(self, op: ir.Operation) -> Decider | None:
        """What predicts times; None without a device."""
        device = find_device(op)
        if device is None:
            return None
        choices = (text.rpartition(":") for text in self.choices or options_of(op).choices)
        return Decider(device, {name: int(number) for name, _, number in choices})

    def _tile_task(
        self, members: list[LinalgOp], machine: Machine, weights: Weights, decider: Decider | None, bounds: Bounds
    ) -> None:
        roots, rows = roots_of(members)
        inner = max(
            prod(e for d, e in enumerate(r.extents) if d not in own) for r, own in zip(roots, rows, strict=True)
        )
        count = prod(roots[-1].extents[d] for d in rows[-1])
        share = max(min(machine.count("row_elements") // max(inner, 1), count // ENOUGH_TASKS), 1)
        block = self._block(roots[-1])
        if not all(rows):
            block = 0  # no row is common to all nests: one task
        name = ir.StringAttr.get(kernel_name(members, roots), roots[0].op.context)
        roots[-1].op.attributes[decisions.KERNEL] = name
        products = not block and len(roots) > 1 and all(root.kind is Kind.CONTRACTION for root in roots)
        lines = [max(each) for each in zip(*map(line_rows, roots, rows), strict=False)]
        sizes = tile_products(roots[-1], rows[-1], len(roots), machine, weights) if products else []
        for op, own in zip(roots, rows, strict=True):
            decisions.ROWS.drop(op.op)
            nest = members_of_nest(op, members)
            op.welded = block > 0
            tiling = tile_op(op, nest, machine, weights)
            gathered = self._keep_gathers(op, tiling)
            if block:
                cut_blocks(op, tiling, own, block)
                align_lanes(op, tiling)
            elif products:
                tiling.task[:] = op.extents
                for d, size in zip(own, sizes, strict=True):
                    tiling.task[d] = size
                align_lanes(op, tiling)
            elif len(roots) > 1:
                restrict_to_rows(op, tiling, own, share, lines)
            self._mark_stream(op, nest, members)
            if decider is not None and not op.dynamic:
                free = len(roots) == 1 and not gathered
                tiling = _decided(decider, op, members, tiling, machine, weights, free)
            alone = len(roots) == 1
            tiling.block = self._split_sum(op, tiling, members) if alone and not op.dynamic else None
            settle(op, tiling, frozenset(own) if len(roots) > 1 else None)
            _write(op, tiling, machine, bounds, alone)
            mark_overlap(op, roots, members, tiling)
            if op.kind is Kind.CONTRACTION:
                forget_reason(op, taken=tiling.mma is not None)
                self._lay_out(op, tiling, machine, weights)

    def _mark_stream(self, root: LinalgOp, nest: list[LinalgOp], members: list[LinalgOp]) -> None:
        """Marks a nest whose results for others had better go past the caches; what its task reads again stays."""
        levels = Levels(self.l2_bytes, self.l3_bytes, 0.0, self.l3_rate, self.memory_rate)
        inside, own = {member.op for member in members}, {member.op for member in nest}
        if any(op.kind is Kind.CONTRACTION for op in nest):
            return  # it may read again what it wrote, block by block of its reduction
        written = [op for op in nest if not {use.owner.operation for use in op.result.uses} <= inside]
        for op in written:
            users = {use.owner.operation for use in op.result.uses}
            if users & (inside - own) or not is_streamed(op.result, levels, _bytes_read(members)):
                return
        if written:
            decisions.STREAM.set(root.op)

    @staticmethod
    def _block(root: LinalgOp) -> int:
        """The block of rows that fusion chose for a task with contractions; 0 where it chose none."""
        if not decisions.BLOCK.on(root.op):
            return 0
        block = decisions.BLOCK.read(root.op)
        decisions.BLOCK.drop(root.op)
        if block < 1:
            raise located(UserError(f"has a `tile.block` of {block}"), root.op)
        return block

    @staticmethod
    def _split_sum(root: LinalgOp, tiling: Tiling, members: list[LinalgOp]) -> list[int] | None:
        """Where a reduction runs in blocks: what follows it becomes a nest of its own, run on the whole sum of a task.

        Returns the blocks, or None where what follows is no elementwise chain over the points of the sum.
        """
        if tiling.block is None or root.dynamic:
            return tiling.block
        after = followers(root, members)
        if after is None:
            return None
        if after:
            number = max(decisions.NEST.read(m.op) for m in members) + 1
            sizes = [1 if d is None else tiling.task[d] for d in root.output.dims]
            register = [1 if d is None else tiling.register[d] for d in root.output.dims]
            for member in after:
                decisions.NEST.set(member.op, number)
            order = sorted(range(len(sizes)), key=lambda t: register[t] > 1)
            set_attribute(after[-1].op, decisions.RTILE, str(Tiling(sizes, register, order)))
        return tiling.block

    @staticmethod
    def _keep_gathers(op: LinalgOp, tiling: Tiling) -> bool:
        """Each element that has an index of its own is a tile of its own: nothing lies side by side."""
        if not decisions.GATHERS.on(op.op):
            return False
        for d in decisions.GATHERS.read_loops(op.op, len(op.extents)):
            tiling.register[d] = 1
        decisions.GATHERS.drop(op.op)
        return True

    def _lay_out(self, op: LinalgOp, tiling: Tiling, machine: Machine, weights: Weights) -> None:
        ahead = prefetched(op, tiling, machine)
        if ahead:
            decisions.PREFETCH.set(op.op, ahead)
        if inner := block_sums(op, tiling.register, machine):
            decisions.BLOCK_SUMS.set(op.op, inner)
        kinds, copies = layouts(op, tiling, machine, weights)
        mark_image(op, tiling.register, kinds)
        if any(k != "unit" for k in kinds):
            set_attribute(op.op, decisions.LAYOUTS, f"[{', '.join(kinds)}]")
            set_attribute(op.op, decisions.PACK_RTILES, f"[{', '.join(copies)}]")
            if any(c != "unit" for c in copies) and copies_apart(op, tiling):
                decisions.PACK_APART.set(op.op)
