# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as models: the 119 of Roller's paper with a smaller batch, and those that predictions are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

#: n, f, h, w, c, k, stride of the convolutions (f filters, h x w results, c channels), "same" padding; batch 128.
_CONVS = """
C0 128,28,28,128,3,1 | C1 128,28,28,128,3,2 | C2 256,14,14,256,3,2 | C3 168,42,42,168,1,1 | C4 512,7,7,512,3,1
C5 1024,14,14,256,1,1 | C6 256,14,14,1024,1,1 | C7 512,14,14,1024,1,1 | C8 168,21,21,1008,1,1
C9 42,83,83,42,1,1 | C10 672,11,11,4032,1,1 | C11 512,7,7,512,3,2 | C12 42,83,83,96,1,1 | C13 42,165,165,96,1,1
C14 84,83,83,168,1,1 | C15 336,21,21,336,1,1 | C16 1024,14,14,512,1,2 | C17 256,56,56,64,1,1
C18 64,56,56,256,1,1 | C19 512,28,28,128,1,1 | C20 128,28,28,512,1,1 | C21 84,42,42,168,1,1
C22 256,28,28,512,1,1 | C23 64,56,56,64,3,1 | C24 672,21,21,2016,1,1 | C25 2048,7,7,512,1,1
C26 512,7,7,2048,1,1 | C27 84,42,42,84,1,1 | C28 168,42,42,336,1,1 | C29 672,11,11,672,1,1
C30 2048,7,7,1024,1,2 | C31 336,11,11,2016,1,1 | C32 336,21,21,2016,1,1 | C33 336,42,42,1008,1,1
C34 64,56,56,64,1,1 | C35 64,112,112,3,7,2 | C36 96,165,165,3,3,2 | C37 128,56,56,256,1,1
C38 256,14,14,256,3,1 | C39 672,11,11,2688,1,1 | C40 168,42,42,1008,1,1 | C41 42,83,83,96,1,1
C42 512,28,28,256,1,2 | C43 336,21,21,1344,1,1
"""
#: channels, side of the result, window, stride of the depthwise convolutions; batch 128.
_DEPTHWISE = """
D0 84,42,5,2 | D1 42,83,5,1 | D2 336,21,5,1 | D3 42,83,5,2 | D4 84,42,7,2 | D5 672,11,3,1 | D6 168,42,5,1
D7 672,11,5,2 | D8 336,21,3,1 | D9 672,11,7,2 | D10 42,83,7,1 | D11 84,42,7,1 | D12 84,42,5,1 | D13 168,42,3,1
D14 672,11,7,1 | D15 336,21,5,2 | D16 96,83,5,2 | D17 336,21,7,1 | D18 336,21,7,2 | D19 42,83,3,1
D20 96,83,7,2 | D21 84,42,3,1 | D22 672,11,5,1
"""
#: n, k, m of the products.
_PRODUCTS = """
M0 65536,2,1024 | M1 128,4032,1000 | M2 128,2048,1000 | M3 65536,1024,4096 | M4 65536,1024,1024
M5 65536,4096,1024 | M6 65536,30522,1024
"""
#: rows and columns of the sums.
_SUMS = "R0 65536,1024 | R1 65536,1024 | R2 516096,121 | R3 262144,49"
#: elements of the maps.
_MAPS = """
E0 227598336 | E1 6422528 | E2 25690112 | E3 12845056 | E4 334540800 | E5 75866112 | E6 41631744 | E7 102760448
E8 102760448 | E9 12845056 | E10 51380224 | E11 25690112 | E12 113799168 | E13 10407936 | E14 148141056
E15 25690112 | E16 37933056 | E17 18966528 | E18 62447616 | E19 3211264 | E20 12845056 | E21 74070528
E22 75866112 | E23 146361600 | E24 37933056 | E25 18966528 | E26 37035264 | E27 51380224
"""
#: images times channels, side of the result, window, stride of the average pools.
_POOLS = """
P0 21504,42,1,2 | P1 86016,11,3,2 | P2 5376,83,3,1 | P3 129024,21,1,2 | P4 43008,21,3,2 | P5 10752,42,3,2
P6 86016,11,3,1 | P7 12288,83,1,2 | P8 258048,11,1,2 | P9 5376,83,3,2 | P10 10752,42,3,1 | P11 43008,21,3,1
P12 21504,42,3,1
"""
_BATCH = 128


@dataclass(frozen=True)
class Operator:
    """An operator by name, and how to make its model for a batch (of the 128 in the paper)."""

    name: str
    make: Callable[[int], onnx.ModelProto]

    def model(self, batch: int = 1) -> onnx.ModelProto:
        """The model with `batch` of the paper's 128 images (rows, elements in proportion)."""
        return self.make(batch)


def _entries(text: str) -> list[tuple[str, list[int]]]:
    entries = [entry.split() for line in text.strip().splitlines() for entry in line.split("|") if entry.strip()]
    return [(name, [int(n) for n in numbers.split(",")]) for name, numbers in entries]


def paper() -> list[Operator]:
    """The 119 operators of the paper's evaluation (list of operators in its artifact)."""
    makers = (
        (_CONVS, _conv_of),
        (_DEPTHWISE, _depthwise_of),
        (_PRODUCTS, _product_of),
        (_SUMS, _sum_of),
        (_MAPS, _map_of),
        (_POOLS, _pool_of),
    )
    return [Operator(name, maker(*numbers)) for text, maker in makers for name, numbers in _entries(text)]


def conv(batch: int, channels: int, filters: int, out: int, window: int, stride: int, groups: int = 1):
    """A convolution whose result has `out` rows and columns."""
    g, rng = GraphBuilder("conv"), np.random.default_rng(0)
    size, pad = out * stride, (window - 1) // 2
    after = max((out - 1) * stride + window - size - pad, 0)
    x = g.input("x", np.float32, [batch, channels, size, size])
    w = g.weight(rng.standard_normal((filters, channels // groups, window, window), np.float32) / window)
    pads = [pad, pad, after, after]
    y = g.op("Conv", x, w, kernel_shape=[window] * 2, pads=pads, strides=[stride] * 2, group=groups)
    g.output(y, "y", np.float32, [batch, filters, out, out])
    return g.model()


def _conv_of(filters: int, out: int, _: int, channels: int, window: int, stride: int):
    return lambda batch: conv(batch, channels, filters, out, window, stride)


def _depthwise_of(channels: int, out: int, window: int, stride: int):
    return lambda batch: conv(batch, channels, channels, out, window, stride, groups=channels)


def product(m: int, k: int, n: int, weight: bool = True):
    """A matrix product, with a constant right operand by default."""
    g, rng = GraphBuilder("product"), np.random.default_rng(0)
    x = g.input("x", np.float32, [m, k])
    w = g.weight(rng.standard_normal((k, n), np.float32)) if weight else g.input("w", np.float32, [k, n])
    g.output(g.op("MatMul", x, w), "y", np.float32, [m, n])
    return g.model()


def _product_of(m: int, k: int, n: int):
    return lambda batch: product(max(m * batch // _BATCH, min(m, 64)), k, n)


def row_sums(rows: int, columns: int):
    """Sums over the last dimension."""
    g = GraphBuilder("sum")
    x = g.input("x", np.float32, [rows, columns])
    y = g.op("ReduceSum", x, g.weight(np.array([1], np.int64), "axes"), keepdims=0)
    g.output(y, "y", np.float32, [rows])
    return g.model()


def _sum_of(rows: int, columns: int):
    return lambda batch: row_sums(rows * batch // _BATCH, columns)


def relu(elements: int):
    """The maximum with 0 of a vector."""
    g = GraphBuilder("relu")
    g.output(g.op("Relu", g.input("x", np.float32, [elements])), "y", np.float32, [elements])
    return g.model()


def _map_of(elements: int):
    return lambda batch: relu(elements * batch // _BATCH)


def pool(images: int, out: int, window: int, stride: int):
    """Average pooling of single channels."""
    g = GraphBuilder("pool")
    size = (out - 1) * stride + window
    x = g.input("x", np.float32, [1, images, size, size])
    y = g.op("AveragePool", x, kernel_shape=[window] * 2, strides=[stride] * 2)
    g.output(y, "y", np.float32, [1, images, out, out])
    return g.model()


def _pool_of(images: int, out: int, window: int, stride: int):
    return lambda batch: pool(max(images * batch // _BATCH, 1), out, window, stride)


def judged() -> list[Operator]:
    """Operators that predicted times are compared with measured ones for."""
    return [
        Operator("product_256", lambda _: product(256, 256, 256)),
        Operator("product_128x768x768", lambda _: product(128, 768, 768)),
        Operator("product_197x768x768", lambda _: product(197, 768, 768)),
        Operator("product_run_time_384", lambda _: product(384, 384, 384, weight=False)),
        Operator("conv3x3_64_56", lambda _: conv(1, 64, 64, 56, 3, 1)),
        Operator("conv1x1_256_14", lambda _: conv(1, 1024, 256, 14, 1, 1)),
        Operator("depthwise3x3_96_56", lambda _: conv(1, 96, 96, 56, 3, 1, groups=96)),
        Operator("gelu_512x1024", lambda _: _gelu(512, 1024)),
        Operator("sum_2048x512", lambda _: row_sums(2048, 512)),
        Operator("sum_4096x121", lambda _: row_sums(4096, 121)),
        Operator("relu_1m", lambda _: relu(1 << 20)),
        Operator("pool3x3_168_42", lambda _: pool(168, 42, 3, 1)),
    ]


def _gelu(rows: int, columns: int):
    g = GraphBuilder("gelu")
    x = g.input("x", np.float32, [rows, columns])
    bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
    g.output(g.op("Mul", g.op("Mul", x, bent), g.f32(0.5)), "y", np.float32, [rows, columns])
    return g.model()
