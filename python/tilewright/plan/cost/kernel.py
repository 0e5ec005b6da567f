# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a GPU's kernel that is no single product: elementwise chains, norms, softmax, attention.

Arithmetic, functions, products, L2 and memory overlap; the longest of them is the time, rounded up to whole waves of
CTAs, behind the latency of one and a launch. Bytes are those of Welder's MemTraffic (plan/model/traffic.py): what each
task reads of each tensor, all tasks together from L2, each tensor once from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from tilewright.devices import Device
from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.cost.attention import chain_reached
from tilewright.plan.cost.prediction import Prediction
from tilewright.plan.cost.roofline import drawn, idle, launched, transfer
from tilewright.plan.cost.tiling import GpuTiling
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, read_only_by
from tilewright.plan.model.traffic import element, hull, tensor_bytes
from tilewright.plan.model.traffic import element_bytes as width_of

#: Functions that are one instruction, and need no registers of their own.
INSTRUCTIONS = frozenset(f"math.{name}" for name in "absf ceil copysign floor fma roundeven trunc".split())
#: Functions that rates name one by one (``slots.math.exp``); all others are as long as each other.
_FUNCTIONS = frozenset(f"math.{name}" for name in "exp exp2 rsqrt sqrt tanh".split()) | {"arith.divf"}
#: Registers of a thread besides its tiles.
_OTHERS = 48

#: Operations of a body that are no instruction of their own.
FREE = frozenset({"linalg.yield", "linalg.index", "arith.constant", "tensor.extract"})


def is_function(name: str) -> bool:
    """Whether the unit for functions takes part in an operation."""
    return name in _FUNCTIONS or (name.startswith("math.") and name not in INSTRUCTIONS)


def instructions(device: Device, name: str) -> int:
    """Instructions of a lane that an operation takes; of a function, those besides the one of its unit."""
    if name in _FUNCTIONS:
        return round(device.rate(f"slots.{name}"))
    return round(device.rate("slots.math")) if is_function(name) else 1


def predict_kernel(
    nests: Sequence[Nest],
    tilings: Sequence[GpuTiling],
    gpu: Gpu,
    live: float = 1.0,
    shared: int = 0,
    reached: float = 0.0,
) -> Prediction:
    """The time of a kernel.

    Args:
        nests: its nests.
        tilings: their tiles.
        gpu: the machine.
        live: part of the work that masks leave.
        shared: bytes of shared memory of a CTA.
        reached: part of the peak that products reach where warpgroups multiply (`warpgroups.py`); 0: mma.sync.
    """
    device = gpu.device
    count = _tasks(nests[-1].root, tilings[-1])
    held = max(gpu.occupancy(32 * tilings[-1].warps, shared, min(_registers(tilings), 255)), 1) if not reached else 1
    work = _Work(gpu)
    for nest, tiling in zip(nests, tilings, strict=True):
        for op in nest.members:
            work.add(op)
        work.move(nest, tiling, [member for other in nests for member in other.members])
    clocks = device.units.frequency * gpu.units
    products = reached or chain_reached(gpu)
    factor = idle(count, gpu.units * held, gpu.units)
    fetching = drawn(device, factor)
    near = transfer(device, "l2", count * work.per_task * live + work.written)
    computed = {
        "compute": live * work.product_seconds / gpu.units / products,
        "vector": live * work.vector / (device.rate("lanes") * clocks),
        "functions": live * work.functions / (device.rate("functions") * clocks),
        # Schedulers issue both; a function takes one turn of a warp, and its unit many.
        "issue": live * (work.vector + work.functions) / (device.rate("lanes") * clocks),
    }
    parts = {name: seconds * factor for name, seconds in computed.items()} | {
        # One multiprocessor takes no more than its share from L2.
        "l2": near * max(fetching, gpu.units / count),
        "memory": transfer(device, "memory", work.outside) * fetching,
    }
    bound = max(parts, key=lambda name: parts[name])
    took = parts[bound]
    latency = device.level("memory").latency * (1 + sum(1 for nest in nests if nest.root.reductions))
    latency += device.rate("task")
    launch = launched(device, 0)
    return Prediction(
        seconds=took + latency + launch,
        bound="latency" if latency > took else bound,
        parts=parts,
        l2_bytes=round(count * work.per_task) + work.written,
        memory_bytes=work.outside,
        operations=round(live * (work.products + work.vector)),
        occupancy=held,
        roofline=max(computed["compute"] * products, work.outside / device.level("memory").bandwidth),
        waiting=latency,
        launch=launch,
        products=round(live * work.products),
        unit=_unit(gpu, reached) if work.products else "",
    )


def _unit(gpu: Gpu, reached: float) -> str:
    """The rate that says what products reach among other work."""
    if reached:
        return "wgmma.chain"
    return "mma.chain.hopper" if gpu.hopper else "mma.chain"


def _tasks(op: LinalgOp, tiling: GpuTiling) -> int:
    return prod(ceil(op.extents[d] / size) for d, size in enumerate(tiling.task) if size and d in op.parallel)


def _registers(tilings: Sequence[GpuTiling]) -> int:
    """32-bit registers of a thread: the largest tile twice, as what comes in and what goes out."""
    largest = max(prod(t.register[d] for d in range(len(t.register)) if d != t.depth) for t in tilings)
    return 2 * largest // (32 * tilings[-1].warps) + _OTHERS


class _Work:
    """What a kernel computes and moves in all."""

    def __init__(self, gpu: Gpu) -> None:
        self._device = gpu.device
        self._peaks = dict(gpu.device.units.peak)
        self.product_seconds = 0.0
        self.products = self.vector = self.functions = 0
        self.per_task = self.written = self.outside = 0
        self._seen: set[ir.Value] = set()
        self._read_before: dict[ir.Value, int] = {}

    def add(self, op: LinalgOp) -> None:
        """Counts the arithmetic of an operation."""
        if op.kind is Kind.CONTRACTION:
            self.products += 2 * op.points
            self.product_seconds += 2 * op.points / self._peaks.get(element(op.inputs[0]), self._peaks["f32"])
            return
        for inner in op.op.regions[0].blocks[0].operations:
            name = inner.operation.name
            if name in FREE:
                continue
            self.functions += op.points * is_function(name)
            # The product in front of a power is the difference's: one multiply-add (tile-fold-exponents).
            folded = decisions.APPROXIMATE in inner.operation.attributes
            self.vector += 0 if folded else op.points * instructions(self._device, name)

    def move(self, nest: Nest, tiling: GpuTiling, members: Sequence[LinalgOp]) -> None:
        """Counts the bytes that a nest of a task reads from outside of it, and writes there."""
        made = {member.result for member in members}
        for op, loops in nest.bindings.items():
            sizes = [tiling.task[loops[d]] if d in loops else 0 for d in range(op.rank)]
            box = tuple(min(size or extent, extent) for size, extent in zip(sizes, op.extents, strict=True))
            for access in op.inputs:
                if access.value in made or not access.dims:
                    continue
                self._read(access.value, prod(hull([access], box)) * width_of(access.value))
            for table in op.tables:
                self.per_task += prod(box) * width_of(table)
            if not read_only_by(op, members):
                self.written += tensor_bytes(op.result)
                self._touch(op.result)

    def _read(self, value: ir.Value, size: int) -> None:
        """What nests of a task read of a tensor is the same part: it is loaded once."""
        before = self._read_before.get(value, 0)
        self._read_before[value] = max(before, size)
        self.per_task += max(size - before, 0)
        self._touch(value)

    def _touch(self, value: ir.Value) -> None:
        if value not in self._seen:
            self._seen.add(value)
            self.outside += tensor_bytes(value)


def live_part(numbers: Sequence[int], count: int, extent: int) -> float:
    """The part of a loop's steps that `tile.live` leaves, over all tasks.

    Args:
        numbers: the attribute: loop, rows, and five numbers per stretch (see `plan_online.py`).
        count: tasks along the rows.
        extent: steps of the whole loop.
    """
    total, stretches = 0, [numbers[at : at + 5] for at in range(2, len(numbers), 5)]
    for task in range(count):
        first, low, low_step, high, high_step = next(s for s in reversed(stretches) if s[0] <= task)
        total += high + high_step * (task - first) - low - low_step * (task - first)
    return total / (count * extent)
