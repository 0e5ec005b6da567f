# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run fractal-predicted`: predicted gains on a GPU beside the ratios that two papers published.

Nothing is run. A program of `examples/fractal`, or a model of suite `control`, is compiled for the device's description
up to its kernels, and three times are added up:

- compiled: what the plan predicts of each kernel; of one that holds loops its steps, its barriers and one launch
- driven: the same kernels, each step a launch of the host
- operators: each operator of a batch by itself, a launch, and its bytes at the bandwidth of memory or its operations at
  the peak, whichever takes longer: a lower bound of what a framework takes that runs one after the other

Published ratios are arithmetic on times in milliseconds that the authors measured on other GPUs (an A100, a V100), with
other kernels, some in f16 where ours is f32: they show what order of gain to expect, not that ours is reached.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import models
from bench import records
from bench.own_lists import example
from tilewright import devices
from tilewright.compiler import run_counts
from tilewright.compiler.driver import Compilation, lower
from tilewright.compiler.loop_predictions import held_plans, plan_of
from tilewright.compiler.source import open_source
from tilewright.core.options import CompileOptions, shape_items
from tilewright.devices import Device
from tilewright.targets import registry

_FUSING = (
    *("tile-scale-results", "tile-hoist-invariants", "tile-join-softmax-blocks", "tile-plan-wavefronts"),
    *("tile-skew-recurrences", "tile-unroll-recurrences", "tile-split-scans", "tile-plan-shifts", "tile-fuse-shifted"),
    *("tile-join-rows", "tile-materialize-copies", "tile-verify-normalized"),
)
"""Passes of phase `normalize` that no framework has which runs operators as they stand."""


@dataclass(frozen=True)
class Case:
    """A program or model, and what was published of it.

    Attributes:
        name: with sizes.
        source: opens it; with lengths of lists, if it is a program.
        published: a ratio each, by whom it is over whom: (time of the other, its own).
        machine: where that was measured, and what differs.
    """

    name: str
    source: Callable[[], tuple[Any, Mapping[str, Any]]]
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    machine: str = "A100, SOSP 2024 artifact"


@dataclass(frozen=True)
class Row:
    """Seconds that are predicted, launches, and ratios that were published."""

    case: str
    compiled: float | None
    driven: float | None
    operators: float
    launches: int
    steps: int
    operator_launches: int
    barriers: int
    published: dict[str, float]
    machine: str


def _program(name: str, leaf: tuple[int, ...], **lengths: Any) -> Callable[[], tuple[Any, Mapping[str, Any]]]:
    return lambda: (example(name, leaf), lengths)


def _lstm(hidden: int, ours: float, cudnn: float, torch: float) -> Case:
    gates = (32, 4)
    source = _program("stacked_lstm", (hidden,), xss=(64, 256), ws=gates, us=gates, bs=gates)
    published = {"PyTorch": (torch, ours), "cuDNN": (cudnn, ours)}
    return Case(f"stacked LSTM d32 l64 b256 h{hidden}", source, published)


def _grid(depth: int, ours: float, triton: float) -> Case:
    words, layers = (32, 10), dict.fromkeys(("wx", "ux", "bx", "wy", "uy", "by"), (depth,))
    source = _program("grid_rnn", (256,), sources=words, targets=words, **layers)
    return Case(f"grid RNN d{depth} 10x10 b32 h256", source, {"Triton": (triton, ours)})


def _dilated(hidden: int, ours: float, torch: float, cudnn: float) -> Case:
    source = _program("dilated_lstm", (hidden,), xss=(256, 50), ws=(6,), us=(6,), bs=(6,))
    return Case(f"dilated LSTM d6 l50 b256 h{hidden}", source, {"PyTorch": (torch, ours), "cuDNN": (cudnn, ours)})


def _attention(length: int, ours: float, flash: float) -> Case:
    blocks = dict.fromkeys(("qsss", "ksss", "vsss"), (32, 8, length // 64))
    name = f"attention b32 h8 l{length} d128"
    return Case(name, _program("attention", (64, 128), **blocks), {"FlashAttention-2": (flash, ours)})


CASES = (
    _lstm(256, 4.912, 15.127, 124.18),
    _lstm(1024, 11.967, 48.579, 230.60),
    _dilated(256, 2.081, 2.706, 2.321),
    _grid(4, 12.5, 56.2),
    Case(
        "B2B GEMM m8192 n256 k64 p64",
        _program("b2b_gemm", (64, 64, 64, 64), a=(128, 1), b=(4, 1), c=(1, 4)),
        {"cuBLAS": (0.0176, 0.0100), "Triton": (0.0871, 0.0100)},
        "A100, SOSP 2024 artifact; f16",
    ),
    _attention(512, 0.1781, 0.1911),
    Case(
        "BigBird b32 l4096 h512",
        _program("bigbird", (64, 512), qss=(32, 64), kss=(32, 64), vss=(32, 64)),
        {"PyTorch": (28.07, 4.21), "Triton": (13.10, 4.21)},
        "A100, SOSP 2024 artifact; with random blocks",
    ),
    Case(
        "NASRNN h256 s1000 b64",
        lambda: (str(models.path("nasrnn", batch=64, steps=1000)), {}),
        {"TorchScript": (108.87, 25.38), "JAX": (43.47, 25.38), "its own kernels, driven": (65.87, 25.38)},
        "V100, Cocktailer's tutorial",
    ),
)


def predict(case: Case, device: Device) -> Row:
    """Compile a case as far as needed and add up what is predicted."""
    model, lengths = case.source()
    target = replace_device(registry.parse_target(f"cuda:{device.cpu}").here(), device)
    options = CompileOptions(threads=None, shapes=shape_items(lengths), emulate=True)

    def lowered(options: CompileOptions) -> Compilation:
        work = Compilation(open_source(model, None, None, lengths), target, options)
        lower(work)
        return work

    whole = target.pipeline(options)
    single = lowered(replace(options, stop_after="normalize", pipeline=whole.without(*_present(whole, _FUSING))))
    apart = run_counts.count(single.module, operations=True)
    assert apart is not None
    work = lowered(options)
    run, plans = work.statistics["run"]
    meetings = work.statistics.get("meetings", {})
    held = held_plans(run, plans, meetings, device)
    counted = run.as_dict()
    return Row(
        case.name,
        _sum(run, {**plans, **held}, device, steps=False),
        _sum(run, plans, device, steps=True),
        sum(_alone(piece, device) for piece in apart.pieces),
        counted["launches"],
        counted["steps"],
        apart.as_dict()["launches"],
        run_counts.met(counted, meetings)["meetings"],  # type: ignore[index]
        {name: theirs / ours for name, (theirs, ours) in case.published.items()},
        case.machine,
    )


def replace_device(target: Any, device: Device) -> Any:
    """A copy of the target with another description of the same architecture."""
    target = copy.copy(target)
    target.__dict__["device"] = device
    return target


def _present(pipeline: Any, names: Sequence[str]) -> list[str]:
    known = {spec.name for phase in pipeline.phases for spec in phase.passes}
    return [name for name in names if name in known]


def _sum(run: run_counts.Counts, plans: Mapping[str, Any], device: Device, steps: bool) -> float | None:
    """Seconds of all launches; with `steps`, of the steps in place of the launches that hold them. None: not known."""
    if run.open:
        return None
    counted = [p for p in run.pieces if p.times and (not p.holds if steps else not p.within)]
    return sum(piece.times * plan_of(piece, plans, device)["ns"] for piece in counted) * 1e-9


def _alone(piece: run_counts.Piece, device: Device) -> float:
    peak = device.units.peak_of("f32") * device.units.count
    moving = (piece.read + piece.written) / device.memory.bandwidth
    return piece.times * (device.rate("launch") + max(moving, piece.operations / peak))


def _times(row: Row) -> str:
    def shown(seconds: float | None) -> str:
        return "         -" if seconds is None else f"{seconds * 1e3:10.3f}"

    return f"{row.case:32s}{shown(row.compiled)}{shown(row.driven)}{shown(row.operators)}"


def _gain(time: float | None, compiled: float | None) -> str:
    return f"{time / compiled:8.2f}x" if time and compiled else "       - "


def text_of(row: Row) -> str:
    """A line of the table."""
    published = ", ".join(f"{ratio:.2f}x {name}" for name, ratio in row.published.items())
    gains = _gain(row.operators, row.compiled) + _gain(row.driven, row.compiled)
    counts = f"{row.operator_launches:9d} -> {row.launches:5d}{row.barriers:9d}"
    return f"{_times(row)} {gains} {counts}   {published} ({row.machine})"


HEAD = (
    "predicted, ms                     compiled    driven operators  of: operators  driven     launches      barriers"
    "   published ratios"
)


def main(argv: Sequence[str]) -> int:
    """Print a line for each case and write all of them as JSON; returns 0."""
    about = "Predicted gains of list programs and control flow on a GPU, beside published ratios. Nothing is run."
    parser = argparse.ArgumentParser(prog="tools/bench/run fractal-predicted", description=about)
    parser.add_argument("--device", default="nvidia-h200", help="description of a GPU (nvidia-h200)")
    parser.add_argument("--case", metavar="A,B", default="", help="only cases whose name contains A or B")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    arguments = parser.parse_args(argv)
    device = devices.get(arguments.device)
    print(HEAD)
    rows: list[Row] = []
    for case in CASES:
        if any(text in case.name for text in arguments.case.split(",")):
            rows.append(predict(case, device))
            print(text_of(rows[-1]), flush=True)
            if arguments.json:
                kept = {"command": "fractal-predicted", "device": device.name, "rows": [asdict(row) for row in rows]}
                records.write(arguments.json, kept)
    return 0
