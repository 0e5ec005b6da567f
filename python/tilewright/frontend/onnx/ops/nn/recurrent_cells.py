# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One step of RNN, GRU and LSTM: from a row of projected inputs and the states to the next states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node
from tilewright.mlir import ir

Activation = Callable[..., Any]  # (m, element) -> element
Places = Sequence[ir.Value | None]  # where the next states are written


def _sigmoid(m, x):
    return 1.0 / (1.0 + m.exp(-x))


# Activations by lower-case name: defaults of alpha and beta, and the body as (m, x, *those).
_ACTIVATIONS: dict[str, tuple[tuple[float, ...], Activation]] = {
    "relu": ((), lambda m, x: m.maximum(x, 0.0)),
    "tanh": ((), lambda m, x: m.tanh(x)),
    "sigmoid": ((), _sigmoid),
    "softsign": ((), lambda m, x: x / (1.0 + m.absolute(x))),
    "softplus": ((), lambda m, x: m.maximum(x, 0.0) + m.log(1.0 + m.exp(-m.absolute(x)))),
    "affine": ((1.0, 0.0), lambda m, x, a, b: x * a + b),
    "leakyrelu": ((0.01,), lambda m, x, a: m.where(x < 0.0, x * a, x)),
    "thresholdedrelu": ((1.0,), lambda m, x, a: m.where(x > a, x, 0.0)),
    "scaledtanh": ((1.0, 1.0), lambda m, x, a, b: m.tanh(x * b) * a),
    "hardsigmoid": ((0.2, 0.5), lambda m, x, a, b: m.minimum(m.maximum(x * a + b, 0.0), 1.0)),
    "elu": ((1.0,), lambda m, x, a: m.where(x < 0.0, (m.exp(x) - 1.0) * a, x)),
}


def activations(node: Node, defaults: Sequence[str], directions: int) -> list[tuple[Activation, ...]]:
    """The functions of each direction. alpha and beta go, in order, to those functions that have them."""
    names = [name.lower() for name in node.attr("activations") or defaults]
    if len(names) == len(defaults):
        names = names * directions
    if len(names) != len(defaults) * directions:
        node.wrong(f"{len(names)} activations for {directions} directions of {len(defaults)} each")
    given = [iter(node.attr(name) or ()) for name in ("activation_alpha", "activation_beta")]
    functions = [_activation(node, name, given) for name in names]
    return [tuple(functions[d * len(defaults) : (d + 1) * len(defaults)]) for d in range(directions)]


def _activation(node: Node, name: str, given: Sequence[Iterator[float]]) -> Activation:
    if name not in _ACTIVATIONS:
        node.wrong(f"there is no activation {name}; use one of {', '.join(sorted(_ACTIVATIONS))}")
    defaults, body = _ACTIVATIONS[name]
    values = [next(rest, default) for default, rest in zip(defaults, given, strict=False)]
    return lambda m, x: body(m, x, *values)


@dataclass(frozen=True)
class Parameters:
    """What one direction of a recurrent node is given; biases and peepholes may be absent."""

    weights: Tensor  # [gates * hidden, inputs]
    recurrent: Tensor  # [gates * hidden, hidden]
    bias: Tensor | None  # [gates * hidden], of the inputs
    recurrent_bias: Tensor | None
    peepholes: Tensor | None  # [3 * hidden]: input, output, forget
    functions: tuple[Activation, ...]
    clip: float | None

    def with_summed_bias(self, b: Builder, gates: int | None = None) -> Parameters:
        """The biases of all gates, or of the first `gates`, as one: the recurrent ones join those of the inputs."""
        bias, other = self.bias, self.recurrent_bias
        if bias is None or other is None:
            return self
        if gates is None:
            return replace(self, bias=_add(b, bias, other), recurrent_bias=None)
        size = gates * self.hidden
        rest = bias.shape[0] - size
        first = _add(b, part(b, bias, 0, 0, size), part(b, other, 0, 0, size))
        joined = b.concat([first, part(b, bias, 0, size, rest)], 0)
        return replace(self, bias=joined, recurrent_bias=part(b, other, 0, size, rest))

    @property
    def hidden(self) -> int:
        """The size of the state."""
        size = self.recurrent.shape[1]
        assert isinstance(size, int), "checked where the node is read"
        return size

    def bounded(self, m, x):
        """What enters an activation."""
        return x if self.clip is None else m.minimum(m.maximum(x, -self.clip), self.clip)


def _add(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return b.elementwise(lambda m, x, y: x + y, x, y)


class Cell:
    """A recurrent unit; `step` is built at the insertion point inside the loop over time.

    Attributes:
        gates: how many blocks of rows the weights have.
        states: how many states are carried: the output h, and LSTM's c.
    """

    gates, states = 1, 1
    defaults: tuple[str, ...] = ("Tanh",)

    def __init__(self, b: Builder, node: Node, given: Parameters) -> None:
        self.b, self.node, self.given = b, node, self.prepared(b, node, given)
        self.hidden = given.hidden
        blocks, first = [], 0
        for gates in self.products(node):
            rows = part(b, given.recurrent, 0, first * self.hidden, gates * self.hidden)
            blocks.append(rows if rows.is_known else b.copy(rows, [1, 0]))  # known ones are packed ahead
            first += gates
        self.blocks = blocks

    def prepared(self, b: Builder, node: Node, given: Parameters) -> Parameters:
        """The parameters as the step wants them."""
        return given.with_summed_bias(b)

    def products(self, node: Node) -> list[int]:
        """How many gates each product with recurrent weights gives."""
        return [self.gates]

    def project(self, x: Tensor) -> Tensor:
        """[time, batch, inputs] to [time, batch, gates * hidden], bias included."""
        given = self.given
        space = Space([*x.shape[:2], given.weights.shape[0], x.shape[2]], frozenset([3]))
        y = self.b.contract(space, (x, [0, 1, 3]), (given.weights, [2, 3]), [0, 1, 2])
        return y if given.bias is None else self.b.elementwise(lambda m, y, v: y + v, y, given.bias)

    def product(self, h: Tensor, number: int = 0) -> Tensor:
        """h times one block of the recurrent weights: [batch, gates * hidden]."""
        weights = self.blocks[number]
        space = Space([h.shape[0], weights.shape[0], self.hidden], frozenset([2]))
        return self.b.contract(space, (h, [0, 2]), (weights, [1, 2]), [0, 1])

    def gate(self, x: Tensor, number: int) -> Tensor:
        """One block of columns."""
        return part(self.b, x, 1, number * self.hidden, self.hidden)

    def finish(self, body: Callable[..., Any], into: ir.Value | None, *xs: Tensor) -> Tensor:
        """An elementwise result in natural order, in the place `into`."""
        return self.b.elementwise(body, *xs, order=[0, 1], into=into)

    def step(self, row: Tensor, old: Sequence[Tensor], into: Places) -> list[Tensor]:
        """The next states."""
        (function,), given = self.given.functions, self.given
        body = lambda m, x, y: function(m, given.bounded(m, x + y))  # noqa: E731
        return [self.finish(body, into[0], row, self.product(old[0]))]


class GRU(Cell):
    """Gates: update, reset, hidden."""

    gates = 3
    defaults = ("Sigmoid", "Tanh")

    def prepared(self, b: Builder, node: Node, given: Parameters) -> Parameters:
        """With linear_before_reset, the hidden gate's recurrent bias stays apart."""
        return given.with_summed_bias(b, 2 if node.attr("linear_before_reset", 0) else None)

    def products(self, node: Node) -> list[int]:
        """The hidden gate's is of the reset state, unless it is linear before that."""
        return [3] if node.attr("linear_before_reset", 0) else [2, 1]

    def step(self, row: Tensor, old: Sequence[Tensor], into: Places) -> list[Tensor]:
        """(1 - z) * candidate + z * h."""
        b, h, given = self.b, old[0], self.given
        first, second = given.functions
        inputs = [self.gate(row, i) for i in range(3)]

        def gate(m, x, y):
            return first(m, given.bounded(m, x + y))

        def blend(m, z, x, y, h):
            return (1.0 - z) * second(m, given.bounded(m, x + y)) + z * h

        if self.node.attr("linear_before_reset", 0):
            product = self.product(h)
            z, r = (b.elementwise(gate, inputs[i], self.gate(product, i)) for i in range(2))
            bias = [] if given.recurrent_bias is None else [given.recurrent_bias]
            last = b.elementwise(lambda m, r, y, *v: r * (y + v[0] if v else y), r, self.gate(product, 2), *bias)
        else:
            product = self.product(h)
            z, r = (b.elementwise(gate, inputs[i], self.gate(product, i)) for i in range(2))
            last = self.product(b.elementwise(lambda m, r, h: r * h, r, h), 1)
        return [self.finish(blend, into[0], z, inputs[2], last, h)]


class LSTM(Cell):
    """Gates: input, output, forget, cell."""

    gates, states = 4, 2
    defaults = ("Sigmoid", "Tanh", "Tanh")

    def _peepholes(self) -> list[Tensor]:
        p = self.given.peepholes
        return [] if p is None else [part(self.b, p, 0, i * self.hidden, self.hidden) for i in range(3)]

    def step(self, row: Tensor, old: Sequence[Tensor], into: Places) -> list[Tensor]:
        """The output o * tanh(c), and the cell state c."""
        total = _add(self.b, row, self.product(old[0]))
        i, o, f, g = (self.gate(total, number) for number in range(4))
        c = self._cell_state(i, f, g, old[1], into[1])
        return [self._output(o, c, into[0]), c]

    def _cell_state(self, i: Tensor, f: Tensor, g: Tensor, c: Tensor, into: ir.Value | None) -> Tensor:
        given = self.given
        first, second, _ = given.functions
        coupled = bool(self.node.attr("input_forget", 0))

        def body(m, i, f, g, c, *p):
            i = first(m, given.bounded(m, i + p[0] * c if p else i))
            f = 1.0 - i if coupled else first(m, given.bounded(m, f + p[2] * c if p else f))
            return f * c + i * second(m, given.bounded(m, g))

        return self.finish(body, into, i, f, g, c, *self._peepholes())

    def _output(self, o: Tensor, c: Tensor, into: ir.Value | None) -> Tensor:
        given = self.given
        first, _, third = given.functions

        def body(m, o, c, *p):
            return first(m, given.bounded(m, o + p[1] * c if p else o)) * third(m, c)

        return self.finish(body, into, o, c, *self._peepholes())


CELLS: dict[str, type[Cell]] = {"RNN": Cell, "GRU": GRU, "LSTM": LSTM}
