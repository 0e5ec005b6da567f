# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of units: from the cache, or made by workers, since LLVM may abort; files hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.core import cache
from tilewright.core.errors import UserError
from tilewright.core.workers import Job, Ready, shared_pool
from tilewright.ir.units import Unit


def unit_codes(
    units: Sequence[Unit], machine: tuple[str, str], level: int, code: str, ready: Ready | None = None
) -> dict[str, bytes]:
    """Return the code of each unit by its symbol, from the cache or by compile workers.

    Args:
        units: modules of the llvm dialect.
        machine: LLVM's name of the processor, and its features.
        level: LLVM's optimization level.
        code: ``object``, ``assembly`` or ``ptx``.
        ready: called with the symbol and the code of each unit as soon as it is there, in this thread.

    Raises:
        InternalError: LLVM refuses one of them, or dies of it.
    """
    build_id = cache.libraries_id()
    keys = {unit.symbol: cache.digest(code, unit.module, *machine, str(level), build_id) for unit in units}
    codes = {symbol: found for symbol, key in keys.items() if (found := cache.find_kernel(key)) is not None}
    if ready is not None:
        for symbol, found in codes.items():
            ready(symbol, found)
    jobs = [Job(unit.symbol, unit.module, *machine, level, code) for unit in units if unit.symbol not in codes]
    for job, made in zip(jobs, shared_pool().compile(jobs, ready), strict=True):
        codes[job.name] = made
        cache.add_kernel(keys[job.name], made)
    return codes


def write_codes(folder: str | Path, codes: Mapping[str, bytes], ending: str) -> None:
    """Write the code of each symbol to a file SYMBOL.ENDING of a folder, which is made.

    Raises:
        UserError: it cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for symbol, code in codes.items():
            (folder / f"{symbol}.{ending}").write_bytes(code)
    except OSError as error:
        raise UserError(f"cannot write code to '{folder}': {error.strerror}") from None
