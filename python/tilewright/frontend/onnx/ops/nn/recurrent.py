# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RNN, GRU and LSTM: the input's projection is one product before the loop over time, which carries the states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static
from tilewright.frontend.builder.dtypes import promoted
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.onnx.ops.nn.recurrent_cells import CELLS, Cell, Parameters, activations
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op
from tilewright.mlir import ir


def of_direction(b: Builder, x: Tensor, direction: int) -> Tensor:
    """What a tensor with a first dimension of directions holds for one of them."""
    return part(b, x, 0, direction, 1).squeeze([0])


def _cells(b: Builder, node: Node, tensors: Sequence[Tensor | None]) -> list[Cell]:
    """One unit per direction, of the weights, recurrent weights, biases and peepholes."""
    kind = CELLS[node.proto.op_type]
    directions = directions_of(node)
    cells = []
    for d, functions in enumerate(activations(node, kind.defaults, directions)):
        weights, recurrent, bias, peepholes = (None if x is None else of_direction(b, x, d) for x in tensors)
        assert weights is not None and recurrent is not None
        half = recurrent.shape[0]
        halves = [None if bias is None else part(b, bias, 0, i * half, half) for i in (0, 1)]
        given = Parameters(weights, recurrent, halves[0], halves[1], peepholes, functions, node.attr("clip"))
        cells.append(kind(b, node, given))
    return cells


def directions_of(node: Node) -> int:
    """How many directions a recurrent node runs in."""
    direction = node.attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        node.wrong(f"there is no direction {direction}")
    return 2 if direction == "bidirectional" else 1


def _state(b: Builder, given: Tensor | None, shape: Sequence[Size], dtype: np.dtype) -> Tensor:
    """The initial state in a buffer of its own, in natural order."""
    stored = [n for n in shape if n != 1] or [1]
    if given is None:
        kept = tuple(d for d, n in enumerate(shape) if n != 1) or (None,)
        return Tensor(dtype, tuple(shape), b.filled(0, stored, dtype), kept)
    if is_static(given.shape) and is_static(shape) and tuple(given.shape) != tuple(shape):
        raise ValueError(f"an initial state {list(given.shape)} instead of {list(shape)}")
    return b.elementwise(lambda m, v: v, given, order=[0, 1], into=b.empty(stored, dtype))


def _loop(b: Builder, steps: Size, carried: list[ir.Value], body: Callable) -> list[ir.Value]:
    """scf.for from 0 to steps; body(index, *carried) returns the next values."""
    bounds = [b.index(0), b.idx(steps).value, b.index(1)]
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


@dataclass(frozen=True)
class _Run:
    """One direction over time."""

    b: Builder
    cell: Cell
    reverse: bool
    lengths: Tensor | None  # steps of each sequence of the batch; all steps where absent

    def __call__(self, x: Tensor, starts: Sequence[Tensor]) -> list[Tensor]:
        """All outputs [time, batch, hidden], then the last states [batch, hidden]."""
        b, steps, shape = self.b, x.shape[0], starts[0].shape
        projected = b.stored(b.ordered(self.cell.project(x)))
        full = (steps, *shape)
        dims = [d for d in (0, 1, 2) if full[d] != 1] or [2]
        outputs = b.empty([full[d] for d in dims], x.dtype)

        def body(index, *values):
            at = (b.idx(steps) - 1 - b.idx(index)).value if self.reverse else index
            old = [Tensor(x.dtype, shape, v, s.dims) for v, s in zip(values, starts, strict=False)]
            new, y = self._step(_row(b, projected, at), old, at)
            written = b.write(y.unsqueeze([0]), values[-1], dims, [at if d == 0 else 0 for d in dims])
            return [*(s.data for s in new), written]

        results = _loop(b, steps, [*(s.data for s in starts), outputs], body)
        last = [Tensor(x.dtype, shape, v, s.dims) for v, s in zip(results, starts, strict=False)]
        return [Tensor(x.dtype, full, results[-1], tuple(dims)), *last]

    def _step(self, row: Tensor, old: list[Tensor], at: ir.Value) -> tuple[list[Tensor], Tensor]:
        """The next states and the output. Sequences that have ended keep their states and give zeros."""
        b, lengths = self.b, self.lengths
        if lengths is None:
            # Products read all of h while its next value is made: that needs another place.
            new = self.cell.step(row, old, [None, *(s.data for s in old[1:])])
            return new, new[0]
        time = b.math.cast(b.idx(at), lengths.dtype)
        alive = b.elementwise(lambda m, n: n > Scalar(b.math, time.value, n.dtype), lengths, dtype=np.bool_)
        new = self.cell.step(row, old, [None] * len(old))
        y = b.elementwise(lambda m, n, a: m.where(a, n, 0.0), new[0], alive)
        kept = [
            b.elementwise(lambda m, n, o, a: m.where(a, n, o), n, o, alive, order=[0, 1], into=o.data)
            for n, o in zip(new, old, strict=True)
        ]
        return kept, y


def _check_ranks(node: Node, x: Tensor, w: Tensor, r: Tensor) -> None:
    directions, gates = directions_of(node), CELLS[node.proto.op_type].gates
    if not is_static(w.shape) or not is_static(r.shape):
        node.unsupported("weights whose sizes are known at run time only; state their shapes in the model")
    fits = x.rank == w.rank == r.rank == 3 and w.shape[0] == r.shape[0] == directions
    fits = fits and (w.shape[2] == x.shape[2] if isinstance(x.shape[2], int) else True)
    if not fits or w.shape[1] != r.shape[1] or r.shape[1] != gates * r.shape[2]:
        shapes = ", ".join(str(list(v.shape)) for v in (x, w, r))
        node.wrong(f"input, weights and recurrent weights do not fit ({directions} directions): {shapes}")


def _of_no_sequence(node: Node, steps: Size, cells: Sequence[Cell], dtype: np.dtype) -> list[Tensor]:
    """The results for an empty batch."""
    directions, hidden, states = len(cells), cells[0].hidden, cells[0].states
    shapes = [(steps, directions, 0, hidden)] + [(directions, 0, hidden)] * states
    if node.attr("layout", 0):
        shapes = [(0, steps, directions, hidden)] + [(0, directions, hidden)] * states
    return [nothing(shape, dtype) for shape in shapes]


@op("RNN", "GRU", "LSTM")
def recurrent(
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
    """RNN, GRU and LSTM in all directions and layouts, with lengths per sequence known at run time."""
    _check_ranks(node, x, w, r)
    for given, rank in ((bias, 2), (lengths, 1), (initial_h, 3), (initial_c, 3), (peepholes, 2)):
        if given is not None and given.rank != rank:
            node.wrong(f"an input of {given.rank} dimensions instead of {rank}")
    result, dtype = x.dtype, promoted(x.dtype)
    x, w, r = (b.cast(v, dtype) for v in (x, w, r))
    bias, *initial, peepholes = (v if v is None else b.cast(v, dtype) for v in (bias, initial_h, initial_c, peepholes))
    cells = _cells(b, node, [w, r, bias, peepholes])
    return [b.cast(y, result) for y in over_time(b, node, cells, x, lengths, initial)]


def over_time(
    b: Builder, node: Node, cells: Sequence[Cell], x: Tensor, lengths: Tensor | None, initial: Sequence[Tensor | None]
) -> list[Tensor]:
    """Run a cell for each direction over a sequence.

    Args:
        b: the builder.
        node: for its `layout` and `direction`.
        cells: one for each direction.
        x: [time, batch, inputs]; with layout 1 [batch, time, inputs].
        lengths: steps of each sequence of the batch; None: all.
        initial: the states to begin with, [directions, batch, hidden] each; None: zeros.

    Returns:
        All outputs [time, directions, batch, hidden], then the last states [directions, batch, hidden].
    """
    batch_first, dtype = bool(node.attr("layout", 0)), x.dtype
    if batch_first:
        x = x.transpose([1, 0, 2])
        initial = [s if s is None else s.transpose([1, 0, 2]) for s in initial]
    shape = (x.shape[1], cells[0].hidden)
    if lengths is not None:
        full = lengths.is_known and isinstance(x.shape[0], int) and bool((lengths.numpy() == x.shape[0]).all())
        lengths = None if full else b.stored(lengths).unsqueeze([1])
    if x.shape[1] == 0:
        return _of_no_sequence(node, x.shape[0], cells, dtype)
    runs = []
    for d, cell in enumerate(cells):
        given = [s if s is None else of_direction(b, s, d) for s in initial[: cell.states]]
        reverse = node.attr("direction", "forward") == "reverse" or d == 1
        runs.append(_Run(b, cell, reverse, lengths)(x, [_state(b, s, shape, dtype) for s in given]))
    results = [b.concat([run[0].unsqueeze([1]) for run in runs], 1)]
    results += [b.concat([run[i].unsqueeze([0]) for run in runs], 0) for i in range(1, len(runs[0]))]
    if batch_first:
        results = [results[0].transpose([2, 0, 1, 3]), *(s.transpose([1, 0, 2]) for s in results[1:])]
    return results
