# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines: names, fields, presets, rates of packets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices import Device
from tilewright.sim.coremesh.machine import machine, mesh_names
from tilewright.sim.coremesh.program import Cost


def test_names() -> None:
    assert set(mesh_names()) >= {"wse2", "wse3", "dojo", "wormhole", "blackhole", "ipu", "toy8x8"}


@pytest.mark.parametrize("name", mesh_names())
def test_machines_are_consistent(name: str) -> None:
    """Cores, vectors and peaks agree with the general part of the description, and the link's rate with its packets."""
    made, device = machine(name), devices.get(name)
    assert made.mesh.width * made.mesh.height == device.units.count
    for dtype, rate in made.mesh.simd:
        assert device.units.peak_of(dtype) == pytest.approx(2 * rate * made.clock, rel=1e-3)
    if made.mesh.packet_rates:
        assert made.mesh.packet_rates[-1][1] == made.mesh.link_bytes_per_cycle
    assert made.sram_bytes > made.mesh.code_bytes


def test_wse2_is_the_published_machine() -> None:
    """22 PB/s of memory over all its cores; 21 colors are left to users."""
    made = machine("wse2")
    total = 850_000 * (made.mesh.read_bytes_per_cycle + made.mesh.write_bytes_per_cycle) * made.clock
    assert total == pytest.approx(22.4e15, rel=0.01)
    assert made.mesh.colors - made.mesh.reserved_colors == 21


@pytest.mark.parametrize(
    ("size", "rate"), [(128, 5.5), (256, 10.1), (512, 18.0), (1024, 27.4), (2048, 30), (8192, 30), (1 << 20, 30)]
)
def test_wormhole_bandwidth_by_packet_size(size: int, rate: float) -> None:
    assert size / machine("wormhole").message_cycles(size) == pytest.approx(rate, rel=0.05)


def test_packets_between_sizes_of_the_table() -> None:
    cycles = [machine("wormhole").message_cycles(size) for size in (1, 100, 129, 300, 1000, 8191, 8192, 8193, 20000)]
    assert cycles == sorted(cycles)
    assert machine("wormhole").message_cycles(8193) - machine("wormhole").message_cycles(8192) == cycles[0]


def test_ipu_exchange_rate() -> None:
    """5.5 GB/s per tile, about 8 TB/s of all."""
    made, size = machine("ipu"), 100_000
    rate = size / made.seconds(float(made.message_cycles(size)))
    assert rate == pytest.approx(5.5e9, rel=0.01)
    assert rate * 1472 == pytest.approx(8e12, rel=0.05)


def test_presets() -> None:
    ideal, calibrated = machine("wse2"), machine("wse2", "calibrated")
    assert (ideal.overheads.round, ideal.overheads.communication) == (0, 1)
    assert calibrated.overheads.round == 295
    assert calibrated.mesh == ideal.mesh


COSTS = [Cost(macs=1), Cost(macs=7), Cost(2**20 + 1, 64), Cost(0, 3, 100), Cost(single=9), Cost(5, 2, 3, single=4)]


@pytest.mark.parametrize("name", mesh_names())
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_ideal_is_a_lower_bound(name: str, bits: int) -> None:
    """Of each kernel, whatever its numbers: overheads were measured with f16."""
    ideal, calibrated = machine(name), machine(name, "calibrated")
    for cost in COSTS:
        one = replace(cost, dtype_bits=bits)
        assert ideal.kernel_cycles(one) <= calibrated.kernel_cycles(one), one


@pytest.mark.parametrize("name", ["wse2", "wse3", "toy8x8"])
def test_measured_rates_are_those_of_f16(name: str) -> None:
    """The law of the tables, to the last bit: 2 multiply-adds and more take what was measured."""
    made = machine(name, "calibrated")
    for macs in (2, 9, 480 * 9 * 30, 660 * 7 * 31):
        law = macs * made.overheads.per_mac + 5 * made.overheads.vector_call
        assert made.kernel_cycles(Cost(macs, 5, 0, 16)) == law


@pytest.mark.parametrize("name", mesh_names())
def test_wide_numbers_are_no_faster(name: str) -> None:
    """Those that no unit has, as of 64 bits, take what the widest take; single elements a cycle each."""
    made = machine(name)
    assert made.macs_per_cycle(64) == made.macs_per_cycle(32) <= made.macs_per_cycle(16)
    assert made.kernel_cycles(Cost(single=100)) == 100


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: machine("wse4"), "no machine 'wse4': use one of .*wse2"),
        (lambda: machine("intel-granite-rapids"), "is no mesh of cores but a cpu"),
        (lambda: machine("wse2", "fast"), "no preset 'fast': use one of ideal, calibrated"),
        (lambda: machine("wse2", colours=3), "no field 'colours': did you mean colors"),
        (lambda: machine("wse2", topology="star"), "topology is 'star': use one of mesh, torus, exchange"),
        (lambda: machine("wse2", dead_cores=((750, 999),)), r"a defect at \(750, 999\) is outside of 994 x 750"),
        (lambda: machine("wse2", width=0), "width must be more than 0, not 0"),
    ],
)
def test_errors(call, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()


def test_files_of_users(tmp_path: Path) -> None:
    """A field that is misspelt, missing or of a defect; a good one."""
    text = (Path(devices.__file__).parent / "toy8x8.toml").read_text()
    path = tmp_path / "mine.toml"
    for old, new, words in (
        ("link_bytes_per_cycle", "link_bytes_a_cycle", "no field .link_bytes_a_cycle.: did you mean link_bytes_per"),
        ("width = 8\n", "", "mesh: width is missing"),
        ("round = 416.0", "rounds = 416.0", "mesh.calibrated: there is no field 'rounds': did you mean round"),
    ):
        assert old in text
        path = tmp_path / f"{old[:5]}.toml"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(UserError, match=words):
            machine(str(path))
    path.write_text(text.replace("width = 8\n", "width = 8\ndead_cores = [[1, 2]]\ndead_links = [[0, 0, 'east']]\n"))
    devices.load.cache_clear()
    made = machine(str(path))
    assert made.mesh.dead_cores == ((1, 2),) and made.mesh.dead_links == ((0, 0, "east"),)
    device = devices.load(path)
    assert Device.from_dict(device.to_dict()) == device
