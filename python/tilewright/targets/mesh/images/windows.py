# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of its operands a `linalg.generic` reads for a part of its result: windows with stride, dilation and border."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.generics import body, constant_of, is_copy, kinds, maker, maps
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import KINDS, loop_sizes, unfit_body

#: Loops with factors; no loop: a constant.
Terms = list[tuple[int | None, int]]


@dataclass(frozen=True)
class Dim:
    """One dimension of an operand: index ``loop * stride + sum of kernel loops * dilation + first``.

    Attributes:
        loop: of the result; None: none.
        kernel: loops that are combined, each with its dilation.
    """

    loop: int | None
    stride: int
    kernel: tuple[tuple[int, int], ...]
    first: int

    @property
    def is_plain(self) -> bool:
        """Whether it has what the result has, index by index."""
        return self.loop is not None and self.stride == 1 and not self.kernel and not self.first

    def reach(self, sizes: list[int]) -> int:
        """Elements that one index of the result reads along it, from the first to the last one."""
        return 1 + sum((sizes[loop] - 1) * dilation for loop, dilation in self.kernel)


@dataclass(frozen=True)
class Source:
    """A tensor that windows are read of.

    Attributes:
        value: without its border.
        low: elements of the border before the first index of each dimension.
        fill: what the border holds; None: there is none.
        made: ops that only make the border.
    """

    value: ir.Value
    low: tuple[int, ...]
    fill: float | None = None
    made: tuple[ir.Operation, ...] = ()


@dataclass(frozen=True)
class Windows:
    """Points along some loops are combined, of windows.

    Attributes:
        operands: dimensions of each operand, the result's last.
        sizes: of loops.
        sources: of the inputs.
    """

    operands: tuple[tuple[Dim, ...], ...]
    sizes: list[int]
    sources: tuple[Source, ...]

    def loops_of(self, number: int) -> set[int]:
        """All loops that an operand depends on."""
        return {loop for dim in self.operands[number] for loop in _loops(dim)}

    def is_widened(self, number: int, at: int) -> bool:
        """Whether a dimension of an input needs more than what has the indices of the result's part."""
        dim, source = self.operands[number][at], self.sources[number]
        have = ir.RankedTensorType(source.value.type).shape[at]
        return not (dim.is_plain and not source.low[at] and dim.loop is not None and have == self.sizes[dim.loop])

    @property
    def out(self) -> list[int]:
        """Loops along the result's dimensions."""
        return [dim.loop for dim in self.operands[-1] if dim.loop is not None]


def windows(op: ir.Operation) -> Windows | str:
    """How a generic reads its operands; a text that says why the grid cannot."""
    if len(op.results) != 1 or any(not isinstance(value.type, ir.RankedTensorType) for value in op.operands):
        return "it reads windows, and other things than tensors"
    for value in op.operands:
        kind = ir.RankedTensorType(value.type)
        if not kind.has_static_shape or 0 in kind.shape:
            return f"it reads windows of sizes that a run tells: {kind}"
        if str(kind.element_type) not in KINDS:
            return f"cores compute with {', '.join(KINDS)}, not {kind.element_type}"
    reduces = kinds(op)
    operands = [[_dim(expr, reduces) for expr in map_.results] for map_ in maps(op)]
    if any(dim is None or dim.stride < 0 or dim.first < 0 for dims in operands for dim in dims):
        return "it reads windows whose places are no sums of loops"
    found = tuple(tuple(dim for dim in dims if dim is not None) for dims in operands)
    loops = [[loop for dim in dims for loop in _loops(dim)] for dims in found]
    if any(len(set(own)) < len(own) for own in loops) or not all(dim.is_plain for dim in found[-1]):
        return "it reads windows along a diagonal"
    why = unfit_body(op)
    if why:
        return why
    return Windows(found, loop_sizes(op), tuple(map(_source, list(op.operands)[:-1])))


def _loops(dim: Dim) -> list[int]:
    return [loop for loop, _ in dim.kernel] + ([] if dim.loop is None else [dim.loop])


def _dim(expr: ir.AffineExpr, reduces: list[bool]) -> Dim | None:
    parts = terms(expr)
    if parts is None or any(factor < 0 for _, factor in parts):
        return None
    outer = [(loop, factor) for loop, factor in parts if loop is not None and not reduces[loop]]
    kernel = tuple((loop, factor) for loop, factor in parts if loop is not None and reduces[loop])
    first = sum(factor for loop, factor in parts if loop is None)
    if len(outer) > 1:
        return None
    loop, stride = outer[0] if outer else (None, 1)
    return Dim(loop, stride, kernel, first)


def terms(expr: ir.AffineExpr, factor: int = 1) -> Terms | None:
    """A sum of loops with factors, and constants (no loop); None for another expression."""
    if isinstance(expr, ir.AffineDimExpr):
        return [(ir.AffineDimExpr(expr).position, factor)]
    if isinstance(expr, ir.AffineConstantExpr):
        return [(None, factor * ir.AffineConstantExpr(expr).value)]
    if isinstance(expr, ir.AffineAddExpr):
        parts = [terms(part, factor) for part in (ir.AffineAddExpr(expr).lhs, ir.AffineAddExpr(expr).rhs)]
        return None if None in parts else [term for part in parts if part is not None for term in part]
    if isinstance(expr, ir.AffineMulExpr):
        both = ir.AffineMulExpr(expr)
        if isinstance(both.rhs, ir.AffineConstantExpr):
            return terms(both.lhs, factor * ir.AffineConstantExpr(both.rhs).value)
    return None


def _source(value: ir.Value) -> Source:
    """A tensor without the border that is put around it."""
    rank = ir.RankedTensorType(value.type).rank
    whole = Source(value, (0,) * rank)
    made = maker(value)
    if made is None or made.name != "tensor.insert_slice" or len(made.operands) != 2:
        return whole
    part, around = list(made.operands)
    lists = [list(ir.DenseI64ArrayAttr(made.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")]
    filled = maker(around)
    is_border = list(ir.RankedTensorType(part.type).shape) == lists[1] and all(step == 1 for step in lists[2])
    if filled is None or filled.name != "linalg.fill" or not is_border:
        return whole
    number = constant_of(filled.operands[0])
    if number is None or (isinstance(number, int) and int(float(number)) != number):
        return whole
    return _bordered(part, made, tuple(lists[0]), float(number))


def _bordered(part: ir.Value, made: ir.Operation, low: tuple[int, ...], number: float) -> Source:
    copy = maker(part)
    if copy is not None and copy.name == "linalg.generic" and is_copy(copy) and len(list(part.uses)) == 1:
        same = ir.AffineMap.get_identity(ir.RankedTensorType(part.type).rank)
        if all(map_ == same for map_ in maps(copy)) and copy.operands[0].type == part.type:
            return Source(copy.operands[0], low, number, (copy, made))
    return Source(part, low, number, (made,))


def starts_from(op: ir.Operation) -> ir.Operation | None:
    """What fills the result with one number before a generic, or leaves it empty; None where it has elements."""
    made = maker(op.operands[len(op.operands) - 1])
    if made is None:
        return None
    if made.name == "tensor.empty":
        return made if not list(body(op).arguments[len(op.operands) - 1].uses) else None
    return made if made.name == "linalg.fill" and constant_of(made.operands[0]) is not None else None
