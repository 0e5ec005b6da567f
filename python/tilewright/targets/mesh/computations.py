# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a `linalg.generic` computes, as far as a mesh has collectives for it: elementwise, a reduction, a product."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import body, constant_of, kinds, maker, maps
from tilewright.mlir import ir
from tilewright.sim.coremesh.combinations import OPS, Combine, is_identity
from tilewright.targets.mesh.bodies.captures import captures

#: Element types that cores compute with.
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")
#: Floats that cores hold, and convert: of whole bytes.
SMALL_FLOATS = ("f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU")
KINDS = FLOATS + INTEGERS + SMALL_FLOATS
#: How an op combines; floats have a sign always.
_COMBINES: dict[str, Combine] = {name: how for how in reversed(OPS) for name in OPS[how]}
#: What sums products, and what multiplies.
_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
_BITS: dict[str, Combine] = {"arith.andi": "umin", "arith.ori": "umax"}


@dataclass(frozen=True)
class Elementwise:
    """Each point of the loops makes one element."""


@dataclass(frozen=True)
class Reduction:
    """Points along some loops are combined.

    Attributes:
        how: two numbers become one.
        loops: that reduce.
        plain: elements of the first input are combined as they are.
        bare: no input has all that is combined: bodies pick or compute it.
    """

    how: Combine
    loops: tuple[int, ...]
    plain: bool
    bare: bool = False


@dataclass(frozen=True)
class Product:
    """Products of two inputs, summed along one loop.

    Attributes:
        left, right: numbers of the inputs; the result's rows are the left one's.
        batch: loops of the result with a product for each index, in its order: those of both inputs, and all but the
            longest of an input's own.
        rows: loop of the left input and the result; None: the left one is a vector.
        columns: loop of the right input and the result.
        summed: loop of both inputs.
        starts: whether sums start from what the output holds, rather than from 0.
    """

    left: int
    right: int
    batch: tuple[int, ...]
    rows: int | None
    columns: int
    summed: int
    starts: bool = False


Computation = Elementwise | Reduction | Product


def computation(op: ir.Operation, codes: bool = False) -> Computation | str:
    """What a generic computes; a text that says why where no collective does it.

    Args:
        codes: of any elements, as bodies in a core read and decode them.
    """
    return _unfit(op, codes) or _product(op) or _others(op)


def loop_sizes(op: ir.Operation) -> list[int]:
    """Iterations of each loop."""
    sizes = [1] * maps(op)[0].n_dims
    for map_, operand in zip(maps(op), op.operands, strict=True):
        for expr, size in zip(map_.results, ir.RankedTensorType(operand.type).shape, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                sizes[ir.AffineDimExpr(expr).position] = size
    return sizes


def dims(map_: ir.AffineMap) -> list[int | None]:
    """The loop along each dimension; None where one index is always read."""
    return [ir.AffineDimExpr(expr).position if isinstance(expr, ir.AffineDimExpr) else None for expr in map_.results]


def _unfit(op: ir.Operation, codes: bool) -> str:
    """Why nothing here is done on a grid; empty where something is."""
    if len(op.results) != 1:
        return "it makes several tensors"
    for value in op.operands:
        if not isinstance(value.type, ir.RankedTensorType):
            return "it reads a number that the run brings"
        kind = ir.RankedTensorType(value.type)
        if not kind.has_static_shape or 0 in kind.shape:
            return f"it needs sizes that are known and not 0: {kind}"
        if str(kind.element_type) not in KINDS and not codes:
            return f"cores compute with {', '.join(KINDS)}, not {kind.element_type}"
    reads = maps(op)
    if not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in reads for e in m.results):
        return "it reads windows"
    if any(len(set(found)) < len(found) for found in map(_known, reads)):
        return "it reads a diagonal"
    if len(_known(reads[-1])) != len(reads[-1].results):
        return "it writes a part of its result"
    return _unfit_captures(op, codes)


def _unfit_captures(op: ir.Operation, codes: bool) -> str:
    found = captures(op, loop_sizes(op))
    if isinstance(found, str):
        return found
    wrong = [
        one.value.type for one in found.tables if str(ir.RankedTensorType(one.value.type).element_type) not in KINDS
    ]
    if wrong:
        return f"cores compute with {', '.join(KINDS)}, not {wrong[0]}"
    return "its body reads more than elements" if codes and found else ""


def _known(map_: ir.AffineMap) -> list[int]:
    return [loop for loop in dims(map_) if loop is not None]


def unfit_body(op: ir.Operation) -> str:
    """Why cores do not run the body of a generic on elements alone; empty where they do."""
    found = captures(op, loop_sizes(op))
    if isinstance(found, str):
        return found
    return "its body reads more than elements" if found else ""


def _others(op: ir.Operation) -> Computation | str:
    reduces = kinds(op)
    loops = tuple(loop for loop, is_reduced in enumerate(reduces) if is_reduced)
    own = body(op).arguments[len(op.operands) - 1]
    if not loops:
        return "it changes a tensor in place" if list(own.uses) else Elementwise()
    return _reduction(op, loops, own)


def _reduction(op: ir.Operation, loops: tuple[int, ...], own: ir.Value) -> Reduction | str:
    last = maker(_yielded(op))
    how = None if last is None else how_of(last)
    if last is None or how is None or own not in last.operands or len(list(own.uses)) != 1:
        return f"it combines otherwise than by one of {', '.join(OPS)}"
    if not is_identity(how, of_mlir(str(own.type)), _start(op)):
        return "it starts from another number than its combination's neutral one"
    reads = maps(op)[:-1]
    large = {loop for loop, size in enumerate(loop_sizes(op)) if size > 1}
    bare = not any(large <= {*_known(map_)} for map_ in reads)
    other = next(value for value in last.operands if value != own)
    plain = other == body(op).arguments[0] and dims(reads[0]) == list(range(reads[0].n_dims)) and len(reads) == 1
    return Reduction(how, loops, plain and _in_order(maps(op)[-1]), bare)


def how_of(last: ir.Operation) -> Combine | None:
    """How an op combines; of truths, by bits."""
    is_truth = str(last.results[0].type) == "i1"
    return _BITS.get(last.name) if is_truth and last.name in _BITS else _COMBINES.get(last.name)


def _in_order(map_: ir.AffineMap) -> bool:
    found = _known(map_)
    return found == sorted(found)


def _start(op: ir.Operation) -> float | None:
    """The number that a generic's result starts from, if it is one."""
    made = maker(op.operands[len(op.operands) - 1])
    if made is None or made.name != "linalg.fill":
        return None
    number = maker(made.operands[0])
    if number is not None and number.name == "arith.constant" and isinstance(number.attributes["value"], ir.BoolAttr):
        return float(ir.BoolAttr(number.attributes["value"]).value)
    return constant_of(made.operands[0])


def _product(op: ir.Operation) -> Product | None:
    factors = factors_of(op)
    if factors is None:
        return None
    reads = maps(op)
    one, other, out = (_known(map_) for map_ in reads)
    summed = [loop for loop in one if loop in other and loop not in out]
    batch = tuple(loop for loop in out if loop in one and loop in other)
    free = [[loop for loop in own if loop in out and loop not in batch] for own in (one, other)]
    if len(summed) != 1 or not any(free):
        return None
    if sum(map(len, free)) + len(batch) + 1 != reads[0].n_dims:
        return None
    sizes = loop_sizes(op)
    longest = [[max(own, key=lambda loop: sizes[loop])] if own else [] for own in free]
    one_by_one = {loop for own, kept in zip(free, longest, strict=True) for loop in own if loop not in kept}
    sided = _sided(longest, out, tuple(loop for loop in out if loop in batch or loop in one_by_one), summed[0])
    return replace(sided, starts=_start(op) != 0)


def _sided(free: list[list[int]], out: list[int], batch: tuple[int, ...], summed: int) -> Product:
    """The product with the operand as the left one whose loop comes first in the result; a vector is the left one."""
    left = 0
    if not free[1] or (all(free) and out.index(free[1][0]) < out.index(free[0][0])):
        left = 1
    rows = free[left][0] if free[left] else None
    return Product(left, 1 - left, batch, rows, free[1 - left][0], summed)


def factors_of(op: ir.Operation) -> tuple[int, int] | None:
    """Whether a body adds the product of its two inputs, widened (integers with their sign), to its result."""
    if len(op.operands) != 3 or not any(kinds(op)):
        return None
    inputs = body(op).arguments
    last = maker(_yielded(op))
    if last is None or last.name not in _SUMS or inputs[2] not in last.operands:
        return None
    times = maker(next((value for value in last.operands if value != inputs[2]), inputs[2]))
    if times is None or times.name != _SUMS[last.name]:
        return None
    if [_widened(value) for value in times.operands] not in ([inputs[0], inputs[1]], [inputs[1], inputs[0]]):
        return None
    return (0, 1) if inputs[0].type == inputs[1].type else None


def _widened(value: ir.Value) -> ir.Value:
    made = maker(value)
    return made.operands[0] if made is not None and made.name in ("arith.extf", "arith.extsi") else value


def _yielded(op: ir.Operation) -> ir.Value:
    operations = body(op).operations
    return operations[len(operations) - 1].operands[0]
