# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic dimensions of a graph's inputs: one size for each name, and what a run checks of it."""

from __future__ import annotations

from tilewright.core.errors import SIZES_OF_THEIR_OWN
from tilewright.frontend.builder.dims import Dim, Size, in_terms_of, index_value
from tilewright.frontend.builder.emit import Emitter
from tilewright.frontend.model import Symbol, TensorSpec
from tilewright.mlir import ir


class Symbols:
    """The sizes that symbolic dimensions of inputs have: one for each name, checked when the model runs."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._known: dict[str, tuple[Dim, str]] = {}

    def sizes(self, spec: TensorSpec, value: ir.Value) -> list[Size]:
        """The sizes of an input."""
        return [self._size(spec.name, d, n, value) if isinstance(n, Symbol) else n for d, n in enumerate(spec.shape)]

    def _size(self, name: str, axis: int, symbol: Symbol, value: ir.Value) -> Dim:
        emitter = self._emitter
        found = Dim(emitter.op("tensor.dim", [value, emitter.index(axis)], ir.IndexType.get()), low=symbol.low)
        where = f"dimension {axis} of input {name} ({symbol.name})"
        if symbol.name in self._known:
            size, first = self._known[symbol.name]
            self._check("eq", found, size, f"{where} must be that of input {first}")
            return size
        self._known[symbol.name] = found, name
        if symbol.low:
            self._check("sge", found, symbol.low, f"{where} must be at least {symbol.low}")
        if symbol.high is not None:
            self.limit(found, symbol.high)
        return found

    def limit(self, size: Size, most: int) -> None:
        """From here on a symbolic dimension is at most `most`: a run checks it. Other sizes stay as they are."""
        for name, (known, first) in self._known.items():
            if isinstance(size, Dim) and known.is_same(size) and not known.is_at_most(most):
                self._check("sle", known, most, f"the size {name} (of input {first}) must be at most {most}")
                known.assume_at_most(most)

    def join(self, a: Dim, b: Dim) -> Dim | None:
        """The size of both, where one is a symbolic dimension and the other made of several; a run checks that.

        A mask of `total` columns meets scores of past + new ones. It might have one column for all, and would be read
        element by element for the sake of that. So code for all sizes takes the two to be equal, and says so where they
        are not: such sizes get code of their own.
        """
        names = {atom: name for name, (size, _) in self._known.items() for atom in size.atoms}
        if not a.atoms | b.atoms <= names.keys():
            return None
        for one, other in ((b, a), (a, b)):
            if one.is_alone and len(other.atoms) > 1 and not other.is_made_of(one):
                (name,) = (names[atom] for atom in one.atoms)
                others = " and ".join(sorted(names[atom] for atom in other.atoms))
                message = f"the size {name} must be that of what it meets, which follows from {others}"
                self._check("eq", one, other, f"{message} {SIZES_OF_THEIR_OWN}")
                one.assume_same(other)
                return other
        return None

    def has(self, size: Dim) -> bool:
        """Whether this is the size of a symbolic dimension."""
        return any(known.is_same(size) for known, _ in self._known.values())

    def text(self, size: Size) -> str | None:
        """A size in terms of the names, as in ``past + sequence``; None where it is made of something else, too."""
        if not isinstance(size, Dim):
            return str(size)
        names = {name: known for name, (known, _) in self._known.items()}
        return in_terms_of(size, names)

    @property
    def ranges(self) -> dict[str, tuple[int, int | None]]:
        """The least and the largest size of each dimension, None where there is none."""
        return {name: (low or 0, high) for name, (size, _) in self._known.items() for low, high in [size.bounds]}

    def _check(self, predicate: str, a: Size, b: Size, message: str) -> None:
        number = {"eq": 0, "sle": 3, "sge": 5}[predicate]
        kind = ir.IntegerType.get_signless(64)
        condition = self._emitter.op(
            "arith.cmpi",
            [index_value(a), index_value(b)],
            ir.IntegerType.get_signless(1),
            {"predicate": ir.IntegerAttr.get(kind, number)},
        )
        ir.Operation.create("cf.assert", operands=[condition], attributes={"msg": ir.StringAttr.get(message)})
