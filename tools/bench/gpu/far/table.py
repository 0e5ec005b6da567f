# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.gpu.far.row import Row

_HEAD = ("case", "ours us", "best peer", "its us", "speed", "rate", "goal", "reached", "error", "allowed", "")
_LEFT = (0, 2, 10)


def table(rows: Sequence[Row], cases: Mapping[str, Mapping[str, Any]]) -> str:
    """An aligned table, then what rows have to say."""
    lines = [_HEAD, *(_cells(row, cases[row.name]) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    text = ["  ".join(_align(cell, i, widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines]
    for row in rows:
        said = [*row.message.splitlines()[:1], *row.notes]
        if row.repeatable is False:
            said.append(f"run {row.runs} of the same inputs gave other bits")
        text += [f"{row.name}: {line}" for line in said]
    return "\n".join(text)


def _cells(row: Row, case: Mapping[str, Any]) -> tuple[str, ...]:
    peer = row.best_peer
    ours = row.ours
    return (
        row.name,
        _number(ours and 1e6 * ours, ".1f"),
        peer[0] if peer else "-",
        _number(peer and 1e6 * peer[1], ".1f"),
        _number(peer and ours and peer[1] / ours, ".2f"),
        _rate(row, case),
        _number(row.goal, ".2f"),
        _number(row.reached, ".2f"),
        _number(row.error, ".1e"),
        _number(row.allowed, ".1e"),
        "" if row.status == "ok" else row.status.upper(),
    )


def _rate(row: Row, case: Mapping[str, Any]) -> str:
    if row.rate is None:
        return "-"
    return f"{row.rate:.0f} GB/s" if case["gbyte"] else f"{row.rate / 1e3:.1f} TFLOP/s"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _align(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column in _LEFT else cell.rjust(width)
