# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2:4 sparse weights on tensor cores: half of the terms of each sum are multiplied, metadata say which."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.devices.nvidia import capability
from tilewright.dialects.sparse_tile.patterns import NM
from tilewright.ir.generics import create_zero
from tilewright.mlir import ir
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.cost.prediction import Prediction
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.sparse.encoded import is_constant
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.gpu.mma_sp_kernel import BLOCK, DEPTH, MmaKernel, mma_text
from tilewright.plan.sparse.forms.gpu.packing import element_of, reason_types
from tilewright.plan.sparse.forms.gpu.times import OPEN, attribute, halves, slower
from tilewright.plan.sparse.forms.indices import number, over, plus, rest, times
from tilewright.plan.sparse.forms.making import kernel, launch, result_of, tasks_of
from tilewright.plan.sparse.forms.tables import read_or, table, word_of

_TYPES = ("f16", "bf16")
#: Tiles where the law has none.
_DEFAULT = Shape(64, 64, DEPTH, 4)
#: Elements of 16 bits that a copy in the background moves at once.
_ROW = 8
#: Positions in an element of the metadata, each of two bits.
_PACKED = 8


class GpuMmaSp:
    """`a` [R, K] with 2 of 4 neighbours kept, `b` [K, L] dense: `mma.sp` on NVIDIA GPUs from sm_80 on.

    Source: PTX ISA 9.7.14.6; Mishra et al., Accelerating Sparse Deep Neural Networks (2021).
    """

    name = "gpu_mma_sp"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What is not taken: other machines, patterns, types; weights that a run brings."""
        if device.kind != "gpu" or capability(device) < 80:
            return f"it is for NVIDIA GPUs from sm_80 on, not for {device.name}"
        reason = _reason_pattern(product) or reason_types(product, _TYPES)
        return reason or slower(product, plan_product(product, device)[1], Gpu.of(device))

    def seconds(self, product: Product, device: Device) -> float:
        """As predicted."""
        return plan_product(product, device)[1].seconds

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Condensed values, metadata and a launch."""
        plan, _ = plan_product(product, device)
        values, positions = product.parts
        return _launch(product, plan, packed_values(values, plan), packed_positions(positions, plan))


def _reason_pattern(product: Product) -> str | None:
    if len(product.tesa.regions) != 1:
        return "the encoding has several regions"
    (region,) = product.tesa.regions
    pattern = region.pattern
    if not isinstance(pattern, NM) or (pattern.n, pattern.m) != (2, 4):
        return "the pattern is not 2:4"
    if any(size != 1 for size in pattern.unit or ()):
        return "units are blocks"
    if not product.left or pattern.axis != 1:
        return "the sparse operand is not the left one with windows along the sum"
    if region.format is not None:
        return "codes are not unpacked"
    return None if is_constant(product.encoded) else "the sparse operand is no constant"


def plan_product(product: Product, device: Device) -> tuple[MmaKernel, Prediction]:
    """Tiles by the law of dense products of half the depth, which units take as long for, and the predicted time."""
    gpu, lanes = Gpu.of(device), product.n if product.n > 0 else OPEN
    given = element_of(product.dense)
    out = 4 if product.element == "f32" else 2
    streams = product.n > 0 and product.n % _ROW == 0
    problem = Problem(product.m, lanes, -(-product.k // 2), 1, 1, given, out, streams=streams, neighbours=product.n > 0)
    found = [
        shape
        for shape in gemm_time.shapes(problem, gpu)
        if not (shape.persistent or shape.stream_k) and shape.rows >= BLOCK
    ]
    best = min(found, key=lambda shape: halves(problem, shape, gpu).seconds, default=_DEFAULT)
    prediction = halves(problem, best, gpu)
    plan = MmaKernel(
        product.m, product.k, product.n, best.rows, best.lanes, best.warps, max(best.stages, 1), best.wgmma,
        best.cluster, given, product.element, product.init is not None, attribute(prediction, best, len(found)),
    )  # fmt: skip
    return plan, prediction


def packed_values(values: ir.Value, plan: MmaKernel) -> ir.Value:
    """Kept elements [rows, depth / 2] of whole tiles, zeros behind the matrix."""
    kind = ir.RankedTensorType(values.type).element_type
    return table(
        [plan.padded_rows, plan.padded_depth // 2], kind, lambda r, p: read_or(values, [r, p], create_zero(kind))
    )


def packed_positions(positions: ir.Value, plan: MmaKernel) -> ir.Value:
    """Metadata i16 [rows / 16, depth]: a row has the words of 16 rows of `a`, those of 64 terms side by side.

    The words of 64 terms are those of the lanes of a warp, 32 bits each: lane 4 g + c has the positions of the c-th 16
    terms, first of row g, then of row g + 8. Behind the matrix groups keep their first two.
    """
    i16, i8 = ir.IntegerType.get_signless(16), ir.RankedTensorType(positions.type).element_type

    def word(block: ir.Value, place: ir.Value) -> ir.Value:
        lane, half = over(rest(place, DEPTH), 2), rest(place, 2)
        row = plus(plus(times(block, BLOCK), over(lane, 4)), times(half, BLOCK // 2))
        first = times(plus(times(over(place, DEPTH), 4), rest(lane, 4)), _PACKED)
        own = [read_or(positions, [row, plus(first, at)], number(at % 2, i8)) for at in range(_PACKED)]
        return word_of(own, 2, i16)

    return table([plan.padded_rows // BLOCK, plan.padded_depth], i16, word)


def _launch(product: Product, plan: MmaKernel, values: ir.Value, meta: ir.Value) -> ir.Value:
    name = kernel(mma_text(plan), "sparse_mma")
    added = [] if product.init is None else [product.init]
    tasks = tasks_of(product, plan.tile_columns)
    if isinstance(tasks, int):
        tasks = -(-tasks // plan.cluster[1]) * plan.cluster[1]
    grid = [plan.row_tiles, tasks]
    return launch(name, grid, [values, meta, product.dense, *added], [result_of(product)])[0]
