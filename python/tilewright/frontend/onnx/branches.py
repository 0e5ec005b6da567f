# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choices made at run time: one of two bodies, whose results become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.iteration import attempt
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.sequences import Value, leaves, rebuild, structure

Branch = Callable[[], Sequence[Value | None]]


class Diverging(UnsupportedError):
    """The bodies give results that cannot become one: other ranks, element types or structures.

    What follows can still be imported into each of them (Scope.run). Where it cannot, this is the error.

    Attributes:
        condition: which body.
        branches: the bodies, for true and for false.
    """

    def __init__(self, message: str, condition: Scalar, branches: Sequence[Branch]) -> None:
        super().__init__(message)
        self.condition = condition
        self.branches = branches

    def plain(self) -> UnsupportedError:
        """The error for a user."""
        return UnsupportedError(self.message, location=self.location)


def choose(b: Builder, condition: Scalar, branches: Sequence[Branch]) -> list[Value | None]:
    """scf.if; sizes in which the bodies differ become run-time sizes.

    Raises:
        Diverging: the results differ in more than sizes.
    """
    made: list[list[Value | None]] = []

    def emit(branch: Branch) -> list[Tensor]:
        try:
            made.append(list(branch()))
        except Diverging as error:  # within the body of an scf.if: what follows it is outside
            raise error.plain() from error
        if len(made) == 2:
            difference = _difference(*made)
            if difference:
                raise Diverging(f"the branches give {difference}, chosen at run time", condition, branches)
        return leaves(made[-1])

    results = attempt(b, lambda _: b.if_(condition, lambda: emit(branches[0]), lambda: emit(branches[1])))
    return rebuild(made[0], results)


def _difference(then: Sequence[Value | None], other: Sequence[Value | None]) -> str:
    """How the results differ in more than sizes; "" where they do not."""
    kinds = structure(then), structure(other)
    if kinds[0] != kinds[1]:
        return " and ".join(", ".join(k) or "nothing" for k in kinds)
    for x, y in zip(leaves(then), leaves(other), strict=True):
        if x.dtype != y.dtype or x.rank != y.rank:
            return f"{x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
    return ""
