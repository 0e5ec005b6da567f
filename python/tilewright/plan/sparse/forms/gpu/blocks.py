# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Block-sparse weights on the matrix units of NVIDIA GPUs: a loop over the blocks that are kept."""

from __future__ import annotations

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import Block
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, create_transposed
from tilewright.mlir import ir
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.cost.prediction import Prediction
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.sparse.encoded import pack_of
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.gpu.blocks_kernel import BlockKernel, blocks_text
from tilewright.plan.sparse.forms.gpu.packing import element_of, reason_types, sized_parts
from tilewright.plan.sparse.forms.gpu.times import OPEN, attribute, slower
from tilewright.plan.sparse.forms.making import kernel, launch, result_of, tasks_of

_TYPES = ("f16", "bf16", "f32")
#: Elements of a side of a block: fragments of 16 x 16, and as many as the registers and a step of the ring hold.
_LEAST, _MOST = 16, 128
#: Elements of a result that a warp holds.
_HELD = 1024
_STAGES = 3


class GpuBlocks:
    """One operand of blocks of at least 16 x 16 elements: those that are kept are multiplied as tiles.

    Source: Gray et al., GPU Kernels for Block-Sparse Weights (OpenAI, 2017).
    """

    name = "gpu_blocks"

    def reason_against(self, product: Product, device: Device) -> str | None:
        """What is not taken: other machines, patterns, small blocks; weights that are not known."""
        if device.kind != "gpu" or not device.cpu.startswith("sm_"):
            return f"it is for NVIDIA GPUs, not for {device.name}"
        reason = _reason_pattern(product) or reason_types(product, _TYPES)
        return reason or slower(product, plan_blocks(product, device, _kept(product))[1], Gpu.of(device))

    def seconds(self, product: Product, device: Device) -> float:
        """As predicted."""
        return plan_blocks(product, device, _kept(product))[1].seconds

    def lower(self, product: Product, device: Device) -> ir.Value:
        """Rows of blocks and a launch."""
        data, places, starts = _rows_of_blocks(product)
        plan, _ = plan_blocks(product, device, ir.RankedTensorType(data.type).shape[0])
        name = kernel(blocks_text(plan), "sparse_blocks")
        added = [] if product.init is None else [product.init]
        grid = [plan.rows_of_blocks, tasks_of(product, plan.tile)]
        return launch(name, grid, [data, places, starts, product.dense, *added], [result_of(product)])[0]


def _reason_pattern(product: Product) -> str | None:
    if len(product.tesa.regions) != 1:
        return "the encoding has several regions"
    (region,) = product.tesa.regions
    if not isinstance(region.pattern, Block):
        return f"the pattern is {region.pattern.kind}"
    if min(region.pattern.shape) < _LEAST or max(region.pattern.shape) > _MOST:
        return f"blocks are {region.pattern.shape}, not of {_LEAST} to {_MOST} rows and columns"
    if region.format is not None:
        return "codes are not unpacked"
    known = _known(product)
    if known is None:
        return "the weights are not known"
    return None if known.any() else "no block is kept"


def _known(product: Product):
    """The elements of the encoded operand, packed from a constant; None where they are not known."""
    from tilewright.plan.sparse.constants import packed_array

    return packed_array(product.encoded)


def _rows_of_blocks(product: Product) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Blocks [blocks, side, run], of a right operand [blocks, run, side]; places along the depth; starts of rows."""
    encoded, known = product.encoded, _known(product)
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, Block)
    assert known is not None
    if product.left:
        return _parts(encoded, pattern, known)
    kind = ir.RankedTensorType(encoded.type)
    turned = Block(pattern.shape[::-1])
    across = create_transposed(pack_of(encoded).operands[0], [1, 0])  # type: ignore[union-attr]
    packed = create("sparse_tile.pack", [across], Tesa.one(turned).type(kind.shape[::-1], kind.element_type))
    data, places, starts = _parts(packed, turned, known.T)
    return create_transposed(data, [0, 2, 1]), places, starts


def _parts(encoded: ir.Value, pattern: Block, known) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The parts of a matrix that is known, whose sizes are then, too."""
    kept = len(pattern.pack(known)[1])
    rows = -(-known.shape[0] // pattern.shape[0])
    data, places, starts = sized_parts(encoded, [(kept, *pattern.shape), (kept,), (rows + 1,)])
    return data, places, starts


def _kept(product: Product) -> int:
    """How many blocks there are."""
    return len(product.tesa.regions[0].pattern.pack(_known(product))[1])


def plan_blocks(product: Product, device: Device, blocks: int) -> tuple[BlockKernel, Prediction]:
    """Tiles as wide as leaves every multiprocessor a task, at most those of a step of the ring; the predicted time."""
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, Block)
    side, run = pattern.shape if product.left else pattern.shape[::-1]
    across, other = (product.m, product.n) if product.left else (product.n, product.m)
    rows, others = -(-across // side), other if other > 0 else OPEN
    tile = max(16384 // max(side, 64), 32)
    while tile > 32 and rows * -(-others // tile) < 2 * device.units.count:
        tile //= 2
    tile = min(tile, max(16, 1 << (others - 1).bit_length()))
    warps = max(1, min(8, side * tile // _HELD))
    warps = 1 << (warps.bit_length() - 1)
    gpu, given = Gpu.of(device), element_of(product.dense)
    # Rows of blocks have as many of them, on average.
    depth, out = max(blocks * run // rows, 1), 4 if product.element == "f32" else 2
    sides = (across, others, side, tile) if product.left else (others, across, tile, side)
    shape = Shape(*sides[2:], run, warps, _STAGES)
    problem = Problem(*sides[:2], depth, 1, 1, given, out)
    prediction = gemm_time.predict(problem, shape, gpu)
    plan = BlockKernel(
        product.left, side, run, across, product.k, other, blocks, tile, warps, _STAGES,
        given, product.element, product.init is not None, attribute(prediction, shape),
    )  # fmt: skip
    return plan, prediction
