# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dense operand with its columns across lanes, packed once for all tasks and products that read it.

Where few columns leave one task for them, the rows of the sparse matrix are shared out, and each task would transpose
the same columns anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.devices.device import Device
from tilewright.ir.generics import create, create_split, is_copy, maker, maps, positions, uses
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.plan.sparse.forms.cpu.rows_in_lanes_kernel import RowsKernel, fill, packed_x, up, x_type
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.making import kernel, launch, tasks_of

_WORTH = 1 << 13
"""Elements that tasks would fetch again, from which a launch more is worth it: some microseconds."""

_LEAST_ROWS = 64
"""Of the dense operand, in a task that packs."""

_VIEWS = (*RESHAPES, "tensor.cast")


def is_worth_packing(plan: RowsKernel) -> bool:
    """Whether tasks would fetch so much more than once; columns that a run brings count as one task's."""
    columns = plan.columns if plan.columns >= 0 else plan.width
    return (plan.parts - 1) * columns * plan.depth > _WORTH


def is_as_packed(plan: RowsKernel) -> bool:
    """Whether [depth, columns] is what packing makes of them."""
    return plan.columns == plan.width and plan.deep == plan.depth and plan.given == plan.element


def packed_lanes(product: Product, dense: ir.Value, plan: RowsKernel, device: Device) -> ir.Value:
    """The dense operand as [tasks, deep, width]: as it is, else by a launch that is made where there is none yet.

    Args:
        product: whose operand it is.
        dense: it, as the kernel takes it.
        plan: of the kernel that reads it.
        device: the machine.
    """
    if not plan.across and is_as_packed(plan):
        return create_split(dense, 0, [1, plan.depth])
    tasks = tasks_of(product, plan.width)
    parts = max(-(-2 * device.units.count // max(-(-plan.columns // plan.width), 1)), 1)
    chunk = max(up(-(-plan.deep // parts), plan.lanes), _LEAST_ROWS)
    name = kernel(_text(plan, chunk), "sparse_lanes")
    for made in _launches(_root(dense)):
        if _is_same(made, name, dense.type):
            return made.results[0]
    kind = ir.Type.parse(packed_x(plan).replace("memref", "tensor"))
    place = create("tensor.empty", [] if isinstance(tasks, int) else [tasks], kind)
    return launch(name, [tasks, -(-plan.deep // chunk)], [dense], [place])[0]


def turned_source(value: ir.Value) -> ir.Value | None:
    """What a matrix is the transposed copy of; None where it is none."""
    made = maker(value)
    return made.operands[0] if made is not None and _is_turning(made) else None


def turning_user(op: ir.Operation) -> ir.Operation | None:
    """The transposing copy that alone reads a matrix; None where something else does."""
    found = [user for user, _ in uses(op.results[0])]
    return found[0] if len(found) == 1 and _is_turning(found[0]) and found[0].block == op.block else None


def _is_turning(op: ir.Operation) -> bool:
    if op.name != "linalg.generic" or not is_copy(op) or ir.RankedTensorType(op.results[0].type).rank != 2:
        return False
    read, written = (positions(one) for one in maps(op))
    return read == written[::-1]


def _root(value: ir.Value) -> ir.Value:
    """What a value is another shape of: elements in the same order."""
    while (made := maker(value)) is not None and made.name in _VIEWS:
        value = made.operands[0]
    return value


def _launches(root: ir.Value) -> Iterator[ir.Operation]:
    """Launches that read a value, or another shape of it."""
    for use in root.uses:
        user = use.owner.operation
        if user.name in _VIEWS:
            yield from _launches(user.results[0])
        elif user.name == "tile.launch":
            yield user


def _is_same(made: ir.Operation, name: str, kind: ir.Type) -> bool:
    """Whether a launch packs what has this type: of one root there is one value of a matrix's type."""
    here = ir.InsertionPoint.current
    if made.attributes["kernel"].value != name or made.block != here.block:
        return False
    if here.ref_operation is None or not made.is_before_in_block(here.ref_operation):
        return False  # of a mixture, which is made where its last product stands
    return any(operand.type == kind for operand in made.operands)


def _text(k: RowsKernel, chunk: int) -> str:
    """A kernel of columns by slices of the depth; what is behind the depth or the columns is zero."""
    numbers = {"c0": 0, "c1": 1, "cwidth": k.width, "clanes": k.lanes, "cdepth": k.depth, "cdeep": k.deep}
    constants = "\n".join(f"  %{name} = arith.constant {number} : index" for name, number in numbers.items())
    own = f"memref<?x{k.width}x{k.element}, strided<[{k.width}, 1], offset: ?>>"
    size = f"arith.constant {k.columns} : index"
    if k.columns < 0:
        size = f"memref.dim %x, %c{0 if k.across else 1} : {x_type(k)}"
    return f"""
tile.kernel @KERNEL(%x: {x_type(k)}, %packed: {packed_x(k)}) grid(%task, %part) {{
{constants}
  %cchunk = arith.constant {chunk} : index
  %left = arith.muli %task, %cwidth : index
  %columns = {size}
  %first = arith.muli %part, %cchunk : index
  %behind = arith.subi %cdeep, %first : index
  %cheld = arith.minsi %behind, %cchunk : index
  %xs = memref.subview %packed[%task, %first, 0] [1, %cheld, {k.width}] [1, 1, 1] : {packed_x(k)} to {own}
{fill(k, own, "%first")}
  tile.return
}}
"""
