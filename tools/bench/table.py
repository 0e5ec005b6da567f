# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from bench.measure import OWN, Row

_HEAD = (
    "case",
    "thr",
    "ours ms",
    "best peer",
    "its ms",
    "ratio",
    "target",
    "spread",
    "rate",
    "of limit",
    "target",
    "ok",
)
_OWN_HEAD = ("gain over", "gain", "target")  # the first of a row's rivals; further ones stand below
_LEFT = (0, 3, 11)
_BYTES = ("copy_", "read_", "stream_")  # limits in GB/s


def _number(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)


def _verdict(row: Row) -> str:
    if row.status != "ok":
        return row.status.upper()
    held = row.target is not None or row.share_target is not None or row.gain_targets
    return "ok" if held else "-"


def cells(row: Row) -> list[str]:
    """One row as strings, in the order of the head."""
    return [
        row.case,
        str(row.threads),
        _number(row.ours_ms),
        row.peer or "-",
        _number(row.peer_ms),
        _number(row.ratio, ".2f"),
        _number(row.target, ".2f"),
        f"{_number(row.spread, '.0%')}/{_number(row.peer_spread, '.0%')}",
        _number(row.rate, ".0f"),
        _number(row.share, ".0%"),
        _number(row.share_target, ".0%"),
        _verdict(row),
    ]


def gain_cells(row: Row) -> list[str]:
    """The first of a row's rivals: its name, our gain over it, and the target."""
    name = next(iter(row.gains), None)
    if name is None:
        return ["-", "-", "-"]
    return [name.removeprefix(OWN), f"{row.gains[name]:.2f}", _number(row.gain_targets.get(name), ".2f")]


def _least(row: Row, name: str) -> str:
    return f" (target {row.gain_targets[name]:.2f})" if name in row.gain_targets else ""


def table(rows: Sequence[Row], mean_target: float | None = None) -> str:
    """An aligned table with every peer's time, the geometric mean, and what the rows have to say."""
    peers = list(dict.fromkeys(name for row in rows for name in list(row.all_ms)[1:]))
    rivals = any(row.gains for row in rows)
    head = [*_HEAD, *(_OWN_HEAD if rivals else ()), *(f"{name} ms" for name in peers)]
    lines = [head]
    for row in rows:
        gains = gain_cells(row) if rivals else []
        lines.append([*cells(row), *gains, *(_number(row.all_ms.get(name)) for name in peers)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = ["  ".join(_align(cell, i, widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines]
    text += [means_text(rows, mean_target)] if mean_target else []
    text += gain_means_text(rows)
    # A compiler's error has many lines: the first one here, all of them in the JSON record.
    for row in rows:
        said = [row.message.splitlines()[0], *row.notes] if row.message else list(row.notes)
        said += [f"{row.gains[name]:.2f}x {name}{_least(row, name)}" for name in list(row.gains)[1:]]
        text += [f"{row.case}, {row.threads} thread(s): {line}" for line in said]
    settings = {name: f"{row.versions[name]}: {row.settings[name]}" for row in rows for name in row.settings}
    return "\n".join([*text, *(f"{name} {about}" for name, about in settings.items())])


def means(rows: Sequence[Row]) -> dict[int, float]:
    """The geometric mean of the ratios to the best peer, by number of threads."""
    found: dict[int, float] = {}
    for threads in sorted({row.threads for row in rows}):
        ratios = [row.ratio for row in rows if row.threads == threads and row.ratio]
        if ratios:
            found[threads] = geometric_mean(ratios)
    return found


def gain_means(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """The geometric mean of the gains over each peer that has a target of its own, by number of threads."""
    found: dict[str, dict[int, float]] = {}
    for name in dict.fromkeys(name for row in rows for name in row.gains if not name.startswith(OWN)):
        for threads in sorted({row.threads for row in rows if name in row.gains}):
            gains = [row.gains[name] for row in rows if row.threads == threads and name in row.gains]
            found.setdefault(name, {})[threads] = geometric_mean(gains)
    return found


def gain_means_text(rows: Sequence[Row]) -> list[str]:
    """Those means, a line for each peer."""
    parts = {name: [f"{t} thread(s) {m:.2f}" for t, m in of.items()] for name, of in gain_means(rows).items()}
    return [f"geometric mean of the gains over {name}: {', '.join(means)}" for name, means in parts.items()]


def means_text(rows: Sequence[Row], target: float) -> str:
    """The means as a line, with whether they meet the target."""
    parts = [f"{t} thread(s) {m:.3f} ({'ok' if m <= target else 'SLOW'})" for t, m in means(rows).items()]
    return f"geometric mean of the ratios, target {target:.3f}: {', '.join(parts) or '-'}"


def _align(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column in _LEFT else cell.rjust(width)


def limits_text(limits: Mapping[str, object]) -> str:
    """The machine's limits, one line per number of threads."""
    if "skipped" in limits:
        return f"machine limits not measured: {limits['skipped']}"
    lines = []
    for threads, values in limits.items():
        assert isinstance(values, dict)
        rates = ", ".join(f"{k} {v:.0f}" for k, v in values.items() if not k.startswith(_BYTES))
        bytes_text = ", ".join(f"{k} {v:.0f}" for k, v in values.items() if k.startswith(_BYTES))
        lines.append(f"limits, {threads} thread(s): GFLOP/s {rates}; GB/s {bytes_text}")
    return "\n".join(lines)
