# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/bench/run control-counts`: what the host does for each case of suite `control` on a GPU, before and after.

Launches, and numbers that it brings from or to the device and waits for; driven by the host, and with loops and
branches in kernels. Nothing is computed: a device that only counts says 1 where it is asked, so that every branch is
taken and each loop runs to its longest. `test_control_models.py` counts on the emulator, which computes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import models
import tilewright as tw
from bench import records
from bench.case import Case
from bench.suites.control import SUITE
from tilewright.core.dtypes import to_numpy
from tilewright.core.options import CompileOptions
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.gpu_device import Limits
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import HostProgram
from tilewright.targets import registry

_LIMITS = {
    "sm_80": Limits("sm_80", multiprocessors=108, shared_bytes=163 << 10),
    "sm_90a": Limits("sm_90a", multiprocessors=132, shared_bytes=227 << 10, cluster=8),
}


class CountingDevice:
    """Neither memory nor kernels: addresses are handed out, launches and moved numbers are counted."""

    def __init__(self, arch: str) -> None:
        self.limits = _LIMITS[arch]
        self.launches = self.moved = 0
        self._next = 256

    def load(self, image: bytes) -> bytes:
        """Return what stands for a module."""
        return image

    def function(self, module: bytes, name: str) -> str:
        """Return what stands for a kernel."""
        return name

    def alloc(self, nbytes: int) -> int:
        """Return an address that nothing else has."""
        address, self._next = self._next, self._next + -(-max(nbytes, 1) // 256) * 256
        return address

    def free(self, address: int) -> None:
        """Nothing is held."""

    def upload(self, address: int, data: memoryview) -> None:
        """Count."""
        self.moved += 1

    def download(self, address: int, data: memoryview) -> None:
        """Count, and give the number 1, of any integer type."""
        self.moved += 1
        data.cast("B")[:] = b"\1" + bytes(data.nbytes - 1)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Nothing is held."""

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Nothing is held."""

    def tensor_map(self, *what: Any) -> bytes:
        """Return as many bytes as a map has."""
        return bytes(128)

    def resident(self, function: str, threads: int, shared_bytes: int) -> int:
        """Return as many as registers and shared memory allow in any case."""
        return max(1, min(65536 // (256 * threads), self.limits.shared_bytes // max(1, shared_bytes)))

    def launch(self, *what: Any, **more: Any) -> None:
        """Count."""
        self.launches += 1

    def synchronize(self) -> None:
        """Nothing runs."""

    def record(self) -> float:
        """No clock."""
        return 0.0

    def elapsed(self, start: float, end: float) -> float:
        """No clock."""
        return end - start


@dataclass(frozen=True)
class Counts:
    """Of one call.

    Attributes:
        launches: of kernels.
        waits: numbers that the host brings from or to the device.
        recordable: whether a graph can hold the call.
    """

    launches: int
    waits: int
    recordable: bool


def count(case: Case, arch: str, driven: bool) -> Counts:
    """What the host does for a case; `driven`: loops and branches are its."""
    target, chosen = f"cuda:{arch}", {}
    if driven:
        whole = registry.parse_target(target).here().pipeline(CompileOptions())
        chosen["pipeline"] = whole.without("tile-plan-levels", "tile-plan-loops")
    model = tw.compile(str(models.path(case.model, **case.sizes)), target=target, emulate=True, **chosen)
    artifact = Artifact(model.path)
    device = CountingDevice(arch)
    program, modules = gpu_code.read(artifact)
    loaded = HostProgram(program, device, modules, artifact.weights())
    inputs = [_view(device, slot.name, slot.dtype, slot.shape) for slot in model.inputs]
    outputs = [_view(device, slot.name, slot.dtype, slot.shape) for slot in model.outputs]
    device.launches = device.moved = 0
    loaded.run(inputs, outputs)
    return Counts(device.launches, device.moved, loaded.is_recordable)


def _view(device: CountingDevice, name: str, dtype: Any, shape: Sequence[int]) -> View:
    memory = Memory.allocate(device, int(np.prod(shape)) * to_numpy(dtype).itemsize, name)
    return View.contiguous(memory, dtype, shape)


def main(argv: Sequence[str]) -> int:
    """Print a line for each case and write all of them as JSON; returns 0."""
    about = "Count what the host does for the models of suite control."
    parser = argparse.ArgumentParser(prog="tools/bench/run control-counts", description=about)
    parser.add_argument("--arch", choices=sorted(_LIMITS), default="sm_90a", help="what is compiled for (sm_90a)")
    parser.add_argument("--case", metavar="A,B", default="", help="only cases whose name contains A or B")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    arguments = parser.parse_args(argv)
    rows = []
    for case in SUITE.cases:
        if not any(text in case.name for text in arguments.case.split(",")):
            continue
        before, after = (count(case, arguments.arch, driven) for driven in (True, False))
        print(
            f"{case.name:16s} launches {before.launches:6d} -> {after.launches:4d}, host waits {before.waits:5d} -> "
            f"{after.waits:4d}, {'' if after.recordable else 'not '}recordable",
            flush=True,
        )
        rows.append({"case": case.name, "arch": arguments.arch, "before": asdict(before), "after": asdict(after)})
        if arguments.json:
            records.write(arguments.json, {"command": "control-counts", "rows": rows})
    return 0
