# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in wgmma: fields of matrix descriptors, modifiers, what waits for it."""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis import wgmma, wgmma_cause
from bench.gpu.far.ladder.diagnosis.cause import Cause, get, put
from bench.gpu.far.ladder.setup import OperandSetup, WgmmaSetup
from bench.gpu.ladder import watched
from bench.gpu.ladder.faulty.family import Fault, drop
from tilewright.runtime.gpu.gpu_device import Device

_B = 16384
_START = 1000.0


def _k_major(swizzle: int, at: int, leading: int = 16) -> OperandSetup:
    return OperandSetup(at, leading, 8 * swizzle, 0, swizzle, True, 32)


def _case(a: OperandSetup | None, b: OperandSetup, steps: int, n: int = 64, dtype: str = "f16") -> WgmmaSetup:
    return WgmmaSetup(n, dtype, a, b, steps=steps, initial=_START)


#: MN-major: LBO from panel to panel of 64 (32) elements, SBO to the next eight of k
_B_BY_ROWS = OperandSetup(_B, 8192, 1024, 0, 128, False, 2048)
_A_BY_COLUMNS = OperandSetup(0, 4096, 512, 0, 64, False, 1024)
_CASES = (
    _case(_k_major(128, 0), _k_major(128, _B), 4),
    _case(_k_major(64, 0), _k_major(64, _B), 2, dtype="bf16"),
    _case(_k_major(32, 0), _k_major(32, _B), 1),
    _case(OperandSetup(0, 1024, 128, 0, 0, True, 2048), OperandSetup(_B, 1024, 128, 0, 0, True, 2048), 2),
    _case(_k_major(128, 1024), _B_BY_ROWS, 4, n=128),
    _case(_A_BY_COLUMNS, _k_major(64, _B), 2, dtype="bf16"),
    _case(None, _k_major(128, _B), 4),
)
_EDITS = {
    "wgmma.wait_group": "wait",
    "wgmma.commit_group": "wait",
    "wgmma.fence": "wgmma.fence",
    "fence.proxy.async": "fence.proxy.async",
}
_CODES = {0: 0, 1: 128, 2: 64, 3: 32}


class Products:
    """One chain of wgmma at a time."""

    rung = "wgmma"
    cases = _CASES

    def draw(self, rng: np.random.Generator) -> Fault:
        """A fault of a descriptor, a modifier or the kernel's text."""
        while True:
            case = int(rng.integers(len(self.cases)))
            setup, kind = self.cases[case], rng.random()
            fault = self._text(rng, case) if kind < 0.08 else self._field(rng, case, setup, kind < 0.3)
            if fault is not None:
                return fault

    def _text(self, rng: np.random.Generator, case: int) -> Fault:
        name = list(_EDITS)[int(rng.integers(len(_EDITS)))]
        return Fault(self.rung, case, _EDITS[name], name, "dropped", self.cases[case], (), drop(name))

    def _field(self, rng: np.random.Generator, case: int, setup: WgmmaSetup, flip: bool) -> Fault | None:
        operand = "b" if setup.a is None else str(rng.choice(["a", "b"]))
        if flip:
            field, value = _flipped(rng, setup, operand)
        else:
            names = [
                f"{operand}.{name}" for name in ("address", "leading", "stride", "base_offset", "swizzle", "k_major")
            ]
            names += [f"{operand}.advance"] * (setup.steps > 1) + ["scale_d", "dtype"]
            field = names[int(rng.integers(len(names)))]
            value = _value(rng, get(setup, field), field.rpartition(".")[2])
        other = put(setup, field, value)
        if value == get(setup, field) or _seen(case, other, 0) is None:
            return None
        return Fault(self.rung, case, field, get(setup, field), value, other)

    def observe(self, device: Device, case: int, fault: Fault | None) -> list[np.ndarray]:
        """d for each image."""
        setup = fault.setup if fault else self.cases[case]
        majors = (setup.a is None or setup.a.k_major, setup.b.k_major)
        text = watched.multiply(setup.n, setup.dtype, *majors, setup.a is None, setup.steps)
        text = fault.edit(text) if fault and fault.edit else text
        images, registers = _inputs(case)
        # the bits in memory and in registers are the case's own: only the instructions read them as another type
        bits = None if registers is None else watching.fragments_of_a(registers, self.cases[case].dtype)
        return [watching.multiply(device, text, setup, image, bits) for image in images]

    def passes(self, case: int, seen: list[np.ndarray]) -> bool:
        """Whether all products are right."""
        return all((d == _seen(case, self.cases[case], i)).all() for i, d in enumerate(seen))

    def diagnose(self, case: int, seen: list[np.ndarray]) -> Cause | None:
        """The field."""
        images, registers = _inputs(case)
        return wgmma_cause.diagnose(self.cases[case], seen, images, registers)


def _inputs(case: int) -> tuple[list[np.ndarray], np.ndarray | None]:
    setup = _CASES[case]
    images = [wgmma.image(setup, 100 * case + i, name) for i, name in enumerate(("", "a", "b"))]
    numbers = np.random.default_rng(case).integers(-8, 9, (64, wgmma.depth(setup.dtype) * setup.steps))
    return images, numbers if setup.a is None else None


def _seen(case: int, setup: WgmmaSetup, which: int) -> np.ndarray | None:
    images, registers = _inputs(case)
    return wgmma.product(setup, images[which], registers)


def _flipped(rng: np.random.Generator, setup: WgmmaSetup, operand: str) -> tuple[str, int]:
    """A bit of the descriptor that is not as it was."""
    part = getattr(setup, operand)
    start, width, name = [(0, 10, "address"), (16, 11, "leading"), (32, 11, "stride"), (49, 3, "base_offset"),
                          (62, 2, "swizzle")][int(rng.integers(5))]  # fmt: skip
    bits = watching.descriptor(part) ^ 1 << (start + int(rng.integers(width)))
    if name == "swizzle":
        return f"{operand}.swizzle", _CODES[bits >> 62]
    if name == "base_offset":
        return f"{operand}.base_offset", bits >> 49 & 7
    return f"{operand}.{name}", (bits >> start & 0x3FFF) << 4


def _value(rng: np.random.Generator, old, name: str):
    near = 16 * int(rng.integers(1, 129)) * int(rng.choice([-1, 1]))
    if name in ("address", "leading", "stride", "advance"):
        return max(old + near, 0)
    if name in ("k_major", "scale_d"):
        return not old
    values = {"base_offset": list(range(8)), "swizzle": [0, 32, 64, 128], "dtype": ["f16", "bf16"]}[name]
    return values[int(rng.integers(len(values)))]
