# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""devices, cache, doctor."""

from __future__ import annotations

import argparse
import datetime
import json
from typing import Any

from tilewright.core import cache


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("devices", help="describe this machine and the known ones")
    parser.add_argument("device", nargs="?", help="cpu (default), cpu:NAME, cuda:sm_90a, or a name from the list")
    parser.add_argument("--json", action="store_true", help="print the description as JSON")
    parser.add_argument(
        "--measure", action="store_true", help="measure this machine (seconds) and plan with the result from now on"
    )
    parser.add_argument("--forget", action="store_true", help="plan with the checked-in numbers again")
    parser.set_defaults(run=_devices)
    parser = commands.add_parser("cache", help="list or clear the compile cache")
    parser.add_argument("action", nargs="?", default="list", choices=["list", "clear", "prune"])
    parser.set_defaults(run=_cache)
    parser = commands.add_parser("doctor", help="check what Tilewright needs, and say what to install")
    parser.set_defaults(run=_doctor)


def _devices(options: argparse.Namespace) -> int:
    from tilewright import devices

    if options.measure or options.forget:
        return _measure(options)
    device = devices.get(options.device or "cpu")
    if options.json:
        print(json.dumps(device.to_dict(), indent=1))
        return 0
    _print_device(device)
    if options.device is None:
        print(f"\nothers: {', '.join(devices.file_names())}, cpu:NAME for any x86 CPU that LLVM knows, cuda:ARCH")
    return 0


def _measure(options: argparse.Namespace) -> int:
    from tilewright import devices
    from tilewright.core.errors import UserError
    from tilewright.devices import measured

    if options.device not in (None, "cpu"):
        raise UserError("--measure and --forget are about this machine: leave the device out")
    path = measured.file_of_host()
    if options.forget:
        path.unlink(missing_ok=True)
        print(f"no measured numbers are left in {path.parent}")
        return 0
    from tilewright.devices.measure import measure

    device = measure(devices.get("cpu"), _compiled)
    print(measured.to_toml(device))
    print(f"kept as {measured.save(device)}; plans on this machine follow it from now on (undo: --forget)")
    return 0


def _compiled(text: str, pipeline: str) -> Any:
    """The model of a module after some passes, for one thread."""
    import tilewright as tw
    from tilewright.mlir import ir
    from tilewright.passes import run_pipeline

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, pipeline)
        return tw.compile(str(module), threads=1)


def _print_device(device: Any) -> None:
    units = device.units
    print(f"{device.name}: {device.kind} {device.cpu} ({device.source})")
    if device.kind == "gpu":
        print(f"  units      {units.count} multiprocessors, {units.frequency / 1e9:.2f} GHz")
        for dtype, rate in units.peak:
            print(f"  peak {dtype:<8} {units.count * rate / 1e12:.4g} TFLOP/s in all")
    else:
        print(
            f"  units      {units.count}, {units.frequency / 1e9:.2f} GHz, {units.registers} x {units.vector_bits} bits"
        )
        for dtype, rate in units.peak:
            print(f"  peak {dtype:<5} {rate / 1e9:.0f} GFLOP/s per unit")
    for level in device.levels:
        rate = f"{level.bandwidth / 1e9:.0f} GB/s" if level.bandwidth else ""
        print(f"  {level.name:<10} {_bytes(level.bytes):>10}  {level.kind:<12} {rate}")
    if device.features:
        print(f"  features   {' '.join(device.features)}")


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GB"


def _cache(options: argparse.Namespace) -> int:
    if options.action == "clear":
        count, size = cache.clear()
        print(f"removed {count} entries, {_bytes(size)}")
        return 0
    if options.action == "prune":
        print(f"removed {cache.prune()} entries")
        return 0
    found = cache.entries()
    for entry in reversed(found):
        if entry.kind == "compiled":
            used = datetime.datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
            print(f"{used}  {_bytes(entry.size):>9}  {_label(entry)}  {entry.path.name}")
    kernels = [entry for entry in found if entry.kind == "kernels"]
    total = sum(entry.size for entry in found)
    print(f"{cache.root()}: {_bytes(total)}, {len(kernels)} kernels ({_bytes(sum(e.size for e in kernels))})")
    return 0


def _label(entry: cache.Entry) -> str:
    from tilewright.core.errors import TilewrightError
    from tilewright.runtime.artifact import Artifact

    try:
        manifest = Artifact(entry.path).manifest
    except TilewrightError:
        return "(damaged)"
    return f"{manifest.compile.get('model', '?'):<20} {manifest.target:<14}"


def _doctor(options: argparse.Namespace) -> int:
    from tilewright.cli import doctor

    return doctor.run()
