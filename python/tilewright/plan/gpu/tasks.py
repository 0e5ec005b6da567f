# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a kernel takes whose time is not that of a single product: elementwise chains, norms, softmax, attention.

Arithmetic, functions, products, L2 and memory overlap; the longest of them is the time, rounded up to whole waves of
CTAs, behind the latency of one and a launch. Bytes are those of Welder's MemTraffic (plan/model/traffic.py): what each
task reads of each tensor, all tasks together from L2, each tensor once from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from tilewright.ir.structure import Kind, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.gpu.products import INSTRUCTIONS
from tilewright.plan.gpu.tiles import GpuTiling
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, read_only_by
from tilewright.plan.model.traffic import element, hull, tensor_bytes
from tilewright.plan.model.traffic import element_bytes as width_of

#: Part of the peak that products by mma.sync reach among other work: their operands and results pass through registers.
#: FlashAttention-2 does 220 of 312 TFLOP/s on an A100 and 370 of 989 on an H100, whose peak is wgmma's (Shah et al.,
#: "FlashAttention-3", 2024, figure 5).
_PRODUCTS = {False: 0.7, True: 0.37}
#: Part of its bandwidth that memory reaches.
_STREAMED = 0.92
#: Functions per clock of a multiprocessor, and lanes of its vector units.
_FUNCTIONS = 16
_LANES = 128
#: Instructions besides the function itself, for what is no single one.
_EXPANDED = {"math.exp": 2, "math.exp2": 1, "math.rsqrt": 1, "math.sqrt": 4, "arith.divf": 8, "math.tanh": 12}
_LONG = 20
#: Registers of a thread besides its tiles.
_OTHERS = 48


@dataclass(frozen=True)
class TaskPrediction:
    """The predicted time of a kernel, and what it is made of.

    Attributes:
        seconds: in all, the launch included.
        bound: what takes longest.
        parts: seconds of each: ``compute``, ``vector``, ``functions``, ``l2``, ``memory``.
        l2_bytes: bytes that all tasks read and write.
        memory_bytes: bytes of all tensors outside, once each.
        operations: of products and vectors together.
        occupancy: CTAs that a multiprocessor holds.
        roofline: seconds of the products at their peak, or of the bytes outside at the bandwidth of memory.
    """

    seconds: float
    bound: str
    parts: dict[str, float]
    l2_bytes: int
    memory_bytes: int
    operations: int
    occupancy: int
    roofline: float

    def attribute(self, more: Sequence[str] = ()) -> str:
        """As `tile.prediction`: times in ns, with some more fields as text."""
        fields = [
            f"ns = {self.seconds * 1e9:.0f} : i64",
            f'bound = "{self.bound}"',
            *(f"{name}_ns = {seconds * 1e9:.0f} : i64" for name, seconds in self.parts.items() if seconds),
            f"roofline_ns = {self.roofline * 1e9:.0f} : i64",
            f"l2_bytes = {self.l2_bytes} : i64",
            f"memory_bytes = {self.memory_bytes} : i64",
            f"operations = {self.operations} : i64",
            f"occupancy = {self.occupancy} : i64",
            *more,
        ]
        return "{" + ", ".join(fields) + "}"


def predict_task(
    nests: Sequence[Nest],
    tilings: Sequence[GpuTiling],
    gpu: Gpu,
    live: float = 1.0,
    shared: int = 0,
    reached: float = 0.0,
) -> TaskPrediction:
    """The time of a kernel.

    Args:
        nests: its nests.
        tilings: their tiles.
        gpu: the machine.
        live: part of the work that masks leave.
        shared: bytes of shared memory of a CTA.
        reached: part of the peak that products reach where warpgroups multiply (`warpgroups.py`); 0: mma.sync.
    """
    device, clock = gpu.device, gpu.device.units.frequency
    count = _tasks(nests[-1].root, tilings[-1])
    held = max(gpu.occupancy(32 * tilings[-1].warps, shared, min(_registers(tilings), 255)), 1) if not reached else 1
    slots = gpu.units * held
    filled = ceil(count / slots) * slots / count if count > slots else max(gpu.units / count, 1.0)
    work = _Work()
    for nest, tiling in zip(nests, tilings, strict=True):
        for op in nest.members:
            work.add(op, gpu)
        work.move(nest, tiling, [member for other in nests for member in other.members])
    l2, memory = device.level("l2"), device.level("memory")
    products = reached or _PRODUCTS[gpu.hopper]
    parts = {
        "compute": live * work.product_seconds / gpu.units / products,
        "vector": live * work.vector / (_LANES * clock * gpu.units),
        "functions": live * work.functions / (_FUNCTIONS * clock * gpu.units),
        "l2": (count * work.per_task * live + work.written) / l2.bandwidth,
        "memory": work.outside / (memory.bandwidth * _STREAMED),
    }
    bound = max(parts, key=lambda name: parts[name])
    issue = parts["vector"] + parts["functions"] * 0.5  # both are issued by the same schedulers
    longest = max([*parts.values(), issue])
    latency = memory.latency * (1 + sum(1 for nest in nests if nest.root.reductions)) + device.rate("task")
    idle = filled if bound not in ("memory", "l2") else min(filled, 4.0)
    took = longest * idle
    alone = parts["l2"] * max(gpu.units / count, 1.0)  # one multiprocessor takes no more than its share from L2
    if alone > took:
        took, bound = alone, "l2"
    seconds = took + latency + device.rate("launch")
    bound = "latency" if latency > took else bound
    near = round(count * work.per_task) + work.written
    operations = round(live * (work.products + work.vector))
    roofline = max(parts["compute"] * products, parts["memory"] * _STREAMED)
    return TaskPrediction(seconds, bound, parts, near, work.outside, operations, held, roofline)


def _tasks(op: LinalgOp, tiling: GpuTiling) -> int:
    return prod(ceil(op.extents[d] / size) for d, size in enumerate(tiling.task) if size and d in op.parallel)


def _registers(tilings: Sequence[GpuTiling]) -> int:
    """32-bit registers of a thread: the largest tile twice, as what comes in and what goes out."""
    largest = max(prod(t.register[d] for d in range(len(t.register)) if d != t.depth) for t in tilings)
    return 2 * largest // (32 * tilings[-1].warps) + _OTHERS


class _Work:
    """What a kernel computes and moves in all."""

    def __init__(self) -> None:
        self.product_seconds = 0.0
        self.products = self.vector = self.functions = 0
        self.per_task = self.written = self.outside = 0
        self._seen: set[ir.Value] = set()
        self._read_before: dict[ir.Value, int] = {}

    def add(self, op: LinalgOp, gpu: Gpu) -> None:
        """Counts the arithmetic of an operation."""
        if op.kind is Kind.CONTRACTION:
            kind = element(op.inputs[0])
            peaks = dict(gpu.device.units.peak)
            self.products += 2 * op.points
            self.product_seconds += 2 * op.points / peaks.get(kind, peaks["f32"])
            return
        for inner in op.op.regions[0].blocks[0].operations:
            name = inner.operation.name
            if name in ("linalg.yield", "linalg.index", "arith.constant", "tensor.extract"):
                continue
            expanded = _EXPANDED.get(name, _LONG if name.startswith("math.") and name not in INSTRUCTIONS else 0)
            self.functions += op.points if expanded else 0
            self.vector += op.points * max(expanded, 1)

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
