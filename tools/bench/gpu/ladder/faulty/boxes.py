# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in TMA loads: arguments of the tensor map, of the copy and of its mbarrier."""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis import tma_cause
from bench.gpu.far.ladder.diagnosis.cause import Cause, get, put
from bench.gpu.far.ladder.diagnosis.tma import ELEMENT_BYTES, Loaded, TmaObserved, moved_bytes, poisoned, source
from bench.gpu.far.ladder.setup import TmaSetup
from bench.gpu.ladder import watched
from bench.gpu.ladder.faulty.family import Fault, drop
from tilewright.core.errors import UserError
from tilewright.runtime.gpu import tensor_map as rules
from tilewright.runtime.gpu.gpu_device import Device

#: polls on the emulator: more than it makes before it completes a copy, fewer than it takes for a dead-lock
LIMIT = 500
_MEMORY_BYTES = 1 << 16


def _case(element, dims, strides, box, swizzle, at, steps=(), fill="zero", place=1024) -> TmaSetup:
    made = TmaSetup(element, dims, strides, box, steps or (1,) * len(box), swizzle, fill, at, place, 0, 1024)
    return put(made, "expected_bytes", moved_bytes(made))


#: each box leaves its tensor along every dimension, so that a moved box and a moved tensor are not the same; half of
#: them hold the whole tensor with a rim
_CASES = (
    _case("bf16", (58, 20), (208,), (64, 24), 128, (-3, -2)),
    _case("bf16", (100, 60), (224,), (32, 24), 64, (80, -7), fill="nan"),
    _case("f16", (13, 28), (112,), (16, 32), 32, (-1, -2)),
    _case("f32", (37, 20), (160,), (12, 16), 0, (-2, 10)),
    _case("bf16", (100, 60), (208,), (64, 64), 128, (50, -2), steps=(1, 3)),
    _case("u8", (124, 30), (208,), (128, 36), 128, (-2, -3)),
    _case("f16", (40, 9, 11), (96, 960), (32, 8, 14), 64, (-3, 3, -1), steps=(1, 1, 2)),
    _case("f16", (14, 5, 4, 2, 2), (48, 288, 1440, 5760), (16, 7, 6, 4, 4), 32, (-1, -1, -1, -1, -1)),
)
_EDITS = {
    "the wait": ("mbarrier.test_wait.parity", "  setp.eq.u32 %p3, 0, 0;", "parity"),
    "fence.proxy.async": ("fence.proxy.async", "", ""),
    "fence.mbarrier_init": ("fence.mbarrier_init", "", ""),
}


class Boxes:
    """Dumps of boxes."""

    rung = "tma"
    cases = _CASES

    def draw(self, rng: np.random.Generator) -> Fault:
        """A fault of an argument or of the kernel's text."""
        while True:
            case = int(rng.integers(len(self.cases)))
            fault = self._text(rng, case) if rng.random() < 0.08 else self._argument(rng, case)
            if fault is not None:
                return fault

    def _text(self, rng: np.random.Generator, case: int) -> Fault:
        name = list(_EDITS)[int(rng.integers(len(_EDITS)))]
        statement, other, means = _EDITS[name]
        return Fault(self.rung, case, means or name, name, "dropped", self.cases[case], (), drop(statement, other))

    def _argument(self, rng: np.random.Generator, case: int) -> Fault | None:
        setup = self.cases[case]
        fields = _fields(setup)
        field = fields[int(rng.integers(len(fields)))]
        value = _value(rng, setup, field)
        other = put(setup, field, value)
        if value == get(setup, field) or not _legal(other):
            return None
        old = get(setup, field)
        same = (
            tuple(f"{field}[{dim}]" for dim in range(len(old)) if old[dim] != value[dim]) if type(old) is tuple else ()
        )
        return Fault(self.rung, case, field, old, value, other, same)

    def observe(self, device: Device, case: int, fault: Fault | None) -> TmaObserved:
        """Run a case."""
        setup = fault.setup if fault else self.cases[case]
        text = watched.box(len(setup.box))
        text = fault.edit(text) if fault and fault.edit else text
        return watching.box(device, text, setup, _memory(self.cases[case]), poisoned(), LIMIT)

    def passes(self, case: int, seen: TmaObserved) -> bool:
        """Whether box and mbarrier are as they should be."""
        right = Loaded(_memory(self.cases[case]), poisoned()).dump(self.cases[case])
        return seen.over and right is not None and bool((right == seen.dump).all())

    def diagnose(self, case: int, seen: TmaObserved) -> Cause | None:
        """The argument."""
        return tma_cause.diagnose(self.cases[case], seen, _memory(self.cases[case]), poisoned())


def _memory(setup: TmaSetup) -> np.ndarray:
    return source(_MEMORY_BYTES, int(setup.element == "u8"))


def _fields(setup: TmaSetup) -> list[str]:
    found = ["swizzle", "fill", "element", "offset", "smem_offset", "parity", "arrivals", "expected_bytes"]
    for name in ("coordinates", "box", "steps", "dims", "strides"):
        found += [f"{name}[{dim}]" for dim in range(len(getattr(setup, name)))]
        found += [name] if len(getattr(setup, name)) > 1 else []
    return found


def _value(rng: np.random.Generator, setup: TmaSetup, field: str):
    old, name = get(setup, field), field.partition("[")[0]
    if isinstance(old, tuple):
        first, second = rng.choice(len(old), 2, replace=False)
        values = list(old)
        values[first], values[second] = values[second], values[first]
        return tuple(values)
    near = int(rng.integers(1, 24)) * int(rng.choice([-1, 1]))
    choices = {
        "swizzle": lambda: int(rng.choice([0, 32, 64, 128])),
        "fill": lambda: str(rng.choice(["zero", "nan"])),
        "element": lambda: str(rng.choice(list(ELEMENT_BYTES))),
        "smem_offset": lambda: old + 128 * near,
        "parity": lambda: 1,
        "arrivals": lambda: 1 + abs(near),
        "expected_bytes": lambda: max(old + near * int(rng.choice([1, 2, 16, 16, 128])), 0),
        "steps": lambda: int(rng.integers(1, 9)),
        "box": lambda: int(rng.choice([max(old + near, 1), old * 2, max(old // 2, 1)])),
        "dims": lambda: max(old + near, 1),
        "coordinates": lambda: _touching(rng, setup, field),
    }
    return choices.get(name, lambda: old + 16 * near)()


def _touching(rng: np.random.Generator, setup: TmaSetup, field: str) -> int:
    """A coordinate at which the box is not outside as a whole."""
    dim = int(field[-2])
    return int(rng.integers(1 - setup.box[dim], setup.dims[dim]))


def _legal(setup: TmaSetup) -> bool:
    """Whether encoder and probe take it, and all of it lies in the buffers."""
    if setup.element not in rules.ELEMENT_BYTES or setup.steps[0] != 1 or setup.smem_offset < 0:
        return False
    sizes = (setup.dims, setup.strides, setup.box, setup.swizzle, setup.fill, setup.steps)
    try:
        rules.check(setup.element, 1 << 16, *sizes)
    except UserError:
        return False
    if setup.offset < 0 or setup.smem_offset + moved_bytes(setup) > watched.SHARED_BYTES:
        return False
    return Loaded(_memory(setup), poisoned()).dump(setup) is not None
