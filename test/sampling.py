# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which slow tests run today: a tenth of them, another one for each seed, so that ten seeds in a row have them all."""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

#: Seeds after which every test has run.
PARTS = 10
VARIABLE = "TILEWRIGHT_TEST_SEED"


def default_seed() -> int:
    """The seed that the environment sets, or the number of the day.

    Raises:
        ValueError: the variable holds no number.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return datetime.date.today().toordinal()
    if not text.isdigit():
        raise ValueError(f"{VARIABLE}={text!r}: the seed of a sample is a number from 0 on")
    return int(text)


def part_of(name: str) -> int:
    """The part that a test is in, from 0 to 9: it depends on its name alone, not on what else there is."""
    return zlib.crc32(name.encode()) % PARTS


def split(items: Iterable[tuple[Item, str, bool]], seed: int | None) -> tuple[list[Item], list[Item]]:
    """Divide tests, each with its name and whether it is slow, into those that run and those left out.

    Without a seed all slow ones are left out.
    """
    kept: list[Item] = []
    left: list[Item] = []
    for item, name, slow in items:
        out = slow and (seed is None or part_of(name) != seed % PARTS)
        (left if out else kept).append(item)
    return kept, left


def note(left: int, seed: int | None) -> str:
    """The line that tells of tests left out."""
    if seed is None:
        return f"{left} slow tests left out; --slow=all runs them"
    return (
        f"{left} slow tests left out: part {seed % PARTS} of {PARTS} ran (seed {seed}); --slow=all runs all of them, "
        f"--seed=N or {VARIABLE}=N another part"
    )
