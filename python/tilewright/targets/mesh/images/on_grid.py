# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What reads windows, on the grid: halos, then computations of single cores, or a product of what windows hold."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import (
    constant_of,
    create,
    create_fill,
    create_generic,
    create_number,
    kinds,
    maker,
    maps,
)
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import number
from tilewright.targets.mesh.elementwise import lies, repeated, yielded
from tilewright.targets.mesh.images.plan import part_of
from tilewright.targets.mesh.images.windows import Windows, starts_from
from tilewright.targets.mesh.placement import Axes, Placement, empty_block, laid_type, local
from tilewright.targets.mesh.slices import inserted


def in_place(op: ir.Operation, found: Windows, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic whose cores have all that their windows read."""
    reads, written = maps(op)[:-1], maps(op)[-1]
    result = laid_type(op.results[0].type, lies(written, loops), placement.side)
    read = [at for at, source in enumerate(found.sources) if not _is_empty(source.value)]
    axes = [tuple("" if dim.loop is None else loops[dim.loop] for dim in dims) for dims in found.operands[:-1]]
    inputs = [widened(op, found, at, axes[at], placement) for at in read]
    start = starts_from(op)
    if start is None:
        inputs.append(placement.laid(op.operands[len(op.operands) - 1], lies(written, loops)))

    def compute(blocks: list[ir.Value]) -> ir.Value:
        given = dict(zip(read, blocks, strict=False))
        sources = [
            bordered(op, found, at, axes[at], given[at]) if at in given else _empty(op.operands[at])
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


def widened(op: ir.Operation, found: Windows, at: int, axes: Axes, placement: Placement) -> ir.Value:
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


def bordered(op: ir.Operation, found: Windows, at: int, axes: Axes, block: ir.Value) -> ir.Value:
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
