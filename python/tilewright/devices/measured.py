# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions that `tilewright devices --measure` made: where they are kept, and how the host takes their rates."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tilewright.core import cache
from tilewright.devices.device import Device


def _folder() -> Path:
    return cache.root() / "devices"


def file_of_host() -> Path:
    """Return where the measured description of this machine is kept."""
    return _folder() / f"{cache.host_id()}.toml"


def find() -> Path | None:
    """Return the measured description of this machine, or None."""
    try:
        if not any(_folder().glob("*.toml")):
            return None  # asking what this machine is takes longer than all else of tile-opt's start
        path = file_of_host()
        return path if path.is_file() else None
    except OSError:
        return None


def save(device: Device) -> Path:
    """Keep a description of this machine for later processes; returns the file."""
    path = file_of_host()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_toml(device))
    return path


def with_rates_of(device: Device, measured: Device) -> Device:
    """Return a device with the clock, peaks, bandwidths and rates of another one of its kind."""
    known = {level.name: level for level in measured.levels}
    levels = tuple(
        dataclasses.replace(level, bandwidth=known[level.name].bandwidth, latency=known[level.name].latency)
        if level.name in known
        else level
        for level in device.levels
    )
    peaks = {name: value for name, value in measured.units.peak if name in dict(device.units.peak)}
    peak = tuple(sorted({**dict(device.units.peak), **peaks}.items()))
    units = dataclasses.replace(device.units, frequency=measured.units.frequency, peak=peak)
    limits = {**dict(measured.limits), **dict(device.limits)}
    return dataclasses.replace(
        device,
        levels=levels,
        units=units,
        limits=tuple(sorted(limits.items())),
        rates=tuple(sorted({**dict(device.rates), **dict(measured.rates)}.items())),
        source=f"detected; rates of {measured.name}" if measured.name != device.name else "detected; rates measured",
    )


def to_toml(device: Device) -> str:
    """Return a description as the text of a device file."""
    values = device.to_dict()
    lines = [f"{name} = {_toml(values[name])}" for name in ("name", "kind", "source", "cpu") if name in values]
    for level in values["levels"]:
        lines += ["", "[[levels]]", *(f"{name} = {_toml(value)}" for name, value in level.items())]
    for table in ("units", "units.peak", "limits", "rates"):
        entries: Any = values
        for part in table.split("."):
            entries = entries.get(part, {})
        plain = {name: value for name, value in entries.items() if not isinstance(value, dict)}
        lines += ["", f"[{table}]", *(f'"{name}" = {_toml(value)}' for name, value in plain.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:.6g}" if isinstance(value, float) else str(value)
