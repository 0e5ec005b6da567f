# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on nested lists of equal tensors, run eagerly or compiled.

::

    import tilewright.fractal as ft

    @ft.function
    def rnn(xss: ft.Array[2, (1, 512)], w: ft.Tensor[512, 512], u: ft.Tensor[512, 512]) -> ft.Array[2, (1, 512)]:
        def cell(h, x):
            return ft.tanh(x @ w + h @ u)
        return ft.map(lambda xs: ft.scanl(cell, ft.zeros(1, 512), xs), xss)

    rnn(xss, w, u)                            # NumPy arrays and Lists; pdb works
    rnn.trace(lengths={"xss": (16, None)})    # MLIR text, weights, signature
"""

from tilewright.dialects.fractal.values import Lists
from tilewright.fractal.access import (
    deinterleave,
    enumerate,
    flatten,
    gather,
    head,
    interleave,
    join,
    last,
    length,
    product,
    repeat,
    reverse,
    scatter,
    shift,
    shifted_slide,
    slices,
    split,
    stack,
    tail,
    tensor,
    window,
    zip,
)
from tilewright.fractal.compute import dilated_map, filter, foldl, foldr, forall, map, reduce, scanl, scanr
from tilewright.fractal.function import Function, function, trace
from tilewright.fractal.math import (
    abs,
    cast,
    cat,
    concat,
    exp,
    full,
    log,
    max,
    maximum,
    mean,
    min,
    minimum,
    relu,
    reshape,
    rowmax,
    rowsum,
    sigmoid,
    softmax,
    sqrt,
    sum,
    tanh,
    transpose,
    where,
    zeros,
)
from tilewright.fractal.quantized import dequantize, quantize
from tilewright.fractal.ragged import unpacked
from tilewright.fractal.recursion import recursive
from tilewright.fractal.tree import Tree
from tilewright.fractal.types import Array, Tensor

__all__ = [
    "Array",
    "Function",
    "Lists",
    "Tensor",
    "Tree",
    "abs",
    "cast",
    "cat",
    "concat",
    "deinterleave",
    "dequantize",
    "dilated_map",
    "enumerate",
    "exp",
    "filter",
    "flatten",
    "foldl",
    "foldr",
    "forall",
    "full",
    "function",
    "gather",
    "head",
    "interleave",
    "join",
    "last",
    "length",
    "log",
    "map",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "product",
    "quantize",
    "recursive",
    "reduce",
    "relu",
    "repeat",
    "reshape",
    "reverse",
    "rowmax",
    "rowsum",
    "scanl",
    "scanr",
    "scatter",
    "shift",
    "shifted_slide",
    "sigmoid",
    "slices",
    "softmax",
    "split",
    "sqrt",
    "stack",
    "sum",
    "tail",
    "tanh",
    "tensor",
    "trace",
    "transpose",
    "unpacked",
    "where",
    "window",
    "zeros",
    "zip",
]
