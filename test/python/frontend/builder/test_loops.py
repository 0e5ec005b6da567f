# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar programs on tensors, interpreted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright import reference
from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.mlir import ir


def run(program: Callable[..., Sequence], *inputs: np.ndarray) -> list[np.ndarray]:
    """Run `program(b, *tensors)` in a function of its own."""
    with ir.Context(), ir.Location.unknown():
        b = Builder(ir.Module.create())
        kinds = [b.tensor_type(x.shape, x.dtype) for x in inputs]
        with ir.InsertionPoint(b.module.body):
            function = ir.Operation.create("func.func", attributes={"sym_name": ir.StringAttr.get("main")}, regions=1)
        b.entry = ir.Block.create_at_start(function.regions[0], kinds)
        with ir.InsertionPoint(b.entry):
            arguments = zip(inputs, b.entry.arguments, strict=True)
            tensors = [Tensor(x.dtype, x.shape, v, tuple(range(x.ndim))) for x, v in arguments]
            values = [r.value if isinstance(r, Scalar) else b.array(r).data for r in program(b, *tensors)]
            ir.Operation.create("func.return", operands=values)
        kind = ir.FunctionType.get(kinds, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        assert b.module.operation.verify()
        return reference.run(b.module, "main", list(inputs), b.weights)


def test_for_carries_tensors_and_scalars():
    def program(b, x):
        def body(i, total, out):
            total = total + b.at(x, [i])
            return total, b.put(total, out, [i])

        return b.for_(0, x.shape[0], [b.math.scalar(0, x.dtype), b.blank(x.shape, x.dtype)], body)

    x = np.arange(5, dtype=np.float32)
    total, out = run(program, x)
    assert total == x.sum()
    np.testing.assert_array_equal(out, np.cumsum(x))


@pytest.mark.parametrize("count", [0, 1])
def test_short_loops_are_unrolled(count):
    def program(b, x):
        return b.for_(0, count, [x], lambda i, x: [b.put(7, x, [i])])

    (out,) = run(program, np.zeros(3, np.int64))
    np.testing.assert_array_equal(out, [7, 0, 0] if count else [0, 0, 0])


def test_for_with_a_run_time_bound_and_a_step():
    def program(b, n, x):
        return b.for_(1, b.item(n), [x], lambda i, x: [b.put(b.at(x, [i]) * 2, x, [i])], step=2)

    (out,) = run(program, np.array([4]), np.arange(6))
    np.testing.assert_array_equal(out, [0, 2, 2, 6, 4, 5])


def test_nest_reads_transposed_tensors_in_logical_order():
    def program(b, x):
        x = b.array(x.transpose([1, 0]))
        return b.nest(x.shape, [b.full(0, x.shape, x.dtype)], lambda at, out: [b.put(b.at(x, at) + 1, out, at)])

    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(run(program, x)[0], x.T + 1)


def test_while_finds_the_length_of_a_collatz_chain():
    def program(b, n):
        m = b.math

        def step(v, count):
            half = m.div(v, m.scalar(2, v.dtype))
            return m.where(m.eq(half * 2, v), half, v * 3 + 1), count + 1

        return b.while_([b.item(n), m.scalar(0, n.dtype)], lambda v, _: v > 1, step)

    value, count = run(program, np.array(27))
    assert (value, count) == (1, 111)


@pytest.mark.parametrize("sign", [1, -1])
def test_if_gives_scalars_and_tensors(sign):
    def program(b, s, x):
        positive = b.at(s, [0]) > 0
        return b.if_(positive, lambda: [b.item(s), x], lambda: [b.item(s) * 10, b.put(9, x, [0])])

    scalar, x = run(program, np.array([sign]), np.zeros(2, np.int64))
    assert scalar == (1 if sign > 0 else -10)
    np.testing.assert_array_equal(x, [0, 0] if sign > 0 else [9, 0])


def test_if_refuses_branches_of_different_kinds():
    def program(b, s, x):
        return b.if_(b.at(s, [0]) > 0, lambda: [s], lambda: [x])

    with pytest.raises(UnsupportedError, match="ranks and element types must agree"):
        run(program, np.array([1]), np.zeros(2, np.float32))


def test_a_vector_of_scalars():
    def program(b, x):
        return [b.vector([b.at(x, [1]), b.math.scalar(5, x.dtype)], np.int64)]

    np.testing.assert_array_equal(run(program, np.array([3, 4]))[0], [4, 5])
