# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this host is: CPU, caches, and how many cores this process may use.

Everything comes from /proc, /sys and the scheduler; rates are estimated from widths and the clock, since measuring
would cost time at every start. Nothing here needs MLIR, except LLVM's name of the CPU.
"""

from __future__ import annotations

import functools
import math
import os
import re
from pathlib import Path

from tilewright.core import config
from tilewright.core.hidden_features import check_patterns, visible
from tilewright.devices import measured
from tilewright.devices.device import Device, Level
from tilewright.devices.files import described, load
from tilewright.devices.x86 import cpu_units, estimated_levels, known_rates

_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def detect_host(root: str = "/") -> Device:
    """Return the description of this machine, as far as this process may use it, the same object at each call.

    Args:
        root: where ``proc`` and ``sys`` are; another folder in tests.

    Raises:
        UserError: the setting of hidden features names what no CPU has.
    """
    return _detect(root, config.hide_features.get())


@functools.cache
def _detect(root: str, hidden: tuple[str, ...]) -> Device:
    from tilewright.mlir._mlir_libs import _tilewright

    base = Path(root)
    cpus = available_cpus()
    if hidden:
        check_patterns({name for cpu in _tilewright.x86_cpus() for name in _tilewright.x86_cpu_features(cpu)})
    features = visible(_tilewright.host_cpu_features())
    frequency = _frequency(base, cpus[0])
    units = cpu_units(features, frequency, count=_physical_cores(base, cpus))
    caches = _caches(base, cpus[0])
    assumed = "" if caches else "; caches not told by the kernel, partly assumed"
    levels = estimated_levels(units, caches or _caches_without_sysfs(), _memory_bytes(base))
    device = Device(
        name="host",
        kind="cpu",
        levels=levels,
        units=units,
        cpu=_tilewright.host_cpu_name(),
        features=features,
        limits=(("threads", usable_threads(base, len(cpus))),),
        rates=known_rates(features),
        source=f"detected{_without(hidden)}; rates estimated ({_model_name(base)}){assumed}",
    )
    return _with_known_rates(device, base)


def _with_known_rates(device: Device, base: Path) -> Device:
    """Return the device with the rates that were measured on it, or on a machine of its kind, if any were.

    Plans depend on rates: without `tilewright devices --measure` they are those of a description that comes with
    Tilewright, the same on all machines of a kind.
    """
    found = measured.find() if base == Path("/") else None
    if found is not None:
        return measured.with_rates_of(device, load(found))
    name = _file_of_model(base)
    known = described(name) if name else None
    if known is None or known.units.vector_bits != device.units.vector_bits:
        return device  # nobody measured this kind, or a setting hides features and makes another machine of it
    return measured.with_rates_of(device, known)


def _without(hidden: tuple[str, ...]) -> str:
    return f" without {', '.join(hidden)}" if hidden else ""


#: Vendor and family of a CPU, and model numbers -> the description with rates of such a machine.
_MEASURED = {
    ("GenuineIntel", "6", ("167", "173", "174")): "intel-granite-rapids",  # 167: what some hypervisors call it
    ("AuthenticAMD", "25", ("17", "24", "97", "160")): "amd-zen4",  # Genoa, Storm Peak, Raphael, Bergamo
    ("AuthenticAMD", "26", ()): "amd-zen5",
}


def _file_of_model(base: Path) -> str | None:
    text = _read(base / "proc/cpuinfo")
    vendor, family, model = (_first(rf"^{name}\s*:\s*(\S+)$", text) for name in ("vendor_id", "cpu family", "model"))
    amx = "amx_tile" in text
    for (known_vendor, known_family, models), name in _MEASURED.items():
        if (vendor, family) == (known_vendor, known_family) and (model in models or not models):
            return name if amx or vendor != "GenuineIntel" else None
    return None


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1) if match else ""


def available_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on, sorted."""
    return sorted(os.sched_getaffinity(0))


def usable_threads(base: Path, cpus: int) -> int:
    """Return how many threads can run at once: the CPUs, or fewer where a cgroup sets a quota."""
    quota = _cgroup_quota(base)
    return max(1, min(cpus, math.ceil(quota))) if quota else cpus


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _model_name(base: Path) -> str:
    match = re.search(r"^model name\s*:\s*(.*)$", _read(base / "proc/cpuinfo"), re.MULTILINE)
    return match.group(1) if match else "unknown CPU"


def _frequency(base: Path, cpu: int) -> float:
    """Return hertz: the highest clock if the kernel tells it, else the present one, else 2 GHz."""
    highest = _read(base / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq")
    if highest.isdigit():
        return float(highest) * 1e3
    clocks = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", _read(base / "proc/cpuinfo"), re.MULTILINE)
    return max((float(clock) for clock in clocks), default=2000.0) * 1e6


def _physical_cores(base: Path, cpus: list[int]) -> int:
    """Return the number of cores: hardware threads of one core share its units."""
    siblings = {
        _read(base / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus
    }
    return len(siblings)


def _caches(base: Path, cpu: int) -> list[Level]:
    """Return the data caches of one CPU, nearest first."""
    found = []
    for index in sorted((base / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
        number = _parse_size(_read(index / "size"))
        if number and _read(index / "type") in ("Data", "Unified"):
            level = f"l{_read(index / 'level')}"
            line = int(_read(index / "coherency_line_size") or 64)
            sharers = _count_list(_read(index / "shared_cpu_list"))
            found.append(Level(level, "cache", number, transaction=line, shared_by=sharers))
    return sorted(found, key=lambda level: level.name)


def _caches_without_sysfs() -> list[Level]:
    """Return caches as the C library knows them, a small size for what it does not: some sandboxes have no /sys."""
    sizes = {"l1": ("SC_LEVEL1_DCACHE_SIZE", 32 << 10), "l2": ("SC_LEVEL2_CACHE_SIZE", 512 << 10)}
    found = []
    for level, (name, assumed) in sizes.items():
        told = os.sysconf(name) if name in os.sysconf_names else 0
        found.append(Level(level, "cache", told if told > 0 else assumed, transaction=64, shared_by=1))
    return found


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match.group(1)) * _SUFFIX.get(match.group(2), 1) if match else 0


def _count_list(text: str) -> int:
    """Return how many numbers ``0-3,8`` holds; 1 for no text."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return max(1, count)


def _memory_bytes(base: Path) -> int:
    """Return the memory that this process may use: the machine's, or its cgroup's limit."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", _read(base / "proc/meminfo"), re.MULTILINE)
    total = int(match.group(1)) << 10 if match else 1 << 30
    limits = [_read(folder / "memory.max") for folder in _cgroup_folders(base, "")]
    limits += [_read(folder / "memory.limit_in_bytes") for folder in _cgroup_folders(base, "memory")]
    return min([total, *(int(limit) for limit in limits if limit.isdigit() and int(limit) > 0)])


def _cgroup_quota(base: Path) -> float:
    """Return the CPUs' worth of time that cgroups (version 2 or 1) allow; 0 for no limit."""
    quotas = []
    for folder in _cgroup_folders(base, ""):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            quotas.append(int(quota) / int(period))
    for folder in _cgroup_folders(base, "cpu"):
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=0.0)


def _cgroup_folders(base: Path, controller: str) -> list[Path]:
    """Return the folders of this process's cgroup and its parents; controller "" means version 2."""
    mount = base / "sys/fs/cgroup" / controller
    for line in _read(base / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            inner = Path(path.lstrip("/"))
            return [mount / inner, *(mount / parent for parent in inner.parents)]
    return [mount]
