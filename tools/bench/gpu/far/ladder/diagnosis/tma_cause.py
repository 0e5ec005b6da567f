# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which argument of a TMA load explains a dump: hypotheses over each, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause, Hypothesis, changed, get, search
from bench.gpu.far.ladder.diagnosis.layout import MODES
from bench.gpu.far.ladder.diagnosis.tma import (
    ELEMENT_BYTES,
    SHARED_BYTES,
    Loaded,
    TmaObserved,
    moved_bytes,
    verdict,
)
from bench.gpu.far.ladder.setup import TmaSetup

_CODES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_BITS = {0: 0, 128: 1, 64: 2, 32: 3}
#: how far coordinates and the address are looked for: elements, bytes
_NEAR, _FAR = 256, 4096
_SIEVE = 64


def diagnose(setup: TmaSetup, observed: TmaObserved, memory: np.ndarray, image: np.ndarray) -> Cause | None:
    """The argument that explains everything observed; None: none does alone (or nothing is wrong).

    Args:
        setup: what is meant.
        observed: what the probe shows.
        memory: bytes of the tensor's buffer, uint8, as `tma.source` makes them.
        image: bytes of shared memory before, uint8.
    """
    model = Loaded(memory, image)
    random = np.random.default_rng(0)
    some = random.integers(0, 1 << 20, (len(setup.box), _SIEVE))

    def explains(one: TmaSetup) -> bool:
        if not _waits_so(one, observed) or not model.agrees(one, observed.dump, some):
            return False
        dump = model.dump(one)
        return dump is not None and bool((dump == observed.dump).all())

    if explains(setup):
        return None
    values = [*_values(setup), ("expected_bytes", _bytes(setup, observed))]
    found = search(_hypotheses(setup, values), explains, lambda one: _text(setup, one))
    if found is None and not any(explains(one.setup) for one in _hypotheses(setup, values)):
        found = search(_hypotheses(setup, _exchanged(setup)), explains, lambda one: _text(setup, one))
    return found


def _waits_so(setup: TmaSetup, observed: TmaObserved) -> bool:
    """Whether the mbarrier would say what it said."""
    over, excess, missing = verdict(setup)
    untold = observed.excess is None and observed.missing == 0  # bytes that no number tried makes up for
    same = excess == observed.excess or (untold and excess is not None and excess % 1 != 0)
    return over == observed.over and same and missing == observed.missing


def _hypotheses(setup: TmaSetup, values: Iterable[tuple[str, Iterable[Any]]]) -> Iterator[Hypothesis]:
    for field, found in values:
        expected = get(setup, field)
        for value in found:
            if value != expected:
                yield changed(setup, field, value)


def _values(setup: TmaSetup) -> Iterator[tuple[str, Iterable[Any]]]:
    yield "swizzle", MODES
    yield "fill", ("zero", "nan")
    yield "element", [name for name, size in ELEMENT_BYTES.items() if size != ELEMENT_BYTES[setup.element]]
    yield "offset", range(setup.offset % 16, setup.offset + _FAR + 1, 16)
    yield "smem_offset", range(0, SHARED_BYTES, 128)
    yield "parity", (0, 1)
    yield "arrivals", range(1, 1025)
    for dim in range(len(setup.box)):
        yield f"coordinates[{dim}]", range(setup.coordinates[dim] - _NEAR, setup.coordinates[dim] + _NEAR + 1)
        yield f"box[{dim}]", range(1, 257)
        yield f"steps[{dim}]", range(1, 9) if dim else ()
        yield f"dims[{dim}]", _dims(setup, dim)
    for dim, stride in enumerate(setup.strides):
        near = range(max(stride % 16, stride - _FAR), stride + _FAR + 1, 16)
        yield f"strides[{dim}]", sorted({*near, 2 * stride, 4 * stride, 8 * stride, *setup.strides})


def _bytes(setup: TmaSetup, observed: TmaObserved) -> list[int]:
    """What the mbarrier tells; where no multiple of 16 ends its phase, a number that is none stands for all."""
    return [moved_bytes(setup) + (1 if observed.excess is None else int(16 * observed.excess))]


def _dims(setup: TmaSetup, dim: int) -> range:
    """A tensor's size shows where the box passes its end: sizes beyond the box are all the same."""
    end = setup.coordinates[dim] + setup.box[dim] + 1
    return range(1, max(end, 1) + 1)


def _exchanged(setup: TmaSetup) -> Iterator[tuple[str, Iterable[Any]]]:
    """Two entries of a list exchanged: dimensions in the other order."""
    for field in ("coordinates", "box", "dims", "strides", "steps"):
        values = getattr(setup, field)
        for first in range(len(values)):
            for second in range(first + 1, len(values)):
                other = list(values)
                other[first], other[second] = other[second], other[first]
                yield field, [tuple(other)]


def _text(setup: TmaSetup, one: Hypothesis) -> str:
    name = one.field.partition("[")[0]
    said = _WORDS.get(name, "field `{field}` of the tensor map is {found}, the host means {expected}")
    words = {"field": one.field, "found": one.found, "expected": one.expected}
    if name == "swizzle":
        words |= {"code": _CODES[one.found], "meant": _CODES[setup.swizzle], "bits": _BITS[one.found]}
    return said.format(**words)


_WORDS = {
    "swizzle": (
        "shared memory is permuted as with CU_TENSOR_MAP_SWIZZLE_{code}, the kernel expects {meant}: field `swizzle` "
        "of the tensor map (a matrix descriptor of that layout has {bits} in bits 62-63)"
    ),
    "fill": "elements outside the tensor read as {found}, not as {expected}: `oobFill` of the tensor map",
    "element": "elements have the size of {found}, not of {expected}: `tensorDataType` of the tensor map",
    "offset": "the tensor begins {found} bytes into its buffer, not {expected}: `globalAddress` of the tensor map",
    "smem_offset": "the box lies {found} bytes into shared memory, not {expected}: destination of cp.async.bulk.tensor",
    "parity": "shared memory is as before the load: mbarrier.try_wait.parity passes at once (its parity, or no wait)",
    "arrivals": "the phase ends after {found} arrivals, {expected} come: count of mbarrier.init, or an arrival missing",
    "expected_bytes": "the load brings its bytes, but arrive.expect_tx announces {found}, not {expected}",
    "coordinates": "the box begins at another place: `{field}` of cp.async.bulk.tensor is {found}, not {expected}",
    "box": "the box has other sizes: `{field}` (boxDim) is {found}, not {expected}",
    "steps": "elements are left out or too many: `{field}` (elementStrides) is {found}, not {expected}",
    "dims": "the tensor ends elsewhere: `{field}` (globalDim) is {found}, not {expected}",
    "strides": "rows are taken from elsewhere: `{field}` (globalStrides, bytes) is {found}, not {expected}",
}
