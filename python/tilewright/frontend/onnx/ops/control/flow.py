# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If, Loop, Scan: branches and bodies become scf regions; what is decided at compile time is inlined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size, same
from tilewright.frontend.builder.iteration import Iterated, Iteration
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.stacking import pick
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.branches import choose
from tilewright.frontend.onnx.registry import Builder, Node, op
from tilewright.frontend.onnx.sequences import Value, leaves
from tilewright.frontend.onnx.subgraphs import Subgraph

_WRITTEN_OUT = 16  # iterations: up to so many are written out where sizes vary from one to the next
_UNROLLED = 4096  # iterations of loops over sequences, which are always written out


# If -------------------------------------------------------------------------------------------------------------


@op("If", structures=True)
def if_(b: Builder, node: Node, condition: Tensor) -> Sequence[Value | None]:
    """A known condition chooses now. Otherwise scf.if; sizes in which the branches differ become run-time sizes."""
    branches = [node.graph(name).inline for name in ("then_branch", "else_branch")]
    if not isinstance(condition, Tensor) or condition.size != 1:
        node.wrong("the condition is not a single element")
    if condition.is_known:
        return branches[0 if condition.numpy().reshape(-1)[0] else 1]()
    return choose(b, b.item(condition), branches)


def _present(node: Node, x: Value | None) -> Value:
    return node.wrong("a result of a subgraph is missing") if x is None else x


# Loop -----------------------------------------------------------------------------------------------------------


@op("Loop", structures=True)
def loop(
    b: Builder, node: Node, count: Tensor | None = None, condition: Tensor | None = None, *states: Value
) -> list[Value]:
    """scf.for where only a trip count ends it, else scf.while. Loops over sequences are written out."""
    body = node.graph("body")
    stacked = len(body.outputs) - 1 - len(states)
    if stacked < 0 or len(body.inputs) != len(states) + 2:
        node.wrong(f"{len(states)} states, but the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs")
    trips, start = _trips(b, node, count, condition)
    if not all(isinstance(s, Tensor) for s in states):
        return _over_sequences(b, node, body, trips, start, states)
    tensors = leaves(states)
    kept = {j for j in range(len(states)) if body.passes_through(1 + j, 2 + j)}  # never change: not carried
    carried = [j for j in range(len(states)) if j not in kept]

    def step(counter: int | Scalar, now: Sequence[Tensor]) -> Iterated:
        current = dict(zip(carried, now, strict=True))
        values = [current.get(j, x) for j, x in enumerate(tensors)]
        results = _tensors(node, body(_counter(b, counter), Tensor.known(True), *values))
        return Iterated([results[1 + j] for j in carried], results[1 + len(tensors) :], results[0])

    last, rows = Iteration(b, trips, [tensors[j] for j in carried], step, start, unroll=_WRITTEN_OUT).run()
    changed = dict(zip(carried, last, strict=True))
    return [*(changed.get(j, x) for j, x in enumerate(tensors)), *rows]


def _trips(
    b: Builder, node: Node, count: Tensor | None, condition: Tensor | None
) -> tuple[Size | Scalar | None, Scalar | None]:
    """The trip count (None: no bound), and whether to begin at all where that is not known."""
    if any(x is not None and x.size != 1 for x in (count, condition)):
        node.wrong("the trip count and the condition are single elements")
    trips = None if count is None else _number(b, count)
    if condition is None:
        return trips, None
    if not condition.is_known:
        return trips, b.item(condition)
    return (trips if condition.numpy().reshape(-1)[0] else 0), None


def _number(b: Builder, x: Tensor) -> int | Scalar:
    return max(0, int(x.numpy().reshape(-1)[0])) if x.is_known else b.item(x)


def _counter(b: Builder, counter: int | Scalar) -> Tensor:
    if isinstance(counter, int):
        return Tensor.known(counter, np.int64)
    return b.vector([b.math.cast(counter, np.dtype(np.int64))], np.int64).squeeze([0])


def _tensors(node: Node, values: Sequence[Value | None]) -> list[Tensor]:
    if not all(isinstance(x, Tensor) for x in values):
        node.unsupported(
            "the body makes sequences or optionals: the number of iterations must be known at compile time"
        )
    return leaves([x for x in values if x is not None])


def _over_sequences(
    b: Builder, node: Node, body: Subgraph, trips: Size | Scalar | None, start: Scalar | None, states: Sequence[Value]
) -> list[Value]:
    """Every iteration is written out: the lengths of sequences are known at compile time only."""
    if not isinstance(trips, int) or start is not None or trips > _UNROLLED:
        node.unsupported(
            "a loop that carries sequences needs a trip count and a condition that are known at compile time "
            f"(at most {_UNROLLED} iterations); make them constants of the model"
        )
    b.remark(f"a loop over sequences is written out: {trips} copies of its body")
    now, rows = list(states), []
    for i in range(trips):
        results = [_present(node, x) for x in body(Tensor.known(i, np.int64), Tensor.known(True), *now)]
        now = results[1 : 1 + len(states)]
        rows.append(_tensors(node, results[1 + len(states) :]))
        if not _goes_on(node, results[0]):
            break
    return [*now, *(b.concat([x.unsqueeze([0]) for x in column], 0) for column in zip(*rows, strict=True))]


def _goes_on(node: Node, condition: Value) -> bool:
    if not isinstance(condition, Tensor) or not condition.is_known:
        node.unsupported("a loop that carries sequences needs a condition that its body does not compute from inputs")
    return bool(condition.numpy().reshape(-1)[0])


# Scan -----------------------------------------------------------------------------------------------------------


@op("Scan", since=9)
def scan(b: Builder, node: Node, *inputs: Tensor) -> list[Tensor]:
    """A counted loop over slices of the scan inputs."""
    count = node.attr("num_scan_inputs")
    if not 0 < count <= len(inputs) or any(x is None for x in inputs):
        node.wrong(f"{len(inputs)} inputs of which {count} are scanned, and none may be absent")
    split = len(inputs) - count
    states, xs = inputs[:split], inputs[split:]
    axes = node.attr("scan_input_axes") or [0] * count
    axes = [node.axis(a, x.rank) for a, x in zip(axes, xs, strict=True)]
    states, rows = _scanned(b, node, states, xs, axes)
    places = node.attr("scan_output_axes") or [0] * len(rows)
    return [*states, *(_moved(node, y, axis) for y, axis in zip(rows, places, strict=True))]


def _moved(node: Node, y: Tensor, axis: int) -> Tensor:
    """The stacked dimension at another place."""
    axis = node.axis(axis, y.rank)
    rest = list(range(1, y.rank))
    return y.transpose([*rest[:axis], 0, *rest[axis:]])


def _scanned(
    b: Builder,
    node: Node,
    states: Sequence[Tensor],
    xs: Sequence[Tensor],
    axes: Sequence[int],
    length: Scalar | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Last states and stacked results; `length` iterations (default: all)."""
    body = node.graph("body")
    if not xs or len(body.inputs) != len(states) + len(xs) or len(body.outputs) < len(states):
        node.wrong(f"{len(states)} states and {len(xs)} inputs do not fit the body")
    if any(x.rank == 0 for x in xs):
        node.wrong("a scalar has no dimension to scan")
    full = _common_length(node, [x.shape[a] for x, a in zip(xs, axes, strict=True)])
    count = full if length is None else length
    reverse = node.attr("scan_input_directions") or node.attr("directions") or [0] * len(xs)
    backward = [bool(d) for d in node.attr("scan_output_directions") or []]
    sources = [x if x.is_known else b.array(x) for x in xs]

    def step(counter: int | Scalar, now: Sequence[Tensor]) -> Iterated:
        parts = [
            _part(b, x, axis, counter, count, bool(back)) for x, axis, back in zip(sources, axes, reverse, strict=True)
        ]
        results = _tensors(node, body(*now, *parts))
        return Iterated(results[: len(now)], results[len(now) :])

    room = None if length is None else full
    return Iteration(b, count, states, step, backward=backward, room=room, unroll=_WRITTEN_OUT).run()


def _part(b: Builder, x: Tensor, axis: int, counter: int | Scalar, count: Size | Scalar, back: bool) -> Tensor:
    if isinstance(counter, int) and isinstance(count, int):
        at: int | Scalar = count - 1 - counter if back else counter
    else:
        at = b.idx(count) - 1 - b.idx(counter) if back else b.idx(counter)
    return pick(b, b.array(x), axis, at)


def _common_length(node: Node, sizes: Sequence[Size]) -> Size:
    fixed = sorted({n for n in sizes if isinstance(n, int)})
    if len(fixed) > 1:
        node.wrong(f"the scan inputs have different lengths: {fixed}")
    if fixed:
        return fixed[0]
    if not all(same(n, sizes[0]) for n in sizes):
        node.unsupported(
            "scan inputs whose lengths are known at run time only may differ; state their shapes in the model"
        )
    return sizes[0]


@op("Scan", since=8)
def scan_of_batch(b: Builder, node: Node, lengths: Tensor | None, *inputs: Tensor) -> list[Tensor]:
    """One scan per entry of the batch, each as long as `lengths` says (default: all of it)."""
    split = len(inputs) - node.attr("num_scan_inputs")
    batch = _common_length(node, [x.shape[0] for x in inputs])
    sources = [b.array(x) for x in inputs]
    if lengths is not None:
        lengths = b.array(lengths)

    def step(entry: int | Scalar, _: Sequence[Tensor]) -> Iterated:
        parts = [pick(b, x, 0, entry) for x in sources]
        length = None if lengths is None else b.at(lengths, [entry])
        states, rows = _scanned(b, node, parts[:split], parts[split:], [0] * (len(parts) - split), length)
        return Iterated([], [*states, *rows])

    return Iteration(b, batch, [], step).run()[1]
