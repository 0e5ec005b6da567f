# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What follows from an x86 CPU's features and clock: vectors, peaks, estimated rates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tilewright.devices.device import Level, Units

# Bytes per cycle and vector byte that one core moves, near the figures measured on Zen 5 and Sapphire Rapids; seconds.
_RATES = {"register": (3.0, 0.0), "l1": (1.5, 1.2e-9), "l2": (0.75, 4e-9), "l3": (0.4, 15e-9)}
_MEMORY_BANDWIDTH = 20e9
_MEMORY_LATENCY = 100e-9
_FMA_PER_CYCLE = 2
#: Multiplications and additions that AMX starts in a cycle: 16x16 dot products of 64 bytes in 16 cycles.
_MATRIX_PER_CYCLE = {"bf16": 2 * 16 * 32, "i8": 2 * 16 * 64}


def vector_bits(features: Iterable[str]) -> int:
    """Return the width of the widest vectors worth using: 512, 256 or 128."""
    known = set(features)
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= known:
        return 512
    return 256 if {"avx2", "fma"} <= known else 128


def cpu_units(features: Iterable[str], frequency: float, count: int) -> Units:
    """Return the units of a CPU with two FMA (or multiply and add) pipes per core."""
    known = set(features)
    bits = vector_bits(known)
    per_cycle = _FMA_PER_CYCLE * (2 if "fma" in known else 1)
    f32 = frequency * per_cycle * bits / 32
    peak = {"f32": f32, "f64": f32 / 2}
    if "avx512bf16" in known:
        # AMD's cores start two vdpbf16ps in a cycle, Intel's one in two cycles (both measured).
        peak["bf16"] = f32 * (2 if "clzero" in known else 0.5)
    if _has_byte_dots(known):
        peak["i8"] = f32 * 4
    for name in matrix_units(known):
        peak[name] = frequency * _MATRIX_PER_CYCLE[name]
    registers = 32 if bits == 512 else 16
    return Units(count, bits, registers, frequency, tuple(sorted(peak.items())))


def _has_byte_dots(features: set[str]) -> bool:
    return "avxvnni" in features or {"avx512vnni", "avx512vl"} <= features


def dot_products(features: Iterable[str]) -> tuple[str, ...]:
    """Return the element types (``bf16``, ``i8``) whose products in groups one instruction adds.

    The instruction for bf16 counts only where it is faster than multiplying in f32.
    """
    known = set(features)
    found = ["bf16"] if {"avx512bf16", "avx512vl", "clzero"} <= known else []
    return (*found, *(["i8"] if _has_byte_dots(known) else []))


def matrix_units(features: Iterable[str]) -> tuple[str, ...]:
    """Return the element types (``bf16``, ``i8``) that a matrix unit multiplies: AMX, 16x16 sums at a time."""
    known = set(features)
    names = {"bf16": "amx-bf16", "i8": "amx-int8"}
    return tuple(name for name, feature in names.items() if {"amx-tile", feature, "avx512f"} <= known)


_SPARSE_ON_ZEN3 = (
    ("sparse.copied", 1.2),
    ("sparse.list", 2.8),
    ("sparse.load", 0.6),
    ("sparse.load_far", 0.8),
    ("sparse.panel", 0.93),
    ("sparse.panel_end", 7.0),
    ("sparse.surprise", 1.2),
)


def known_rates(features: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Return rates that differ on all cores of a maker from those of `kinds/cpu.toml`.

    AMD's cores find rows that are read side by side by themselves: what code asks for ahead only takes their time. One
    thread of a Zen 3 core, 35 MB of 2:4 weights in four streams: 25 GB/s, and 18 where each line is asked for.

    Those without AVX-512 multiply pruned weights faster than the Intel cores that the rates of `sparse.*` were fitted
    on, compared with dense products (Zen 3, 1024^3; predicted beside measured in `rationale/plan_sparsity.md`).
    """
    known = set(features)
    if "clzero" not in known:
        return ()
    return (("sparse.ahead", 0.0), *(() if "avx512f" in known else _SPARSE_ON_ZEN3))


def estimated_levels(units: Units, caches: list[Level], memory_bytes: int) -> tuple[Level, ...]:
    """Return registers, the given caches and memory, with estimated rates."""
    vector = units.vector_bits // 8
    registers = Level("register", "register", units.registers * vector, transaction=vector)
    memory = Level("memory", "addressable", memory_bytes, _MEMORY_BANDWIDTH, _MEMORY_LATENCY, 64, units.count)
    timed = []
    for level in [registers, *caches]:
        per_cycle, latency = _RATES.get(level.name, _RATES["l3"])
        bandwidth = per_cycle * vector * units.frequency
        timed.append(dataclasses.replace(level, bandwidth=bandwidth, latency=latency))
    return (*timed, memory)
