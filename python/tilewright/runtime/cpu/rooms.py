# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory with room behind it, for results that are an input with rows behind it (`append_in_place`).

A result is a view of the beginning of such memory. Where a call gets one as its input, and nothing was appended to it
since, the code writes new rows behind those that are there; else they are copied into memory of their own first. So a
result never changes, whatever is appended to it, and however often.
"""

from __future__ import annotations

import math
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Rows that new memory has beyond those that are needed, at least.
_LEAST = 64
_LINE = 64


@dataclass(frozen=True)
class Place:
    """An output that continues an input.

    Attributes:
        output, input: their numbers.
        axis: along which rows are appended.
        name: of the output.
    """

    output: int
    input: int
    axis: int
    name: str

    def start(self, whole: np.ndarray, rows: int) -> np.ndarray:
        """The first rows."""
        return whole[(slice(None),) * self.axis + (slice(rows),)]


@dataclass
class _Known:
    """What is known of memory as long as somebody shows some of it.

    Attributes:
        block: its bytes.
        shape, dtype: of the whole as an array.
        used: rows of the last result.
        busy: a call appends to it.
    """

    block: weakref.ref[np.ndarray]
    shape: tuple[int, ...]
    dtype: np.dtype
    used: int = 0
    busy: bool = True

    def whole(self) -> np.ndarray | None:
        """All of it; None where it is gone."""
        block = self.block()
        return None if block is None else _array(block, self.shape, self.dtype)


class Rooms:
    """The memory of a model's results that continue inputs. Calls may run at once.

    Args:
        appends: (output, input, axis) of each.
        names: of the outputs.
    """

    def __init__(self, appends: Sequence[Sequence[int]], names: Sequence[str]) -> None:
        self.places = [Place(output, given, axis, names[output]) for output, given, axis in appends]
        self._inputs = {place.input: place for place in self.places}
        self._known: dict[int, _Known] = {}
        self._lock = threading.RLock()  # the collector may tell that a block is gone at any time

    def holds(self, number: int, array: np.ndarray) -> bool:
        """Whether an input shows memory with room, so that it need not be contiguous."""
        place = self._inputs.get(number)
        return place is not None and self._shown(place, array) is not None

    def claim(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Memory for each place: that which its input shows, or new one that begins with the input."""
        return [self._claimed(place, arrays[place.input]) for place in self.places]

    def grow(self, error: str, wholes: list[np.ndarray], arrays: Sequence[np.ndarray]) -> bool:
        """Make more room where the code says that there is not enough. False where an error says another thing."""
        for number, place in enumerate(self.places):
            found = re.fullmatch(rf"no room for output {re.escape(place.name)}, whose dimension \d+ is: (\d+)", error)
            if found:
                self.release([wholes[number]])
                wholes[number] = self._made(place, arrays[place.input], int(found[1]))
                return True
        return False

    def results(self, wholes: Sequence[np.ndarray], shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """The results of a call, by their shapes."""
        views = []
        for place, whole, shape in zip(self.places, wholes, shapes, strict=True):
            rows = shape[place.axis]
            self._known[_address(whole)].used = rows
            views.append(place.start(whole, rows))
            views[-1].flags.writeable = False
        self.release(wholes)
        return views

    def release(self, wholes: Sequence[np.ndarray]) -> None:
        """Let other calls append."""
        for whole in wholes:
            self._known[_address(whole)].busy = False

    def _claimed(self, place: Place, array: np.ndarray) -> np.ndarray:
        with self._lock:
            known = self._shown(place, array)
            whole = known.whole() if known is not None and not known.busy else None
            if known is not None and whole is not None:
                known.busy = True
                return whole
        return self._made(place, array, array.shape[place.axis] + 1)

    def _shown(self, place: Place, array: np.ndarray) -> _Known | None:
        """The memory of which an array shows all used rows."""
        known = self._known.get(_address(array))
        whole = known.whole() if known is not None else None
        if known is None or whole is None or array.dtype != known.dtype:
            return None
        return known if _alike(place.start(whole, known.used), array) else None

    def _made(self, place: Place, array: np.ndarray, rows: int) -> np.ndarray:
        """New memory that begins with an array, with room for some rows and more."""
        shape = list(array.shape)
        shape[place.axis] = rows + max(rows // 2, _LEAST)
        block = np.empty(math.prod(shape) * array.itemsize + 2 * _LINE, np.uint8)
        whole = _array(block, tuple(shape), array.dtype)
        place.start(whole, array.shape[place.axis])[...] = array
        address = _address(whole)
        with self._lock:
            gone = weakref.ref(block, lambda _: self._forget(address))
            self._known[address] = _Known(gone, tuple(shape), array.dtype)
        return whole

    def _forget(self, address: int) -> None:
        with self._lock:
            known = self._known.get(address)
            if known is not None and known.block() is None:
                del self._known[address]


def _array(block: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in a block, which it keeps, from a cache line on."""
    return np.ndarray(shape, dtype, buffer=block, offset=-_address(block) % _LINE)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays with the same beginning show the same elements; the step along a size of 1 means nothing."""
    steps = zip(one.shape, one.strides, other.strides, strict=False)
    return one.shape == other.shape and all(n == 1 or a == b for n, a, b in steps)
