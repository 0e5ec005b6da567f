# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the arguments of a call to arrays in the model's order, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.core.dtypes import is_small, stored, to_numpy
from tilewright.core.errors import UserError
from tilewright.runtime.interop import Export, to_torch
from tilewright.runtime.interop import to_numpy as import_array
from tilewright.runtime.list_lengths import Lengths
from tilewright.runtime.manifest import TensorSpec
from tilewright.runtime.spreading import Inputs

_SHOWN = 6  # shapes of inputs in an error


class Slot:
    """An input or output with what each call needs of it."""

    __slots__ = ("dtype", "is_small", "is_static", "name", "shape", "sizes")

    def __init__(self, spec: TensorSpec, names: Sequence[int | str] | None = None) -> None:
        self.name = spec.name
        self.sizes = ", ".join("any" if size == -1 else str(size) for size in (names or spec.shape))
        self.dtype = to_numpy(spec.dtype)
        self.is_small = is_small(self.dtype)
        self.shape = spec.shape
        self.is_static = spec.is_static


class Signature:
    """Inputs and outputs of a model, and the checks of what a call gives for them.

    Args:
        inputs: of the model, in order.
        outputs: of the model, in order.
        names: shapes with names of what is open, by input and output, as errors say them.
    """

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        names: Mapping[str, Sequence[int | str]] | None = None,
    ) -> None:
        names = names or {}
        self.inputs = tuple(Slot(spec, names.get(spec.name)) for spec in inputs)
        self.outputs = tuple(Slot(spec, names.get(spec.name)) for spec in outputs)
        self.lengths = Lengths(inputs)
        self.output_names = tuple(slot.name for slot in self.outputs)
        self._positions = {slot.name: i for i, slot in enumerate(self.inputs)}
        self._several = Inputs([s.name for s in inputs], [s.shape for s in inputs], [s.dtype for s in self.inputs])
        shown = (replace(spec, shape=tuple(names.get(spec.name, spec.shape))) for spec in inputs)
        self._expected = ", ".join(map(str, shown)) or "none"

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the inputs in order from positional and named ones.

        Raises:
            UserError: too many, unknown, given twice, or missing.
        """
        if any(isinstance(v, list | tuple) or hasattr(v, "model_inputs") for v in (*args, *named.values())):
            args, named = self._several.spread(args, named)
        if len(args) > len(self.inputs):
            raise UserError(f"the model takes {len(self.inputs)} inputs, got {len(args)}; they are {self._expected}")
        values: list[Any] = [*args, *[None] * (len(self.inputs) - len(args))]
        for name, value in named.items():
            position = self._positions.get(name)
            if position is None:
                raise UserError(f"the model has no input {name!r}; its inputs are {self._expected}")
            if position < len(args):
                raise UserError(f"input {name!r} is given by position and by name")
            values[position] = value
        missing = [slot.name for slot in self.inputs[len(args) :] if slot.name not in named]
        if missing:
            raise UserError(f"missing input {', '.join(missing)}; the inputs are {self._expected}")
        return values

    def convert(
        self, slot: Slot, value: Any, stays: Callable[[np.ndarray], bool] | None = None
    ) -> tuple[np.ndarray, Export | None]:
        """Return one input as a C-contiguous, aligned array, and how to make its kind from a result.

        `stays`: whether an array that is not contiguous is taken as it is.

        Raises:
            UserError: wrong dtype or shape, or no array.
        """
        if hasattr(value, "model_inputs"):
            (value,) = value.model_inputs(slot.name, {slot.name: tuple(slot.shape)})
        array, export = import_array(value, slot.name, slot.dtype)
        _check("input", slot, array, of_torch=export is to_torch)
        array = stored(array)
        if not (array.flags.c_contiguous and array.flags.aligned) and not (stays and stays(array)):
            array = np.array(array, order="C")
        return array, export

    def arrays(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[np.ndarray], Export | None]:
        """Return all inputs as arrays, and how to make their kind from a result (None: NumPy)."""
        found = [self.convert(slot, value) for slot, value in zip(self.inputs, self.bind(args, named), strict=True)]
        self.lengths.check([array for array, _ in found])
        return [array for array, _ in found], next((export for _, export in found if export), None)

    def check_out(self, out: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the arrays of ``out=`` in order.

        Raises:
            UserError: not as many as outputs, wrong dtype or shape, not writeable, or overlapping.
        """
        if isinstance(out, np.ndarray):
            out = [out]
        if isinstance(out, Mapping):
            wrong = set(out) ^ set(self.output_names)
            if wrong:
                names = ", ".join(self.output_names)
                raise UserError(f"out= must name all outputs ({names}); check {', '.join(sorted(wrong))}")
            out = [out[name] for name in self.output_names]
        if not isinstance(out, Sequence) or len(out) != len(self.outputs):
            got = len(out) if isinstance(out, Sequence) else f"a {type(out).__name__}"
            raise UserError(f"out= needs {len(self.outputs)} arrays ({', '.join(self.output_names)}), got {got}")
        for i, (slot, array) in enumerate(zip(self.outputs, out, strict=True)):
            _check_writeable(slot, array)
            if any(np.may_share_memory(array, other) for other in [*inputs, *out[:i]]):
                raise UserError(f"the array for output {slot.name} overlaps an input or another output")
        return list(out)

    def with_shapes(self, error: str, shapes: Sequence[Sequence[int]]) -> str:
        """An error that a run ended with, and the shapes that the call gave.

        Those of the inputs that it names; where it names none, of those whose sizes a call brings.
        """
        named = set(re.findall(r"input ([^\s,;)]+)", error))
        pairs = list(zip(self.inputs, shapes, strict=True))
        got = [(s, shape) for s, shape in pairs if s.name in named] or [(s, n) for s, n in pairs if not s.is_static]
        texts = [f"{slot.name} {list(shape)}" for slot, shape in got[:_SHOWN]] + ["..."] * (len(got) > _SHOWN)
        return f"{error}; got {', '.join(texts)}" if texts else error

    @staticmethod
    def fill(slot: Slot, array: np.ndarray, result: np.ndarray) -> None:
        """Copy a result whose size was known after the run only into an array of ``out=``.

        Raises:
            UserError: it has another shape.
        """
        if array.shape != result.shape:
            raise UserError(f"output {slot.name} has shape {list(result.shape)}, its array {list(array.shape)}")
        np.copyto(array, result)


def aligned(array: np.ndarray) -> np.ndarray:
    """Return the array, or one like it where its address is no multiple of 16, which code may rely on for outputs."""
    return array if array.__array_interface__["data"][0] % 16 == 0 else np.empty_like(array)


def _check_writeable(slot: Slot, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise UserError(f"out= takes NumPy arrays, got {type(array).__name__} for {slot.name}")
    _check("output", slot, array)
    if not array.flags.carray:
        raise UserError(f"the array for output {slot.name} must be C-contiguous, aligned and writeable")


def _check(what: str, slot: Slot, array: np.ndarray, of_torch: bool = False) -> None:
    if _holds_strings(array):
        raise UserError(
            f"{what} {slot.name} takes numbers ({slot.dtype}), got strings; look up what they stand for before the call"
        )
    if array.dtype != slot.dtype:
        advice = f".to(torch.{slot.dtype.name})" if of_torch else f".astype({slot.dtype.name!r})"
        raise UserError(
            f"{what} {slot.name} must be of dtype {slot.dtype}, got {array.dtype}; convert it with {advice}"
        )
    if array.shape != slot.shape and not _fits(slot.shape, array.shape):
        raise UserError(f"{what} {slot.name} must have shape [{slot.sizes}], got {list(array.shape)}")


def _holds_strings(array: np.ndarray) -> bool:
    objects = array.dtype.kind == "O"
    return array.dtype.kind in "US" or (objects and any(isinstance(v, str | bytes) for v in array.flat))


def _fits(wanted: Sequence[int], got: Sequence[int]) -> bool:
    """Whether the sizes agree where they are known before a run."""
    return len(wanted) == len(got) and all(w in (-1, g) for w, g in zip(wanted, got, strict=True))
