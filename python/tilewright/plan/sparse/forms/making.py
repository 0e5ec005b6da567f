# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels of all families are made with: kernels from text, launches, contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.generics import create, create_copy, create_fill, create_generic, create_zero
from tilewright.ir.target_info import around
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.indices import number


def contraction(a: ir.Value, b: ir.Value, init: ir.Value) -> ir.Value:
    """a [m, k] @ b [k, n] + init [m, n] as a linalg.generic, at the current insertion point.

    Floats of less than 32 bits are summed in f32 and rounded once.
    """
    m, n, k = (ir.AffineDimExpr.get(d) for d in range(3))
    maps = [ir.AffineMap.get(3, 0, pair) for pair in ([m, k], [k, n], [m, n])]
    narrow = ir.RankedTensorType(init.type).element_type
    kind = narrow if isinstance(narrow, ir.F64Type) else ir.F32Type.get()
    if narrow != kind:
        init = create_copy(init, _empty_like(init, kind), "arith.extf")

    def add(elements: list[ir.Value]) -> ir.Value:
        wide = [x if x.type == kind else create("arith.extf", [x], kind) for x in elements[:2]]
        return create("arith.addf", [elements[2], create("arith.mulf", wide, kind)], kind)

    total = create_generic([(a, maps[0]), (b, maps[1])], init, maps[2], [False, False, True], add)
    return total if narrow == kind else create_copy(total, _empty_like(total, narrow), "arith.truncf")


def _empty_like(value: ir.Value, element: ir.Type) -> ir.Value:
    """A tensor of the same sizes and another type of elements."""
    shape, index = ir.RankedTensorType(value.type).shape, ir.IndexType.get()
    dims = [
        create(
            "tensor.dim", [value, create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})], index
        )
        for d, size in enumerate(shape)
        if size < 0
    ]
    return create("tensor.empty", dims, ir.RankedTensorType.get(shape, element))


def kernel(text: str, name: str) -> str:
    """Put a `tile.kernel` into the module around the insertion point, if it is not there yet; returns its name.

    Args:
        text: one `tile.kernel @NAME`, with NAME the word `KERNEL`.
        name: what it is called where no other symbol is.
    """
    module = list(around(ir.InsertionPoint.current.block.owner))[-1]
    block = module.regions[0].blocks[0]
    held = {symbol_of(op): op.operation for op in block.operations}
    with ir.Location.unknown():
        parsed = ir.Module.parse(text)
    made = parsed.body.operations[0].operation
    alike, free, number = str(made), name, 0
    while free in held:
        if str(held[free]).replace(f"@{free}(", "@KERNEL(", 1) == alike:
            return free
        number += 1
        free = f"{name}_{number}"
    clone = made.clone(ip=ir.InsertionPoint.at_block_begin(block))
    clone.attributes["sym_name"] = ir.StringAttr.get(free)
    return free


def launch(
    name: str, grid: Sequence[ir.Value | int], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """`tile.launch` on tensors, at the current insertion point; returns the updated outputs."""
    bounds = [number(one) if isinstance(one, int) else one for one in grid]
    op = ir.Operation.create(
        "tile.launch",
        results=[value.type for value in outputs],
        operands=[*bounds, *inputs, *outputs],
        attributes={
            "kernel": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(bounds), len(inputs), len(outputs)]),
        },
    )
    return list(op.results)


def choice(condition: ir.Value, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]) -> ir.Value:
    """`scf.if` whose branches make one tensor of the same type each, at the current insertion point.

    Args:
        condition: an i1.
        then: makes the operations of the first branch, and returns its result.
        otherwise: the same for the second branch.
    """
    draft = ir.Operation.create("scf.if", operands=[condition], regions=2)
    results = []
    for region, make in zip(draft.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            results.append(make())
            ir.Operation.create("scf.yield", operands=[results[-1]])
    final = ir.Operation.create("scf.if", results=[results[0].type], operands=[condition], regions=2)
    for source, target in zip(draft.regions, final.regions, strict=True):
        source.blocks[0].append_to(target)
    draft.erase()
    return final.results[0]


def finished(place: str, bounds: str, held: str, memref: str, kind: str, adds: bool) -> str:
    """The end of a kernel: `%sum`, f32, with what is added to it (`%d`), in the type of the result, to `%c`.

    Args:
        place: coordinates of the tile.
        bounds: how much of the tile there is.
        held: its shape.
        memref: type of `%c` and `%d`.
        kind: type of their elements.
        adds: whether there is `%d`.
    """
    wide, narrow = f"!tile.tile<{held}xf32>", f"!tile.tile<{held}x{kind}>"
    lines, value = [], "%sum"
    if adds:
        lines.append(f"  %old = tile.load %d[{place}] valid ({bounds}) : {memref}, {narrow}")
        old = "%old"
        if kind != "f32":
            lines.append(f"  %old_wide = tile.convert %old : {narrow} -> {wide}")
            old = "%old_wide"
        lines.append(f"  %with = arith.addf %sum, {old} : {wide}")
        value = "%with"
    if kind != "f32":
        lines.append(f"  %narrow = tile.convert {value} : {wide} -> {narrow}")
        value = "%narrow"
    lines.append(f"  tile.store {value}, %c[{place}] valid ({bounds}) : {narrow}, {memref}")
    return "\n".join(lines)


def filled(place: ir.Value) -> ir.Value:
    """A tensor's place full of zeros."""
    return create_fill(create_zero(ir.RankedTensorType(place.type).element_type), place)


def tasks_of(product: Product, width: int) -> ir.Value | int:
    """How many tiles of so many elements cover the dense operand across the depth."""
    other, dim = (product.n, 1) if product.left else (product.m, 0)
    if other >= 0:
        return -(-other // width)
    size = create("tensor.dim", [product.dense, number(dim)], ir.IndexType.get())
    return create("arith.ceildivui", [size, number(width)], size.type)


def result_of(product: Product) -> ir.Value:
    """A tensor for the result."""
    other, dim = (product.n, 1) if product.left else (product.m, 0)
    sizes = [] if other >= 0 else [create("tensor.dim", [product.dense, number(dim)], ir.IndexType.get())]
    return create("tensor.empty", sizes, ir.RankedTensorType(product.op.results[0].type))
