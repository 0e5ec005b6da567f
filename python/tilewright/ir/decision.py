# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilewright.ir.decisions` is made of: names of discardable attributes that know their type.

A decision is its name, a `str`, so that it stands wherever a name is asked for; its methods read and write what the
attribute means::

    decisions.NEST.set(op, 3)
    number = decisions.NEST.read(op)  # UserError, at the operation, where there is none
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from tilewright.core.errors import UserError
from tilewright.ir.diagnostics import located
from tilewright.mlir import ir
from tilewright.mlir.dialects.tile import RTileAttr

T = TypeVar("T")
Op: TypeAlias = ir.Operation | ir.OpView


class Decision(str, Generic[T]):
    """Name of a discardable attribute `tile.*`.

    Attributes:
        must: what the attribute is, in words.
        kinds: its classes.
    """

    __slots__ = ()
    must: ClassVar[str] = "an attribute"
    kinds: ClassVar[tuple[type, ...]] = (ir.Attribute,)

    def on(self, op: Op) -> bool:
        """Whether the operation has it."""
        return self in op.attributes

    def get(self, op: Op) -> T | None:
        """The operation's decision, None where it has none.

        Raises:
            UserError: it is of another type.
        """
        return self.read(op) if self in op.attributes else None

    def read(self, op: Op) -> T:
        """The operation's decision.

        Raises:
            UserError: it has none, or one of another type.
        """
        if self not in op.attributes:
            raise located(UserError(f"has no `{self}`"), op)
        found = op.attributes[self]
        if not isinstance(found, self.kinds):
            raise located(UserError(f"has a `{self}` that is not {self.must}: {found}"), op)
        return self.value_of(found)

    def set(self, op: Op, value: T) -> None:
        """Write the decision, in place of one that is there."""
        op.attributes[self] = self.attribute(value, op.context)

    def drop(self, op: Op) -> None:
        """Take the decision away where there is one."""
        if self in op.attributes:
            del op.attributes[self]

    def value_of(self, attribute: Any) -> T:
        """What an attribute of the right class says."""
        return attribute

    def attribute(self, value: T, context: ir.Context) -> ir.Attribute:
        """The attribute that says `value`."""
        del context
        assert isinstance(value, ir.Attribute)
        return value


class Anything(Decision[ir.Attribute]):
    """An attribute of one of several types, as it is."""

    __slots__ = ()


class Array(Decision[list[ir.Attribute]]):
    """An array of attributes."""

    __slots__ = ()
    must = "an array"
    kinds = (ir.ArrayAttr,)

    def value_of(self, attribute: Any) -> list[ir.Attribute]:
        """The entries."""
        return list(attribute)

    def attribute(self, value: list[ir.Attribute], context: ir.Context) -> ir.Attribute:
        """The array."""
        return ir.ArrayAttr.get(value, context)


class Dictionary(Decision[ir.Attribute]):
    """A dictionary, as it is."""

    __slots__ = ()
    must = "a dictionary"
    kinds = (ir.DictAttr,)


class Flag(Decision[bool]):
    """It is there or not."""

    __slots__ = ()
    must = "a unit"
    kinds = (ir.UnitAttr,)

    def value_of(self, attribute: Any) -> bool:
        """True."""
        del attribute
        return True

    def set(self, op: Op, value: bool = True) -> None:
        """Write the flag, or take it away."""
        if value:
            op.attributes[self] = ir.UnitAttr.get(op.context)
        else:
            self.drop(op)


class Integer(Decision[int]):
    """A number."""

    __slots__ = ()
    must = "an i64"
    kinds = (ir.IntegerAttr,)

    def value_of(self, attribute: Any) -> int:
        """The number."""
        return attribute.value

    def attribute(self, value: int, context: ir.Context) -> ir.Attribute:
        """An i64."""
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), value)


class Integers(Decision[Sequence[int]]):
    """Numbers."""

    __slots__ = ()
    must = "an array<i64: ...>"
    kinds = (ir.DenseI64ArrayAttr,)

    def value_of(self, attribute: Any) -> list[int]:
        """The numbers."""
        return list(attribute)

    def attribute(self, value: Sequence[int], context: ir.Context) -> ir.Attribute:
        """A dense array of i64."""
        return ir.DenseI64ArrayAttr.get(list(value), context)

    def read_loops(self, op: Op, rank: int) -> list[int]:
        """The decision of an operation, which names loops of it.

        Args:
            op: the operation.
            rank: how many loops it has.

        Raises:
            UserError: it is no array of i64, or names a loop that the operation does not have.
        """
        found = list(self.read(op))
        if any(not 0 <= loop < rank for loop in found):
            raise located(UserError(f"has a `{self}` that is no array of its loops: {op.attributes[self]}"), op)
        return found


class Sizes(Decision[RTileAttr]):
    """Tile sizes at each level."""

    __slots__ = ()
    must = "a #tile.rtile<...>"
    kinds = (RTileAttr,)

    def value_of(self, attribute: Any) -> RTileAttr:
        """The attribute, as one of tile sizes."""
        return RTileAttr(attribute)


class Text(Decision[str]):
    """A string."""

    __slots__ = ()
    must = "a string"
    kinds = (ir.StringAttr,)

    def value_of(self, attribute: Any) -> str:
        """The string."""
        return attribute.value

    def attribute(self, value: str, context: ir.Context) -> ir.Attribute:
        """A string attribute."""
        return ir.StringAttr.get(value, context)


class Texts(Decision[Sequence[str]]):
    """Strings."""

    __slots__ = ()
    must = "an array of strings"
    kinds = (ir.ArrayAttr,)

    def value_of(self, attribute: Any) -> list[str]:
        """The strings."""
        return [entry.value for entry in attribute]

    def attribute(self, value: Sequence[str], context: ir.Context) -> ir.Attribute:
        """An array of string attributes."""
        return ir.ArrayAttr.get([ir.StringAttr.get(entry, context) for entry in value], context)
