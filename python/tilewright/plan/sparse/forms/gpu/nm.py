# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""N:M sparse weights on NVIDIA GPUs: windows of the dense operand in shared memory, of which places name rows."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.ir.generics import create, create_zero
from tilewright.mlir import ir
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.cost.prediction import Prediction
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.sparse.encoded import is_constant
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.gpu.nm_kernel import WindowKernel, window_text
from tilewright.plan.sparse.forms.gpu.packing import element_of, reason_types
from tilewright.plan.sparse.forms.gpu.times import OPEN, attribute, slower, windows
from tilewright.plan.sparse.forms.indices import below, number, over, plus, rest, times
from tilewright.plan.sparse.forms.making import kernel, launch, result_of, tasks_of
from tilewright.plan.sparse.forms.tables import read_or, table

_TYPES = ("f32", "f16", "bf16")
#: Places along the depth that lie in shared memory together, where windows are no larger; and the most of a window.
_BLOCK, _MOST = 64, 512
#: The same where nothing lies there: rows of the dense operand are fetched one by one.
_FETCHED = 256
#: Rows that share their places, at least, for products of tiles.
_SHARED = 16
#: Banks of shared memory.
_BANKS = 32
#: Rows of the dense operand for which warps share a sum, at most, and how many of them.
_FEW, _WAYS = 4, 8
#: Elements of a result that a task holds.
_HELD = 4096


class GpuNM:
    """One operand N:M sparse along the depth, the other one dense.

    Source: Lin et al., Efficient GPU Kernels for N:M-Sparse Weights in Deep Learning (MLSys 2023), 3.2.
    """

    name = "gpu_nm"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What is not taken: other machines, patterns, large windows; weights that a run brings."""
        if device.kind != "gpu" or not device.cpu.startswith("sm_"):
            return f"it is for NVIDIA GPUs, not for {device.name}"
        reason = _reason_pattern(product) or reason_types(product, _TYPES)
        return reason or slower(product, plan_windows(product, device)[1], Gpu.of(device))

    def seconds(self, product: Product, device: Device) -> float:
        """As predicted."""
        return plan_windows(product, device)[1].seconds

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Values and places by tasks and blocks, and a launch."""
        plan, _ = plan_windows(product, device)
        name = kernel(window_text(plan), "sparse_windows")
        lists = [packed_values(product, plan), packed_places(product, plan)]
        added = [] if product.init is None else [product.init]
        grid = [plan.sides, tasks_of(product, plan.tile)]
        return launch(name, grid, [*lists, product.dense, *added], [result_of(product)])[0]


def _reason_pattern(product: Product) -> str | None:
    if len(product.tesa.regions) != 1:
        return "the encoding has several regions"
    (region,) = product.tesa.regions
    pattern = region.pattern
    if not isinstance(pattern, NM):
        return f"the pattern is {pattern.kind}"
    if pattern.axis != (1 if product.left else 0):
        return "the windows do not lie along the sum"
    if pattern.m * _unit(product)[1] > _MOST:
        return f"windows are of more than {_MOST} places"
    if region.format is not None:
        return "codes are not unpacked"
    return None if is_constant(product.encoded) else "the sparse operand is no constant"


def _pattern(product: Product) -> NM:
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, NM)
    return pattern


def _unit(product: Product) -> tuple[int, int]:
    """Elements of a unit across the depth and along it."""
    unit = _pattern(product).unit or (1, 1)
    return (unit[0], unit[1]) if product.left else (unit[1], unit[0])


def plan_windows(product: Product, device: Device) -> tuple[WindowKernel, Prediction]:
    """Tiles as large as leaves every multiprocessor one (units of many rows: products of tiles); the predicted time."""
    pattern, (wide, deep) = _pattern(product), _unit(product)
    across, other = (product.m, product.n) if product.left else (product.n, product.m)
    others = other if other > 0 else OPEN
    window = pattern.m * deep
    most = _FETCHED if product.left and wide >= _SHARED else _BLOCK
    block = window * max(1, min(most // window, -(-product.k // window)))
    count = block // window * pattern.n * deep
    if wide >= _SHARED:
        side = next((s for s in (128, 64, 32, 16) if wide % s == 0), wide)
        step = next(s for s in (32, 16, 8, 4, 2, 1) if count % s == 0)
    else:
        side, step = 32 if product.left else 128, 0
    tile = _narrowed(min(128 if product.left else 32, _power(others)), side, across, others, device)
    ways, warps = 1, _warps(side * tile)
    if not step and tile <= _FEW:  # few rows of x: warps have parts of the sum
        side, ways = _BANKS, min(_WAYS, _power(max(product.k // block, 1)))
        warps = ways
    elif not step and tile < _BANKS:
        side = min(128, _power(across), _HELD // tile)
        warps = _warps(side * tile)
    block *= ways
    gpu, given = Gpu.of(device), element_of(product.dense)
    terms, out = max(product.k * pattern.n // pattern.m, 1), 4 if product.element == "f32" else 2
    sides = (across, others, side, tile) if product.left else (others, across, tile, side)
    problem, shape = Problem(*sides[:2], terms, 1, 1, given, out), Shape(*sides[2:], step or 1, warps)
    prediction = gemm_time.predict(problem, shape, gpu) if step else windows(problem, shape, pattern.m / pattern.n, gpu)
    plan = WindowKernel(
        product.left, across, product.k, other, side, tile, block, ways, count, warps,
        given, product.element, product.init is not None, attribute(prediction, shape), step,
    )  # fmt: skip
    return plan, prediction


def _warps(elements: int) -> int:
    """Warps for so many elements of a result."""
    warps = max(1, min(4, elements // 512))
    return 1 << (warps.bit_length() - 1)


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _narrowed(tile: int, side: int, across: int, others: int, device: Device) -> int:
    """The tile, halved until every multiprocessor has a task; rows of a window fill the banks of shared memory."""
    while tile > _BANKS and -(-across // side) * -(-others // tile) < device.units.count:
        tile //= 2
    return tile


def packed_values(product: Product, plan: WindowKernel) -> ir.Value:
    """Kept elements [tasks, blocks, count, rows], zeros where there are none."""
    values = product.parts[0]
    kind = ir.RankedTensorType(values.type).element_type

    def value(task: ir.Value, block: ir.Value, place: ir.Value, row: ir.Value) -> ir.Value:
        own, at = _own(plan, task, row), plus(times(_part(plan, block, row), plan.count), place)
        return read_or(values, [own, at] if product.left else [at, own], create_zero(kind))

    return table([plan.sides, plan.blocks, plan.count, plan.rows], kind, value)


def _own(plan: WindowKernel, task: ir.Value, row: ir.Value) -> ir.Value:
    """The row of the sparse operand that a task has as its row of that number: each way has all of them."""
    return plus(times(task, plan.side), rest(row, plan.side))


def _part(plan: WindowKernel, block: ir.Value, row: ir.Value) -> ir.Value:
    """The part of the depth, counted over all blocks, that is a row's."""
    return plus(times(block, plan.ways), over(row, plan.side))


def packed_places(product: Product, plan: WindowKernel) -> ir.Value:
    """Where in their block kept elements belong: [tasks, blocks, count, rows], or without rows that share them."""
    positions, pattern, (wide, deep) = product.parts[1], _pattern(product), _unit(product)
    kind = ir.RankedTensorType(positions.type).element_type
    small, index = ir.Type.parse(plan.places), ir.IndexType.get()

    def place_of(task: ir.Value, block: ir.Value, place: ir.Value, row: ir.Value) -> ir.Value:
        units = over(_own(plan, task, row), wide)
        at = plus(times(_part(plan, block, row), plan.count // deep), over(place, deep))
        found = read_or(positions, [units, at] if product.left else [at, units], number(0, kind))
        inside = create("arith.index_castui", [found], index)
        window = times(over(over(place, deep), pattern.n), pattern.m)
        first = times(over(row, plan.side), plan.block // plan.ways)
        own = plus(first, plus(times(plus(window, inside), deep), rest(place, deep)))
        real = below(plus(times(block, plan.block), own), product.k)  # zeros of the last window may lie behind the end
        return create("arith.index_castui", [create("arith.select", [real, own, number(0)], index)], small)

    sizes = [plan.sides, plan.blocks, plan.count]
    if plan.step:
        return table(sizes, small, lambda task, block, place: place_of(task, block, place, number(0)))
    return table([*sizes, plan.rows], small, place_of)
