# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small graphs of matrices, and the same graphs written in other ways that algebra allows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

_SIZES = (64, 96, 128, 256)


@dataclass(frozen=True)
class Value:
    """A matrix of the graph: its name and sizes."""

    name: str
    shape: tuple[int, int]


@dataclass
class RandomGraph:
    """Elementwise maps, sums, spreads, transposes, reshapes, slices, concatenations and small products.

    Attributes:
        seed: what the graph computes.
        length: how many operators.
        style: how it is written: 0 as it is thought of, others with commuted, split and re-associated forms.
    """

    seed: int
    length: int
    style: int = 0
    values: list[Value] = field(default_factory=list)

    def model(self) -> onnx.ModelProto:
        """The graph; values that nobody reads are its results."""
        self.choose, self.written = random.Random(self.seed), random.Random(1000 * self.style + self.seed)
        self.graph = GraphBuilder("random")
        shape = (self.choose.choice(_SIZES), self.choose.choice(_SIZES))
        self.values = [Value(self.graph.input("x", np.float32, list(shape)), shape)]
        self.read: set[str] = set()
        makers = (self._map, self._map, self._join, self._join, self._reduce, self._norm, self._transpose)
        makers += (self._reshape, self._slice, self._concat, self._product, self._twice)
        for _ in range(self.length):
            self.values.append(self.choose.choice(makers)())
        results = [v for v in self.values if v.name not in self.read and v.name != "x"]
        for number, value in enumerate(results):
            self.graph.output(value.name, f"y{number}", np.float32, list(value.shape))
        return self.graph.model()

    # Choices ------------------------------------------------------------------------------------------------------

    def _recent(self, fits: Callable[[Value], bool] = lambda _: True) -> Value | None:
        found = [v for v in self.values if fits(v)]
        value = self.choose.choice(found[-3:]) if found else None
        if value is not None:
            self.read.add(value.name)
        return value

    def _any(self) -> Value:
        value = self._recent()
        assert value is not None
        return value

    def _rewritten(self) -> bool:
        return self.style > 0 and self.written.random() < 0.6

    def _op(self, kind: str, *inputs: str, **attributes: object) -> str:
        return self.graph.op(kind, *inputs, **attributes)

    # Operators ----------------------------------------------------------------------------------------------------

    def _map(self) -> Value:
        value = self._any()
        kind = self.choose.choice(("Exp", "Tanh", "Relu", "Neg", "Double", "Square"))
        name = value.name
        if kind == "Double":
            made = self._op("Add", name, name) if self._rewritten() else self._op("Mul", name, self.graph.f32(2.0))
        elif kind == "Square":
            made = self._op("Pow", name, self.graph.f32(2.0)) if self._rewritten() else self._op("Mul", name, name)
        elif kind == "Neg" and self._rewritten():
            made = self._op("Sub", self.graph.f32(0.0), name)
        elif kind == "Relu" and self._rewritten():
            made = self._op("Max", self.graph.f32(0.0), name)
        else:
            made = self._op(kind, name)
        return Value(made, value.shape)

    def _join(self) -> Value:
        first = self._any()
        second = self._recent(lambda v: all(v.shape[i] in (1, first.shape[i]) for i in (0, 1)))
        assert second is not None
        kind = self.choose.choice(("Add", "Mul", "Sub", "Max"))
        a, b = first.name, second.name
        if self._rewritten():
            if kind == "Sub":
                return Value(self._op("Add", self._op("Neg", b), a), first.shape)
            a, b = b, a
        return Value(self._op(kind, a, b), first.shape)

    def _reduce(self) -> Value:
        value, axis = self._any(), self.choose.choice((0, 1, 1))
        shape = (1, value.shape[1]) if axis == 0 else (value.shape[0], 1)
        kind = self.choose.choice(("ReduceSum", "ReduceMax", "ReduceMean"))
        if kind == "ReduceMean" and self._rewritten():
            total = self._sum("ReduceSum", value.name, axis)
            return Value(self._op("Mul", total, self.graph.f32(1.0 / value.shape[axis])), shape)
        return Value(self._sum(kind, value.name, axis), shape)

    def _sum(self, kind: str, name: str, axis: int) -> str:
        if kind == "ReduceSum":
            return self._op(kind, name, self.graph.const([axis]), keepdims=1)
        return self._op(kind, name, axes=[axis], keepdims=1)

    def _norm(self) -> Value:
        """Softmax over the rows, or the distance from their mean."""
        value = self._any()
        if self.choose.random() < 0.5:
            mean = self._sum("ReduceMean", value.name, 1)
            return Value(self._op("Sub", value.name, mean), value.shape)
        if not self._rewritten():
            return Value(self._op("Softmax", value.name, axis=1), value.shape)
        powers = self._op("Exp", self._op("Sub", value.name, self._sum("ReduceMax", value.name, 1)))
        total = self._sum("ReduceSum", powers, 1)
        if self._rewritten():
            return Value(self._op("Mul", powers, self._op("Reciprocal", total)), value.shape)
        return Value(self._op("Div", powers, total), value.shape)

    def _transpose(self) -> Value:
        value = self._any()
        rows, columns = value.shape
        if self._rewritten():
            cube = self._op("Reshape", value.name, self.graph.const([rows, columns, 1]))
            transposed = self._op("Transpose", cube, perm=[1, 2, 0])
            return Value(self._op("Reshape", transposed, self.graph.const([columns, rows])), (columns, rows))
        return Value(self._op("Transpose", value.name, perm=[1, 0]), (columns, rows))

    def _reshape(self) -> Value:
        value = self._recent(lambda v: v.shape[0] % 2 == 0)
        if value is None:
            return self._map()
        shape = (value.shape[0] // 2, 2 * value.shape[1])
        name = value.name
        if self._rewritten():
            name = self._op("Reshape", name, self.graph.const([shape[0], 2, value.shape[1]]))
        return Value(self._op("Reshape", name, self.graph.const(list(shape))), shape)

    def _slice(self) -> Value:
        axis = self.choose.choice((0, 1))
        value = self._recent(lambda v: v.shape[axis] >= 64)
        if value is None:
            return self._map()
        half, shape = value.shape[axis] // 2, list(value.shape)
        shape[axis] = half
        if self._rewritten():
            sizes = self.graph.const([half, value.shape[axis] - half])
            return Value(self._split(value.name, sizes, axis), (shape[0], shape[1]))
        const = self.graph.const
        return Value(self._op("Slice", value.name, const([0]), const([half]), const([axis])), (shape[0], shape[1]))

    def _split(self, name: str, sizes: str, axis: int) -> str:
        first, _ = self.graph.ops("Split", name, sizes, axis=axis, outputs=2)
        return first

    def _concat(self) -> Value:
        first = self._any()
        second = self._recent(lambda v: v.shape[0] == first.shape[0])
        assert second is not None
        shape = (first.shape[0], first.shape[1] + second.shape[1])
        return Value(self._op("Concat", first.name, second.name, axis=1), shape)

    def _product(self) -> Value:
        value, columns = self._any(), self.choose.choice((32, 64, 96))
        rows, depth = value.shape
        data = np.random.default_rng(self.seed).standard_normal((depth, columns), np.float32)
        if self._rewritten():
            transposed = self._op("Transpose", value.name, perm=[1, 0])
            made = self._op("MatMul", self.graph.weight(np.ascontiguousarray(data.T)), transposed)
            return Value(self._op("Transpose", made, perm=[1, 0]), (rows, columns))
        return Value(self._op("MatMul", value.name, self.graph.weight(data)), (rows, columns))

    def _twice(self) -> Value:
        """A sum of three, in either order."""
        value = self._any()
        others = [self._recent(lambda v: v.shape == value.shape) for _ in range(2)]
        a, (b, c) = value.name, [o.name for o in others if o is not None]
        if self._rewritten():
            return Value(self._op("Add", a, self._op("Add", b, c)), value.shape)
        return Value(self._op("Add", self._op("Add", a, b), c), value.shape)
