# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer of a decoder for a whole prompt on a mesh (WaferLLM, OSDI 2025, section 4.1).

Tokens are cut along y and features along x, weights along both; nothing is replicated. Products are MeshGEMM, scores
dist-GEMM-T; norms and the softmax add up along x. All layouts coincide, so that residual sums and gates are local.
Products that share an operand align it once; weights come aligned from the host.

A layer that is followed by tokens on a smaller grid (``then``) leaves its weights, and what it cached, there: each core
keeps its new rows of a matrix as the rings of the products bring them by, and then columns travel along x, of all
matrices side by side (WaferLLM's transition, section 4.4). Products by ``o`` and ``down`` are dist-GEMM-T in such a
layer, which wants these weights with their axes exchanged, as a token's layer does; so nothing is transposed.

Several heads take turns, each on all cores, with queries of its columns alone: exact, at a cost per head. WaferLLM's
released kernels, and so its times, have one head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.decoder_kernels import (
    Add,
    Mask,
    Normalize,
    Rotate,
    RowDivide,
    RowExponentials,
    RowPeak,
    Squares,
    SwiGLU,
)
from tilewright.plan.mesh.decoders.matrices import matrices
from tilewright.plan.mesh.kernels import Fill, Store
from tilewright.plan.mesh.moves.line_move import PassingBy, move_together
from tilewright.plan.mesh.product import ALL, Accumulator, Product
from tilewright.plan.mesh.reduction import Line, Scheme
from tilewright.plan.mesh.shifting.rotation import Passing, Rotation, align, slots
from tilewright.plan.mesh.shifting.shifted_product import compute_shift
from tilewright.plan.mesh.terms import X, Y, at_least, less
from tilewright.plan.mesh.transposed_product import transposed_rounds
from tilewright.plan.mesh.writer import Combine, Writer, cores, slot
from tilewright.sim.coremesh.program import Program, Slot


@dataclass(frozen=True)
class PrefillLayer:
    """A layer at work on a prompt.

    Attributes:
        side: of the square grid.
        tokens: of the prompt.
        scheme: of the allreduces along x.
        then: side of the grid of the tokens after it, at the first core; None: nothing moves.
    """

    decoder: Decoder
    side: int
    tokens: int
    scheme: Scheme = Scheme("k_tree", 1)
    then: int | None = None

    def __post_init__(self) -> None:
        if min(self.side, self.tokens) < 1:
            raise UserError(f"A prefill needs cores and tokens; there are {self.side} rows and {self.tokens} tokens.")
        if self.scheme.kind == "ring":
            raise UserError("Statistics of rows are too short to be cut: take a chain, a tree or a K-tree, no ring.")
        if self.side % self.decoder.heads:
            raise UserError(
                f"{self.decoder.heads} heads do not fit {self.side} columns of cores: each takes as many whole "
                f"columns. Take a multiple of {self.decoder.heads}."
            )
        self.decoder.slice(self.side)
        if self.then is not None and not 1 <= self.then <= self.side:
            raise UserError(
                f"Layers move from {self.side} x {self.side} cores to {self.then} x {self.then}: the second grid must "
                "be a square within the first."
            )


def prefill_layer(what: PrefillLayer, *, travel: bool = True) -> Program:
    """The program of a layer; ``x`` and ``y`` [tokens, width], in plain blocks along the folded rings.

    Inputs, besides ``x``, ``norm1`` and ``norm2`` [width]: weights ``q``, ``k``, ``v`` [width, features], where
    features are padded to as many as the columns have (`Decoder.slice`), ``o`` [features, width], ``up``, ``gate``,
    ``down``; ``cos`` and ``sin`` [tokens, features / 2]; ``rows`` and ``columns`` [tokens]: 1, 2, 3, ... as numbers.
    Outputs ``k`` and ``v`` [tokens, features] are what the cache holds then.

    With ``then``, further outputs lie in blocks of that grid, as cores stand: ``next q`` and so on, weights without
    their padding, and ``next cached k``, ``next cached v`` [tokens, width].

    Args:
        travel: with ``then``, columns travel; else they stay where they are, and those outputs are left out: the layer
            by itself, for its time.
    """
    layer = _Layer(what)
    decoder, writer = what.decoder, layer.writer
    last = layer.turned if what.then else layer.products
    x = layer.tensor("x", (what.tokens, decoder.width), (layer.rows, layer.width))
    names = {"q": layer.features, "k": layer.features, "v": layer.features}
    query, key, value = layer.rotated(layer.products(layer.norm(x, "norm1"), layer.width, names))
    x = layer.add(last(layer.attend(query, key, value), layer.features, {"o": layer.width})[0], x)
    up, gate = layer.products(layer.norm(x, "norm2"), layer.width, {"up": layer.inner, "gate": layer.inner})
    gated = layer.operand("gated", layer.inner)
    writer.compute(ALL, SwiGLU(decoder.dtype), (up, gate), (gated.at(0),))
    x = layer.add(last(gated, layer.inner, {"down": layer.width})[0], x)
    writer.output("y", (what.tokens, decoder.width), x, (Y, X), "ring")
    layer.move_on(travel)
    return writer.program()


class _Layer:
    """The program while it is written."""

    def __init__(self, what: PrefillLayer) -> None:
        self.what, self.decoder, side = what, what.decoder, what.side
        self.writer = Writer("prefill_layer", side, side)
        self.rows, self.width = -(-what.tokens // side), -(-self.decoder.width // side)
        self.features, self.inner = self.decoder.slice(side), -(-self.decoder.hidden // side)
        self._sizes = {"o": self.decoder.width, "down": self.decoder.width}
        self._sizes |= {name: self.decoder.hidden for name in ("up", "gate")}
        self._matrices = matrices(self.decoder, what.tokens, (side, what.then)) if what.then else {}
        self._kept: dict[str, PassingBy] = {}

    def tensor(self, name: str, shape: tuple[int, int], tile: tuple[int, int]) -> Slot:
        """An input cut along both axes."""
        home = slot(self.writer.buffer(name, tile, self.decoder.dtype))
        self.writer.input(name, shape, home, (Y, X), "ring")
        return home

    def tile(self, name: str, shape: tuple[int, ...], dtype: np.dtype | None = None) -> Slot:
        """Memory of each core."""
        return slot(self.writer.buffer(name, shape, dtype or self.decoder.dtype))

    def operand(self, name: str, features: int) -> Rotation:
        """Memory for what goes round along x: [tokens, features]."""
        shape = self.rows, features
        buffer = self.writer.buffer(name, shape, self.decoder.dtype, slots(self.what.side, 1))
        return Rotation(buffer, "x", "ring", self.what.side, 1)

    def across(self, at: Slot, combine: Combine = "add") -> None:
        """An allreduce along x."""
        allreduce([Line(self.writer, "x", at, combine)], [self.what.scheme])

    def norm(self, x: Slot, name: str) -> Rotation:
        """RMSNorm, as an operand."""
        decoder = self.decoder
        weight = self.tile(name, (self.width,))
        self.writer.input(name, (decoder.width,), weight, (X,), "ring")
        total = self.tile("squares", (self.rows,), decoder.accumulator)
        self.writer.compute(ALL, Squares(decoder.accumulator), (x,), (total,))
        self.across(total)
        done = self.operand("normal", self.width)
        kernel = Normalize(decoder.dtype, decoder.width, decoder.eps)
        self.writer.compute(ALL, kernel, (x, total, weight), (done.at(0),))
        return done

    def products(self, left: Rotation, summed: int, names: dict[str, int]) -> list[Slot]:
        """An operand times weights, each as wide as it says per core; the operand is aligned once."""
        side = self.what.side
        rights = []
        for name, wide in names.items():
            buffer = self.writer.buffer(name, (summed, wide), self.decoder.dtype, slots(side, 1))
            rights.append(Rotation(buffer, "y", "ring", side, 1))
            self.writer.input(name, self._shape(name, summed, wide), rights[-1].at(0), ((Y + X) % side, X), "ring")
        (left,) = align(self.writer, [(left, 1)])
        found = []
        for number, (right, wide) in enumerate(zip(rights, names.values(), strict=True)):
            total = Accumulator(self.writer, self._product(summed, wide), "ring")
            keep = self._passing(list(names)[number])
            left = compute_shift(self.writer, total, left, right, side, home=number < len(rights) - 1, keep=keep)
            found.append(slot(total.rounded()))
        return found

    def turned(self, left: Rotation, summed: int, names: dict[str, int]) -> list[Slot]:
        """An operand times weights that lie with their axes exchanged; it is not aligned."""
        side, found = self.what.side, []
        for name, wide in names.items():
            buffer = self.writer.buffer(name, (summed, wide), self.decoder.dtype, slots(side, 1))
            right = Rotation(buffer, "y", "ring", side, 1)
            self.writer.input(name, self._shape(name, summed, wide), right.at(0), (X, Y), "ring")
            product, keep = self._product(summed, wide), self._passing(name)
            found.append(transposed_rounds(self.writer, product, left.at(0), right, keep, turned_tiles=True))
        return found

    def _passing(self, name: str, head: int = 0) -> Passing | None:
        """What becomes of a matrix that goes round: its new rows are kept, once."""
        if head or name not in self._matrices:
            return None
        matrix = self._matrices[name]
        self._kept[name] = PassingBy(self.writer, matrix.along_y, matrix.before, self.decoder.dtype)
        return self._kept[name].keep

    def move_on(self, travel: bool) -> None:
        """Everything that was kept is cut to its new rows, and goes to its columns on the next grid."""
        moving = [(self._matrices[name].along_x, kept.cut()) for name, kept in self._kept.items()]
        if not travel:
            return
        for name, home in zip(self._kept, move_together(self.writer, moving), strict=True):
            matrix = self._matrices[name]
            self.writer.output(f"next {name}", matrix.shape, slot(home), (X, Y) if matrix.turned else (Y, X), "linear")

    def _product(self, summed: int, wide: int) -> Product:
        side, decoder = self.what.side, self.decoder
        sizes = (self.rows * side, summed * side, wide * side)
        return Product(*sizes, side, side, decoder.dtype, decoder.accumulator, decoder.dtype)

    def _shape(self, name: str, summed: int, wide: int) -> tuple[int, int]:
        """Rows and columns that the model has; those of heads are padded."""
        padded = self.what.side * summed if name == "o" else self.decoder.width
        rows = self.decoder.hidden if name == "down" else padded
        return rows, self._sizes.get(name, self.what.side * wide)

    def add(self, total: Slot, residual: Slot) -> Slot:
        """The residual sum."""
        home = self.tile("x", (self.rows, self.width))
        self.writer.compute(ALL, Add(), (total, residual), (home,))
        return home

    def rotated(self, parts: list[Slot]) -> list[Slot]:
        """Queries and keys by their positions; keys and values are outputs."""
        shape, tokens, side = (self.rows, self.features), self.what.tokens, self.what.side
        tables = []
        for name in ("cos", "sin"):
            tables.append(self.tile(name, (self.rows, self.features // 2), np.dtype(np.float32)))
            self.writer.input(name, (tokens, side * self.features // 2), tables[-1], (Y, X), "ring")
        for part in parts[:2]:
            self.writer.compute(ALL, Rotate(0, True, self.decoder.dtype, shape), (part, *tables), (part,))
        for name, part in zip(("k", "v"), parts[1:], strict=True):
            self.writer.output(name, (tokens, side * self.features), part, (Y, X), "ring")
        return parts

    def attend(self, query: Slot, key: Slot, value: Slot) -> Rotation:
        """Softmax of scores times values, head by head."""
        rows, columns = (self.tile(name, (self.rows,), np.dtype(np.float32)) for name in ("rows", "columns"))
        self.writer.input("rows", (self.what.tokens,), rows, (Y,), "ring")
        self.writer.input("columns", (self.what.tokens,), columns, (X,), "ring")
        done = self.operand("attended", self.features)
        for head in range(self.decoder.heads):
            weights = self._softmax(self._scores(self._of_head(query, head), key, head), rows, columns)
            self._keep(head, self._weighted(weights, value, head), done.at(0))
        return done

    def _of_head(self, query: Slot, head: int) -> Slot:
        """Queries, 0 in the columns of other heads."""
        if self.decoder.heads == 1:
            return query
        shape = (self.rows, self.features)
        masked = self.tile("q_head", shape)
        self.writer.compute(ALL, Fill(shape, self.decoder.dtype), (), (masked,))
        self._keep(head, query, masked)
        return masked

    def _keep(self, head: int, source: Slot, target: Slot) -> None:
        """Copy in the columns of a head."""
        wide = self.what.side // self.decoder.heads
        here = cores(at_least(X, head * wide), less(X, (head + 1) * wide), order="ring")
        self.writer.compute(here, Store(), (source,), (target,))

    def _scores(self, query: Slot, key: Slot, head: int) -> Slot:
        """Each head takes a copy of the keys round; those themselves stay."""
        side = self.what.side
        buffer = self.writer.buffer("k_round", (self.rows, self.features), self.decoder.dtype, slots(side, 1))
        right = Rotation(buffer, "y", "ring", side, 1)
        self.writer.compute(ALL, Store(), (key,), (right.at(0),))
        sizes = (self.rows * side, self.features * side, self.rows * side)
        product = Product(*sizes, side, side, self.decoder.dtype, self.decoder.accumulator)
        return transposed_rounds(self.writer, product, query, right, self._passing("cached k", head))

    def _softmax(self, scores: Slot, rows: Slot, columns: Slot) -> Rotation:
        writer, decoder = self.writer, self.decoder
        peak, total = (self.tile(name, (self.rows,), decoder.accumulator) for name in ("peak", "total"))
        work = self.tile("scores", (self.rows, self.rows), decoder.accumulator)
        writer.compute(ALL, Store(decoder.accumulator), (scores,), (work,))
        writer.compute(ALL, Mask(decoder.head**-0.5), (work, rows, columns), (work,))
        writer.compute(ALL, RowPeak(), (work,), (peak,))
        self.across(peak, "max")
        writer.compute(ALL, RowExponentials(), (work, peak), (work, total))
        self.across(total)
        done = self.operand("weights", self.rows)
        writer.compute(ALL, RowDivide(decoder.dtype), (work, total), (done.at(0),))
        return done

    def _weighted(self, weights: Rotation, value: Slot, head: int) -> Slot:
        """Both operands were made on the chip: both are aligned, side by side; a copy of the values goes round."""
        side = self.what.side
        buffer = self.writer.buffer("v_round", (self.rows, self.features), self.decoder.dtype, slots(side, 1))
        right = Rotation(buffer, "y", "ring", side, 1)
        self.writer.compute(ALL, Store(), (value,), (right.at(0),))
        left, right = align(self.writer, [(weights, 1), (right, 1)])
        total = Accumulator(self.writer, self._product(self.rows, self.features), "ring")
        keep = self._passing("cached v", head)
        compute_shift(self.writer, total, left, right, side, home=False, keep=keep)
        return slot(total.rounded())
