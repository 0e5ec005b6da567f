# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether warpgroups that trade registers (`setmaxnreg`) can ever get what they ask for.

A CTA gets registers at its launch: what ptxas says a thread uses, for all its threads. `setmaxnreg.dec` gives some of
them back to the CTA, `setmaxnreg.inc` waits until the CTA has enough (PTX ISA, "setmaxnreg"). Where warpgroups ask for
more in all than the launch brought, they wait for ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

_TRADE = re.compile(rb"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32\s+(\d+)\s*;")
_THREADS = re.compile(rb"^\.(?:maxntid|reqntid) ([\d, ]+)", re.MULTILINE)
#: Threads of a warpgroup; registers of a thread come in units of `_UNIT`; those of a multiprocessor.
_WARPGROUP, _UNIT, _ALL = 128, 8, 65536
#: What a thread may ask for.
_LEAST, _MOST = 24, 256


def complaint(code: bytes, registers: int) -> str:
    """Say which rule a kernel breaks; "" where it breaks none, or no warpgroup trades registers.

    Each value of `dec` is taken to be one warpgroup's, each value of `inc` one's at least; all others take the largest.

    Args:
        code: PTX of one kernel.
        registers: of a thread at the launch, as ptxas says.

    >>> complaint(b".maxntid 256\\nsetmaxnreg.dec.sync.aligned.u32 40;setmaxnreg.inc.sync.aligned.u32 240;", 128)[:58]
    'its warpgroups ask for 280 registers a thread in all (setm'
    """
    trades = {(str(way, "ascii"), int(value)) for way, value in _TRADE.findall(code)}
    if not trades:
        return ""
    found = _THREADS.search(code)
    if found is None:
        return "it trades registers (setmaxnreg), and neither .maxntid nor .reqntid says how many warpgroups it has"
    threads = prod(int(size) for size in found[1].split(b","))
    launched = -(-registers // _UNIT) * _UNIT
    less = sorted(value for way, value in trades if way == "dec")
    more = sorted(value for way, value in trades if way == "inc")
    return _of_values(trades, launched) or _of_sums(less, more, threads, launched)


def _of_values(trades: set[tuple[str, int]], launched: int) -> str:
    """What is wrong with one value."""
    for way, value in sorted(trades):
        text = f"setmaxnreg.{way} {value}"
        if value % _UNIT or not _LEAST <= value <= _MOST:
            return f"{text}: a number of registers is a multiple of {_UNIT} from {_LEAST} to {_MOST} (PTX ISA)"
        if way == "dec" and value > launched:
            return f"{text} is to give registers back, and a thread is launched with {launched}"
        if way == "inc" and value < launched:
            return f"{text} is to add registers, and a thread is launched with {launched}"
    return ""


def _of_sums(less: Sequence[int], more: Sequence[int], threads: int, launched: int) -> str:
    """What is wrong with the values of all warpgroups."""
    groups, rest = divmod(threads, _WARPGROUP)
    if rest:
        return f"it trades registers (setmaxnreg), and its {threads} threads are no whole warpgroups of {_WARPGROUP}"
    values = [*less, *more]
    if len(values) > groups:
        return f"its {groups} warpgroups ask for {len(values)} different numbers of registers (setmaxnreg)"
    values += [max(more, default=launched)] * (groups - len(values))
    if sum(values) > launched * groups:
        return (
            f"its warpgroups ask for {sum(values)} registers a thread in all (setmaxnreg: "
            f"{', '.join(map(str, values))}), and are launched with {launched} each, {launched * groups} in all: they "
            "wait for ever; ask for less, or let it be launched with more (.minnctapersm)"
        )
    if launched * threads > _ALL:
        return f"{threads} threads of {launched} registers are more than the {_ALL} of a multiprocessor"
    return ""
