# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call returns: a tuple with names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Outputs(tuple):
    """A tuple of arrays in the model's order, which also takes names: ``out[0]`` and ``out["logits"]``."""

    _names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], names: tuple[str, ...]) -> Outputs:
        """Make the tuple; `names` are as many as `values`."""
        self = super().__new__(cls, values)
        self._names = names
        return self

    def __getitem__(self, key):
        """Return one output by position or name, or a plain tuple for a slice.

        Raises:
            KeyError: no output has this name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        try:
            return super().__getitem__(self._names.index(key))
        except ValueError:
            raise KeyError(f"no output {key!r}; the outputs are {', '.join(self._names)}") from None

    def __reduce__(self):
        """Support pickling."""
        return type(self), (tuple(self), self._names)

    def keys(self) -> tuple[str, ...]:
        """Return the names, in order."""
        return self._names

    def items(self) -> list[tuple[str, Any]]:
        """Return (name, value) pairs, in order."""
        return list(zip(self._names, self, strict=True))

    def __repr__(self) -> str:
        """Return names with shapes and dtypes; of a list (of maps, of a sequence) how many it holds."""
        return f"Outputs({', '.join(f'{name}={_described(value)}' for name, value in self.items())})"


def _described(value: Any) -> str:
    if hasattr(value, "shape"):
        kind = getattr(value, "dtype", "?")
        return f"{'string' if str(kind) == 'object' else kind}{list(value.shape)}"
    return f"{type(value).__name__}[{len(value)}]" if isinstance(value, list | tuple | dict) else type(value).__name__
