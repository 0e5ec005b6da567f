# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rung of TMA: single boxes into poisoned shared memory, which is dumped whole; edges, steps, swizzles, ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.device import Opener, Pack
from bench.gpu.far.ladder.diagnosis import tma, tma_cause
from bench.gpu.far.ladder.explain import explain
from bench.gpu.far.ladder.report import Report
from bench.gpu.far.ladder.setup import TmaSetup, to_json
from tilewright.runtime.gpu.gpu_device import Device

#: Polls after which a wait is taken for one that never ends; the emulator completes copies after fewer.
POLLS, EMULATED_POLLS = 1 << 22, 500
#: Launches after which a check that is not right is looked at: byte tensors cannot number their elements at once.
_PLANES = {1: (1, 2), 2: (0,), 4: (0,), 8: (0,)}


def _box(element: str, dims: tuple[int, ...], box: tuple[int, ...], swizzle: int, **more: Any) -> TmaSetup:
    """A box of a contiguous tensor, whose rows are padded to 16 bytes."""
    size = tma.ELEMENT_BYTES[element]
    strides, row = [], -(-dims[0] * size // 16) * 16
    for extent in dims[1:]:
        strides.append(row)
        row *= extent
    ones = (1,) * len(dims)
    setup = TmaSetup(
        element, dims, tuple(strides), box, more.pop("steps", ones), swizzle, more.pop("fill", "zero"),
        more.pop("coordinates", (0,) * len(dims)), more.pop("place", 1024), 0,
    )  # fmt: skip
    return replace(setup, expected_bytes=tma.moved_bytes(setup), **more)


def setups() -> Iterator[tuple[str, TmaSetup]]:
    """Name and set-up of each box."""
    yield "row", _box("u16", (512,), (64,), 0, coordinates=(40,))
    for swizzle in (0, 32, 64, 128):
        wide = (swizzle or 64) // 2
        common = {"element": "f16", "dims": (150, 61), "box": (wide, 16), "swizzle": swizzle}
        yield f"swizzle{swizzle}", _box(**common, coordinates=(8, 3))
        yield f"swizzle{swizzle}_end", _box(**common, coordinates=(150 - wide // 2 - 3, 52))
        yield f"swizzle{swizzle}_negative", _box(**common, coordinates=(-5, -3))
        yield f"swizzle{swizzle}_nan", _box(**common, coordinates=(140, 55), fill="nan")
        yield f"swizzle{swizzle}_row_phase", _box(**common, coordinates=(8, 3), place=1024 + 128 * 3)
    yield "outside", _box("f16", (150, 61), (32, 8), 64, coordinates=(-40, 70))
    yield "f32", _box("f32", (70, 33), (32, 16), 128, coordinates=(50, 20))
    yield "bytes", _box("u8", (200, 40), (128, 16), 128, coordinates=(100, 30))
    yield "steps", _box("f16", (64, 40, 6), (32, 16, 4), 64, coordinates=(16, 5, 1), steps=(1, 2, 3))
    yield "steps_end", _box("bf16", (64, 40, 6), (32, 16, 4), 64, coordinates=(48, 30, -3), steps=(1, 4, 3))
    yield "rank3", _box("f16", (72, 9, 11), (64, 4, 5), 128, coordinates=(16, -1, 8))
    yield "rank4", _box("f16", (40, 7, 6, 9), (32, 4, 3, 4), 64, coordinates=(16, 5, -1, 7))
    yield "rank5", _box("f16", (24, 5, 6, 4, 7), (16, 3, 4, 2, 3), 32, coordinates=(12, 3, -2, 3, 5))


def polls(device: Device) -> int:
    """Polls after which a wait is taken for one that never ends."""
    return POLLS if device.limits.cubins else EMULATED_POLLS


def boxes(pack: Pack, open_: Opener, report: Report) -> None:
    """Load each box, and compare all of shared memory, byte by byte."""
    device, image = open_(0), tma.poisoned()
    limit = polls(device)
    for name, setup in setups():
        with report.check(name, to_json(setup)) as check:
            text = pack.text(pack.probe(f"box{len(setup.dims)}"))
            for plane in _PLANES[tma.ELEMENT_BYTES[setup.element]]:
                memory = tma.source(_buffer(setup), plane)
                observed = watching.box(device, text, setup, memory, image, limit)
                wanted = tma.Loaded(memory, image).dump(setup)
                wrong = int((observed.dump != wanted).sum())
                if wrong or not observed.over:
                    said = f"{wrong} of {image.size} bytes differ"
                    said += "" if observed.over else "; the wait for its bytes did not end"
                    check.wrong(**explain(said, tma_cause.diagnose(setup, observed, memory, image)))
                    break
            else:
                check.tell(f"{tma.moved_bytes(setup)} bytes at their places, all around untouched")


def _buffer(setup: TmaSetup) -> int:
    """Bytes of the tensor's memory, with a guard."""
    rows = setup.dims[-1] * setup.strides[-1] if setup.strides else setup.dims[0] * tma.ELEMENT_BYTES[setup.element]
    return -(-(setup.offset + rows) // 256) * 256 + 256
