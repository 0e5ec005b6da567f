# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel as a callable."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.kernels.launch import wrapped
from tilewright.kernels.signature import Argument, Signature
from tilewright.runtime import Outputs
from tilewright.runtime.interop import count_changes, is_torch, to_numpy, to_torch
from tilewright.targets.base import Target
from tilewright.targets.registry import named, parse_target

_BUDGET_SECONDS = 0.5
_TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}  # of a comparison with the interpreter, by bytes of the element


@dataclass(frozen=True)
class Prediction:
    """What a call should take at least, by the device's description.

    Attributes:
        flops: float operations of all tasks, estimated from the kernel's text.
        bytes: of all arguments, each counted once.
        moved: bytes that the tiles move, by level of memory.
        seconds: the larger one of the time at the peak rate and of the times that the levels need for those bytes.
        floor: the roofline: the larger one of the time at the peak rate and at the bandwidth of the level that holds
            the arguments (Williams et al., Roofline, CACM 2009).
        bound: ``compute`` or ``memory``, whichever sets the floor.
    """

    flops: int
    bytes: int
    moved: dict[str, int]
    seconds: float
    floor: float
    bound: str

    def __str__(self) -> str:
        """One line for people."""
        work = f"{self.flops:.3g} FLOP, {self.bytes:.3g} bytes"
        return f"{work}; floor {self.floor * 1e6:.4g} us ({self.bound}), predicted {self.seconds * 1e6:.4g} us"


@dataclass(frozen=True)
class Roofline:
    """A measured call beside its prediction."""

    seconds: float
    prediction: Prediction

    @property
    def fraction(self) -> float:
        """How near the call is to the roofline: 1.0 is at it."""
        return self.prediction.floor / self.seconds

    def __str__(self) -> str:
        """One line for people."""
        p = self.prediction
        rates = f"{p.flops / self.seconds * 1e-9:.3g} GFLOP/s, {p.bytes / self.seconds * 1e-9:.3g} GB/s"
        floor = f"floor {p.floor * 1e6:.4g} us ({p.bound})"
        return f"{self.seconds * 1e6:.4g} us, {rates}; {floor}, {self.fraction:.0%} of the roofline"


class Kernel:
    """One kernel, ready to be called with arrays for its arguments; made by :func:`tilewright.kernel`.

    ``k(x, y, grid=[8])`` or by name. What the kernel writes goes into the given arrays and is returned, by position or
    name. An array that is only written may be left out where its sizes are known: then a new one is returned.
    Elements that no task writes are undefined, unless the kernel reads that argument as well.

    Args:
        signature: of the kernel, with its text.
        compile: :func:`tilewright.compile`, which makes a model of the kernel and what launches it.
        grid: bounds of the grid for calls that give none, or a function of the arguments that returns them.
        target: as for :func:`tilewright.compile`, like `threads` and `emulate`.
        threads: per call.
        emulate: whether a GPU is emulated.
        checks: whether accesses out of arguments are errors, see :func:`tilewright.compile`.
    """

    def __init__(
        self,
        signature: Signature,
        compile: Callable[..., Any],
        *,
        grid: Sequence[int] | Callable[..., Sequence[int]] | None = None,
        target: str = "cpu",
        threads: int | None = None,
        emulate: bool | Mapping[str, Any] = False,
        checks: bool = True,
    ) -> None:
        self.signature = signature
        self._compile = compile
        self._grid = grid
        self._target = target
        self._threads = threads
        self._emulate = emulate
        self._checks = checks
        self._models: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The symbol of the kernel."""
        return self.signature.name

    def __repr__(self) -> str:
        """The signature."""
        return f"<tilewright.Kernel {self.signature}, target {self._target}>"

    def __call__(self, *args: Any, grid: Sequence[int] | None = None, interpret: bool = False, **named: Any) -> Outputs:
        """Run all tasks. Arrays are NumPy's or torch's; torch tensors are used in place, and results are such then.

        Args:
            args: arguments, in order.
            grid: bounds of the grid; default: the kernel's own.
            interpret: let the interpreter run it first, on copies: it refuses whatever the dialect leaves undefined.
            named: arguments by name.

        Raises:
            UserError: an argument is missing, unknown, or of the wrong kind, type or shape; the grid does not fit; a
                task reaches out of an argument.
        """
        values, bounds = self._bind(args, named, grid)
        if interpret:
            self._run(self._model(values, bounds, "reference"), [_copied(value) for value in values])
        return self._as_given(args, named, self._run(self._model(values, bounds, self._target), values))

    def check(
        self, *args: Any, grid: Sequence[int] | None = None, tolerance: float | None = None, **named: Any
    ) -> float:
        """Compare the compiled kernel with the interpreter on these arguments, which stay as they are.

        Returns:
            the largest difference, relative to the largest magnitude of the interpreter's result.

        Raises:
            UserError: it is above `tolerance` (default: by the element's type), or the interpreter refuses the kernel.
        """
        values, bounds = self._bind(args, named, grid)
        theirs, ours = (  # the interpreter first: it refuses what machine code would do blindly
            self._run(self._model(values, bounds, target), [_copied(value) for value in values])
            for target in ("reference", self._target)
        )
        worst = 0.0
        for argument, a, b in zip(self.signature.written, ours, theirs, strict=True):
            error = _difference(a, b)
            limit = tolerance if tolerance is not None else _tolerance(a.dtype)
            if not error <= limit:
                raise UserError(f"kernel {self.name}: {argument.name} differs from the interpreter's by {error:.2e}")
            worst = max(worst, error)
        return worst

    def predict(self, *args: Any, grid: Sequence[int] | None = None, **named: Any) -> Prediction:
        """Return the work and the least time of a call with these arguments."""
        from tilewright.report.roofline import bound_by, floor_seconds, predicted_seconds

        values, bounds = self._bind(args, named, grid)
        model = self._model(values, bounds, self._compiled_target())
        info = next(kernel for kernel in model.kernels if kernel.name == self.name).details
        device = _described(parse_target(self._compiled_target()))
        flops, traffic = int(info.get("flops", 0)), int(info.get("bytes", 0))
        element = str(info.get("element", "f32"))
        floor = floor_seconds(flops, traffic, device, model.threads, element) or 0.0
        seconds = predicted_seconds(info, device, model.threads) or floor
        bound = bound_by(flops, traffic, device, element)
        return Prediction(flops, traffic, dict(info.get("moved", {})), seconds, floor, bound)

    def roofline(self, *args: Any, grid: Sequence[int] | None = None, **named: Any) -> Roofline:
        """Run a call for about half a second and set its median time against the prediction.

        Raises:
            UnsupportedError: on the emulator, which has no clock; :meth:`predict` gives the roofline.
        """
        values, bounds = self._bind(args, named, grid)
        prediction = self.predict(*values, grid=bounds)
        model = self._model(values, bounds, self._compiled_target())
        if getattr(model, "emulated", False):
            raise UnsupportedError(
                f"kernel {self.name} runs on the emulator, which has no clock; by the description of the GPU, "
                f"predict() says: {prediction}"
            )
        inputs, times = self._inputs(values), []
        end = time.perf_counter() + _BUDGET_SECONDS
        while len(times) < 3 or time.perf_counter() < end:
            records = model.profile(*inputs)
            times.append(next(spent for name, _, spent in records if name == self.name) * 1e-9)
        return Roofline(median(times), prediction)

    def explain(self, *args: Any, grid: Sequence[int] | None = None, path: Any = None, **named: Any) -> str:
        """Return the report page of the kernel compiled for these arguments (see :meth:`tilewright.Model.explain`)."""
        values, bounds = self._bind(args, named, grid)
        return self._model(values, bounds, self._compiled_target()).explain(path)

    def _compiled_target(self) -> str:
        if not named(self._target).compiles:
            raise UserError(f"target {self._target!r} interprets: only compiled kernels have times")
        return self._target

    def _bind(self, args: Sequence[Any], named: dict[str, Any], grid: Any) -> tuple[list[Any], tuple[int, ...]]:
        """Arguments in order, checked, with new arrays for those left out; and the bounds of the grid."""
        arguments = self.signature.arguments
        names = [argument.name for argument in arguments]
        unknown = [name for name in named if name not in names[len(args) :]]
        if len(args) > len(arguments) or unknown:
            wrong = f"no argument {unknown[0]!r} is left" if unknown else f"got {len(args)} arguments"
            raise UserError(f"kernel {self.signature}: {wrong}")
        given = {**dict(zip(names, args, strict=False)), **named}
        values = [_value(self.signature, argument, given.get(argument.name)) for argument in arguments]
        return values, self._bounds(grid, values)

    def _bounds(self, grid: Any, values: Sequence[Any]) -> tuple[int, ...]:
        wanted: Any = self._grid if grid is None else grid
        wanted = wanted(*values) if callable(wanted) else wanted
        if wanted is None and self.signature.grid_rank == 0:
            wanted = ()
        if wanted is None:
            raise UserError(f"kernel {self.signature}: give the bounds with grid=")
        bounds = tuple(int(bound) for bound in ([wanted] if isinstance(wanted, int | np.integer) else wanted))
        if len(bounds) != self.signature.grid_rank or min(bounds, default=0) < 0:
            raise UserError(f"kernel {self.signature}: grid={list(bounds)} does not fit")
        return bounds

    def _model(self, values: Sequence[Any], bounds: tuple[int, ...], target: str) -> Any:
        shapes = tuple(
            None if a.shape is None else v.shape for a, v in zip(self.signature.arguments, values, strict=True)
        )
        key = (shapes, bounds, target)
        if key not in self._models:
            emulate = self._emulate if target == self._target else False
            text = wrapped(self.signature, shapes, bounds)
            checks = self._checks
            self._models[key] = self._compile(text, target, threads=self._threads, emulate=emulate, checks=checks)
        return self._models[key]

    def _inputs(self, values: Sequence[Any]) -> list[Any]:
        return [value for argument, value in zip(self.signature.arguments, values, strict=True) if argument.reads]

    def _run(self, model: Any, values: Sequence[Any]) -> Outputs:
        written = [(a, v) for a, v in zip(self.signature.arguments, values, strict=True) if a.writes]
        # A model's outputs may not overlap its inputs: what is read and written goes through an array of its own.
        out = [np.empty_like(value) if argument.reads else value for argument, value in written]
        results = model(*self._inputs(values), **({} if self._is_interpreter(model) else {"out": out}))
        for (_, value), result in zip(written, results, strict=True):
            if result is not value:
                np.copyto(value, result)
        return Outputs([value for _, value in written], tuple(argument.name for argument, _ in written))

    def _as_given(self, args: Sequence[Any], named: dict[str, Any], results: Outputs) -> Outputs:
        """Results as torch tensors where arguments are: the tensor that was written, or one of the new array."""
        given = {**dict(zip([a.name for a in self.signature.arguments], args, strict=False)), **named}
        if not any(map(is_torch, given.values())):
            return results
        values = [given[name] if given.get(name) is not None else to_torch(array) for name, array in results.items()]
        count_changes(values)
        return Outputs(values, results.keys())

    @staticmethod
    def _is_interpreter(model: Any) -> bool:
        return not hasattr(model, "profile")


def _described(target: Target) -> dict[str, Any]:
    """The description of a target's machine as plain values; empty where it has none."""
    return target.device.to_dict() if target.device is not None else {}


def _value(signature: Signature, argument: Argument, value: Any) -> Any:
    """One argument as the model takes it."""
    dtype = of_mlir(argument.element)
    if value is None:
        if argument.reads or argument.shape is None or min(argument.shape, default=0) < 0:
            raise UserError(f"kernel {signature}: {argument.name} is missing")
        return np.empty(argument.shape, dtype)
    if argument.shape is None:
        if np.ndim(value):  # of a torch tensor, too
            raise UserError(f"kernel {signature}: {argument.name} is a scalar, got an array")
        return np.array(value, dtype)
    return _array(signature, argument, value, dtype)


def _array(signature: Signature, argument: Argument, value: Any, dtype: np.dtype) -> np.ndarray:
    advice = ""
    if is_torch(value):
        value, advice = to_numpy(value, argument.name, dtype)[0], f"; convert it with .to(torch.{dtype.name})"
    if not isinstance(value, np.ndarray):
        got = type(value).__name__
        raise UserError(f"kernel {signature}: {argument.name} must be a NumPy array or torch tensor, got a {got}")
    if value.dtype != dtype:
        raise UserError(f"kernel {signature}: {argument.name} must be of dtype {dtype}, got {value.dtype}{advice}")
    wanted = argument.shape or ()
    if len(wanted) != value.ndim or any(w not in (-1, size) for w, size in zip(wanted, value.shape, strict=False)):
        raise UserError(f"kernel {signature}: {argument.name} does not fit an array of shape {list(value.shape)}")
    if argument.writes and not value.flags.carray:
        raise UserError(f"kernel {signature}: the array for {argument.name} must be C-contiguous and writeable")
    return value


def _copied(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else value


def _tolerance(dtype: np.dtype) -> float:
    return 0.0 if dtype.kind in "iub" else _TOLERANCE.get(dtype.itemsize, 2e-2)


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    scale = max(float(np.abs(b).max(initial=0.0)), np.finfo(np.float64).tiny)
    return float(np.abs(a - b).max(initial=0.0)) / scale
