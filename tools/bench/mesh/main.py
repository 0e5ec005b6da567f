# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command: tables, predicted beside published."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, get_args

from bench import records
from bench.mesh import booksim, figure9
from bench.mesh.layers import HALF, decode, decode_cycles, last_prefill_cycles, prefill_cycles, tile, transition
from bench.mesh.published import A100_WATTS, CAPACITIES, ENERGY, MODELS, REQUESTS, TOKENS
from bench.mesh.speed import speed
from tilewright.plan.mesh.decoders.transition import time_columns
from tilewright.plan.mesh.kv_cache import capacity
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import Sync, time_program

Row = dict[str, Any]
WSE = machine("wse2", "calibrated")
#: Layers whose columns move together from grid to grid: as many as fit a core that holds nothing else.
TOGETHER = 2


def rates() -> list[Row]:
    """Tables 3 and 4: tokens per second, with the ideal machine's as a bound."""
    rows = []
    for name, model in MODELS.items():
        for phase, published, tokens in (("prefill", model.prefill, TOKENS), ("decode", model.decode, 1)):
            cycles = prefill_cycles if phase == "prefill" else decode_cycles
            for side, rate in published.items():
                found = {preset: _rate(cycles(name, side, preset), name, tokens) for preset in ("calibrated", "ideal")}
                rows.append(_row(f"{phase} {name} {side}", found["calibrated"], rate, ideal=round(found["ideal"], 1)))
    return rows


def _rate(cycles: float, model: str, tokens: int) -> float:
    return tokens / WSE.seconds(cycles * MODELS[model].layers)


def requests() -> list[Row]:
    """Table 2: tokens put out per second of a request: prefill, the move between the grids, and decode.

    Memory is not counted: what all layers hold fits one region of neither grid (see `transitions`).
    The cache grows while tokens are made: decode is timed at five lengths (trapezoids).
    """
    rows = []
    for name, (first, then, published) in REQUESTS.items():
        layers = MODELS[name].layers
        for (given, made), rate in published.items():
            begins = last_prefill_cycles(name, first, then, given)
            begins += time_columns(transition(name, first, then, given), WSE, TOGETHER).cycles / TOGETHER
            steps = [decode_cycles(name, then, "calibrated", given + part * made // 4) for part in range(5)]
            mean = (steps[0] / 2 + sum(steps[1:-1]) + steps[-1] / 2) / 4
            rows.append(
                _row(f"request {name} {given}/{made}", made / WSE.seconds(layers * (begins + made * mean)), rate)
            )
    return rows


def transitions() -> list[Row]:
    """From the prompt's grid to the tokens' (table 2): all layers' weights and caches, so many layers at a time.

    Columns travel after the layer; what the layer takes more, or less, as it keeps new rows, is the second figure. None
    are published. The move's bytes stand beside no other layer, and what those hold is beyond a core: see `memory`.
    """
    rows = []
    for name, (first, then, _) in REQUESTS.items():
        took = time_columns(transition(name, first, then), WSE, TOGETHER)
        cycles, layers = took.cycles / TOGETHER, MODELS[name].layers
        keeping = last_prefill_cycles(name, first, then, TOKENS) - prefill_cycles(name, first, "calibrated")
        row: Row = {"what": f"transition {name} {first} to {then}, {TOGETHER} layers at a time"}
        row |= {"cycles_per_layer": round(cycles), "peak_bytes": took.peak, **memory(name)}
        row["milliseconds"] = round(1e3 * WSE.seconds(cycles * layers), 1)
        rows.append(row | {"milliseconds_in_prefill": round(1e3 * WSE.seconds(keeping * layers), 1)})
    return rows


def memory(model: str) -> Row:
    """Bytes of a core: what it has, and what weights and caches of all layers take on either grid of a request."""
    before, after = transition(model, *REQUESTS[model][:2]).held()
    layers = MODELS[model].layers
    has = WSE.sram_bytes - WSE.mesh.code_bytes
    return {"core_bytes": has, "all_layers_before_bytes": layers * before, "all_layers_after_bytes": layers * after}


def capacities() -> list[Row]:
    """Table 5: tokens that the memory of a column holds beside the weights of as many layers as a core has.

    Layers are spread over all regions of the grid's size that the wafer has; keys and values are as narrow as the
    model's.
    """
    rows = []
    for name, (side, concat, shift) in CAPACITIES.items():
        model, program = MODELS[name], decode(name, side, side)
        layers = model.layers * side * side / (WSE.mesh.width * WSE.mesh.height)
        width, hidden = tile(model.width, side), tile(model.hidden, side)
        weights = (2 * (1 + model.narrow) * width * width + 3 * width * hidden) * HALF.itemsize
        held = {"qkv", "o", "up_gate", "down", "k", "v"}
        sizes = {one.name: prod(one.shape) * one.slots * one.dtype.itemsize for one in program.buffers}
        work = sum(size for buffer, size in sizes.items() if buffer not in held)
        free = int(WSE.sram_bytes - WSE.mesh.code_bytes - work - layers * weights)
        token = max(1, round(layers * 2 * model.narrow * model.width / side * HALF.itemsize))
        for policy, tokens in (("concat", concat), ("shift", shift)):
            rows.append(_row(f"capacity {name} {policy}", capacity(policy, side, free, token), tokens))
    return rows


def energies() -> list[Row]:
    """Tables 7 and 8: energy of A100s relative to the wafer's, at nominal power and the wafer's predicted time."""
    rows = []
    for (name, phase, side), others in ENERGY.items():
        cycles = (prefill_cycles if phase == "prefill" else decode_cycles)(name, side, "calibrated")
        tokens = TOKENS if phase == "prefill" else 1
        joules = WSE.seconds(cycles * MODELS[name].layers) * WSE.mesh.watts / tokens
        for (count, rate), ratio in others:
            rows.append(_row(f"energy {phase} {name} {count} A100", count * A100_WATTS / rate / joules, ratio, 3))
    return rows


def products() -> list[Row]:
    """One product of 360 x 360 on grids of three sizes: cycles of four algorithms under three semantics."""
    algorithms: dict[str, Callable[[Product], Program]] = {
        "meshgemm": shifted_product,
        "cannon": partial(shifted_product, algorithm="cannon"),
        "summa": summa,
        "all_gather": all_gather_product,
    }
    rows = []
    for side in (30, 60, 90):
        for sync in get_args(Sync):
            row: Row = {"what": f"360 x 360 x 360, {side} x {side}, {sync}"}
            for name, algorithm in algorithms.items():
                program = algorithm(Product(360, 360, 360, side, side, HALF))
                row[name] = time_program(program, machine("wse2"), sync=sync, loads=False).cycles
            rows.append(row)
    return rows


def _row(what: str, predicted: float, published: float, digits: int = 1, **more: Any) -> Row:
    error = round(100 * (predicted / published - 1), 1)
    return {"what": what, "predicted": round(predicted, digits), "published": published, "error_percent": error, **more}


TABLES: dict[str, Callable[[], list[Row]]] = {
    "rates": rates,
    "requests": requests,
    "transitions": transitions,
    "capacities": capacities,
    "energies": energies,
    "products": products,
    "speed": speed,
}
#: Tables that take minutes to hours of a processor, one per grid: only where they are named.
LONG: dict[str, Callable[[Sequence[str]], list[Row]]] = {
    f"figure9_{side}": partial(figure9.rows, side) for side in figure9.SIDES
}


def main(argv: Sequence[str]) -> int:
    """Print the tables, and write them as JSON; returns 0."""
    parser = argparse.ArgumentParser(prog="tools/bench/run mesh", description="Decoders on a wafer, simulated.")
    parser.add_argument(
        "--table",
        metavar="A,B",
        default=",".join(TABLES),
        help=f"of {', '.join(TABLES)} (all of these), {', '.join(LONG)} (long)",
    )
    parser.add_argument(
        "--algorithms",
        metavar="A,B",
        default=",".join(figure9.ALGORITHMS),
        help=f"of the long tables: of {', '.join(figure9.ALGORITHMS)} (all); the last two take longest",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    parser.add_argument(
        "--booksim", type=Path, metavar="PATH", help="table `booksim` only: tier T2 beside that binary of BookSim2"
    )
    arguments = parser.parse_args(argv)
    algorithms = arguments.algorithms.split(",")
    tables = TABLES | {name: partial(table, algorithms) for name, table in LONG.items()}
    if arguments.booksim is not None:
        tables = {"booksim": partial(booksim.rows, arguments.booksim)}
    chosen = list(tables) if arguments.booksim else arguments.table.split(",")
    for kind, names, known in (("table", chosen, tables), ("algorithm", algorithms, figure9.ALGORITHMS)):
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"there is no {kind} {', '.join(unknown)}: take some of {', '.join(known)}")
    tier = "T2" if arguments.booksim else "T1"
    if arguments.booksim:
        print("A line of cores, ideal: tier T2 beside BookSim2.")
    else:
        print(
            f"Simulated (T1) on {WSE.name}, preset {WSE.preset}, {WSE.clock / 1e9:g} GHz; prefill from smaller grids."
        )
    found: dict[str, list[Row]] = {}
    for name in chosen:
        found[name] = tables[name]()
        for row in found[name]:
            cells = "  ".join(f"{key} {value:g}" for key, value in row.items() if key != "what")
            print(f"{row['what']:44s} {cells}", flush=True)
        if arguments.json:
            records.write(arguments.json, {"command": "mesh", "machine": WSE.name, "tier": tier, "tables": found})
    return 0
