# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generic ops over tensors whose sizes are known at run time only.

Inputs whose dimensions fit their loops are operands with indexing maps, as for static shapes. The others are read in
the body with `tensor.extract`: those whose size may turn out to be 1, where the only element serves all positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.frontend.builder.dims import Dim, Size, index_value, is_static, same
from tilewright.frontend.builder.emit import At, Emitter, Index, Space
from tilewright.frontend.builder.scalars import INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.ir import decisions
from tilewright.mlir import ir

Read = tuple[Tensor, Sequence[Index]]


class Reads(Emitter):
    """Adds dynamic sizes to the emitter's generic ops."""

    # Scalars ----------------------------------------------------------------------------------------------------

    def idx(self, value: Size | Scalar | ir.Value) -> Scalar:
        """A scalar of type index."""
        if isinstance(value, Scalar):
            return self.math.cast(value, INDEX)
        if isinstance(value, ir.Value):
            return Scalar(self.math, value, INDEX)
        return Scalar(self.math, index_value(value), INDEX, None if isinstance(value, Dim) else int(value))

    def require(self, condition: Scalar, message: str, tell: bool = False) -> None:
        """Stop the run with `message`, after the name of the node, unless the condition holds.

        With `tell`, the message of a CPU's run ends with the first of the two numbers that the condition compares.
        """
        here = ir.Location.current
        text = ir.StringAttr.get(f"{here.name_str}: {message}" if here.is_a_name() else message)
        attributes: dict[str, ir.Attribute] = {"msg": text, **({decisions.TELL: ir.UnitAttr.get()} if tell else {})}
        ir.Operation.create("cf.assert", operands=[condition.value], attributes=attributes)

    def at_the_end(self, check: Callable[[], None]) -> None:
        """Emit a check that guards nothing behind everything else, where no kernel is kept apart from another for it.

        In a body (of a loop, of a branch) it is emitted here and now.
        """
        if ir.InsertionPoint.current.block == self.entry:
            here = ir.Location.current
            self._checks.append((here, check))
        else:
            check()

    def emit_checks(self) -> None:
        """Emit what `at_the_end` kept."""
        for here, check in self._checks:
            with here:
                check()
        self._checks.clear()

    def require_same(self, a: Size, b: Size, message: str) -> Size:
        """The size that both must be; checked at run time where it is not known. An int where one of them is."""
        if not same(a, b):
            self.require(self.math.eq(self.idx(a), self.idx(b)), message)
        return a if isinstance(a, int) else b if isinstance(b, int) else a

    def read(self, x: Tensor, indices: Sequence[Scalar | Size]) -> Scalar:
        """The element of `x` at one index per logical dimension, in a body or outside."""
        x = self.stored(x)
        places = [0 if d is None or not _extends(x.shape[d]) else indices[d] for d in x.dims]
        operands = [x.data, *(self.idx(i).value for i in places)]
        return Scalar(self.math, self.op("tensor.extract", operands, self.element_type(x.dtype)), x.dtype)

    def counter(self, space: Space, loop: int) -> Scalar:
        """In the body of a generic op over `space`: the position along a loop."""
        number = space.number.get(loop)
        if number is None:
            return self.idx(0)
        attribute = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        return Scalar(self.math, self.op("linalg.index", [], ir.IndexType.get(), attribute), INDEX)

    # Generic ops ------------------------------------------------------------------------------------------------

    def generic(
        self,
        space: Space,
        inputs: Sequence[Read],
        out: Sequence[int | None],
        dtype: np.dtype,
        body: Callable[..., Scalar],
        neutral: float | None = None,
        order: Sequence[int] | None = None,
        into: ir.Value | None = None,
    ) -> Tensor:
        """See Emitter.generic; sizes and shapes may be Dims.

        A size that is a Dim and not known to be that of its loop must be it or 1; a run-time check sees to that.
        """
        if is_static(space.sizes) and all(is_static(x.shape) for x, _ in inputs):
            return super().generic(space, inputs, out, dtype, body, neutral, order, into)
        inputs = [(self.stored(x), at) for x, at in inputs]
        direct = [_fits(x, at, space) for x, at in inputs]
        for x, at in inputs:
            self._check(x, at, space)
        operands = [read for read, fits in zip(inputs, direct, strict=True) if fits]
        seen = len(operands)
        operands += self._extents(space, operands)

        def whole(m, *elements):
            rest = iter(elements[:seen])
            values = [
                next(rest) if fits else self._read_at(x, at, space)
                for (x, at), fits in zip(inputs, direct, strict=True)
            ]
            return body(m, *values, elements[-1])

        return super().generic(space, operands, out, dtype, whole, neutral, order, into)

    def produce(
        self,
        shape: Sequence[Size],
        dtype: np.typing.DTypeLike,
        body: Callable[..., Scalar | float],
    ) -> Tensor:
        """A new tensor: `body(m, *indices)` at each place, stored row-major. The body may `read` any tensor."""
        space, dtype = Space(tuple(shape)), np.dtype(dtype)
        if is_static(shape) and 0 in shape:
            return nothing(shape, dtype)

        def whole(m, _):
            return body(m, *(self.counter(space, d) for d in range(len(shape))))

        return super().generic(space, [], range(len(shape)), dtype, whole)

    def _check(self, x: Tensor, indices: Sequence[Index], space: Space) -> None:
        """Sizes that do not fit stop the run instead of reading out of bounds."""
        for d, loop in enumerate(indices):
            if not isinstance(loop, int) or same(x.shape[d], space.sizes[loop]):
                continue
            n, m = x.shape[d], self.math
            if isinstance(n, Dim) or isinstance(space.sizes[loop], Dim) and n != 1:
                size = self.idx(n)
                fits = m.eq(size, self.idx(space.sizes[loop]))
                fits = m.logical_or(fits, m.eq(size, self.idx(1))) if isinstance(n, Dim) else fits
                self.require(fits, f"dimension {d} of an input has another size than what it meets")

    def _extents(self, space: Space, operands: Sequence[Read]) -> list[Read]:
        """The operand, never read, whose shape gives the extents of reductions that no other operand gives."""
        covered = {
            loop for x, at in operands for d, loop in enumerate(at) if isinstance(loop, int) and _extends(x.shape[d])
        }
        missing = [d for d in sorted(space.reduced - covered) if _extends(space.sizes[d])]
        if not missing:
            return []
        shape, dtype = tuple(space.sizes[d] for d in missing), np.dtype(np.float32)
        return [(Tensor(dtype, shape, self.empty(shape, dtype), tuple(range(len(shape)))), missing)]

    def _read_at(self, x: Tensor, indices: Sequence[Index], space: Space) -> Scalar:
        return self.read(x, [self._place(x.shape[d], index, space) for d, index in enumerate(indices)])

    def _place(self, size: Size, index: Index, space: Space) -> Scalar:
        if index is None:
            return self.idx(0)
        if isinstance(index, At):
            place = self.idx(index.offset)
            for loop, factor in index.terms:
                place = place + self.counter(space, loop) * factor
            return place
        place = self.counter(space, index)
        if isinstance(size, int) or same(size, space.sizes[index]):
            return place
        return self.math.where(self.math.eq(self.idx(size), self.idx(1)), self.idx(0), place)


def _extends(size: Size) -> bool:
    return isinstance(size, Dim) or size != 1


def _fits(x: Tensor, indices: Sequence[Index], space: Space) -> bool:
    """Whether each Dim of x is that of its loop, so that a map describes the read."""
    pairs = [(x.shape[d], loop) for d, loop in enumerate(indices) if isinstance(loop, int)]
    return all(isinstance(n, int) or same(n, space.sizes[loop]) for n, loop in pairs)
