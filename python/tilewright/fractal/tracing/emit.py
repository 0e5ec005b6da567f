# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single ops with the user's line, types in IR, constants and weights: the lowest layer of the tracer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.dialects.fractal.values import Lists
from tilewright.fractal import eager
from tilewright.fractal.tracing.values import ListValue, TensorValue, Value
from tilewright.fractal.types import RAGGED, Length, ListType, TensorType, Type, most_of, type_of
from tilewright.fractal.where import user_place
from tilewright.frontend.builder.emit import Emitter
from tilewright.mlir import ir

Index = int | ir.Value  # a number that is known, or of type index


class Emit:
    """Emits at the current insertion point of a module.

    Attributes:
        module: what is built.
        emitter: of the builder that importers use: constants, weights, generic ops.
        scopes: numbers of the regions that we are in; 0 is the program.
    """

    tracing = True

    def __init__(self, module: ir.Module) -> None:
        self.module, self.emitter = module, Emitter(module)
        self.scopes, self._regions = [0], 0
        self._constants: dict[int, tuple[np.ndarray, TensorValue]] = {}
        self._by_content: dict[tuple, TensorValue] = {}

    def here(self) -> ir.Location:
        """The user's line, as a location."""
        file, line = user_place()
        return ir.Location.file(file, line, 0)

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        results: Sequence[ir.Type],
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> ir.Operation:
        """One op without regions."""
        return ir.Operation.create(name, list(results), list(operands), attributes, loc=self.here())

    def value(self, name: str, operands: Sequence[ir.Value], kind: Type, attributes: dict | None = None) -> Any:
        """One op with one result, as a symbolic value of this type."""
        return self.symbol(self.op(name, operands, [self.mlir(kind)], attributes).results[0], kind)

    def symbol(self, value: ir.Value, kind: Type) -> Any:
        """An SSA value as a symbolic one."""
        return TensorValue(self, value, kind) if isinstance(kind, TensorType) else ListValue(self, value, kind)

    def mlir(self, kind: Type) -> ir.Type:
        """The type in IR."""
        if isinstance(kind, TensorType):
            return self.emitter.tensor_type(kind.shape, kind.dtype)
        lengths = ", ".join(str(length) for length in kind.lengths)
        return ir.Type.parse(f"!fractal.array<[{lengths}] of {self.mlir(kind.leaf)}>")

    def fresh(self, most: int | None = None) -> Length:
        """A length that only a run knows, one in each run of the region that we are in; `most` if that is known."""
        return Length(self.scopes[-1], most)

    # Values that are known ----------------------------------------------------------------------------------------

    def as_value(self, value: Any) -> Value:
        """A symbolic value from what a user's function may return or use."""
        if isinstance(value, TensorValue | ListValue):
            return value
        if isinstance(value, list):
            return self.as_list(value)
        known = eager.as_value(value)
        return self.lists(known) if isinstance(known, Lists) else self.tensor_of(known)

    def as_list(self, value: Any) -> ListValue:
        """A symbolic list from what a user may give for one."""
        if isinstance(value, ListValue):
            return value
        if isinstance(value, TensorValue) and value.shape:
            return self.from_tensor(value, 1)
        if isinstance(value, list) and any(_has_symbols(element) for element in value):
            return self.listed([self.as_value(element) for element in value])
        return self.lists(eager.as_list(value))

    def tensor_of(self, array: np.ndarray) -> TensorValue:
        """A constant, or a weight where it is large: equal arrays are one."""
        if id(array) not in self._constants:
            plain = np.ascontiguousarray(array).reshape(array.shape)
            content = (array.shape, array.dtype, hashlib.sha256(plain.reshape(-1).view(np.uint8)).digest())
            if content not in self._by_content:
                self._by_content[content] = self._constant(plain)
            self._constants[id(array)] = (array, self._by_content[content])  # kept so that its id stays its own
        return self._constants[id(array)][1]

    def _constant(self, array: np.ndarray) -> TensorValue:
        if array.size and is_splat(array):
            array = np.broadcast_to(array.reshape(-1)[0], array.shape)
        return TensorValue(self, self.emitter.constant(array), TensorType(array.shape, array.dtype))

    def lists(self, lists: Lists) -> ListValue:
        """A list whose elements are known."""
        kind = type_of(lists)
        assert isinstance(kind, ListType)
        if RAGGED not in kind.lengths:
            whole = self.tensor_of(lists.array())
            return self.value("fractal.from_tensor", [whole.value], kind)
        flat = self.from_tensor(self.tensor_of(lists.flat), 1)
        return self.from_flat(flat, [self.tensor_of(offset) for offset in lists.offsets], kind)

    def from_flat(self, flat: ListValue, offsets: Sequence[TensorValue], kind: ListType) -> ListValue:
        """Lists of lengths of their own, of all tensors in a line and where each list begins."""
        most = [most_of(length) for length in kind.lengths[1:]]
        attributes = {"most": ir.DenseI64ArrayAttr.get(most)} if None not in most else None
        return self.value("fractal.from_ragged", [flat.value, *(each.value for each in offsets)], kind, attributes)

    def from_tensor(self, x: TensorValue, depth: int) -> ListValue:
        """The first dimensions of a tensor as lists."""
        kind = ListType(x.shape[:depth], TensorType(x.shape[depth:], x.dtype))
        return self.value("fractal.from_tensor", [x.value], kind)

    # Index arithmetic ---------------------------------------------------------------------------------------------

    def index_op(self, name: str, known: Callable[[int, int], int], a: Index, b: Index) -> Index:
        """An operation of `arith` on two numbers of type index; done here where both are known."""
        if isinstance(a, int) and isinstance(b, int):
            return known(a, b)
        operands = [self.index_value(a), self.index_value(b)]
        return self.op(name, operands, [ir.IndexType.get()]).results[0]

    def index_value(self, number: Index) -> ir.Value:
        """A number as an SSA value."""
        if isinstance(number, ir.Value):
            return number
        kind = ir.IndexType.get()
        return self.op("arith.constant", [], [kind], {"value": ir.IntegerAttr.get(kind, number)}).results[0]

    def plus(self, a: Index, b: Index) -> Index:
        """a + b."""
        if b == 0 and isinstance(b, int):
            return a
        return self.index_op("arith.addi", lambda x, y: x + y, a, b)

    def minus(self, a: Index, b: Index) -> Index:
        """a - b."""
        if b == 0 and isinstance(b, int):
            return a
        return self.index_op("arith.subi", lambda x, y: x - y, a, b)

    def least(self, a: Index, b: Index) -> Index:
        """The smaller one."""
        return self.index_op("arith.minsi", min, a, b)

    def most(self, a: Index, b: Index) -> Index:
        """The larger one."""
        return self.index_op("arith.maxsi", max, a, b)

    def index_of(self, value: Any) -> Index:
        """A number of a user: Python's, or a traced integer of rank 0."""
        if not isinstance(value, TensorValue):
            return int(value)
        element = self.op("tensor.extract", [value.value], [self.emitter.element_type(value.dtype)]).results[0]
        return self.op("arith.index_cast", [element], [ir.IndexType.get()]).results[0]


def is_splat(array: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    flat = array.reshape(-1)
    if flat.size > 1 and flat[:1].tobytes() != flat[-1:].tobytes():
        return False
    rows = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    return bool((rows == rows[0]).all())


def _has_symbols(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_symbols(element) for element in value)
    return isinstance(value, TensorValue | ListValue)


def i64(number: int) -> ir.IntegerAttr:
    """An attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
