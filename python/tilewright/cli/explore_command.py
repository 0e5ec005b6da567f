# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""explore-machine: what a model costs on meshes of cores that differ, and which are worth building."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.core.errors import UserError

_EPILOG = """\
examples:
  tilewright explore-machine llama3-8b --grid 360x360 480x480 660x660 --sram 32K 48K 64K
  tilewright explore-machine llama3-8b --phase prefill --grid 480x480 720x720 --axes time,area -o front.html
  tilewright explore-machine sizes.toml --machine toy8x8 --grid 4x4 8x8 --offchip 0 8 32 --json front.json

MODEL is a decoder: llama3-8b, llama2-13b, tiny, or a .toml file with
  hidden, ffn, layers, heads, kv_heads [, tokens, context, dtype], or a list of products and sums:
  [[parts]]
  name = "down"      # kind: gemm, gemm_t, gemv, allreduce
  kind = "gemv"
  k = 14336
  n = 4096
  times = 32         # in one pass
  weights = 32       # matrices that must lie somewhere

axes (all better where they are less):
  time     seconds of one pass          cores    of the grid
  sram     bytes of all cores           links    bytes per cycle of all links
  offchip  bytes per cycle of the edge  area     mm2 of the cores, by --price

Times are simulated (T1): the programs of all products and sums, one after the other. What of weights and cache does not
fit the cores streams in through the edge beside them, and the slower of both counts.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explore-machine",
        help="compare meshes of cores for a model",
        description="Time a model on meshes that differ in cores, memory, links and off-chip bandwidth, and print the "
        "Pareto front: the machines that no other beats in one axis without losing in another. Exit code 1: none runs "
        "the model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a decoder's name, or a .toml file of sizes (see below)")
    parser.add_argument("--machine", default="wse2", help="what the machines begin with (default: wse2)")
    parser.add_argument("--preset", default="calibrated", help="overheads: ideal or calibrated (default)")
    parser.add_argument("--phase", default="decode", help="prefill or decode (default)")
    parser.add_argument("--sync", default="dataflow", help="dataflow (default), rendezvous or lockstep")
    parser.add_argument("--grid", nargs="+", default=[], metavar="HxW", help="rows x columns of cores, as in 360x360")
    parser.add_argument("--sram", nargs="+", default=[], metavar="BYTES", help="of a core, as in 48K")
    parser.add_argument("--link", nargs="+", default=[], metavar="B", help="bytes per cycle of a link")
    parser.add_argument("--offchip", nargs="+", default=[], metavar="B", help="bytes per cycle of the edge; 0: none")
    parser.add_argument("--axes", default="time,area,links,offchip", help="what is weighed (default: %(default)s)")
    parser.add_argument(
        "--price",
        nargs="+",
        default=[],
        metavar="NAME=UM2",
        help="square micrometres: core (19000), kb (of 1024 bytes: 395.8), link (of a byte per cycle: 0)",
    )
    parser.add_argument("--scale", action="store_true", help="add a GEMM and a GEMV on 8x8 to 1000x1000 cores")
    parser.add_argument("-o", "--output", metavar="PAGE.html", help="write a page with plots")
    parser.add_argument("--json", metavar="FILE", help="write all points as JSON; - prints them")
    parser.set_defaults(run=_explore)


def _explore(options: argparse.Namespace) -> int:
    from tilewright.plan.mesh.studies import show
    from tilewright.plan.mesh.studies.explore import Prices, explore, plain
    from tilewright.plan.mesh.studies.scale import scale, scale_section
    from tilewright.plan.mesh.studies.workload import read_workload
    from tilewright.report.document import check_page
    from tilewright.sim.coremesh.machine import machine
    from tilewright.sim.coremesh.timing.words import SYNCS

    if options.sync not in SYNCS:
        raise UserError(f"--sync {options.sync}: use one of {', '.join(SYNCS)}")
    if options.output:
        check_page(options.output)
    base = machine(options.machine, options.preset)
    found = explore(
        read_workload(options.model, options.phase),
        base,
        grids=[_grid(text) for text in options.grid],
        srams=[_bytes(text) for text in options.sram],
        links=_numbers("--link", options.link),
        offchips=_numbers("--offchip", options.offchip),
        axes=options.axes.split(","),
        prices=Prices(**_prices(options.price)),
        sync=options.sync,
    )
    rows = scale(base, sync=options.sync) if options.scale else []
    values = plain(found) | ({"scale": rows} if rows else {})
    print(json.dumps(values, indent=1) if options.json == "-" else show.as_text(found))
    if options.json not in (None, "-"):
        Path(options.json).write_text(json.dumps(values, indent=1) + "\n")
    if options.output:
        Path(options.output).write_text(show.page(found, [scale_section(rows)] if rows else []))
    return 0 if found.front else 1


def _grid(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if not match:
        raise UserError(f"--grid {text}: expected rows x columns, as in 360x360")
    return int(match[1]), int(match[2])


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KM]?)", text)
    if not match:
        raise UserError(f"--sram {text}: expected bytes of a core, as in 49152, 48K or 1M")
    return int(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2]]


def _numbers(option: str, texts: Sequence[str]) -> list[float]:
    try:
        found = [float(text) for text in texts]
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise UserError(f"{option} {' '.join(texts)}: expected bytes per cycle, as in 4")
    return found


def _prices(texts: Sequence[str]) -> dict[str, float]:
    prices = {}
    for text in texts:
        match = re.fullmatch(r"(core|kb|link)=(\d+\.?\d*)", text)
        if not match:
            raise UserError(f"--price {text}: expected core, kb or link and square micrometres, as in link=500")
        prices[match[1]] = float(match[2])
    return prices
