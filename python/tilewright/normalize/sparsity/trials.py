# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which slices hold one number in all of some random trials: a heuristic, where the rules of `facts.py` know nothing.

SparTA's propagation through black boxes (Zheng et al., OSDI 2022, "tensor scrambling"): operations run on random
inputs, constants as they are; what is the same number each time is taken for a constant. Numbers are drawn from
[0.1, 8], as its authors' code does: large enough to saturate a ReLU6, and above zero; here every second trial gives
them random signs too, since relu(-x) of positive numbers alone would always be zero. Integers are drawn from 0 to 8.

That is no proof: a number that needs a larger input to differ is taken for a constant. Rules and trials are compared
wherever both say something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tilewright.core.errors import InternalError
from tilewright.ir.generics import constant_of
from tilewright.ir.structure import captured
from tilewright.ir.target_info import around
from tilewright.mlir import ir
from tilewright.mlir._mlir_libs import _mlirDialectsLinalg as linalg
from tilewright.normalize.sparsity.facts import Axes, Facts, is_tensor, shape_of
from tilewright.normalize.sparsity.known import Known
from tilewright.passes.weights import known_array
from tilewright.reference.errors import InterpreterError
from tilewright.reference.machine import Frame, Machine, execute
from tilewright.reference.program import Node, Reader
from tilewright.reference.types import dtype_of, is_float

#: Points of an operation's loops that are interpreted, at most; and where the interpreter goes point by point.
_MOST, _MOST_STEPS = 1 << 28, 1 << 14
#: Part of a number by which it may differ between trials.
_SAME = 1e-6
#: And from what a rule says, by bytes of a float: narrow ones round.
_NEAR = {8: _SAME, 4: _SAME, 2: 0.02, 1: 0.25}
_LOW, _HIGH, _HIGHEST_INTEGER = 0.1, 8.0, 8
_CONSTANTS = ("arith.constant", "ml_program.global_load_const")
_DIALECTS = ("linalg", "tensor", "arith", "math", "index", "sparse_tile")
#: Of these the bodies are run too; `scf.while` may never end.
_LOOPS = ("scf.for", "scf.if")


@dataclass
class Extremes:
    """The least and the largest element of each slice along an axis, in all trials so far; NaN where one was."""

    low: np.ndarray
    high: np.ndarray

    @property
    def same(self) -> np.ndarray:
        """[indices], bool: whether all elements were one number."""
        if self.low.dtype.kind != "f":
            return self.low == self.high
        most = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.isfinite(most) & (self.high - self.low <= _SAME * most)

    def refuted(self, claim: Known, near: float) -> np.ndarray:
        """[indices], bool: whether a claim is wrong; what is not finite refutes nothing."""
        low, high, number = (array.astype(np.float64) for array in (self.low, self.high, claim.numbers))
        far = np.maximum(np.abs(low - number), np.abs(high - number)) > near * np.abs(number)
        return claim.known & np.isfinite(low) & np.isfinite(high) & far


@dataclass
class Found:
    """What trials found.

    Attributes:
        axes: slices of one number, by tensor, those among them that the rules know too.
        alone: how many of them no rule knows.
        skipped: operations that were not run: what they make was drawn, too.
    """

    axes: dict[ir.Value, Axes] = field(default_factory=dict)
    alone: int = 0
    skipped: list[ir.Operation] = field(default_factory=list)


def has_open_sizes(ops: Iterable[ir.Operation]) -> bool:
    """Whether the size of a tensor is known at run time only: trials would have to choose it."""
    values = (value for op in ops for value in (*op.operands, *op.results) if is_tensor(value))
    return any(size < 0 for value in values for size in shape_of(value))


def tried(ops: Sequence[ir.Operation], sound: Facts, count: int) -> Found:
    """What is the same number in some random trials of a block's operations.

    Args:
        ops: of a block, in order; no sizes are open.
        sound: what rules say of all of them.
        count: number of trials, at least 2.

    Raises:
        InternalError: a trial shows that a rule is wrong.
    """
    block = _Block(ops, sound)
    with np.errstate(all="ignore"):
        for number in range(count):
            block.run(np.random.default_rng([number]), number % 2 == 1)
        return _judged(block, sound)


def _judged(block: _Block, sound: Facts) -> Found:
    """What was the same in all trials, beside what rules say."""
    found = Found(skipped=list(block.skipped.values()))
    for value, axes in block.seen.items():
        _compare(value, axes, sound.of(value), value in block.spoiled)
        made = tuple(_known(axis, dtype_of(value.type)) for axis in axes)
        if any(axis is not None for axis in made):
            found.axes[value] = made
            found.alone += sum(map(_more, made, sound.of(value)))
    return found


def _known(axis: Extremes, dtype: np.dtype) -> Known | None:
    same = axis.same
    return Known(axis.low.astype(dtype), same, np.zeros(len(same), bool)) if same.any() else None


def _more(found: Known | None, sound: Known | None) -> int:
    """How many slices of an axis are known by trials alone."""
    if found is None:
        return 0
    return int((found.known if sound is None else found.known & ~sound.known).sum())


def _compare(value: ir.Value, axes: Sequence[Extremes], claims: Axes, spoiled: bool) -> None:
    dtype = dtype_of(value.type)
    near = _NEAR[dtype.itemsize] if is_float(dtype) else 0.0
    for d, (axis, claim) in enumerate(zip(axes, claims, strict=True)):
        if claim is None or spoiled or not (wrong := axis.refuted(claim, near)).any():
            continue
        at = int(np.flatnonzero(wrong)[0])
        raise InternalError(
            f"a rule of tile-shrink-dead says that axis {d} holds {claim.numbers[at]} at {at}, and a random trial has "
            f"numbers from {axis.low[at]} to {axis.high[at]} there",
            location=str(value.owner.location),
            ir=str(value.owner),
        )


class _Block:
    """Operations of a block, run again and again."""

    def __init__(self, ops: Sequence[ir.Operation], sound: Facts) -> None:
        self.ops, self._sound = ops, sound
        #: By tensor that is made, its axes.
        self.seen: dict[ir.Value, tuple[Extremes, ...]] = {}
        #: Tensors behind one that is not finite: rules take all numbers for finite, so these say nothing of rules.
        self.spoiled: set[ir.Value] = set()
        self.skipped: dict[int, ir.Operation] = {}
        self._reader, self._machine = Reader(), Machine(list(around(ops[0]))[-1], {})
        self._reads = [[*op.operands, *captured(op)] for op in ops]
        last = {self._reader.number(value): at for at, reads in enumerate(self._reads) for value in reads}
        self._dead = [[number for number, end in last.items() if end == at] for at in range(len(ops))]
        self._nodes: dict[int, Node] = {}
        self._constants: dict[int, Any] = {}
        self._rng, self._signed = np.random.default_rng(), False

    def run(self, rng: np.random.Generator, signed: bool) -> None:
        """One trial.

        Args:
            rng: to draw inputs with.
            signed: whether they have signs.
        """
        self._rng, self._signed = rng, signed
        frame, clean = Frame(self._machine), True
        for at, op in enumerate(self.ops):
            if not len(op.results):
                continue
            for value, result in zip(op.results, self._results(frame, at, op), strict=True):
                frame.values[self._reader.number(value)] = result
                clean = clean and (op.name in (*_CONSTANTS, "linalg.fill") or _is_finite(result))
                self._note(at, value, result, clean)
            for number in self._dead[at]:
                frame.values.pop(number, None)

    def _note(self, at: int, value: ir.Value, result: Any, clean: bool) -> None:
        if not clean:
            self.spoiled.add(value)
        if at in self.skipped:
            self.seen.pop(value, None)
        elif isinstance(result, np.ndarray) and result.size and result.dtype.kind != "c" and is_tensor(value):
            if self.ops[at].name not in (*_CONSTANTS, "tensor.empty"):
                self.seen[value] = _wider(self.seen.get(value), _plain(result))

    def _results(self, frame: Frame, at: int, op: ir.Operation) -> Sequence[Any]:
        """What an operation makes; it is drawn where it cannot be run."""
        if op.name in _CONSTANTS:
            return [self._constant(frame, op.results[0])]
        if op.name == "tensor.empty" or at in self.skipped:
            return [self._drawn(value) for value in op.results]
        try:
            return self._executed(frame, at, op)
        except InterpreterError:
            self.skipped[at] = op
            return [self._drawn(value) for value in op.results]

    def _executed(self, frame: Frame, at: int, op: ir.Operation) -> Sequence[Any]:
        if at not in self._nodes:
            if not _is_runnable(op):
                raise InterpreterError(f"trials do not run {op.name}, or it is too large")
            self._nodes[at] = self._reader.node(op)
        for value in self._reads[at]:
            number = self._reader.number(value)
            if number not in frame.values:
                frame.values[number] = self._outside(frame, value)
            if frame.values[number] is None:
                raise InterpreterError(f"trials cannot draw a {value.type}")
        node = self._nodes[at]
        made = execute(frame, node, [frame.values[number] for number in node.operands])
        return [made] if len(op.results) == 1 else made

    def _outside(self, frame: Frame, value: ir.Value) -> Any:
        """An argument, or a value from outside of the block."""
        if not isinstance(value, ir.BlockArgument) and value.owner.name in _CONSTANTS:
            return self._constant(frame, value)
        return self._drawn(value)

    def _constant(self, frame: Frame, value: ir.Value) -> Any:
        number, op = self._reader.number(value), value.owner.operation
        if number not in self._constants:
            array = known_array(value) if op.name != "arith.constant" else None
            if array is not None:
                self._machine.weights[ir.FlatSymbolRefAttr(op.attributes["global"]).value] = array
            try:
                self._constants[number] = execute(frame, self._reader.node(op), [])
            except InterpreterError:  # nobody knows what the weight holds
                return self._drawn(value)
        return self._constants[number]

    def _drawn(self, value: ir.Value) -> Any:
        """Random numbers, but for the slices that rules know; None where the type has no array."""
        try:
            dtype = dtype_of(value.type)
        except InterpreterError:
            return None
        if is_tensor(value):
            if ir.RankedTensorType(value.type).encoding is not None:
                return None
            array = self._numbers(dtype, shape_of(value))
            for d, axis in enumerate(self._sound.of(value)):
                if axis is not None:
                    moved = np.moveaxis(array, d, 0)
                    moved[axis.known] = axis.numbers[axis.known].reshape(-1, *(1,) * (moved.ndim - 1))
            return array
        return None if isinstance(value.type, ir.ShapedType) else self._numbers(dtype, ())[()]

    def _numbers(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        if not is_float(dtype):
            most = 1 if dtype == np.bool_ else _HIGHEST_INTEGER
            return np.asarray(self._rng.integers(0, most + 1, shape)).astype(dtype)
        found = np.asarray(self._rng.uniform(_LOW, _HIGH, shape))
        if self._signed:
            found = np.where(self._rng.integers(0, 2, shape), found, -found)
        return found.astype(dtype)


def _plain(array: np.ndarray) -> np.ndarray:
    """In a dtype that NumPy can compare and subtract."""
    if array.dtype == np.bool_:
        return array.astype(np.int8)
    return array.astype(np.float32) if is_float(array.dtype) and array.dtype.itemsize < 4 else array


def _is_finite(result: Any) -> bool:
    if not isinstance(result, np.ndarray) or not is_float(result.dtype):
        return True
    return bool(np.isfinite(_plain(result)).all())


def _wider(before: tuple[Extremes, ...] | None, array: np.ndarray) -> tuple[Extremes, ...]:
    """The extremes of all axes, with one more trial. An axis without a slice of one number will never have any."""
    found = []
    for d in range(array.ndim):
        old = None if before is None else before[d]
        if old is not None and not old.same.any():
            found.append(old)
            continue
        others = tuple(o for o in range(array.ndim) if o != d)
        low, high = array.min(axis=others), array.max(axis=others)
        found.append(
            Extremes(low, high) if old is None else Extremes(np.minimum(old.low, low), np.maximum(old.high, high))
        )
    return tuple(found)


def _is_runnable(op: ir.Operation) -> bool:
    """Whether the interpreter is through with an operation in a short time."""
    points, steps = _points(op), _goes_point_by_point(op)
    return points is not None and points <= (_MOST_STEPS if steps else _MOST)


def _inner(op: ir.Operation) -> list[ir.Operation]:
    return [one.operation for region in op.regions for block in region.blocks for one in block.operations]


def _goes_point_by_point(op: ir.Operation) -> bool:
    return op.name in ("tensor.generate", *_LOOPS) or any(one.regions for one in _inner(op))


def _points(op: ir.Operation) -> int | None:
    """Points of an operation's loops, those inside too; None where it is not for trials to run."""
    if op.name.split(".")[0] not in _DIALECTS and op.name not in (*_LOOPS, "scf.yield"):
        return None
    own = (_trips(op) if op.name == "scf.for" else 1) if op.name in _LOOPS else _structured_points(op)
    inside = [_points(one) for one in _inner(op) if op.name in _LOOPS or one.regions]
    if own is None or None in inside:
        return None
    return own * max(1, sum(one or 0 for one in inside))


def _structured_points(op: ir.Operation) -> int:
    """Points of the loops that maps index, or elements of the largest tensor."""
    points = max((prod(shape_of(value)) for value in (*op.operands, *op.results) if is_tensor(value)), default=1)
    maps = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    sizes: dict[int, int] = {}
    for value, access in zip(op.operands, maps or (), strict=False):
        for d, expr in enumerate(access.value.results if is_tensor(value) else ()):
            if isinstance(expr, ir.AffineDimExpr):
                sizes[expr.position] = shape_of(value)[d]
    return max(points, prod(sizes.values()))


def _trips(op: ir.Operation) -> int | None:
    """How often a loop turns; None where that is known at run time only."""
    low, high, step = (constant_of(value) for value in list(op.operands)[:3])
    if low is None or high is None or not step:
        return None
    return len(range(int(low), int(high), int(step)))
