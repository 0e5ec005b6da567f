# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators that random programs are made of: each function applies one to values of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .graphs import BOOL, FLOATS, SIGNED, UNSIGNED, Graph, Misfit

NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)
_SMOOTH = (
    "Exp",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Softplus",
    "Elu",
    "Selu",
    "HardSigmoid",
    "Sin",
    "Cos",
    "Atan",
    "Gelu",
    "Mish",
)
_SMOOTH += ("Celu", "Softsign", "LeakyRelu", "Reciprocal", "Asinh", "HardSwish")
_STEPS = ("Floor", "Ceil", "Round", "Sign")
_COMPARE = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
_SUMS = ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd")
_FLOAT_LIKE = frozenset(FLOATS)


def smooth(g: Graph) -> None:
    """A function of each element."""
    g.apply(g.choose.choice(_SMOOTH), [g.pick(FLOATS)], exact=False)


def steps(g: Graph) -> None:
    """A function that jumps: of exact values only."""
    g.apply(g.choose.choice(_STEPS), [g.pick(FLOATS, lambda v: v.exact)], exact=True)


def plain(g: Graph) -> None:
    """A function that does not round."""
    kind = g.choose.choice(("Abs", "Neg", "Relu", "Identity"))
    dtypes = NUMBERS if kind in ("Abs", "Identity") else (*FLOATS, *SIGNED)
    g.apply(kind, [g.pick(dtypes)], exact=True)


def root(g: Graph) -> None:
    """A square root or logarithm; negative elements give NaN."""
    g.apply(g.choose.choice(("Sqrt", "Log")), [g.pick(FLOATS, lambda v: v.exact)], exact=False)


def arithmetic(g: Graph) -> None:
    """Two operands that broadcast."""
    kind = g.choose.choice(("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"))
    x = g.pick(FLOATS if kind in ("Sum", "Mean") else NUMBERS)
    g.apply(kind, [x, g.like(x)], exact=x.dtype not in _FLOAT_LIKE or kind in ("Max", "Min"))


def division(g: Graph) -> None:
    """A quotient or remainder; integers by a constant that is not zero."""
    x = g.pick(NUMBERS)
    if x.dtype in _FLOAT_LIKE:
        g.apply("Div", [x, g.like(x)], exact=False)
        return
    divisor = g.constant(np.array(g.choose.choice((1, 2, 3, 7)), numpy_type(x.dtype)))
    kind = g.choose.choice(("Div", "Mod"))
    g.apply(kind, [x, divisor], exact=True)


def comparison(g: Graph) -> None:
    """Two exact operands."""
    x = g.pick(NUMBERS, lambda v: v.exact)
    y = g.like(x)
    if not y.exact:
        raise Misfit
    g.apply(g.choose.choice(_COMPARE), [x, y], exact=True)


def logic(g: Graph) -> None:
    """And, Or, Xor, Not; bitwise on integers."""
    if g.choose.random() < 0.5:
        x = g.pick((BOOL,))
        kind = g.choose.choice(("And", "Or", "Xor", "Not"))
        g.apply(kind, [x] if kind == "Not" else [x, g.like(x)], exact=True)
    else:
        x = g.pick((*SIGNED, *UNSIGNED))
        g.apply(g.choose.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, g.like(x)], exact=True)


def where(g: Graph) -> None:
    """A choice by element."""
    x = g.pick((*NUMBERS, BOOL))
    g.apply("Where", [g.new(BOOL, g.broadcastable(x.shape)), x, g.like(x)], exact=True)


def clip(g: Graph) -> None:
    """Bounds."""
    x = g.pick(NUMBERS)
    kind = numpy_type(x.dtype)
    g.apply("Clip", [x, g.constant(np.array(1, kind)), g.constant(np.array(3, kind))], exact=True)


def cast(g: Graph) -> None:
    """Between types, where the result is defined: floats to integers within the range."""
    x = g.pick((*NUMBERS, BOOL))
    targets = (*FLOATS, BOOL, *SIGNED, *UNSIGNED)
    if x.dtype in _FLOAT_LIKE:
        targets = (*FLOATS, *SIGNED) if x.given else FLOATS
    g.apply("Cast", [x], to=g.choose.choice(targets), exact=True)


def reduction(g: Graph) -> None:
    """Over some axes, all, or none."""
    kind = g.choose.choice((*_SUMS, "ReduceMax", "ReduceMin"))
    x = g.pick(FLOATS if kind in _SUMS else (*FLOATS, *SIGNED))
    axes = [d - g.choose.choice((0, x.rank)) for d in range(x.rank) if g.choose.random() < 0.5]
    if kind in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp") and 0 in x.shape:
        raise Misfit
    g.apply(kind, [x, g.ints(axes)], keepdims=g.choose.randint(0, 1), exact=kind in ("ReduceMax", "ReduceMin"))


def arg(g: Graph) -> None:
    """The place of an extremum."""
    x = g.pick((*FLOATS, *SIGNED), lambda v: v.exact and 0 not in v.shape, low=1)
    kind = g.choose.choice(("ArgMax", "ArgMin"))
    keep, last = g.choose.randint(0, 1), g.choose.randint(0, 1)
    g.apply(kind, [x], axis=g.axis(x), keepdims=keep, select_last_index=last, exact=True)


def product(g: Graph) -> None:
    """MatMul of any ranks."""
    x = g.pick((*FLOATS, *SIGNED[2:]), lambda v: v.dtype != 16 or v.rank > 0, low=1)
    columns = g.choose.choice((1, 2, 5, 16, 17))
    shape = (*g.broadcastable(x.shape[:-2]), x.shape[-1], columns) if g.choose.random() < 0.8 else (x.shape[-1],)
    g.apply("MatMul", [x, g.like(x, shape)], exact=x.dtype not in _FLOAT_LIKE)


def gemm(g: Graph) -> None:
    """With either side transposed and a bias."""
    x = g.pick(FLOATS, lambda v: v.rank == 2, low=2)
    left, right, columns = g.choose.randint(0, 1), g.choose.randint(0, 1), g.choose.choice((1, 3, 16, 33))
    depth = x.shape[0] if left else x.shape[1]
    rows = x.shape[1] if left else x.shape[0]
    w = g.like(x, (columns, depth) if right else (depth, columns))
    g.apply(
        "Gemm", [x, w, g.like(x, g.broadcastable((rows, columns)))], transA=left, transB=right, alpha=0.5, exact=False
    )


def convolution(g: Graph) -> None:
    """One to three dimensions, grouped, dilated, padded."""
    rank, groups = g.choose.randint(1, 3), g.choose.choice((1, 1, 2))
    sizes = [g.choose.choice((5, 7, 8)) for _ in range(rank)]
    dtype = g.choose.choice(FLOATS)
    x = g.new(dtype, (g.choose.choice((1, 2)), 2 * groups, *sizes))
    kernel = [g.choose.choice((1, 2, 3)) for _ in range(rank)]
    w = g.new(dtype, (groups * g.choose.choice((1, 3)), 2, *kernel))
    bias = [g.new(dtype, (w.shape[0],))] if g.choose.random() < 0.5 else []
    pads = [g.choose.choice((0, 1)) for _ in range(2 * rank)]
    strides = [g.choose.choice((1, 2)) for _ in range(rank)]
    dilations = [g.choose.choice((1, 1, 2)) for _ in range(rank)]
    g.apply("Conv", [x, w, *bias], group=groups, pads=pads, strides=strides, dilations=dilations, exact=False)


def pooling(g: Graph) -> None:
    """Maxima and means of windows."""
    rank = g.choose.randint(1, 3)
    x = g.new(g.choose.choice(FLOATS), (1, 2, *(g.choose.choice((5, 6, 9)) for _ in range(rank))))
    kind = g.choose.choice(("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"))
    strides = [g.choose.choice((1, 2)) for _ in range(rank)]
    shape = [g.choose.choice((2, 3)) for _ in range(rank)]
    pads = [g.choose.choice((0, 1)) for _ in range(2 * rank)]
    ceil = g.choose.randint(0, 1)
    more = {"count_include_pad": g.choose.randint(0, 1)} if kind == "AveragePool" else {}
    more["dilations"] = [g.choose.choice((1, 1, 1, 2)) for _ in range(rank)]
    shapes = {"kernel_shape": shape, "strides": strides, "pads": pads, "ceil_mode": ceil}
    g.apply(kind, [x], exact=kind == "MaxPool", **shapes, **more)


def normalization(g: Graph) -> None:
    """Softmax and LayerNormalization."""
    kind = g.choose.choice(("Softmax", "LogSoftmax", "LayerNormalization", "Hardmax", "LpNormalization"))
    x = g.pick(FLOATS, lambda v: 0 not in v.shape and (kind != "Hardmax" or v.exact), low=1)
    axis = g.axis(x)
    inputs = [x, g.like(x, x.shape[axis:])] if kind == "LayerNormalization" else [x]
    g.apply(kind, inputs, axis=axis, exact=kind == "Hardmax")


def numpy_type(dtype: int) -> np.dtype:
    """NumPy's dtype of a TensorProto number."""
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(dtype)


COMPUTE: tuple[Callable[[Graph], None], ...] = (
    smooth, steps, plain, root, arithmetic, division, comparison, logic, where, clip, cast, reduction, arg, product,
    gemm, convolution, pooling, normalization,
)  # fmt: skip
