# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether accesses of a kernel stay inside of memory in a launch: proven, refuted, or to be seen in the run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.ir.units import symbol_of
from tilewright.kernels.bounds.forms import ANY, SIZES, Form, Forms
from tilewright.kernels.bounds.sites import Reach, Site, sites_of
from tilewright.mlir import ir


@dataclass(frozen=True)
class Doubt:
    """A site whose places are not proven to be there: the dimensions in question, all of them for a copy."""

    site: Site
    dims: frozenset[int]


def doubts_of(kernel: ir.Operation, launch: ir.Operation) -> tuple[list[Doubt], list[ir.Operation]]:
    """Prove a kernel's accesses for one launch.

    Returns:
        the accesses that are not proven, and the operations whose accesses nobody knows.

    Raises:
        UserError: some task of this launch reaches out of an argument.
    """
    forms = _bound(kernel, launch)
    if forms is None:
        return [], []
    sites, unknown = sites_of(kernel, forms)
    for op in [op for op in _casts(kernel) if not _cast_holds(op, forms)]:
        unknown.append(op)
    found = []
    for site in sites:
        dims = _unproven(site, forms, kernel) if site.reaches else _unequal(site, forms, kernel)
        if dims:
            found.append(Doubt(site, dims))
    return found, unknown


def _bound(kernel: ir.Operation, launch: ir.Operation) -> Forms | None:
    """What a launch says of a kernel's arguments; None where no task runs."""
    from tilewright.ir.constants import integer_constant

    arguments = list(kernel.regions[0].blocks[0].arguments)
    rank = ir.IntegerAttr(kernel.attributes["grid_rank"]).value
    operands = list(launch.operands)
    sizes: dict[ir.Value, Sequence[int | None]] = {}
    for argument, operand in zip(arguments[: len(arguments) - rank], operands[rank:], strict=True):
        if isinstance(operand.type, ir.ShapedType):
            kind = ir.ShapedType(operand.type)
            sizes[argument] = [None if kind.is_dynamic_dim(d) else kind.get_dim_size(d) for d in range(kind.rank)]
    forms = Forms(sizes, launch.parent.operation.name == "func.func")
    for at, (coordinate, bound) in enumerate(zip(arguments[len(arguments) - rank :], operands[:rank], strict=True)):
        number = integer_constant(bound)
        if number is not None and number <= 0:
            return None
        last = SIZES[1] if number is None else number - 1
        forms.bind(coordinate, (0, last), number is not None, f"coordinate {at}")
    return forms


def _unproven(site: Site, forms: Forms, kernel: ir.Operation) -> frozenset[int]:
    dims = []
    for reach in site.reaches:
        size = forms.size(site.memory, reach.dim)
        low, high = forms.interval(reach.low)
        below = low < 0
        above = high > ANY[1] or not any(_is_below(high, size, forms) for high in reach.highs)
        if below or above:
            _refute(site, reach, below, size, forms, kernel)
            dims.append(reach.dim)
    return frozenset(dims)


def _is_below(place: Form, size: Form, forms: Forms) -> bool:
    """Whether a place is below a size, as numbers of the machine: one that wraps around is smaller than its form."""
    over = place.plus(size, -1)
    return forms.interval(over)[1] < 0 and (not over.terms or forms.interval(size)[1] <= ANY[1])


def _refute(site: Site, reach: Reach, below: bool, size: Form, forms: Forms, kernel: ir.Operation) -> None:
    """Raise where a task does reach out.

    Raises:
        UserError: it does.
    """
    end = reach.low if below else reach.highs[0].plus(size, -1)
    certain = site.is_certain(forms) and not site.masked and reach.exact
    if not certain or size.terms or not forms.is_attained(end) or not forms.fits(end):
        return
    place = forms.interval(reach.low)[0] if below else forms.interval(reach.highs[0])[1]
    where = ", ".join(f"{name} = {value}" for name, value in forms.corner(end, not below).items())
    task = f", in the task of {where}" if where else ""
    advice = "give it a grid that fits its arguments, larger arguments, or mask the access (valid)"
    raise located(
        UserError(
            f"kernel {symbol_of(kernel)}{line_of(site.op)}: {site.op.name} reaches place {int(place)} of "
            f"{argument_name(site.memory)} along dimension {reach.dim}, of size {size.constant}{task}: {advice}"
        ),
        site.op,
    )


def _unequal(site: Site, forms: Forms, kernel: ir.Operation) -> frozenset[int]:
    """Dimensions along which a copy's two memories may differ in size; with `fill` the source may be smaller."""
    source, target = list(site.op.operands)[:2]
    found = []
    for dim in range(ir.MemRefType(source.type).rank):
        low, high = forms.interval(forms.size(target, dim).plus(forms.size(source, dim), -1))
        if low == high == 0 or ("fill" in site.op.attributes and low >= 0):
            continue
        if low == high and site.is_certain(forms):
            raise located(
                UserError(
                    f"kernel {symbol_of(kernel)}{line_of(site.op)}: {site.op.name} between memories whose sizes along "
                    f"dimension {dim} differ by {abs(int(low))}"
                ),
                site.op,
            )
        found.append(dim)
    return frozenset(found)


def _casts(kernel: ir.Operation) -> list[ir.Operation]:
    from tilewright.ir.generics import walk

    return [*walk(kernel, "memref.cast"), *walk(kernel, "memref.expand_shape")]


def _cast_holds(op: ir.Operation, forms: Forms) -> bool:
    """Whether a type that states more sizes than its source had states those that are there."""
    source, result = op.operands[0], op.results[0]
    if not all(isinstance(value.type, ir.MemRefType) for value in (source, result)):
        return False  # whoever casts it back states sizes and strides anew
    kinds = ir.MemRefType(source.type), ir.MemRefType(result.type)
    if op.name == "memref.cast":
        sizes = [(forms.size(source, d), forms.size(result, d)) for d in range(kinds[0].rank)]
        return _layout_holds(*kinds) and all(forms.interval(a.plus(b, -1)) == (0, 0) for a, b in sizes)
    if kinds[0].has_static_shape:
        return True
    groups = [[ir.IntegerAttr(d).value for d in group] for group in op.attributes["reassociation"]]
    for dim, group in enumerate(groups):
        whole, product = forms.size(source, dim), 1
        for inner in group:
            size = forms.size(result, inner)
            if size.terms:
                return False
            product *= size.constant
        if whole.terms or whole.constant != product:
            return False
    return True


def _layout_holds(source: ir.MemRefType, result: ir.MemRefType) -> bool:
    """Whether a cast states no stride and no offset that its source's type does not state."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    (strides, offset), (stated, start) = source.get_strides_and_offset(), result.get_strides_and_offset()
    pairs = zip([*strides, offset], [*stated, start], strict=True)
    return all(after in (before, unknown) for before, after in pairs)


# What messages say ----------------------------------------------------------------------------------------------------


def line_of(op: ir.Operation) -> str:
    """``, line 12`` where the text has lines; "" else."""
    found = re.search(r":(\d+):\d+", str(op.location))
    return f", line {found[1]}" if found else ""


def argument_name(memory: ir.Value) -> str:
    """The argument that memory is, or a view of; by its position where it has no name."""
    at = memory
    while not isinstance(at, ir.BlockArgument):
        if not at.owner.operands or not isinstance(at.owner.operands[0].type, ir.MemRefType):
            return "a local buffer"
        at = at.owner.operands[0]
    kernel = at.owner.owner
    number = at.arg_number
    if kernel.name == "tile.kernel" and "arg_attrs" in kernel.attributes:
        given = ir.DictAttr(ir.ArrayAttr(kernel.attributes["arg_attrs"])[number])
        if decisions.NAME in given:
            return ir.StringAttr(given[decisions.NAME]).value
    return f"argument {number}"
