# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rungs of wgmma: one product at a time, of one-hot operands, with the compiler's own matrix descriptors.

Where one operand is one-hot over k, the result shows the other one as the matrix unit reads it. Elements of that one
are their row, then their place along k: two results name the element that each place was read from.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.device import Opener, Pack
from bench.gpu.far.ladder.diagnosis import wgmma, wgmma_cause
from bench.gpu.far.ladder.diagnosis.layout import placed
from bench.gpu.far.ladder.explain import explain
from bench.gpu.far.ladder.programs import compare, where
from bench.gpu.far.ladder.report import Check, Report
from bench.gpu.far.ladder.setup import OperandSetup, WgmmaSetup, from_json
from tilewright.runtime.gpu.gpu_device import Device

ROWS = 64
ENCODER = "see descriptorBits and offsetOf in lib/Conversion/AsyncToGPU/WgmmaOperands.cpp"
#: Elements of k that an instruction takes.
_DEPTH = 16


def multiply(pack: Pack, open_: Opener, report: Report) -> None:
    """The rung's probe with one-hot operands, then the product that the compiler made."""
    for probe in pack.probes(report.rung):
        with report.check("one_hot", probe["setup"]) as check:
            one_hot(open_(0), pack.text(probe), from_json(probe["setup"]), check)
    for entry in pack.programs(report.rung):
        compare(pack, open_, report, entry)


def one_hot(device: Device, text: str, setup: WgmmaSetup, check: Check) -> None:
    """Multiply one-hot operands, and say which elements the matrix unit read."""
    seen = []
    for name, a, b in operands(setup):
        words = watching.fragments_of_a(a.astype(np.int64), setup.dtype)
        found = watching.multiply(device, text, setup, image(setup, a, b), words).astype(np.float64)
        seen.append((name, a, b, found, a.astype(np.float64) @ b.astype(np.float64).T))
    wrong = next((one for one in seen if (one[3] != one[4]).any()), None)
    if wrong is None:
        check.tell(f"{len(seen)} products of {ROWS}x{setup.n}x{_DEPTH * setup.steps} are right")
        return
    images, registers = [image(setup, a, b) for _, a, b, _, _ in seen], wrong[1].astype(np.int64)
    told = f"elements of {wrong[0]} are not where they are read: {where(wrong[3], wrong[4], 0.0)}"
    modelled = wgmma.product(setup, image(setup, wrong[1], wrong[2]), registers)
    if modelled is not None and (modelled == wrong[3]).all():
        check.wrong(f"{told}; the matrix unit reads what the descriptor says: it is not that of the layout, {ENCODER}")
        return
    chosen = [one for one in zip(seen, images, strict=True) if setup.a is not None or one[0] is wrong]
    found, images = [one[0][3] for one in chosen], [one[1] for one in chosen]
    check.wrong(**explain(told, wgmma_cause.diagnose(setup, found, images, registers)))


def operands(setup: WgmmaSetup) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """What is looked at, and operands `a` [64, k] and `b` [n, k] of f16, of which one is one-hot."""
    depth = _DEPTH * setup.steps
    hot = {size: (np.arange(size)[:, None] % depth == np.arange(depth)).astype(np.float16) for size in (ROWS, setup.n)}
    for operand, size in (("b", setup.n), ("a", ROWS)):
        rows, places = np.indices((size, depth)) + 1
        for what, coded in (("rows", rows), ("depth", places)):
            values = coded.astype(np.float16)
            a, b = (hot[ROWS], values) if operand == "b" else (values, hot[setup.n])
            yield f"{operand}_{what}", a, b


def image(setup: WgmmaSetup, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shared memory with both operands where TMA would put them; -1 (of f16) elsewhere.

    Args:
        setup: says the swizzles and which dimension runs along rows.
        a: [64, k], 16-bit elements.
        b: [n, k].
    """
    memory = np.full(setup.shared_bytes // 2, 0xBC00, np.uint16)
    for operand, values in ((setup.a, a), (setup.b, b)):
        if operand is not None:
            memory[places(operand, *values.shape) // 2] = values.view(np.uint16)
    return memory.view(np.uint8)


def places(operand: OperandSetup, outer: int, depth: int) -> np.ndarray:
    """Bytes from the start of shared memory to the elements (outer, k) of a 16-bit operand.

    Rows of a swizzle's span lie one after the other, panels of them likewise; not read off the descriptor's strides,
    which are to be proved.
    """
    row, column = np.indices((outer, depth))
    if not operand.k_major:
        row, column = column, row
    nbytes, span = column * 2, operand.swizzle
    panel = span * (outer if operand.k_major else depth)
    return placed(operand.address + nbytes // span * panel + row * span + nbytes % span, span)
