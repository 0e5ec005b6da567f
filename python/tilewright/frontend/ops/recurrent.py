# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LSTM: the input's projection is one matrix product before the loop over time; the state is carried by scf.for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.mlir import ir

from ..emit import Space
from ..registry import Builder, Node, op
from ..tensor import Tensor
from .elementwise import _PARAMETRIC, _UNARY
from .movement import part

_DEFAULTS = ("Sigmoid", "Tanh", "Tanh")
_PLAIN = {"affine": lambda m, x: x, **{name.lower(): body for name, body in _UNARY.items()}}


@dataclass(frozen=True)
class _Cell:
    """Parameters of one direction."""

    weights: Tensor  # [4h, inputs], gates in ONNX's order: input, output, forget, cell
    recurrent: Tensor  # [4h, h]
    bias: Tensor | None  # [4h]
    peepholes: Tensor | None  # [3h]: input, output, forget
    activations: tuple[Callable, ...]
    clip: float | None
    coupled: bool  # forget gate = 1 - input gate
    reverse: bool


def _activations(node: Node, count: int) -> list[Callable]:
    names = node.attr("activations") or list(_DEFAULTS) * count
    if node.attr("activation_alpha") or node.attr("activation_beta"):
        node.unsupported("activation_alpha and activation_beta")
    return [_activation(node, name.lower()) for name in names]


def _activation(node: Node, name: str) -> Callable:
    if name in _PLAIN:
        return _PLAIN[name]
    for known, (defaults, body) in _PARAMETRIC.items():
        if known.lower() == name:
            return lambda m, x: body(m, x, *defaults.values())
    return node.unsupported(f"the activation {name}")


def _cells(b: Builder, node: Node, w: Tensor, r: Tensor, bias: Tensor | None, p: Tensor | None) -> list[_Cell]:
    direction = node.attr("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    functions = _activations(node, count)
    cells = []
    for d in range(count):
        cells.append(
            _Cell(
                weights=_of_direction(b, w, d),
                recurrent=_of_direction(b, r, d),
                bias=None if bias is None else _summed(b, _of_direction(b, bias, d)),
                peepholes=None if p is None else _of_direction(b, p, d),
                activations=tuple(functions[3 * d : 3 * d + 3]),
                clip=node.attr("clip"),
                coupled=bool(node.attr("input_forget", 0)),
                reverse=direction == "reverse" or d == 1,
            )
        )
    return cells


def _of_direction(b: Builder, x: Tensor, direction: int) -> Tensor:
    return part(b, x, 0, direction, 1).squeeze([0])


def _summed(b: Builder, bias: Tensor) -> Tensor:
    """The biases of input and state enter as a sum."""
    half = bias.shape[0] // 2
    return b.elementwise(lambda m, u, v: u + v, part(b, bias, 0, 0, half), part(b, bias, 0, half, half))


def _project(b: Builder, x: Tensor, cell: _Cell) -> Tensor:
    """[time, batch, inputs] to [time, batch, 4h], bias included."""
    space = Space([*x.shape[:2], cell.weights.shape[0], x.shape[2]], frozenset([3]))
    y = b.contract(space, (x, [0, 1, 3]), (cell.weights, [2, 3]), [0, 1, 2])
    return y if cell.bias is None else b.elementwise(lambda m, y, v: y + v, y, cell.bias)


def _state(b: Builder, given: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """The initial state in a buffer of its own, in natural order."""
    if given is None:
        given = Tensor.known(np.broadcast_to(np.float32(0), shape))
    return b.elementwise(
        lambda m, v: v, given, order=[0, 1], into=b.empty([n for n in shape if n != 1] or [1], given.dtype)
    )


class _Step:
    """One step of the loop, built at the insertion point inside it."""

    def __init__(self, b: Builder, cell: _Cell, hidden: int) -> None:
        self.b, self.cell, self.hidden = b, cell, hidden

    def gates(self, row: Tensor, h: Tensor) -> list[Tensor]:
        """Pre-activations of the four gates: the projected input plus h times the recurrent weights."""
        b, hidden = self.b, self.hidden
        space = Space([row.shape[0], 4 * hidden, hidden], frozenset([2]))
        product = b.contract(space, (h, [0, 2]), (self.cell.recurrent, [1, 2]), [0, 1])
        total = b.elementwise(lambda m, x, y: x + y, row, product)
        return [part(b, total, 1, gate * hidden, hidden) for gate in range(4)]

    def _bounded(self, m, x):
        return x if self.cell.clip is None else m.minimum(m.maximum(x, -self.cell.clip), self.cell.clip)

    def _weighted(self) -> list[Tensor]:
        p = self.cell.peepholes
        return [] if p is None else [part(self.b, p, 0, i * self.hidden, self.hidden) for i in range(3)]

    def cell_state(self, i: Tensor, f: Tensor, g: Tensor, c: Tensor) -> Tensor:
        """f * c + i * g."""
        first, second, _ = self.cell.activations
        coupled = self.cell.coupled

        def body(m, i, f, g, c, *p):
            i = first(m, self._bounded(m, i + p[0] * c if p else i))
            f = 1.0 - i if coupled else first(m, self._bounded(m, f + p[2] * c if p else f))
            return f * c + i * second(m, self._bounded(m, g))

        return self.b.elementwise(body, i, f, g, c, *self._weighted())

    def output(self, o: Tensor, c: Tensor, target: Tensor) -> Tensor:
        """o * tanh(c), in the place of the old state."""
        first, _, third = self.cell.activations

        def body(m, o, c, *p):
            return first(m, self._bounded(m, o + p[1] * c if p else o)) * third(m, c)

        return self.b.elementwise(body, o, c, *self._weighted(), order=[0, 1], into=target.data)


def _loop(b: Builder, steps: int, carried: list[ir.Value], body: Callable) -> list[ir.Value]:
    """scf.for from 0 to steps; body(index, *carried) returns the next values."""
    bounds = [b.index(0), b.index(steps), b.index(1)]
    kinds = [v.type for v in carried]
    loop = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *carried], regions=1)
    block = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get(), *kinds])
    with ir.InsertionPoint(block):
        ir.Operation.create("scf.yield", operands=body(*block.arguments))
    return list(loop.results)


def _row(b: Builder, x: Tensor, at: ir.Value) -> Tensor:
    """x[at] of a stored tensor, without its first dimension."""
    extents = [1 if d in (None, 0) else x.shape[d] for d in x.dims]
    data = b.extract(x.data, [at if d == 0 else 0 for d in x.dims], extents)
    kept = tuple(d - 1 for d in x.dims if d is not None and d > 0 and x.shape[d] != 1)
    return Tensor(x.dtype, x.shape[1:], data, kept or (None,))


def _run(b: Builder, x: Tensor, cell: _Cell, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One direction: all outputs [time, batch, h], the last h and c [batch, h]."""
    steps, hidden = x.shape[0], h.shape[1]
    projected = b.stored(b.ordered(_project(b, x, cell)))
    dims = [d for d in (0, 1, 2) if (steps, *h.shape)[d] != 1] or [2]
    outputs = b.empty([(steps, *h.shape)[d] for d in dims], x.dtype)
    step = _Step(b, cell, hidden)

    def body(index, h_value, c_value, y_value):
        old_h, old_c = (Tensor(x.dtype, h.shape, v, s.dims) for v, s in ((h_value, h), (c_value, c)))
        at = b.op("arith.subi", [b.index(steps - 1), index], ir.IndexType.get()) if cell.reverse else index
        i, o, f, g = step.gates(_row(b, projected, at), old_h)
        new_c = step.cell_state(i, f, g, old_c)
        new_h = step.output(o, new_c, old_h)
        kept_c = b.elementwise(lambda m, v: v, new_c, order=[0, 1], into=c_value)
        y = b.write(new_h.unsqueeze([0]), y_value, dims, [at if d == 0 else 0 for d in dims])
        return [new_h.data, kept_c.data, y]

    results = _loop(b, steps, [h.data, c.data, outputs], body)
    y = Tensor(x.dtype, (steps, *h.shape), results[2], tuple(dims))
    last_h, last_c = (Tensor(x.dtype, h.shape, v, s.dims) for v, s in zip(results, (h, c), strict=False))
    return y, last_h, last_c


def _check_ranks(node: Node, x: Tensor, w: Tensor, r: Tensor) -> None:
    directions = 2 if node.attr("direction", "forward") == "bidirectional" else 1
    fits = x.rank == w.rank == r.rank == 3 and w.shape[2] == x.shape[2] and w.shape[0] == r.shape[0] == directions
    if not fits or w.shape[1] != r.shape[1] or r.shape[1] != 4 * r.shape[2]:
        shapes = ", ".join(str(list(v.shape)) for v in (x, w, r))
        node.wrong(f"input, weights and recurrent weights do not fit ({directions} directions): {shapes}")


def _check_lengths(node: Node, lengths: Tensor | None, steps: int) -> None:
    if lengths is not None and any(n != steps for n in node.ints(lengths, "sequence_lens")):
        node.unsupported("sequences of different lengths (sequence_lens)")


@op("LSTM", since=7)
def lstm(
    b: Builder,
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> list[Tensor]:
    """Forward, reverse or bidirectional, with initial states, peepholes, clip, coupled gates, either layout."""
    _check_ranks(node, x, w, r)
    batch_first = bool(node.attr("layout", 0))
    if batch_first:
        x = x.transpose([1, 0, 2])
        initial_h, initial_c = (s if s is None else s.transpose([1, 0, 2]) for s in (initial_h, initial_c))
    _check_lengths(node, lengths, x.shape[0])
    shape = (x.shape[1], r.shape[2])
    runs = []
    for d, cell in enumerate(_cells(b, node, w, r, bias, peepholes)):
        starts = [s if s is None else _of_direction(b, s, d) for s in (initial_h, initial_c)]
        h, c = (_state(b, s, shape) for s in starts)
        runs.append(_run(b, x, cell, h, c))
    y = b.concat([run[0].unsqueeze([1]) for run in runs], 1)
    h, c = (b.concat([run[i].unsqueeze([0]) for run in runs], 0) for i in (1, 2))
    if batch_first:
        return [y.transpose([2, 0, 1, 3]), h.transpose([1, 0, 2]), c.transpose([1, 0, 2])]
    return [y, h, c]
