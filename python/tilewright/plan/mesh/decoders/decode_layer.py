# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer of a decoder for one token on a mesh, with its cache (WaferLLM, OSDI 2025, section 4.2).

The token's features are cut along y and replicated along x; products of the vector with matrices alternate between the
axes, so that nothing is transposed. Ten allreduces: norm, queries with keys and values, scores, the maximum and the sum
of the softmax, values, output, norm, up with gate, down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import allreduce, allreduce_groups
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.decoder_kernels import (
    Add,
    HeadDivide,
    HeadExponentials,
    HeadPeak,
    HeadScores,
    HeadValues,
    Normalize,
    Rotate,
    Squares,
    SwiGLU,
)
from tilewright.plan.mesh.kernels import VecMat
from tilewright.plan.mesh.kv_cache import Cache, append_to
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line, Scheme
from tilewright.plan.mesh.terms import Term, X, Y
from tilewright.plan.mesh.writer import Axis, Combine, Writer, slot
from tilewright.sim.coremesh.program import Program, Slot


@dataclass(frozen=True)
class DecodeLayer:
    """A layer at work on a token.

    Attributes:
        cache: of keys and of values: as wide as all heads' queries in the columns of the grid.
        length: tokens in the cache before this one.
        schemes: of the allreduces along y and along x.
    """

    decoder: Decoder
    cache: Cache
    length: int
    schemes: tuple[Scheme, Scheme] = (Scheme(), Scheme())

    def __post_init__(self) -> None:
        if any(scheme.kind == "ring" for scheme in self.schemes):
            raise UserError("Vectors of a decoder are too short to be cut: take a chain, a tree or a K-tree, no ring.")
        wide = self.cache.width * self.decoder.slice(self.cache.width)
        if self.cache.features != wide:
            raise UserError(
                f"A cache of {self.cache.width} columns for this decoder has {wide} features a token, not "
                f"{self.cache.features}."
            )


def decode_layer(what: DecodeLayer) -> Program:
    """The program of a layer; its output ``y`` [width] lies as the input ``x``.

    Inputs, besides ``x`` [width] and the weights ``norm1``, ``norm2`` [width]: ``qkv`` [width, ...] and ``up_gate``
    [width, ...], each weights side by side (`decoder.side_by_side`), ``o`` [features of the cache, width], ``down``
    [hidden, width]; ``cos`` and ``sin`` of the token [features / 2]; the caches ``k`` and ``v`` as `kv_cache.append`
    has them, and ``mask`` as `attention.mask` for ``length + 1`` tokens. The caches are outputs, too.
    """
    state = _Layer(what)
    x = state.vector("x")
    attended = state.attend(state.norm(x, "norm1"))
    x = state.add(state.product(attended, "o", "x", state.features, state.rows), x)
    both = state.product(state.norm(x, "norm2"), "up_gate", "y", state.rows, 2 * state.inner)
    gated = state.tile("gated", state.inner, what.decoder.dtype)
    state.writer.compute(ALL, SwiGLU(what.decoder.dtype), (both,), (gated,))
    x = state.add(state.product(gated, "down", "x", state.inner, state.rows), x)
    state.writer.output("y", (what.decoder.width,), x, (Y,), "linear")
    return state.writer.program()


class _Layer:
    """The program while it is written."""

    def __init__(self, what: DecodeLayer) -> None:
        self.what, self.decoder, cache = what, what.decoder, what.cache
        self.writer = Writer("decode_layer", cache.height, cache.width)
        self.rows = -(-self.decoder.width // cache.height)
        self.inner = -(-self.decoder.hidden // cache.width)
        self.features = self.decoder.slice(cache.width)
        self.heads = self.decoder.heads_in(cache.width)

    def tile(self, name: str, size: int, dtype: np.dtype) -> Slot:
        """A vector in each core."""
        return slot(self.writer.buffer(name, (size,), dtype))

    def vector(self, name: str) -> Slot:
        """An input cut along y."""
        home = self.tile(name, self.rows, self.decoder.dtype)
        self.writer.input(name, (self.decoder.width,), home, (Y,), "linear")
        return home

    def everywhere(self, axis: Axis, at: Slot, combine: Combine = "add") -> None:
        """An allreduce."""
        allreduce([Line(self.writer, axis, at, combine)], [self.what.schemes[0 if axis == "y" else 1]])

    def norm(self, x: Slot, name: str) -> Slot:
        """RMSNorm."""
        decoder, weight = self.decoder, self.vector(name)
        total = self.tile("squares", 1, decoder.accumulator)
        self.writer.compute(ALL, Squares(decoder.accumulator), (x,), (total,))
        self.everywhere("y", total)
        done = self.tile("normal", self.rows, decoder.dtype)
        kernel = Normalize(decoder.dtype, decoder.width, decoder.eps)
        self.writer.compute(ALL, kernel, (x, total, weight), (done,))
        return done

    def product(self, vector: Slot, name: str, axis: Axis, inputs: int, outputs: int) -> Slot:
        """The vector, cut along ``axis``, times a matrix; the result is cut along the other one."""
        decoder, cache = self.decoder, self.what.cache
        home = slot(self.writer.buffer(name, (inputs, outputs), decoder.dtype))
        along, across, lengths = (
            (Y, X, (cache.height, cache.width)) if axis == "y" else (X, Y, (cache.width, cache.height))
        )
        shape = (lengths[0] * inputs, lengths[1] * outputs)
        self._matrix(name, shape, home, (along, across))
        total = self.tile(f"{name}_sum", outputs, decoder.accumulator)
        self.writer.compute(ALL, VecMat(decoder.accumulator), (vector, home), (total,))
        self.everywhere(axis, total)
        return total

    def _matrix(self, name: str, shape: tuple[int, int], home: Slot, block: tuple[Term, Term]) -> None:
        """Rows and columns that a model has, the rest padded."""
        width, hidden = self.decoder.width, self.decoder.hidden
        rows = {"qkv": width, "up_gate": width, "o": shape[0], "down": hidden}[name]
        columns = width if name in ("o", "down") else shape[1]
        self.writer.input(name, (rows, columns), home, block, "linear")

    def add(self, total: Slot, residual: Slot) -> Slot:
        """The residual sum."""
        home = self.tile("x", self.rows, self.decoder.dtype)
        self.writer.compute(ALL, Add(), (total, residual), (home,))
        return home

    def attend(self, x: Slot) -> Slot:
        """Queries, keys, values; the cache grows; softmax over its tokens."""
        writer, cache = self.writer, self.what.cache
        query, key, value = self._rotated(self.product(x, "qkv", "y", self.rows, 3 * self.features))
        homes = []
        for name, fresh in (("k", key), ("v", value)):
            home = writer.buffer(name, (1, self.features), cache.dtype, cache.slots)
            homes.append([slot(home, at) for at in range(cache.slots)])
            for put in (writer.input, writer.output):
                for at, one in enumerate(homes[-1]):
                    shape = (cache.height * cache.slots, cache.features)
                    put(name, shape, one, (Y * cache.slots + at, X), "linear")
            append_to(writer, cache, home, fresh, self.what.length)
        hidden = self.tile("mask", cache.slots, np.dtype(np.float32))
        writer.input("mask", (cache.height * cache.slots,), hidden, (Y,), "linear")
        return self._softmax(query, homes[0], homes[1], hidden)

    def _rotated(self, whole: Slot) -> tuple[Slot, str, str]:
        writer, decoder, cache = self.writer, self.decoder, self.what.cache
        tables = []
        for name in ("cos", "sin"):
            tables.append(self.tile(name, self.features // 2, np.dtype(np.float32)))
            writer.input(name, (cache.features // 2,), tables[-1], (X,), "linear")
        query = self.tile("q", self.features, decoder.dtype)
        fresh = [writer.buffer(f"{name}_new", (1, self.features), cache.dtype) for name in ("k", "v")]
        for number, home in enumerate((query, *map(slot, fresh))):
            kind = decoder.dtype if number == 0 else np.dtype(cache.dtype)
            shape = (self.features,) if number == 0 else (1, self.features)
            kernel = Rotate(number * self.features, number < 2, kind, shape)
            writer.compute(ALL, kernel, (whole, *(tables if number < 2 else [])), (home,))
        return query, fresh[0], fresh[1]

    def _softmax(self, query: Slot, keys: list[Slot], values: list[Slot], hidden: Slot) -> Slot:
        writer, decoder, kind, heads = self.writer, self.decoder, self.decoder.accumulator, self.heads
        scores = self.tile("scores", heads * len(keys), kind)
        peak, total = (self.tile(name, heads, kind) for name in ("peak", "total"))
        out = self.tile("out", self.features, kind)
        writer.compute(ALL, HeadScores(heads, decoder.head**-0.5, kind), (query, *keys), (scores,))
        if decoder.heads == 1:
            self.everywhere("x", scores)
        elif decoder.heads < self.what.cache.width:
            allreduce_groups(Line(writer, "x", scores), decoder.heads)
        writer.compute(ALL, HeadPeak(heads), (scores, hidden), (peak,))
        self.everywhere("y", peak, "max")
        writer.compute(ALL, HeadExponentials(heads), (scores, hidden, peak), (scores, total))
        self.everywhere("y", total)
        writer.compute(ALL, HeadValues(heads, kind), (scores, *values), (out,))
        self.everywhere("y", out)
        done = self.tile("attended", self.features, decoder.dtype)
        writer.compute(ALL, HeadDivide(decoder.dtype), (out, total), (done,))
        return done
