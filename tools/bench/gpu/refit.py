# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the constants of a GPU's description to what its suite measured: `tools/bench/run gpu-refit results.json`.

Each kernel's `tile.prediction` says what its time is made of: the longest of parts that overlap, what waits, and the
launch, each of which goes with one constant. The factors of all constants are found at once, by least squares of the
logarithms of predicted over measured time with a loss that outliers do not rule (Cauchy's). A constant that
fewer than three kernels depend on is left as it is, and said so. The result is a fragment of the device's TOML file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices import Device

VERSION = 2
_LEAST = 3
"""Kernels that must depend on a constant."""
_WEIGHT = 0.3
"""A kernel depends on a constant where this part of its time, at least, goes with it."""
_MOST = 4.0
"""The largest factor by which a constant may be wrong."""
_SCALE = 0.1
"""Relative error beyond which a kernel counts as an outlier."""
_OVERLAP = 16
"""Norm that stands for the maximum of parts: smooth, and 4 % above it where two are equal."""


_SIBLINGS = {"latency": (), "wgmma.chain": ("wgmma.chain", "wgmma.chain.staggered")}
"""Rates of a fragment that stand for a constant, where these are not the one of its name."""


@dataclass(frozen=True)
class Sample:
    """One kernel.

    Attributes:
        name: case and kernel.
        seconds: measured, of a launch: the least of its launches' medians.
        overlapped: predicted seconds by constant, of which the longest counts.
        added: predicted seconds by constant that are added to it.
    """

    name: str
    seconds: float
    overlapped: Mapping[str, float]
    added: Mapping[str, float]

    def predicted(self, factor: Mapping[str, float]) -> float:
        """Seconds, where times that go with a constant are so many times as long."""
        overlapped = np.array([seconds * factor.get(name, 1.0) for name, seconds in self.overlapped.items()])
        longest = float(np.sum(overlapped**_OVERLAP) ** (1 / _OVERLAP)) if overlapped.size else 0.0
        return longest + sum(seconds * factor.get(name, 1.0) for name, seconds in self.added.items())

    def depends(self, name: str) -> bool:
        """Whether the constant rules the time."""
        seconds = self.overlapped.get(name, 0.0)
        rules = seconds == max(self.overlapped.values(), default=0.0) and seconds > _WEIGHT * self.predicted({})
        return rules or self.added.get(name, 0.0) > _WEIGHT * self.predicted({})


@dataclass(frozen=True)
class Constant:
    """What the fit says of a constant.

    Attributes:
        name: of the rate.
        kernels: that depend on it.
        factor: by which times that go with it are longer than predicted; 1 where too few kernels depend on it.
        spread: standard error of the factor's logarithm; None where nothing was fitted.
    """

    name: str
    kernels: int
    factor: float = 1.0
    spread: float | None = None


def constant_of(part: str, plan: Mapping[str, Any], device: Device) -> str:
    """The constant that a part of a time goes with; "" where no rate decides it."""
    if part in ("l2", "memory"):
        level = device.level(part)
        capped = device.rate(f"sustained.{part}", "sustained") < level.bandwidth * device.rate(f"{part}.reached")
        return f"sustained.{part}" if capped else f"{part}.reached"
    named = {"compute": str(plan.get("unit", "")), "functions": "functions", "waiting": "latency", "launch": "launch"}
    return named.get(part, "lanes" if part in ("vector", "issue", "widen", "promote") else "")


def samples(suite: Mapping[str, Any], device: Device) -> list[Sample]:
    """The kernels of a suite's results that were timed and have a prediction.

    Raises:
        UserError: the results are of another version, or hold no timed kernel.
    """
    if suite.get("version") != VERSION:
        raise UserError(
            f"results of version {suite.get('version')!r}, where gpu-refit reads version {VERSION}: run the suite again"
        )
    found = []
    for row in suite.get("rows", []):
        for kernel in row.get("kernels") or []:
            plan, times = kernel.get("plan") or {}, [t for t in kernel.get("us") or [] if t and t > 0]
            if row.get("status") in ("ok", "slow") and times and "ns" in plan:
                found.append(_sample(f"{row['name']}: {kernel.get('kernel', '')}", min(times) * 1e-6, plan, device))
    if not found:
        raise UserError("no kernel in these results was timed: gpu-refit needs those of a GPU, not of --emulate")
    return found


def _sample(name: str, seconds: float, plan: Mapping[str, Any], device: Device) -> Sample:
    overlapped: dict[str, float] = {}
    added: dict[str, float] = {}
    for key, value in plan.items():
        part = key.removesuffix("_ns")
        if part == key or part in ("roofline", "runner_up", "other_cluster", "whole"):
            continue
        constant = constant_of(part, plan, device)
        if part in ("waiting", "launch"):
            added[constant] = added.get(constant, 0.0) + value * 1e-9
        else:
            overlapped[constant] = max(overlapped.get(constant, 0.0), value * 1e-9)
    return Sample(name, seconds, overlapped, added)


def fit(found: Sequence[Sample]) -> list[Constant]:
    """The factors of all constants that enough kernels depend on; the others as they are."""
    names = sorted({name for sample in found for name in (*sample.overlapped, *sample.added) if name})
    counts = {name: sum(sample.depends(name) for sample in found) for name in names}
    free = [name for name in names if counts[name] >= _LEAST]
    if not free:
        return [Constant(name, counts[name]) for name in names]

    def errors(logs: np.ndarray) -> np.ndarray:
        factor = dict(zip(free, np.exp(logs), strict=True))
        return np.array([np.log(sample.predicted(factor) / sample.seconds) for sample in found])

    bound = np.log(_MOST)
    result = least_squares(errors, np.zeros(len(free)), bounds=(-bound, bound), loss="cauchy", f_scale=_SCALE)
    rest = 1.4826 * np.median(np.abs(result.fun))
    spread = rest * np.sqrt(np.diag(np.linalg.pinv(result.jac.T @ result.jac)))
    fitted = {
        n: Constant(n, counts[n], float(np.exp(x)), float(s)) for n, x, s in zip(free, result.x, spread, strict=True)
    }
    return [fitted.get(name, Constant(name, counts[name])) for name in names]


def value(constant: Constant, device: Device) -> tuple[float, float]:
    """A constant before and after the fit: rates become smaller where times are longer, durations longer."""
    if constant.name == "latency":  # of all levels at once
        before = device.level("memory").latency
        return before, before * constant.factor
    before = device.rate(constant.name, constant.name.partition(".")[0])
    return before, before * constant.factor if constant.name == "launch" else before / constant.factor


def median_error(found: Sequence[Sample], constants: Sequence[Constant] = ()) -> float:
    """The median of |predicted / measured - 1|."""
    factor = {constant.name: constant.factor for constant in constants}
    return float(np.median([abs(sample.predicted(factor) / sample.seconds - 1) for sample in found]))


def fragment(suite: Mapping[str, Any], device: Device, constants: Sequence[Constant]) -> str:
    """Lines of a device's TOML file: its fitted rates, and where they come from."""
    fitted = [constant for constant in constants if constant.spread is not None]
    where = ", ".join(str(suite.get(key, "unknown")) for key in ("device", "driver", "date"))
    lines = [f"# Fitted by tools/bench/run gpu-refit to the suite's times: {where}."]
    for constant in fitted:
        if constant.name == "latency":
            for level in ("l2", "memory"):
                lines.append(f"# levels: {level}: latency = {device.level(level).latency * constant.factor:.3g}")
    lines.append("[rates]")
    for constant in fitted:
        for name in _SIBLINGS.get(constant.name, (constant.name,)):
            key = f'"{name}"' if "." in name else name
            after = value(replace(constant, name=name), device)[1]
            lines.append(f"{key} = {after:.4g} # {constant.kernels} kernels, +-{constant.spread:.0%}")
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Sample], constants: Sequence[Constant], device: Device) -> None:
    print(f"{'constant':24}{'before':>12}{'after':>12}{'spread':>9}{'kernels':>9}")
    for constant in constants:
        before, after = value(constant, device)
        if constant.spread is None:
            print(f"{constant.name:24}{before:12.4g}{'as it was':>12}{'':9}{constant.kernels:9}   too few kernels")
        else:
            print(f"{constant.name:24}{before:12.4g}{after:12.4g}{constant.spread:9.0%}{constant.kernels:9}")
    print(f"median error of {len(found)} kernels: {median_error(found):.1%} before, ", end="")
    print(f"{median_error(found, constants):.1%} after")
    factor = {constant.name: constant.factor for constant in constants}
    worst = sorted(found, key=lambda s: -abs(np.log(s.predicted(factor) / s.seconds)))[:5]
    for sample in worst:
        print(f"  {sample.name}: measured {sample.seconds * 1e6:.1f} us, {sample.predicted(factor) * 1e6:.1f} us after")


def main(arguments: Sequence[str]) -> int:
    """Print what the fit says; returns 0, or 2 where the input is of no use."""
    parser = argparse.ArgumentParser(prog="tools/bench/run gpu-refit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suite", type=Path, help="results.json of a pack that ran on a GPU")
    parser.add_argument("--device", default="nvidia-h200", help="the description that the pack was planned for")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the fitted rates as TOML")
    options = parser.parse_args(list(arguments))
    try:
        suite = json.loads(options.suite.read_text())
        device = devices.get(options.device)
        found = samples(suite, device)
    except (UserError, OSError, ValueError) as error:
        print(f"gpu-refit: {options.suite}: {error}", file=sys.stderr)
        return 2
    constants = fit(found)
    _table(found, constants, device)
    if options.write:
        options.write.write_text(fragment(suite, device, constants))
    return 0
