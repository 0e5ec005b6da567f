# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled model with strings or maps at its ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.runtime.interop import to_numpy
from tilewright.runtime.manifest import TensorSpec
from tilewright.runtime.result import Outputs
from tilewright.runtime.text.boundary import MAP, NUMBERS, TEXT, Boundary, Step, Value
from tilewright.runtime.text.codes import Codes, as_text
from tilewright.runtime.text.steps import STEPS


def bounded(model: Any, data: Mapping[str, Any] | None = None) -> Any:
    """The model as users call it.

    Args:
        model: takes and gives numbers.
        data: of its boundary (:meth:`Boundary.data`); default: the model's own `boundary`.
    """
    data = getattr(model, "boundary", None) if data is None else data
    return model if data is None else TextModel(model, Boundary.of(data))


class TextModel:
    """A model with strings or maps, called like :class:`tilewright.Model`, whose other attributes it has too.

    Strings come in NumPy arrays (of any of its string types) or nested lists of str, and are given back in arrays of
    objects, each a str; maps are dicts, and lists of dicts. Inside, a string is a number: those that the model knows
    have fixed ones, all others get one for the time of the call, so that equal strings are equal.

    Args:
        model: the compiled model.
        boundary: what is to be done around it.

    Raises (when called):
        UserError: an input is missing, unknown, or holds something else than strings or maps; see also
            :class:`tilewright.Model`.
    """

    def __init__(self, model: Any, boundary: Boundary) -> None:
        self.numbers = model
        self._boundary = boundary
        self._known = {word: code for code, word in enumerate(boundary.words)}
        self._constants = {name: _constant(value) for name, value in boundary.constants.items()}

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype (``string``, ``map`` or that of numbers) and shape of each input, in order."""
        return self._specs(self._boundary.inputs, self.numbers.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype (``string``, ``map`` or that of numbers) and shape of each output, in order."""
        return self._specs(self._boundary.outputs, self.numbers.outputs)

    @property
    def dims(self) -> dict[str, tuple[int | str, ...]]:
        """For each input its sizes, with a name for each that a call brings."""
        inner = getattr(self.numbers, "dims", {})
        return {spec.name: inner.get(spec.name, _named(spec)) for spec in self.inputs if spec.dtype != MAP}

    def _specs(self, values: Sequence[Value], inner: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        found = {spec.name: spec for spec in inner}
        return tuple(_spec(value, found.get(value.name)) for value in values)

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Outputs:
        """Run the model; see the class."""
        if out is not None:
            raise UserError("out= takes numbers, and this model has strings or maps at its ends: copy its results")
        known = self._boundary
        values = {**self._constants, **self._bind(args, named)}
        codes = Codes(known.words, self._known)
        _run(known.before, values)
        given = [codes.encode(values[name]) if name in known.texts else values[name] for name in known.passed]
        results = self.numbers(*given)
        for name, result in zip(known.results, results, strict=True):
            values[name] = codes.decode(_array(result, name)) if name in known.texts else result
        _run(known.after, values)
        names = tuple(value.name for value in known.outputs)
        own = self._constants  # stay as they are, whatever is done to results
        return Outputs((own[name].copy() if name in own else values[name] for name in names), names)

    def for_inputs(self, *_: Any, **__: Any) -> TextModel:
        """The model that serves such inputs: this one, whatever their sizes."""
        return self

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name; strings as arrays of them."""
        inputs = self._boundary.inputs
        names = [value.name for value in inputs]
        if len(args) > len(names):
            raise UserError(f"the model takes {len(names)} inputs ({', '.join(names)}), got {len(args)}")
        given = dict(zip(names, args, strict=False))
        twice, unknown = sorted(set(given) & set(named)), sorted(set(named) - set(names))
        if twice or unknown:
            what = f"input {twice[0]!r} is given by position and by name" if twice else f"no input {unknown[0]!r}"
            raise UserError(f"the model has the inputs {', '.join(names)}: {what}")
        given |= named
        missing = [name for name in names if name not in given]
        if missing:
            raise UserError(f"missing input {', '.join(missing)}; the inputs are {', '.join(names)}")
        return {v.name: self._checked(v, given[v.name]) for v in inputs}

    def _checked(self, value: Value, given: Any) -> Any:
        if value.kind == NUMBERS:
            return given
        if value.kind == MAP:
            if not isinstance(given, Mapping):
                raise UserError(f"input {value.name} takes a dict, got {type(given).__name__}")
            return given
        text = as_text(given, value.name)
        fixed = [n if isinstance(n, int) and n >= 0 else None for n in value.shape]
        fits = len(fixed) == text.ndim and all(f in (None, n) for f, n in zip(fixed, text.shape, strict=True))
        if not fits:
            wanted = ", ".join("any" if n is None else str(n) for n in fixed)
            raise UserError(f"input {value.name} must have shape [{wanted}], got {list(text.shape)}")
        return text

    def __repr__(self) -> str:
        """Return the signature."""
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<tilewright.TextModel ({inputs}) -> ({outputs}), target {self.numbers.target}>"

    def __getattr__(self, name: str) -> Any:
        """Attributes of the compiled model."""
        if name == "numbers":
            raise AttributeError(name)
        return getattr(self.numbers, name)


def _named(spec: TensorSpec) -> tuple[int | str, ...]:
    return tuple(f"{spec.name}[{axis}]" if n == -1 else n for axis, n in enumerate(spec.shape))


def _spec(value: Value, inner: TensorSpec | None) -> TensorSpec:
    """As the compiled code has it, but for its type; what is made in Python has sizes that a run brings."""
    if value.kind == NUMBERS and inner is not None:
        return inner
    shape = inner.shape if inner is not None else tuple(n if isinstance(n, int) else -1 for n in value.shape)
    return TensorSpec(value.name, value.kind if value.kind != NUMBERS else "f32", shape)


def _constant(value: Any) -> np.ndarray:
    array = np.array(value["data"], value["dtype"] or object)
    return array.reshape(value["shape"])


def _array(value: Any, name: str) -> np.ndarray:
    return to_numpy(value, name, np.dtype(np.int64))[0]


def _run(steps: Sequence[Step], values: dict[str, Any]) -> None:
    """Run steps on values by name.

    Raises:
        UserError: a value does not suit a step.
    """
    for each in steps:
        given = [_given(values[name], name) if name else None for name in each.inputs]
        try:
            results = STEPS[each.op](each.attributes, *given)
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise UserError(f"{each.op} ({each.label}) cannot be computed of these inputs: {error}") from None
        results = results if isinstance(results, tuple) else (results,)
        values.update(zip(each.outputs, results, strict=False))


def _given(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return value if value and isinstance(value[0], Mapping) else np.asarray(value)
    plain = isinstance(value, np.ndarray | Mapping)
    return value if plain else to_numpy(value, name, np.dtype(np.float32))[0]


__all__ = ["TEXT", "TextModel", "bounded"]
