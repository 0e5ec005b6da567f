# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers: RandomUniform, RandomNormal, Bernoulli, Multinomial, Dropout.

The generator is NumPy's `RandomState(seed)`, the Mersenne twister, as in ONNX's reference implementation: the same
attribute `seed` gives the same numbers. A compiled model has no state, so each run draws the same ones again, and a
node without a seed takes the CRC-32 of its name. Few numbers (of a static shape) are drawn at compile time, others by
a program that draws the same ones at run time.
"""

from __future__ import annotations

import zlib
from math import prod

import numpy as np

from tilewright.frontend.builder.builder import FOLD_ELEMENTS
from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import F64
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.tensor.cast import dtype_attribute
from tilewright.frontend.onnx.registry import Builder, Node, op

_U32 = np.dtype(np.uint32)
_WORDS = 624  # of the twister's state


def _seed(node: Node) -> int:
    given = node.attr("seed")
    if given is None or given != given:
        return zlib.crc32(node.label.encode())
    return int(given) & 0xFFFFFFFF


# The generator ----------------------------------------------------------------------------------------------------


def _start(b: Builder, seed: int) -> Tensor:
    words = np.random.RandomState(seed).get_state()[1]  # pyright: ignore[reportArgumentType]
    return b.array(Tensor.known(np.asarray(words, _U32)))


def _word(b: Builder, state: Tensor, i: Scalar) -> tuple[Tensor, Scalar]:
    """The state with word i made anew, and the random number that it stands for."""
    m = b.math
    following = b.at(state, [m.where(i.eq(_WORDS - 1), 0, i + 1)])
    distant = b.at(state, [m.where(i < _WORDS - 397, i + 397, i - (_WORDS - 397))])
    y = m.bit_or(m.bit_and(b.at(state, [i]), 0x80000000), m.bit_and(following, 0x7FFFFFFF))
    twist = m.where(m.bit_and(y, 1).eq(0), m.scalar(0, _U32), 0x9908B0DF)
    y = m.bit_xor(m.bit_xor(distant, m.shift_right(y, 1)), twist)
    state = b.put(y, state, [i])
    y = m.bit_xor(y, m.shift_right(y, 11))
    y = m.bit_xor(y, m.bit_and(m.shift_left(y, 7), 0x9D2C5680))
    y = m.bit_xor(y, m.bit_and(m.shift_left(y, 15), 0xEFC60000))
    return state, m.bit_xor(y, m.shift_right(y, 18))


def _fraction(b: Builder, state: Tensor, i: Scalar) -> tuple[Tensor, Scalar]:
    """A fraction of 53 bits, from the words at i and i + 1."""
    m = b.math
    state, high = _word(b, state, i)
    state, low = _word(b, state, i + 1)
    high, low = (m.cast(m.shift_right(word, by), F64) for word, by in ((high, 5), (low, 6)))
    return state, (high * 67108864.0 + low) * 2.0**-53


def uniforms(b: Builder, count: Size, seed: int) -> Tensor:
    """RandomState(seed).random_sample(count): a vector in f64, at least 0 and below 1."""
    if isinstance(count, int) and count <= FOLD_ELEMENTS:
        return Tensor.known(np.random.RandomState(seed).random_sample(count))
    m = b.math

    def draw(i: Scalar, state: Tensor, out: Tensor) -> list[Tensor]:
        state, value = _fraction(b, state, m.rem(i * 2, m.scalar(_WORDS, INDEX)))
        return [state, b.put(value, out, [i])]

    return b.for_(0, count, [_start(b, seed), b.blank([count], F64)], draw)[1]


def normals(b: Builder, count: Size, seed: int) -> Tensor:
    """RandomState(seed).randn(count): a vector in f64 (Marsaglia's polar method)."""
    if isinstance(count, int) and count <= FOLD_ELEMENTS:
        return Tensor.known(np.random.RandomState(seed).randn(count))
    m, total = b.math, b.idx(count)

    def pair(done: Scalar, used: Scalar, state: Tensor, out: Tensor) -> list:
        """Two numbers are put behind those done; they count where the pair lies in the unit circle."""
        state, x = _fraction(b, state, used)
        state, y = _fraction(b, state, used + 2)
        x, y = x * 2.0 - 1.0, y * 2.0 - 1.0
        square = x * x + y * y
        scale = m.sqrt(m.log(square) * -2.0 / square)
        out = b.put(scale * x, b.put(scale * y, out, [done]), [done + 1])
        inside = m.logical_and(square < 1.0, m.logical_not(square.eq(0.0)))
        following = used + 4
        return [m.where(inside, done + 2, done), m.where(following.eq(_WORDS), 0, following), state, out]

    start = [b.idx(0), b.idx(0), _start(b, seed), b.blank([count + 1], F64)]
    return b.first(b.while_(start, lambda done, *_: done < total, pair)[3], count)


# Operators --------------------------------------------------------------------------------------------------------


def _uniform(b: Builder, node: Node, shape: tuple[Size, ...], dtype: np.dtype) -> Tensor:
    low, high = node.attr("low", 0.0), node.attr("high", 1.0)
    x = b.cast(b.reshape(uniforms(b, prod(shape), _seed(node)), shape), dtype)
    return b.elementwise(lambda m, x: x * (high - low) + low, x)


def _normal(b: Builder, node: Node, shape: tuple[Size, ...], dtype: np.dtype) -> Tensor:
    mean, scale = node.attr("mean", 0.0), node.attr("scale", 1.0)
    x = b.cast(b.reshape(normals(b, prod(shape), _seed(node)), shape), dtype)
    return b.elementwise(lambda m, x: x * scale + mean, x)


@op("RandomUniform", "RandomNormal")
def random(b: Builder, node: Node) -> Tensor:
    """Numbers of a given shape, between `low` and `high`, or around `mean` with deviation `scale`."""
    draw = _uniform if node.proto.op_type == "RandomUniform" else _normal
    return draw(b, node, tuple(node.attr("shape", [])), dtype_attribute(node, "dtype", np.dtype(np.float32)))


@op("RandomUniformLike", "RandomNormalLike")
def random_like(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The same in the shape of a tensor (and its type, where there is no `dtype`)."""
    draw = _uniform if node.proto.op_type == "RandomUniformLike" else _normal
    return draw(b, node, x.shape, dtype_attribute(node, "dtype", x.dtype))


@op("Bernoulli", since=15)
def bernoulli(b: Builder, node: Node, p: Tensor) -> Tensor:
    """1 with the probability that x holds, else 0: the comparison that NumPy's binomial makes."""
    u = b.reshape(uniforms(b, prod(p.shape), _seed(node)), p.shape)
    share = b.cast(p, F64)
    ones = b.elementwise(lambda m, u, p: m.where(p <= 0.5, 1.0 - p < u, u <= p), u, share, dtype=BOOL)
    return b.cast(ones, dtype_attribute(node, "dtype", p.dtype))


@op("Multinomial", since=7)
def multinomial(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Classes drawn by unnormalized log-probabilities: where the prefix sum exceeds a fraction of the total."""
    if x.rank != 2:
        node.wrong(f"the input {list(x.shape)} is not [batch, classes]")
    m = b.math
    batch, classes = x.shape
    samples, dtype = node.attr("sample_size", 1), dtype_attribute(node, "dtype", np.dtype(np.int32))
    x = b.cast(x, F64)
    top = b.reduce("max", x, [1])
    weights = b.array(b.elementwise(lambda m, x, t: m.exp(x - t), x, top))
    totals = b.array(b.reduce("sum", weights, [1]))
    draws = b.array(b.reshape(uniforms(b, batch * samples, _seed(node)), (batch, samples)))

    def draw(at: list[Scalar], out: Tensor) -> list[Tensor]:
        goal = b.at(draws, at) * b.at(totals, [at[0], 0])

        def reached(c: Scalar, total: Scalar) -> list[Scalar]:
            return [c + 1, total + b.at(weights, [at[0], c])]

        def short(c: Scalar, total: Scalar) -> Scalar:
            return m.logical_and(c < b.idx(classes), total <= goal)

        (c, _) = b.while_([b.idx(0), m.scalar(0.0, F64)], short, reached)
        return [b.put(m.cast(m.cast(c - 1, np.dtype(np.int64)), dtype), out, at)]

    return b.nest([batch, samples], [b.blank([batch, samples], dtype)], draw)[0]


@op("Dropout")
def dropout_old(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """Before opset 7: training unless `is_test`."""
    if node.attr("is_test", 0):
        return [x, _ones(b, x, x.dtype)]
    ratio, training = Tensor.known(node.attr("ratio", 0.5), np.float32), Tensor.known(True)
    y, mask = _dropped(b, node, x, ratio, training)
    return [y, b.cast(mask, x.dtype)]


@op("Dropout", since=7)
def dropout_inference(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """Opsets 7 to 11: the identity."""
    return [x, _ones(b, x, BOOL if node.version >= 10 else x.dtype)]


@op("Dropout", since=12)
def dropout(
    b: Builder, node: Node, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None
) -> list[Tensor]:
    """The identity, or in training mode x / (1 - ratio) where a random number is not below the ratio, else 0."""
    if training is None or (training.is_known and not training.numpy().any()):
        return [x, _ones(b, x, BOOL)]
    ratio = Tensor.known(0.5, np.float32) if ratio is None else ratio
    return list(_dropped(b, node, x, ratio, training))


def _ones(b: Builder, x: Tensor, dtype: np.dtype) -> Tensor:
    return b.broadcast(Tensor.known(1, dtype), x.shape)


def _dropped(b: Builder, node: Node, x: Tensor, ratio: Tensor, training: Tensor) -> tuple[Tensor, Tensor]:
    ratio, training = (t if t.rank == 0 else b.reshape(t, ()) for t in (ratio, training))
    u = b.reshape(uniforms(b, prod(x.shape), _seed(node)), x.shape)
    share = b.cast(ratio, F64)
    mask = b.elementwise(lambda m, u, r, t: m.logical_or(u >= r, m.logical_not(t)), u, share, training, dtype=BOOL)
    scale = b.elementwise(lambda m, r, t: m.where(t, 1.0 / (1.0 - r), 1.0), share, training)
    scale = b.cast(scale, x.dtype)
    y = b.elementwise(lambda m, x, s, k: m.where(k, x * s, 0.0), x, scale, mask)
    return y, mask
