# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LSTMs whose weights are quantized; inputs and states are, too, by their own ranges (com.microsoft)."""

from __future__ import annotations

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.contraction import matmul
from tilewright.frontend.onnx.ops.nn.recurrent import directions_of, of_direction, over_time
from tilewright.frontend.onnx.ops.nn.recurrent_cells import LSTM, Parameters, activations
from tilewright.frontend.onnx.ops.quantized.arithmetic import by_column, centred, one
from tilewright.frontend.onnx.ops.quantized.elementwise import MS
from tilewright.frontend.onnx.ops.quantized.products import scaled
from tilewright.frontend.onnx.ops.quantized.quantization import dynamic_quantize_linear
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


class QuantizedLSTM(LSTM):
    """An LSTM whose parameters hold codes.

    Args:
        b: the builder.
        node: a DynamicQuantizeLSTM.
        given: weights [4 * hidden, inputs] and recurrent weights [4 * hidden, hidden], of 8 bits.
        numbers: scale and zero point of the weights, then of the recurrent ones, for all or for each row.
    """

    def __init__(self, b: Builder, node: Node, given: Parameters, numbers: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__(b, node, given)
        self.numbers = numbers

    def project(self, x: Tensor) -> Tensor:
        """The whole sequence is quantized at once."""
        return self._times(x, self.given.weights, self.numbers[0], self.given.bias)

    def product(self, h: Tensor, number: int = 0) -> Tensor:
        """The states of a step are quantized together."""
        return self._times(h, self.blocks[number], self.numbers[1], None)

    def _times(self, x: Tensor, codes: Tensor, numbers: tuple[Tensor, Tensor], bias: Tensor | None) -> Tensor:
        b, (scale, zero) = self.b, numbers
        own, own_scale, own_zero = dynamic_quantize_linear(b, self.node, x)
        right = centred(b, codes.transpose([1, 0]), by_column(zero))
        return scaled(b, matmul(b, centred(b, own, own_zero), right), own_scale, scale, bias, x.dtype)


@op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
    b: Builder,
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    initial_h: Tensor | None,
    initial_c: Tensor | None,
    peepholes: Tensor | None,
    w_scale: Tensor,
    w_zero: Tensor,
    r_scale: Tensor,
    r_zero: Tensor,
) -> list[Tensor]:
    """LSTM with weights [directions, inputs, 4 * hidden] and [directions, hidden, 4 * hidden] of 8 bits."""
    directions = directions_of(node)
    hidden = r.shape[1]
    if w.rank != 3 or r.rank != 3 or w.shape[0] != directions or w.shape[2] != r.shape[2] or r.shape[2] != 4 * hidden:
        node.wrong(f"weights {list(w.shape)} and recurrent weights {list(r.shape)} do not fit {directions} directions")
    cells = []
    for d, functions in enumerate(activations(node, LSTM.defaults, directions)):
        codes = [of_direction(b, v, d).transpose([1, 0]) for v in (w, r)]
        own = None if bias is None else of_direction(b, bias, d)
        halves = [None if own is None else part(b, own, 0, i * 4 * hidden, 4 * hidden) for i in (0, 1)]
        peep = None if peepholes is None else of_direction(b, peepholes, d)
        given = Parameters(codes[0], codes[1], halves[0], halves[1], peep, functions, node.attr("clip"))
        pairs = ((w_scale, w_zero), (r_scale, r_zero))
        numbers = [(one(of_direction(b, s, d)), one(of_direction(b, z, d))) for s, z in pairs]
        cells.append(QuantizedLSTM(b, node, given, numbers))
    return over_time(b, node, cells, x, lengths, [initial_h, initial_c])
