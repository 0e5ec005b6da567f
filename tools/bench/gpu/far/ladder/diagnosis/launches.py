# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CTAs write down of a launch, and which of its attributes or parameters explains it.

A record of a CTA, by its number in the grid: threads that came, %ctaid, %nctaid, %ntid, %cluster_nctaid, its rank in
the cluster, %dynamic_smem_size, and the parameters' values from word `VALUES` on.
"""

from __future__ import annotations

from math import prod

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause, get, put
from bench.gpu.far.ladder.setup import LaunchSetup

#: records, words of one, its first value; bits of each parameter
MOST, WORDS, VALUES, BITS = 512, 24, 16, (64, 64, 32, 32, 16)


def records(setup: LaunchSetup) -> np.ndarray:
    """What is written down, uint32 (`MOST`, `WORDS`)."""
    made = np.zeros((MOST, WORDS), np.uint32)
    values = b"".join((value % 2**bits).to_bytes(max(bits, 32) // 8, "little") for value, bits in _given(setup))
    words = np.frombuffer(values, np.uint32)
    for number in range(min(prod(setup.grid), MOST)):
        x, y, z = setup.grid
        at = (number % x, number // x % y, number // (x * y))
        inner = [place % size for place, size in zip(at, setup.cluster, strict=True)]
        rank = inner[0] + setup.cluster[0] * (inner[1] + setup.cluster[1] * inner[2])
        head = (prod(setup.block), *at, *setup.grid, *setup.block, *setup.cluster, rank, setup.shared_bytes)
        made[number, : len(head)] = head
        made[number, VALUES : VALUES + len(words)] = words
    return made


def _given(setup: LaunchSetup) -> list[tuple[int, int]]:
    return list(zip(setup.values, BITS, strict=True))


def diagnose(setup: LaunchSetup, observed: np.ndarray) -> Cause | None:
    """The attribute or parameter that explains all records; None: none does alone (or nothing is wrong)."""
    first = observed[0].tolist()
    if not first[0] or (records(setup) == observed).all():
        return None
    found = {
        "grid": tuple(first[4:7]),
        "block": tuple(first[7:10]),
        "cluster": tuple(first[10:13]),
        "shared_bytes": first[14],
        "values": _values(observed[0]),
    }
    differ = [field for field, value in found.items() if value != get(setup, field)]
    if len(differ) != 1 or (records(put(setup, differ[0], found[differ[0]])) != observed).any():
        return None
    field, value, expected = differ[0], found[differ[0]], get(setup, differ[0])
    return (
        _parameter(setup, value)
        if field == "values"
        else Cause(field, expected, (value,), _text(field, expected, value))
    )


def _values(record: np.ndarray) -> tuple[int, ...]:
    words, at = record[VALUES:].tolist(), 0
    values = []
    for bits in BITS:
        values.append(words[at] | (words[at + 1] << 32 if bits == 64 else 0))
        at += 2 if bits == 64 else 1
    return tuple(values)


def _parameter(setup: LaunchSetup, found: tuple[int, ...]) -> Cause | None:
    """One value that is another, or two that are exchanged."""
    wrong = [i for i, value in enumerate(found) if value != setup.values[i]]
    names = [setup.parameters[i] for i in wrong]
    if len(wrong) == 1:
        field, expected, value = f"values[{wrong[0]}]", setup.values[wrong[0]], found[wrong[0]]
        return Cause(field, expected, (value,), f"parameter {names[0]} is {value:#x}, the host gives {expected:#x}")
    exchanged = len(wrong) == 2 and (found[wrong[0]], found[wrong[1]]) == (
        setup.values[wrong[1]],
        setup.values[wrong[0]],
    )
    if not exchanged:
        return None
    return Cause("values", setup.values, (found,), f"parameters {names[0]} and {names[1]} are exchanged: their order")


def _text(field: str, expected: object, found: object) -> str:
    attribute = {"grid": "gridDim", "block": "blockDim", "shared_bytes": "sharedMemBytes"}.get(field, "clusterDim")
    return (
        f"the kernel runs with {attribute} {found}, the host means {expected}: launch configuration (cuLaunchKernelEx)"
    )
