# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that stand for several inputs of a model: lists of lengths of their own, trees, tuples of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError


class Inputs:
    """Names, shapes and types of a model's inputs, in order."""

    def __init__(self, names: Sequence[str], shapes: Sequence[Sequence[int]], dtypes: Sequence[np.dtype]) -> None:
        self.names = tuple(names)
        self._shapes = {name: tuple(shape) for name, shape in zip(names, shapes, strict=True)}
        self._dtypes = dict(zip(names, dtypes, strict=True))

    def spread(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments with each value as what it is for each of its inputs.

        Raises:
            UserError: lists do not fit what the model was compiled for, a tuple has another number of parts, or an
                input is given by two names, of a whole and of a part of it.
        """
        positional: list[Any] = []
        for value in args:
            if len(positional) < len(self.names):
                positional += self._parts(value, self._parameter(value, self.names[len(positional)])).values()
            else:
                positional.append(value)
        found: dict[str, Any] = {}
        for name, value in named.items():
            parts = self._parts(value, name)
            twice = [part for part in parts if part in found]
            if twice:
                whole = min((n for n in named if f"{twice[0]}.".startswith(f"{n}.")), key=len)
                raise UserError(f"input {twice[0]} is given twice: by its own name, and as a part of {whole}")
            found |= parts
        return positional, found

    def _parameter(self, value: Any, name: str) -> str:
        """What a positional value is given for: a tuple for all inputs that its parts are."""
        whole = name.partition(".")[0]
        return whole if isinstance(value, tuple) and self._is_tuple(whole) else name

    def _is_tuple(self, name: str) -> bool:
        return name not in self._shapes and any(f"{other}.".startswith(f"{name}.0.") for other in self.names)

    def _parts(self, value: Any, name: str) -> dict[str, Any]:
        """A value as the inputs that it is, by their names."""
        if isinstance(value, tuple) and self._is_tuple(name):
            return self._of_tuple(value, name)
        shapes = {other: shape for other, shape in self._shapes.items() if f"{other}.".startswith(f"{name}.")}
        if isinstance(value, list | tuple) and f"{name}.offsets0" in shapes:
            value = self._lists(value, name, len(shapes))
        if not hasattr(value, "model_inputs"):
            return {name: value}
        return dict(zip(shapes, value.model_inputs(name, shapes), strict=True))

    def _of_tuple(self, values: tuple, name: str) -> dict[str, Any]:
        count = len({other[len(name) + 1 :].partition(".")[0] for other in self.names if other.startswith(f"{name}.")})
        if len(values) != count:
            raise UserError(f"input {name} is a tuple of {count}, got one of {len(values)}")
        found: dict[str, Any] = {}
        for number, value in enumerate(values):
            found |= self._parts(value, f"{name}.{number}")
        return found

    def _lists(self, value: Any, name: str, depth: int) -> Any:
        """Nested lists of Python as `ft.Lists`."""
        from tilewright.dialects.fractal.values import Lists

        shape, dtype = self._shapes[name][1:], self._dtypes[name]
        try:
            lists = Lists.of(value, depth, leaf_shape=shape, dtype=dtype)
        except UserError as error:
            raise UserError(f"input {name}: {error.message}") from None
        if lists.leaf_shape != shape:
            raise UserError(f"input {name} holds tensors {list(shape)}, got lists of tensors {list(lists.leaf_shape)}")
        return lists
