# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic values: what a traced program computes with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.fractal.elementwise import TABLE
from tilewright.fractal.types import Length, ListType, TensorType
from tilewright.fractal.where import wrong

if TYPE_CHECKING:
    from tilewright.mlir import ir


def _binary(name: str) -> tuple[Callable, Callable]:
    def forward(self: TensorValue, other: Any) -> Any:
        return self.tracer.elementwise(name, (self, other))

    def backward(self: TensorValue, other: Any) -> Any:
        return self.tracer.elementwise(name, (other, self))

    return forward, backward


def _no_number(self: Any, *_: Any) -> Any:
    raise wrong(
        "a traced value",
        "Python asks for its elements (by if, while, and, or, int(), float(), NumPy), but only a run of the compiled "
        "program has them: choose with ft.where, and use functions of ft in place of NumPy's",
    )


def _no_operator(sign: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise wrong(sign, "it cannot be traced: of floats, x // y is np.floor(x / y), and x % y is x - y * (x // y)")

    return refuse


class TensorValue:
    """A leaf tensor: shape and element type are known, elements are not.

    Attributes:
        tracer: who emits the ops on it.
        value: the SSA value.
        type: shape and element type.
        length: of which list it is the length; None where it is no list's.
    """

    __hash__ = object.__hash__
    __slots__ = ("length", "tracer", "type", "value")

    def __init__(self, tracer: Any, value: ir.Value, type: TensorType, length: Length | None = None) -> None:
        self.tracer, self.value, self.type, self.length = tracer, value, type, length

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("multiply")
    __truediv__, __rtruediv__ = _binary("divide")
    __pow__, __rpow__ = _binary("power")
    __mod__ = __rmod__ = _no_operator("%")
    __floordiv__ = __rfloordiv__ = _no_operator("//")
    __divmod__ = __rdivmod__ = _no_operator("divmod")
    __lshift__ = __rlshift__ = _no_operator("<<")
    __rshift__ = __rrshift__ = _no_operator(">>")
    __and__, __rand__ = _binary("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor")
    __lt__, _ = _binary("less")
    __le__, _ = _binary("less_equal")
    __gt__, _ = _binary("greater")
    __ge__, _ = _binary("greater_equal")
    __eq__, _ = _binary("equal")  # pyright: ignore[reportAssignmentType]
    __ne__, _ = _binary("not_equal")  # pyright: ignore[reportAssignmentType]
    __bool__ = __int__ = __float__ = __index__ = __array__ = __array_function__ = _no_number

    def __neg__(self) -> Any:
        return self.tracer.elementwise("negative", (self,))

    def __abs__(self) -> Any:
        return self.tracer.elementwise("absolute", (self,))

    def __invert__(self) -> Any:
        return self.tracer.elementwise("invert", (self,))

    def __matmul__(self, other: Any) -> Any:
        return self.tracer.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.tracer.matmul(other, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        if method == "__call__" and not named and ufunc is np.matmul:
            return self.tracer.matmul(*inputs)
        if method == "__call__" and not named and ufunc.__name__ in TABLE:
            return self.tracer.elementwise(ufunc.__name__, inputs)
        raise wrong(f"np.{ufunc.__name__}", "this use of it cannot be traced: use functions of ft in place of NumPy's")

    def __getitem__(self, index: Any) -> TensorValue:
        return self.tracer.index(self, index)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor of rank 0")
        return self.shape[0]

    def __iter__(self) -> Iterator[TensorValue]:
        return (self[i] for i in range(len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.type.shape)

    @property
    def T(self) -> TensorValue:
        """Dimensions in reverse order."""
        return self.tracer.transpose(self, None)

    def transpose(self, *axes: Any) -> TensorValue:
        """Dimensions in another order."""
        return self.tracer.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def reshape(self, *shape: Any) -> TensorValue:
        """The same elements with other sizes."""
        return self.tracer.reshape(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: Any) -> TensorValue:
        """Another element type."""
        return self.tracer.cast(self, np.dtype(dtype))

    def sum(self, axis: Any = None, keepdims: bool = False) -> TensorValue:
        """The sum along dimensions."""
        return self.tracer.reduce_axes("sum", self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> TensorValue:
        """The mean along dimensions."""
        total = self.sum(axis, keepdims)
        return total / (np.prod(self.shape) / np.prod(total.shape)).item()

    def max(self, axis: Any = None, keepdims: bool = False) -> TensorValue:
        """The largest element along dimensions."""
        return self.tracer.reduce_axes("max", self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> TensorValue:
        """The smallest element along dimensions."""
        return self.tracer.reduce_axes("min", self, axis, keepdims)


class ListValue:
    """Nested lists, whose elements and perhaps lengths only a run knows.

    Attributes:
        tracer: who emits the ops on it.
        value: the SSA value.
        type: lengths and the leaves' type.
    """

    __slots__ = ("tracer", "type", "value")
    __bool__ = __array__ = __array_function__ = _no_number
    __array_ufunc__ = None

    def __init__(self, tracer: Any, value: ir.Value, type: ListType) -> None:
        self.tracer, self.value, self.type = tracer, value, type

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    def __getitem__(self, index: Any) -> Any:
        try:
            return self.tracer.cut(self, index) if isinstance(index, slice) else self.tracer.at(self, index)
        except UserError as error:
            raise error if error.location else wrong("a list", error.message) from None

    def __len__(self) -> int:
        length = self.type.lengths[0]
        if isinstance(length, int):
            return length
        raise wrong(
            "len",
            "only a run knows how long this list is: use ft.length, or say the length when the program is traced or "
            'compiled (lengths={"name": (16, 64)})',
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def depth(self) -> int:
        """The number of levels."""
        return self.type.depth

    @property
    def leaf_shape(self) -> tuple[int, ...]:
        """The shape of each tensor."""
        return self.type.leaf.shape

    @property
    def dtype(self) -> np.dtype:
        """The element type of each tensor."""
        return self.type.leaf.dtype

    def array(self) -> TensorValue:
        """All tensors as one."""
        return self.tracer.tensor(self)


Value = TensorValue | ListValue
