# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device descriptions: files, names, detection, round trips."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from tilewright import devices
from tilewright.core import cache, config
from tilewright.core.errors import InternalError, UserError
from tilewright.devices import Device, Level, host
from tilewright.devices.attribute import from_attribute, to_attribute
from tilewright.devices.rates import rates_of_kind
from tilewright.plan.cost.cost import Model, Schedule
from tilewright.plan.cost.expression import matmul
from tilewright.runtime.cpu import cpu_features
from tilewright.targets.registry import parse_target


@pytest.mark.parametrize("name", devices.file_names())
def test_files_round_trip(name: str) -> None:
    device = devices.load(Path(devices.__file__).parent / f"{name}.toml")
    assert device.name == name
    assert Device.from_dict(device.to_dict()) == device
    sizes = [level.bytes for level in device.levels if level.kind != "register"]
    assert sizes == sorted(sizes)
    assert device.units.peak_of("f32") > 0


def test_host() -> None:
    device = devices.get("cpu")
    assert device is devices.detect_host()
    assert [level.name for level in device.levels][:2] == ["register", "l1"]
    assert device.levels[-1].name == "memory"
    assert device.level("l1").bytes >= 8192
    assert 1 <= device.units.count <= len(os.sched_getaffinity(0))
    assert 1 <= device.limit("threads", 0) <= len(os.sched_getaffinity(0))
    assert device.lanes(32) == device.units.vector_bits // 32
    assert device.cpu


def test_hidden_features_make_a_smaller_machine() -> None:
    """As if without AVX-512: vectors, registers, peaks, what LLVM may use, and what may be loaded."""
    with config.hide_features.override(("amx*", "avx512*", "avxvnni*")):
        small = devices.get("cpu")
        assert small is devices.get("cpu") and small.units.vector_bits <= 256 and small.units.registers == 16
        assert not [name for name in small.features if name.startswith(("avx512", "amx", "avxvnni"))]
        assert "without amx*, avx512*, avxvnni*" in small.source and "i8" not in dict(small.units.peak)
        target = parse_target("cpu")
        assert "+avx512" not in target.features and not [n for n in target.needed if n.startswith("avx512")]
        with pytest.raises(UserError, match="needs CPU features that .* lacks: avx512f"):
            cpu_features.check_host(["avx512f"], "the model", "znver5")
        hidden = cache.host_id()
    with config.hide_features.override(()):
        assert hidden != cache.host_id() and "without" not in devices.get("cpu").source
    with config.hide_features.override(("avx521*",)), pytest.raises(UserError, match=r"'avx521\*'; did you mean avx"):
        parse_target("cpu")


@pytest.mark.parametrize(
    ("target", "bits", "feature"),
    [("cpu:x86-64-v3", 256, "avx2"), ("cpu:znver5", 512, "avx512bf16"), ("cpu:x86-64", 128, "sse2")],
)
def test_cpu_by_llvm_name(target: str, bits: int, feature: str) -> None:
    device = devices.get(target)
    assert device.units.vector_bits == bits
    assert feature in device.features
    assert device.cpu == target.removeprefix("cpu:")


def test_by_file() -> None:
    assert devices.get("cpu:amd-zen5").source == "measured"
    assert devices.get("wse2").kind == "mesh"
    path = Path(devices.__file__).parent / "host-generic-avx2.toml"
    assert devices.get(str(path)).units.vector_bits == 256


@pytest.mark.parametrize(
    ("target", "words"),
    [("cpu:znver55", "did you mean znver5"), ("tpu", "unknown device 'tpu'"), ("nowhere.toml", "cannot read")],
)
def test_unknown(target: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        devices.get(target)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"levels": [{"name": "l1", "kind": "magic", "bytes": 1}]}, "kind 'magic'"),
        ({"levels": [{"name": "l1", "kind": "cache", "bytes": 0}]}, "bytes must be at least 1"),
        ({"colour": "red"}, "colour"),
        ({"units": {"count": 1}}, "vector_bits"),
        ({"levels": 3}, "my file: "),
        ({"rates": {"lanch": 1e-7}}, "my file: no planner asks for the rate 'lanch' of a cpu: did you mean launch?"),
        ({"rates": {"l9.store": 2.0}}, "no planner asks for the rate 'l9.store'"),
    ],
)
def test_bad_description(change: dict, words: str) -> None:
    values = devices.get("cpu:amd-zen5").to_dict() | change
    with pytest.raises(UserError, match=words):
        Device.from_dict(values, "my file")


def test_missing_parts_name_what_there_is() -> None:
    device = devices.get("cpu:amd-zen5")
    with pytest.raises(UserError, match="no level 'l9': it has register, l1"):
        device.level("l9")
    with pytest.raises(UserError, match="no peak for 'f8'"):
        device.units.peak_of("f8")


def test_rates_of_a_kind_stand_behind_those_of_a_device() -> None:
    """The description's own number, then the kind's; the attribute holds the own ones alone."""
    device = devices.get("cpu:x86-64-v3")
    assert not device.rates and device.rate("task") == rates_of_kind("cpu")["task"]
    quick = dataclasses.replace(device, rates=(("task", 1e-9),))
    assert quick.rate("task") == 1e-9 and quick.rate("launch") == device.rate("launch")
    assert quick.to_dict()["rates"] == {"task": 1e-9}
    with pytest.raises(InternalError, match="'x86-64-v3' has no rate 'tsk': declare it in devices/kinds/cpu.toml"):
        device.rate("tsk")


def test_links_and_networks_are_levels_that_hold_nothing() -> None:
    """A description with one round-trips, and what is planned and predicted for a kernel stays the same."""
    alone = devices.get("cpu:amd-zen5")
    network = Level("hosts", "network", bytes=1 << 20, bandwidth=2.5e10, latency=2e-6, shared_by=2)
    joined = dataclasses.replace(alone, levels=(*alone.levels, network))
    assert Device.from_dict(joined.to_dict()) == joined and joined.level("hosts").latency == 2e-6
    assert joined.memory == alone.memory == alone.level("memory")
    product, own = matmul(512, 512, 512), Schedule((512, 512, 512), (8, 32, 1), (1, 0, 2))
    assert Model(joined).predict(product, own) == Model(alone).predict(product, own)


@pytest.mark.parametrize("path", sorted(Path(devices.__file__).parent.glob("kinds/*.toml")), ids=lambda path: path.stem)
def test_each_rate_of_a_kind_says_what_it_is(path: Path) -> None:
    """A comment in the line, or one above that all lines to the next empty one share, names the unit."""
    for paragraph in path.read_text().split("\n\n"):
        lines = paragraph.splitlines()
        shared = lines[0].startswith("#") and not any("#" in line for line in lines[1:])
        assert shared or all("#" in line for line in lines if " = " in line), f"{path.name}: {paragraph}"


def make_machine(root: Path, *, cgroup: str) -> None:
    """Write the files of a machine with two cores of two threads each, and a cgroup with a quota of 1.5 CPUs."""
    files = {
        "proc/cpuinfo": "model name\t: Test CPU\ncpu MHz\t\t: 1000.0\n",
        "proc/meminfo": "MemTotal:       1048576 kB\n",
        "proc/self/cgroup": {"v2": "0::/job/step\n", "v1": "3:cpu,cpuacct:/job\n2:memory:/job\n"}[cgroup],
    }
    if cgroup == "v2":
        files["sys/fs/cgroup/job/cpu.max"] = "150000 100000\n"
        files["sys/fs/cgroup/job/step/memory.max"] = "536870912\n"
    else:
        files["sys/fs/cgroup/cpu/job/cpu.cfs_quota_us"] = "150000\n"
        files["sys/fs/cgroup/cpu/job/cpu.cfs_period_us"] = "100000\n"
        files["sys/fs/cgroup/memory/job/memory.limit_in_bytes"] = "536870912\n"
    for cpu in range(4):
        base = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{base}/topology/thread_siblings_list"] = "0,2\n" if cpu % 2 == 0 else "1,3\n"
        caches = [(1, "Data", "32K", "0,2"), (1, "Instruction", "32K", "0,2"), (2, "Unified", "1M", "0-3")]
        for index, (level, kind, size, shared) in enumerate(caches):
            entry = f"{base}/cache/index{index}"
            files |= {f"{entry}/level": f"{level}", f"{entry}/type": kind, f"{entry}/size": size}
            files |= {f"{entry}/shared_cpu_list": shared, f"{entry}/coherency_line_size": "128"}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("cgroup", ["v1", "v2"])
def test_detection_reads_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgroup: str) -> None:
    make_machine(tmp_path, cgroup=cgroup)
    monkeypatch.setattr(host, "available_cpus", lambda: [0, 1, 2, 3])
    device = host.detect_host(str(tmp_path))
    assert device.units.count == 2, "four hardware threads are two cores"
    assert device.limit("threads", 0) == 2, "a quota of 1.5 CPUs keeps two threads busy"
    assert device.units.frequency == 1e9
    assert [(level.name, level.bytes, level.shared_by) for level in device.levels[1:3]] == [
        ("l1", 32768, 2),
        ("l2", 1 << 20, 4),
    ]
    assert device.level("l1").transaction == 128
    assert device.level("memory").bytes == 512 << 20
    assert "Test CPU" in device.source


def test_attribute_round_trip() -> None:
    from tilewright.mlir import ir

    with ir.Context():
        for target in ("cpu", "cpu:amd-zen5", "wse2"):
            device = devices.get(target)
            attribute = to_attribute(device)
            assert from_attribute(attribute) == device
            assert (device.kind == "cpu") == ("line_bytes = 64" in str(attribute))
            assert ir.Attribute.parse(str(attribute)) == attribute
        with pytest.raises(UserError, match=r"expected a #tile\.device"):
            from_attribute(ir.UnitAttr.get())


def test_level_kinds() -> None:
    with pytest.raises(UserError, match="use one of register, cache, addressable"):
        Level("x", "disk", 1)


def test_a_host_without_sysfs_has_caches_all_the_same(tmp_path: Path) -> None:
    device = host.detect_host(str(tmp_path))
    sizes = {level.name: level.bytes for level in device.levels}
    assert 0 < sizes["l1"] < sizes["l2"] < sizes["memory"]
    assert "caches not told by the kernel" in device.source
