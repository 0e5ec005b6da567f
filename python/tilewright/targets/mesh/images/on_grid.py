# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What reads windows, on the grid: halos, then computations of single cores, or a product of what windows hold."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import (
    constant_of,
    create,
    create_fill,
    create_generic,
    create_number,
    create_transposed,
    create_zero,
    kinds,
    maker,
    maps,
)
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops
from tilewright.targets.mesh.attributes import number
from tilewright.targets.mesh.elementwise import lies, repeated, yielded
from tilewright.targets.mesh.images.plan import Roles, part_of, roles_of
from tilewright.targets.mesh.images.windows import Windows, starts_from
from tilewright.targets.mesh.placement import Axes, Placement, before_users, empty_block, laid_type, local
from tilewright.targets.mesh.slices import added, expanded, inserted, places


def in_place(op: ir.Operation, found: Windows, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic whose cores have all that their windows read."""
    reads, written = maps(op)[:-1], maps(op)[-1]
    result = laid_type(op.results[0].type, lies(written, loops), placement.side)
    read = [at for at, source in enumerate(found.sources) if not _is_empty(source.value)]
    axes = [tuple("" if dim.loop is None else loops[dim.loop] for dim in dims) for dims in found.operands[:-1]]
    inputs = [_widened(op, found, at, axes[at], placement) for at in read]
    start = starts_from(op)
    if start is None:
        inputs.append(placement.laid(op.operands[len(op.operands) - 1], lies(written, loops)))

    def compute(blocks: list[ir.Value]) -> ir.Value:
        given = dict(zip(read, blocks, strict=False))
        sources = [
            _bordered(op, found, at, axes[at], given[at]) if at in given else _empty(op.operands[at])
            for at in range(len(reads))
        ]
        target = blocks[-1] if start is None else _started(start, result)
        return create_generic(
            list(zip(sources, reads, strict=True)),
            target,
            written,
            kinds(op),
            lambda elements: repeated(op, elements, yielded(op)),
        )

    return local(inputs, result, compute)


def as_product(op: ir.Operation, found: Windows, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a convolution of all channels: windows become rows of a matrix (im2col)."""
    roles = roles_of(op, found)
    assert roles is not None
    axes, side, sizes = roles.axes(found), placement.side, found.sizes
    result = laid_type(op.results[0].type, lies(maps(op)[-1], loops), side)
    block = ir.RankedTensorType(block_type(result))
    rows, channels = prod(block.shape[:-1]), -(-sizes[roles.summed] // side)
    image = _widened(op, found, roles.image, axes, placement)
    elements = [ir.RankedTensorType(op.operands[roles.image].type).element_type, block.element_type]
    depth = roles.taps(sizes) * channels
    shapes = [[side * rows, side * depth], [side * rows, sizes[roles.columns]]]
    of_windows, of_product = (
        laid_type(ir.RankedTensorType.get(shape, element), ("y", "x"), side)
        for shape, element in zip(shapes, elements, strict=True)
    )

    def unfold(blocks: list[ir.Value]) -> ir.Value:
        whole = _bordered(op, found, roles.image, axes, blocks[0])
        return _joined([_tap(whole, found, roles, at, block) for at in _taps(roles, sizes)], of_windows)

    windows = local([image], of_windows, unfold)
    value = op.operands[roles.filter]
    with before_users(value):
        filters = placement.laid(_filters(op, found, roles, placement), ("y skew", "x"))
    algorithm = {"algorithm": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), int(ops.Gemm.meshgemm))}
    made = create("coremesh.gemm", [windows, filters], of_product, algorithm)
    groups = [[*range(block.rank - 1)], [block.rank - 1]]
    total = local([made], result, lambda blocks: expanded(blocks[0], list(block.shape), groups))
    start = starts_from(op)
    if start is not None and start.name == "linalg.fill" and constant_of(start.operands[0]) == 0:
        return total
    return added(total, placement.laid(op.operands[len(op.operands) - 1], lies(maps(op)[-1], loops)))


def _widened(op: ir.Operation, found: Windows, at: int, axes: Axes, placement: Placement) -> ir.Value:
    """An input on the grid, of which each core has what its windows read along dimensions that are split."""
    source = found.sources[at]
    value = placement.laid(source.value, axes)
    for dim, how in enumerate(found.operands[at]):
        if not axes[dim] or how.loop is None or not found.is_widened(at, dim):
            continue
        step, size = part_of(how, found.sizes, placement.side)
        kind = ir.RankedTensorType(value.type)
        shape = [placement.side * size if own == dim else count for own, count in enumerate(kind.shape)]
        places = {"dim": dim, "from": how.first - source.low[dim], "step": step, "size": size}
        attributes: dict[str, ir.Attribute] = {name: number(place) for name, place in places.items()}
        attributes["fill"] = _number_of(kind.element_type, source.fill or 0.0)
        result = laid_type(ir.RankedTensorType.get(shape, kind.element_type), axes, placement.side)
        value = create("coremesh.halo", [value], result, attributes)
    return value


def _number_of(kind: ir.Type, value: float) -> ir.Attribute:
    return ir.FloatAttr.get(kind, value) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, int(value))


def _bordered(op: ir.Operation, found: Windows, at: int, axes: Axes, block: ir.Value) -> ir.Value:
    """A core's block with the border along dimensions that are whole."""
    source, kind = found.sources[at], ir.RankedTensorType(block.type)
    if source.fill is None:
        return block
    whole = ir.RankedTensorType(op.operands[at].type).shape
    shape = [have if axis else size for have, size, axis in zip(kind.shape, whole, axes, strict=True)]
    if shape == list(kind.shape):
        return block
    empty = create("tensor.empty", [], ir.RankedTensorType.get(shape, kind.element_type))
    around = create_fill(create_number(source.fill, kind.element_type), empty)
    return inserted(block, around, {dim: low for dim, low in enumerate(source.low) if not axes[dim]})


def _is_empty(value: ir.Value) -> bool:
    """Whether a tensor only says how large windows are."""
    made = maker(value)
    return made is not None and made.name == "tensor.empty"


def _empty(value: ir.Value) -> ir.Value:
    return create("tensor.empty", [], value.type)


def _started(start: ir.Operation, result: ir.RankedTensorType) -> ir.Value:
    """A core's block of what a computation starts from."""
    empty = empty_block(result)
    if start.name == "tensor.empty":
        return empty
    scalar = constant_of(start.operands[0])
    assert scalar is not None
    return create_fill(create_number(scalar, start.operands[0].type), empty)


def _taps(roles: Roles, sizes: Sequence[int]) -> list[dict[int, int]]:
    """Places of a window, as indices of its loops."""
    ranges = itertools.product(*(range(sizes[loop]) for loop in roles.kernel))
    return [dict(zip(roles.kernel, at, strict=True)) for at in ranges]


def _tap(whole: ir.Value, found: Windows, roles: Roles, at: dict[int, int], block: ir.RankedTensorType) -> ir.Value:
    """What one place of all windows of a core reads, a matrix [rows, channels]."""
    kind, dims = ir.RankedTensorType(whole.type), found.operands[roles.image]
    axes, out = roles.axes(found), found.out
    offsets, counts, steps = [], [], []
    for dim, how in enumerate(dims):
        is_channel = how.loop is None and [loop for loop, _ in how.kernel] == [roles.summed]
        place = sum(at.get(loop, 0) * dilation for loop, dilation in how.kernel)
        offsets.append(0 if is_channel else place if axes[dim] else place + how.first)
        own = 1 if how.loop is None else block.shape[out.index(how.loop)]
        counts.append(kind.shape[dim] if is_channel else own)
        steps.append(1 if is_channel else how.stride)
    shape = ir.RankedTensorType.get(counts, kind.element_type)
    part = create("tensor.extract_slice", [whole], shape, places(offsets, counts, [1, 0, 0, 0], steps))
    order = sorted(range(len(dims)), key=lambda dim: _rank(dims[dim].loop, out, roles, dims[dim].kernel))
    part = part if order == list(range(len(dims))) else create_transposed(part, order)
    turned = list(ir.RankedTensorType(part.type).shape)
    return _collapsed(part, [prod(turned[:-1]), turned[-1]], len(turned))


def _rank(loop: int | None, out: list[int], roles: Roles, kernel: tuple[tuple[int, int], ...]) -> int:
    """Where a dimension of the image stands in a matrix of windows: places as in the result, channels last."""
    if loop is not None:
        return out.index(loop)
    return len(out) if [own for own, _ in kernel] == [roles.summed] else -1


def _collapsed(value: ir.Value, shape: list[int], rank: int) -> ir.Value:
    """A tensor whose first dimensions become one."""
    if rank == len(shape):
        return value
    groups = [[*range(rank - len(shape) + 1)], *([dim] for dim in range(rank - len(shape) + 1, rank))]
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get(list(map(number, group))) for group in groups])
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    return create("tensor.collapse_shape", [value], kind, {"reassociation": reassociation})


def _joined(parts: list[ir.Value], result: ir.RankedTensorType) -> ir.Value:
    if len(parts) == 1:
        return parts[0]
    return create("tensor.concat", parts, block_type(result), {"dim": number(1)})


def _filters(op: ir.Operation, found: Windows, roles: Roles, placement: Placement) -> ir.Value:
    """The filters as a matrix whose blocks of rows are those of cores' channels, place by place of the window."""
    value, side, sizes = op.operands[roles.filter], placement.side, found.sizes
    dims = [dim.kernel[0][0] if dim.loop is None else dim.loop for dim in found.operands[roles.filter]]
    wanted = [*roles.kernel, roles.summed, roles.columns]
    order = [dims.index(loop) for loop in wanted]
    value = placement.outside(value, "its windows are rows of a matrix")
    value = value if order == list(range(len(order))) else create_transposed(value, order)
    element = ir.RankedTensorType(value.type).element_type
    taps, channels, columns = roles.taps(sizes), sizes[roles.summed], sizes[roles.columns]
    part = -(-channels // side)
    if roles.kernel:
        value = _collapsed(value, [taps, channels, columns], len(order))
    else:
        value = expanded(value, [1, channels, columns], [[0, 1], [2]])
    if part * side != channels:
        empty = create("tensor.empty", [], ir.RankedTensorType.get([taps, part * side, columns], element))
        value = inserted(value, create_fill(create_zero(element), empty), {})
    value = expanded(value, [taps, side, part, columns], [[0], [1, 2], [3]])
    value = create_transposed(value, [1, 0, 2, 3])
    return _collapsed(value, [side * taps * part, columns], 4)
