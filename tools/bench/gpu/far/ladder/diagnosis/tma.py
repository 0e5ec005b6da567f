# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What TMA leaves in shared memory and in its mbarrier, by the arguments of ``cuTensorMapEncodeTiled``.

Sources: CUDA driver API, tensor map object management; PTX ISA, ``cp.async.bulk.tensor`` (tiled mode, out-of-bounds
fill, traversal stride) and ``mbarrier`` (phase completion).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from bench.gpu.far.ladder.diagnosis.layout import placed
from bench.gpu.far.ladder.setup import TmaSetup

#: bytes of shared memory that a probe fills and dumps
SHARED_BYTES = 32768
#: what fills shared memory before: no tensor of `source` has it
POISON = 0xBE
#: bytes that the probe adds to or takes from the transaction count at a time
STEP = 16
ELEMENT_BYTES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "f32": 4, "u64": 8, "f64": 8}
_NAN = {2: b"\xff\x7f", 4: b"\xff\xff\xff\x7f", 8: b"\xff\xff\xff\xff\xff\xff\xff\x7f"}


@dataclass(frozen=True)
class TmaObserved:
    """What a probe of one box shows.

    Attributes:
        dump: the bytes of shared memory after the wait, uint8 (`SHARED_BYTES`,).
        over: whether phase 0 ended by itself.
        excess: bytes announced above those that came (below: negative), in units of `STEP`; None: no number of them
            that was tried ends the phase.
        missing: arrivals that ended it where no bytes did; 0 where none were needed.
    """

    dump: np.ndarray
    over: bool
    excess: float | None = 0
    missing: int = 0


def source(nbytes: int, plane: int = 0) -> np.ndarray:
    """The tensor's memory: every 16 bits number themselves (plane 0); plane 1: noise that tells single bytes apart.

    Returns uint8 (nbytes,); nbytes even, at most 2**17. No byte is `POISON` or 0.
    """
    if plane:
        made = np.random.default_rng(plane).integers(1, POISON, nbytes)
        return made.astype(np.uint8)
    number = np.arange(nbytes // 2)
    pair = np.stack([1 + number % 181, 1 + number // 181 % 181], axis=-1)  # digits 1 to 181: neither 0 nor poison
    return pair.astype(np.uint8).ravel()


def poisoned() -> np.ndarray:
    """Shared memory before."""
    return np.full(SHARED_BYTES, POISON, np.uint8)


def moved_bytes(setup: TmaSetup) -> int:
    """Bytes that one copy adds to the mbarrier: of the whole box, in bounds or not."""
    return prod(_counts(setup)) * ELEMENT_BYTES[setup.element]


def _counts(setup: TmaSetup) -> tuple[int, ...]:
    return tuple(-(-size // step) for size, step in zip(setup.box, setup.steps, strict=True))


def verdict(setup: TmaSetup) -> tuple[bool, float | None, int]:
    """`over`, `excess` and `missing` of what would be observed."""
    more = setup.expected_bytes - moved_bytes(setup)
    late = setup.arrivals - 1
    if late:
        return False, None, (late if more == 0 else 0)
    return more == 0, more / STEP, 0


class Loaded:
    """The forward model over one memory.

    Args:
        memory: bytes of the tensor's buffer, uint8.
        image: bytes of shared memory before, uint8.
    """

    def __init__(self, memory: np.ndarray, image: np.ndarray) -> None:
        self.memory, self.image = memory, image

    def dump(self, setup: TmaSetup) -> np.ndarray | None:
        """Shared memory after; None where memory outside the buffers is read or written."""
        if setup.parity % 2:
            return self.image
        counts = _counts(setup)
        index = np.indices(counts[::-1]).reshape(len(counts), -1)[::-1]
        found = self._elements(setup, index)
        places = _places(setup, index, counts)
        if found is None or int(places.max()) >= len(self.image):
            return None
        after = self.image.copy()
        after[places] = found
        return after

    def agrees(self, setup: TmaSetup, dump: np.ndarray, index: np.ndarray) -> bool:
        """Whether some elements of the box, (rank, n) numbers within it, are where they should be: a quick sieve."""
        if setup.parity % 2:
            return True
        counts = _counts(setup)
        index = index % np.array(counts)[:, None]
        found = self._elements(setup, index)
        places = _places(setup, index, counts)
        if found is None or int(places.max()) >= len(dump):
            return False
        return bool((dump[places] == found).all())

    def _elements(self, setup: TmaSetup, index: np.ndarray) -> np.ndarray | None:
        """Bytes (n, size) of elements of the box."""
        size = ELEMENT_BYTES[setup.element]
        at = np.array(setup.coordinates)[:, None] + index * np.array(setup.steps)[:, None]
        inside = ((at >= 0) & (at < np.array(setup.dims)[:, None])).all(axis=0)
        address = setup.offset + (at * np.array([size, *setup.strides])[:, None]).sum(axis=0)
        used = address[inside]
        if used.size and (int(used.min()) < 0 or int(used.max()) + size > len(self.memory)):
            return None
        fill = _NAN[size] if setup.fill == "nan" and size > 1 else bytes(size)
        found = np.tile(np.frombuffer(fill, np.uint8), (index.shape[1], 1))
        found[inside] = self.memory[used[:, None] + np.arange(size)]
        return found


def _places(setup: TmaSetup, index: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Where the bytes (n, size) of elements of the box go."""
    size = ELEMENT_BYTES[setup.element]
    weights = np.cumprod([1, *counts[:-1]])
    flat = setup.smem_offset + size * (index * weights[:, None]).sum(axis=0)
    return placed(flat[:, None] + np.arange(size), setup.swizzle)
