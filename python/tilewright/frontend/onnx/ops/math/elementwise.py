# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators, activations, comparisons, logic, bits and Where."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from tilewright.frontend.builder.dtypes import BOOL, F64, I64, is_float, is_unsigned
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op

_UNARY = {
    "Relu": lambda m, x: m.maximum(x, 0),
    "Tanh": lambda m, x: m.tanh(x),
    "Sigmoid": lambda m, x: 1.0 / (1.0 + m.exp(-x)),
    "Erf": lambda m, x: m.erf(x),
    "Exp": lambda m, x: m.exp(x),
    "Log": lambda m, x: m.log(x),
    "Sqrt": lambda m, x: m.sqrt(x),
    "Sin": lambda m, x: m.sin(x),
    "Cos": lambda m, x: m.cos(x),
    "Reciprocal": lambda m, x: 1.0 / x,
    "Abs": lambda m, x: m.absolute(x),
    "Neg": lambda m, x: -x,
    "Floor": lambda m, x: m.floor(x),
    "Ceil": lambda m, x: m.ceil(x),
    "Round": lambda m, x: m.round(x),
    "Not": lambda m, x: m.logical_not(x),
    "BitwiseNot": lambda m, x: m.bit_not(x),
    "Sign": lambda m, x: _sign(m, x),
    "Softplus": lambda m, x: m.maximum(x, 0.0) + m.log(1.0 + m.exp(-m.absolute(x))),
    "Softsign": lambda m, x: x / (1.0 + m.absolute(x)),
    "HardSwish": lambda m, x: x * m.minimum(m.maximum(x * (1.0 / 6.0) + 0.5, 0.0), 1.0),
    "Mish": lambda m, x: x * m.tanh(m.maximum(x, 0.0) + m.log(1.0 + m.exp(-m.absolute(x)))),
}

_BINARY = {
    "Add": lambda m, a, b: a + b,
    "Sub": lambda m, a, b: a - b,
    "Mul": lambda m, a, b: a * b,
    "Div": lambda m, a, b: m.div(a, b),
    "And": lambda m, a, b: m.logical_and(a, b),
    "Or": lambda m, a, b: m.logical_or(a, b),
    "Xor": lambda m, a, b: m.logical_xor(a, b),
    "BitwiseAnd": lambda m, a, b: m.bit_and(a, b),
    "BitwiseOr": lambda m, a, b: m.bit_or(a, b),
    "BitwiseXor": lambda m, a, b: m.bit_xor(a, b),
    "PRelu": lambda m, x, slope: m.where(x < 0, x * slope, x),
}

_COMPARE = {
    "Equal": lambda m, a, b: m.eq(a, b),
    "Less": lambda m, a, b: a < b,
    "LessOrEqual": lambda m, a, b: a <= b,
    "Greater": lambda m, a, b: a > b,
    "GreaterOrEqual": lambda m, a, b: a >= b,
}

_VARIADIC = {
    "Sum": lambda m, a, b: a + b,
    "Mean": lambda m, a, b: a + b,
    "Max": lambda m, a, b: m.maximum(a, b),
    "Min": lambda m, a, b: m.minimum(a, b),
}

# Activations with float attributes: their defaults, and the body as (m, x, *attributes).
_PARAMETRIC = {
    "LeakyRelu": ({"alpha": 0.01}, lambda m, x, a: m.where(x < 0.0, x * a, x)),
    "Elu": ({"alpha": 1.0}, lambda m, x, a: m.where(x < 0.0, a * (m.exp(x) - 1.0), x)),
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, lambda m, x, a, b: m.minimum(m.maximum(x * a + b, 0.0), 1.0)),
    "ThresholdedRelu": ({"alpha": 1.0}, lambda m, x, a: m.where(x > a, x, 0.0)),
    "Celu": ({"alpha": 1.0}, lambda m, x, a: m.maximum(x, 0.0) + m.minimum(a * (m.exp(x / a) - 1.0), 0.0)),
    "Selu": (
        {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323},
        lambda m, x, a, g: m.where(x > 0.0, x * g, (m.exp(x) - 1.0) * (a * g)),
    ),
}


def _sign(m, x):
    """-1, 0 or 1; of NaN and zeros themselves."""
    positive = m.where(x > 0, 1, x)
    return positive if is_unsigned(x.dtype) else m.where(x < 0, -1, positive)


def _same_dtype(node: Node, *xs: Tensor) -> None:
    if len({x.dtype for x in xs}) > 1:
        node.wrong(f"inputs have different element types: {', '.join(str(x.dtype) for x in xs)}")


@op(*_UNARY)
def unary(b: Builder, node: Node, x: Tensor) -> Tensor:
    """One input, one body."""
    return b.elementwise(_UNARY[node.proto.op_type], x)


@op(*_PARAMETRIC)
def parametric(b: Builder, node: Node, x: Tensor) -> Tensor:
    """One input and attributes."""
    defaults, body = _PARAMETRIC[node.proto.op_type]
    if node.proto.op_type == "Selu" and node.version < 6:
        defaults = {"alpha": 1.6732, "gamma": 1.0507}
    values = [node.attr(name, default) for name, default in defaults.items()]
    return b.elementwise(lambda m, x: body(m, x, *values), x)


def activation_body(name: str, parameters: Sequence[float] = ()) -> Callable | None:
    """The body (m, x) of an operator of one input; parameters replace its attributes' defaults in their order."""
    if name in _UNARY:
        return _UNARY[name]
    if name not in _PARAMETRIC:
        return None
    defaults, body = _PARAMETRIC[name]
    values = [*parameters, *list(defaults.values())[len(parameters) :]][: len(defaults)]
    return lambda m, x: body(m, x, *values)


def legacy_broadcast(node: Node, x: Tensor, y: Tensor) -> Tensor:
    """Before opset 7 the second input was aligned at attribute `axis`, or at the channels, instead of at the right."""
    if node.version < 7 and node.proto.op_type == "PRelu" and y.rank == 1 and x.rank > 1:
        return y.unsqueeze(range(1, x.rank - 1))
    if node.version >= 7 or not node.attr("broadcast", 0) or node.attr("axis") is None:
        return y
    trailing = x.rank - node.axis(node.attr("axis"), x.rank) - y.rank
    return y.unsqueeze(range(y.rank, y.rank + trailing))


@op(*_BINARY)
def binary(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """Two inputs of one element type."""
    _same_dtype(node, x, y)
    return b.elementwise(_BINARY[node.proto.op_type], x, legacy_broadcast(node, x, y))


@op(*_COMPARE)
def compare(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """Two inputs to bool."""
    _same_dtype(node, x, y)
    return b.elementwise(_COMPARE[node.proto.op_type], x, legacy_broadcast(node, x, y), dtype=BOOL)


@op(*_VARIADIC)
def variadic(b: Builder, node: Node, *xs: Tensor) -> Tensor:
    """Any number of inputs."""
    _same_dtype(node, *xs)
    combine = _VARIADIC[node.proto.op_type]
    scale = 1.0 / len(xs) if node.proto.op_type == "Mean" and len(xs) > 1 else None

    def body(m, *elements):
        total = functools.reduce(lambda a, b: combine(m, a, b), elements)
        return total if scale is None else total * scale

    return b.elementwise(body, *xs)


@op("Pow")
def power(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """x ** y; small constant exponents become products and roots."""
    y = legacy_broadcast(node, x, y)
    exponent = float(y.numpy().reshape(-1)[0]) if y.is_known and y.size == 1 else None
    shape = y.shape
    if exponent == 2.0:
        return b.elementwise(lambda m, x: x * x, x, shape=shape)
    if exponent == 3.0:
        return b.elementwise(lambda m, x: x * x * x, x, shape=shape)
    if exponent == 0.5 and is_float(x.dtype):
        return b.elementwise(lambda m, x: m.sqrt(x), x, shape=shape)
    if exponent == 1.0:
        return b.broadcast(x, shape)
    if is_float(x.dtype):
        return b.elementwise(lambda m, x, y: m.power(x, m.cast(y, x.dtype)), x, y)
    if is_float(y.dtype):
        return b.elementwise(lambda m, x, y: m.cast(m.power(m.cast(x, F64), m.cast(y, F64)), x.dtype), x, y)
    return b.elementwise(_integer_power, x, y, dtype=x.dtype)


def _integer_power(m, x, y):
    """By squaring; a negative exponent gives 1/x rounded toward zero.

    Eight squarings do: beyond them powers of even numbers are 0, and all others but 1 and -1 have overflowed.
    """
    y = m.cast(m.bit_and(y, (1 << 63) - 1) if y.dtype == np.uint64 else y, I64)
    y = m.where(y > 254, m.bit_and(y, 1) + 254, y)
    odd = m.bit_and(y, 1) > 0
    result, square = m.where(odd, x, 1), x
    for i in range(1, 8):
        square = square * square
        result = m.where(m.bit_and(y, 1 << i) > 0, result * square, result)
    inverse = m.where(m.eq(x, 1), x, 0)
    if not is_unsigned(x.dtype):
        inverse = m.where(m.eq(x, -1), m.where(odd, x, 1), inverse)
    return m.where(y < 0, inverse, result)


@op("BitShift", since=11)
def bit_shift(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """To the left or right by the second input."""
    _same_dtype(node, x, y)
    direction = node.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        node.wrong(f"direction is {direction!r}, not LEFT or RIGHT")
    return b.elementwise(lambda m, x, y: (m.shift_left if direction == "LEFT" else m.shift_right)(x, y), x, y)


@op("IsNaN", since=9)
def is_nan(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Whether an element is not a number."""
    return b.elementwise(lambda m, x: m.is_nan(x), x, dtype=BOOL)


@op("IsInf", since=10)
def is_inf(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Whether an element is infinite, of the signs that the attributes ask for."""
    signs = [s for s, name in ((1.0, "detect_positive"), (-1.0, "detect_negative")) if node.attr(name, 1)]

    def body(m, x):
        found = [m.eq(x, s * math.inf) for s in signs]
        return functools.reduce(m.logical_or, found) if found else m.logical_and(m.eq(x, x), m.logical_not(m.eq(x, x)))

    return b.elementwise(body, x, dtype=BOOL)


@op("Mod")
def modulo(b: Builder, node: Node, x: Tensor, y: Tensor) -> Tensor:
    """fmod=1: sign of the dividend; otherwise (integers) sign of the divisor."""
    _same_dtype(node, x, y)
    if node.attr("fmod", 0):
        return b.elementwise(lambda m, x, y: m.rem(x, y), x, y)

    def body(m, x, y):
        rest = m.rem(x, y)
        if is_unsigned(x.dtype):
            return rest
        wrong = m.logical_and(m.logical_xor(rest < 0, y < 0), m.logical_not(m.eq(rest, 0)))
        return m.where(wrong, rest + y, rest)

    return b.elementwise(body, x, y)


@op("Clip")
def clip(b: Builder, node: Node, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Bounds by attribute (opset < 11) or input; a missing bound does not bind."""
    if node.version < 11:
        low, high = (
            None if node.attr(name) is None else Tensor.known(node.attr(name), x.dtype) for name in ("min", "max")
        )
    bounds = [v for v in (low, high) if v is not None]

    def body(m, x, *limits):
        rest = iter(limits)
        x = m.maximum(x, next(rest)) if low is not None else x
        return m.minimum(x, next(rest)) if high is not None else x

    return b.elementwise(body, x, *bounds) if bounds else x


@op("Gelu", since=20)
@op("Gelu", domain="com.microsoft")
def gelu(b: Builder, node: Node, x: Tensor) -> Tensor:
    """By erf, or by tanh where the attribute says so."""
    if node.attr("approximate", "none") == "tanh":
        c = math.sqrt(2.0 / math.pi)
        return b.elementwise(lambda m, x: 0.5 * x * (1.0 + m.tanh(c * (x + 0.044715 * x * x * x))), x)
    return b.elementwise(lambda m, x: 0.5 * x * (1.0 + m.erf(x * math.sqrt(0.5))), x)


@op("Where", since=9)
def where(b: Builder, node: Node, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the condition holds, else y."""
    _same_dtype(node, x, y)
    return b.elementwise(lambda m, c, x, y: m.where(c, x, y), condition, x, y, dtype=x.dtype)


@op("Identity", structures=True)
def identity(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The input."""
    return x
