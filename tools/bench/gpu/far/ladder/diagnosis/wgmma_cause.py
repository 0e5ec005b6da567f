# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which field of wgmma's matrix descriptors or modifiers explains a product."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause, Hypothesis, changed, get, search
from bench.gpu.far.ladder.diagnosis.layout import MODES
from bench.gpu.far.ladder.diagnosis.wgmma import ROWS, addresses, product, values
from bench.gpu.far.ladder.setup import OperandSetup, WgmmaSetup

#: how far strides and what is added along k are looked for, bytes
_STRIDE, _ADVANCE = 16384, 8192
_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
#: rows of d that a hypothesis is tried on first
_SIEVE = np.array([0, 9, 18, 35, 63])


def diagnose(
    setup: WgmmaSetup,
    observed: Sequence[np.ndarray],
    images: Sequence[np.ndarray],
    registers: np.ndarray | None = None,
) -> Cause | None:
    """The field that explains all products observed; None: none does alone (or nothing is wrong).

    Args:
        setup: what is meant.
        observed: d (64, n) for each image.
        images: bytes of shared memory, as `wgmma.image` makes them: at least one of numbers, and better one for each
            operand with the other one-hot.
        registers: A (64, steps * k) where it comes from registers.
    """
    pairs = [(np.asarray(d, np.float64), image) for d, image in zip(observed, images, strict=True)]

    def explains(one: WgmmaSetup) -> bool:
        return all(_same(product(one, image, registers, setup.dtype), d) for d, image in pairs)

    if explains(setup):
        return None
    if all((d == setup.initial).all() for d, _ in pairs):
        return Cause("wait", "0 groups in flight", ("none",), _WORDS["wait"])
    sieve = _Sieve(setup, pairs, registers)
    hypotheses = (one for one in _hypotheses(setup) if sieve.passes(one))
    return search(hypotheses, explains, lambda one: _text(setup, one))


def _same(found: np.ndarray | None, d: np.ndarray) -> bool:
    """Equal but for the rounding of sums: those of whole numbers have none."""
    if found is None:
        return False
    return bool(np.abs(found - d).max() <= 5e-5 * np.abs(found).max(initial=0.0))


class _Sieve:
    """Lets hypotheses about one operand through that are right in a few rows (of A) or columns (of B)."""

    def __init__(self, setup: WgmmaSetup, pairs: list[tuple[np.ndarray, np.ndarray]], registers) -> None:
        self.setup, self.pairs, self.registers = setup, pairs, registers
        self.rows, self.columns = _SIEVE, _SIEVE[setup.n > _SIEVE]
        self.kept = {name: [self._operand(setup, name, image) for _, image in pairs] for name in ("a", "b")}

    def passes(self, one: Hypothesis) -> bool:
        """Whether the first image's product agrees there."""
        name = one.field.partition(".")[0]
        if name not in ("a", "b") or self.kept["a"][0] is None or self.kept["b"][0] is None:
            return True
        other = self._operand(one.setup, name, self.pairs[0][1], some=True)
        if other is None:
            return False
        d = self.pairs[0][0] - (self.setup.initial if self.setup.scale_d else 0.0)
        if self.setup.negate_a != self.setup.negate_b:
            d = -d
        if name == "a":
            return bool((other @ self.kept["b"][0].T == d[self.rows]).all())
        return bool((self.kept["a"][0] @ other.T == d[:, self.columns]).all())

    def _operand(self, setup: WgmmaSetup, name: str, image: np.ndarray, some: bool = False) -> np.ndarray | None:
        """An operand (outer, steps * k), or a few of its rows."""
        operand: OperandSetup | None = getattr(setup, name)
        if operand is None:
            return None if self.registers is None else self.registers.astype(np.float64)
        outer = ROWS if name == "a" else setup.n
        which = (self.rows if name == "a" else self.columns) if some else slice(None)
        parts = []
        for step in range(setup.steps):
            found = values(image, addresses(operand, outer, setup.dtype, step)[which], setup.dtype)
            if found is None:
                return None
            parts.append(found)
        return np.concatenate(parts, axis=1)


def _hypotheses(setup: WgmmaSetup) -> Iterator[Hypothesis]:
    for field, found in _values(setup):
        expected = get(setup, field)
        for value in found:
            if value != expected:
                yield changed(setup, field, value)
    if setup.a is not None:
        yield Hypothesis("operands", "a, b", "b, a", replace(setup, a=setup.b, b=setup.a))


def _values(setup: WgmmaSetup) -> Iterator[tuple[str, Iterable[Any]]]:
    yield "scale_d", (False, True)
    yield "negate_a", (False, True)
    if setup.dtype in ("f16", "bf16"):
        yield "dtype", ("f16", "bf16")
    for name in ("a", "b") if setup.a is not None else ("b",):
        yield f"{name}.address", range(0, setup.shared_bytes, 16)
        yield f"{name}.leading", range(0, _STRIDE + 1, 16)
        yield f"{name}.stride", range(0, _STRIDE + 1, 16)
        yield f"{name}.advance", range(0, _ADVANCE + 1, 16) if setup.steps > 1 else ()
        yield f"{name}.base_offset", range(8)
        yield f"{name}.swizzle", MODES
        yield f"{name}.k_major", (False, True)


def _text(setup: WgmmaSetup, one: Hypothesis) -> str:
    name, _, part = one.field.rpartition(".")
    words = {"found": one.found, "expected": one.expected, "operand": name.upper(), "trans": f"imm-trans-{name}"}
    if part == "swizzle":
        words |= {"code": _CODES[one.found], "meant": _CODES[one.expected]}
    return _WORDS[part].format(**words)


_WORDS = {
    "wait": "the accumulators are as before: they are read before wgmma.wait_group 0 (no commit_group, or no wait)",
    "scale_d": "the first product adds to the accumulators: {found}, not {expected}: operand scale-d",
    "negate_a": "the product has the other sign: imm-scale-a or imm-scale-b is -1",
    "dtype": "elements are read as {found}, not as {expected}: .atype and .btype",
    "operands": "A and B are exchanged: descriptors of the two operands",
    "address": "{operand} is read from byte {found} of shared memory, not {expected}: start address, bits 0-13 of its "
    "matrix descriptor",
    "leading": "core matrices of {operand} are read {found} bytes apart, not {expected}: leading-dimension byte "
    "offset, bits 16-29 of its matrix descriptor",
    "stride": "groups of eight rows of {operand} are read {found} bytes apart, not {expected}: stride-dimension byte "
    "offset, bits 32-45 of its matrix descriptor",
    "advance": "{operand}'s descriptor moves on by {found} bytes an instruction along k, not {expected}",
    "base_offset": "{operand}'s swizzle pattern begins in row {found}, not {expected}: base offset, bits 49-51 of its "
    "matrix descriptor",
    "swizzle": "{operand} is read with a swizzle of {found} bytes, it lies with {expected}: bits 62-63 of its matrix "
    "descriptor are {code}, not {meant}",
    "k_major": "{operand} is read as if k-major were {found}, not {expected}: {trans}",
}
