# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.measure import Row

_HEAD = ("case", "thr", "ours ms", "best peer ms", "peer", "ratio", "target", "spread", "GFLOP/s", "of peak", "ok")


def _number(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def _verdict(row: Row) -> str:
    if row.status != "ok":
        return row.status.upper()
    return "ok" if row.target is not None else "-"


def cells(row: Row, limits: Mapping[str, object]) -> list[str]:
    """One row as strings, in the order of the head."""
    limit = limits.get(str(row.threads))
    peak = limit.get("fma_f32") if isinstance(limit, dict) else None
    share = row.gflops / peak if row.gflops and peak else None
    return [
        row.case,
        str(row.threads),
        _number(row.ours_ms),
        _number(row.peer_ms),
        row.peer or "-",
        _number(row.ratio, ".2f"),
        _number(row.target, ".2f"),
        f"{_number(row.spread, '.0%')}/{_number(row.peer_spread, '.0%')}",
        _number(row.gflops, ".0f"),
        _number(share, ".0%"),
        _verdict(row),
    ]


def table(rows: Sequence[Row], limits: Mapping[str, object]) -> str:
    """An aligned table, then a line for each row that has something to say."""
    lines = [list(_HEAD), *(cells(row, limits) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    text = ["  ".join(_align(cell, i, widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines]
    # A compiler's error has many lines: the first one here, all of them in the JSON record.
    text += [f"{row.case}, {row.threads} thread(s): {row.message.splitlines()[0]}" for row in rows if row.message]
    return "\n".join(text)


def _align(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column in (0, 4, 10) else cell.rjust(width)


def limits_text(limits: Mapping[str, object]) -> str:
    """The machine's limits, one line per number of threads."""
    if "skipped" in limits:
        return f"machine limits not measured: {limits['skipped']}"
    lines = []
    for threads, values in limits.items():
        assert isinstance(values, dict)
        copies = ", ".join(f"{k.removeprefix('copy_')} {v:.0f}" for k, v in values.items() if k.startswith("copy_"))
        lines.append(f"limits, {threads} thread(s): {values['fma_f32']:.0f} GFLOP/s f32 FMA; copy GB/s: {copies}")
    return "\n".join(lines)
