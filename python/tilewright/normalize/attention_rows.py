# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations keep the rows of scores: a product, the softmax of it, and what that is multiplied with.

Products between which there is no maximum are left as they are: pointwise convolutions and linear layers have planned
forms of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from tilewright.ir.generics import body, kinds, maps, place_of, positions, uses
from tilewright.mlir import ir

#: Operations, makers first, with their loops over the rows.
Rows = list[tuple[ir.Operation, list[int]]]


def is_product(op: ir.Operation) -> bool:
    """Whether it reduces over two operands of which one has other rows: a product with a matrix."""
    if len(op.operands) != 3 or len(op.results) != 1 or not any(kinds(op)):
        return False
    names = [inner.operation.name for inner in body(op).operations]
    return len(names) == 3 and names[0].startswith("arith.mul") and names[1].startswith("arith.add")


def _is_maximum(op: ir.Operation) -> bool:
    """Whether it reduces by taking maxima."""
    return any(kinds(op)) and body(op).operations[0].operation.name in ("arith.maximumf", "arith.maxnumf")


def is_run(all_maps: Sequence[ir.AffineMap], group: list[int]) -> bool:
    """Whether each map holds the loops one after the other, or none of them."""
    for dims in map(positions, all_maps):
        if not set(dims) & set(group):
            continue
        start = dims.index(group[0]) if group[0] in dims else len(dims)
        if dims[start : start + len(group)] != group:
            return False
    return True


def is_plain(op: ir.Operation) -> bool:
    """Whether it has one result, whole dimensions are its indices, and its body does not ask where it is."""
    names = {inner.operation.name for inner in body(op).operations}
    if names & {"linalg.index", "tensor.extract"} or len(op.results) != 1 or not place_of(op):
        return False
    return all(m.is_projected_permutation for m in maps(op))


def rows_between_products(op: ir.Operation) -> Rows:
    """The operations from a product to those that multiply what follows on it, with their loops over its rows.

    Args:
        op: a generic.

    Returns:
        Those; none, where no maximum is taken on the way, the rows are one loop, their number is not known, or
        something on the way treats rows unlike each other.
    """
    if not is_product(op) or not is_plain(op):
        return []
    rows = _rows(op)
    if len(rows) < 2 or not is_run(maps(op), rows):
        return []
    found: Rows = [(op, rows)]
    for made, own in found:  # which grows meanwhile
        if made != op and is_product(made):
            continue
        for reader, number in uses(made.results[0]):
            if reader.name != "linalg.generic":
                continue
            loops = _followed(made, own, reader, number)
            if not loops:
                return []
            if all(reader != other for other, _ in found):
                found.append((reader, loops))
    between = [reader for reader, _ in found[1:]]
    if not any(map(is_product, between)) or not any(map(_is_maximum, between)):
        return []
    return sorted(found, key=cmp_to_key(lambda a, b: -1 if a[0].is_before_in_block(b[0]) else 1))


def _rows(op: ir.Operation) -> list[int]:
    """The longest run of parallel loops of known size that the first operand has and the second has not, or vice
    versa."""
    first, second, output = map(positions, maps(op))
    shape = ir.RankedTensorType(op.results[0].type).shape
    best: list[int] = []
    for own, other in ((first, second), (second, first)):
        run: list[int] = []
        for loop, size in zip(output, shape, strict=True):
            run = [*run, loop] if loop in own and loop not in other and size > 0 else []
            best = max(best, run, key=len)
    return best


def _followed(made: ir.Operation, rows: list[int], reader: ir.Operation, number: int) -> list[int]:
    """The loops of a reader over the same rows; none where it cannot have one loop over them."""
    if not is_plain(reader) or reader.block != made.block or number == len(reader.operands) - 1:
        return []
    output = positions(maps(made)[-1])
    read = positions(maps(reader)[number])
    loops = [read[output.index(loop)] for loop in rows]
    reduces = kinds(reader)
    if any(reduces[loop] for loop in loops) or not is_run(maps(reader), loops):
        return []
    if is_product(reader) and all(set(loops) & set(positions(m)) for m in maps(reader)):
        return []  # its other operand has these rows, too
    return loops


def unlike_rows(op: ir.Operation, loops: list[int]) -> list[ir.Operation]:
    """The operations of an attention that cannot have one loop over its rows, from the scores to what reads a softmax.

    Scores of heads that share keys are such where a mask differs from query to query, and not from head to head. If the
    products alone had one loop, what is between them would be computed apart.

    Args:
        op: a product.
        loops: that could be one in it.

    Returns:
        Those; none where a softmax does not follow, or all of them can.
    """
    found: list[ir.Operation] = [op]
    own = {op: loops}
    for made in found:  # which grows meanwhile
        if made != op and is_product(made):
            continue
        for reader, number in uses(made.results[0]):
            if reader.name == "linalg.generic" and reader not in own:
                own[reader] = _followed(made, own[made], reader, number) if own[made] else []
                found.append(reader)
    between = found[1:]
    if all(own[each] for each in found) or not any(map(is_product, between)) or not any(map(_is_maximum, between)):
        return []
    return found
