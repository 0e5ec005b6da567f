# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where rungs run, without PyTorch: the GPU by the run-time's own calls, or the emulator; and the pack's programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.gpu.far.ladder.numbers import STORED, constants, drawn, widened
from bench.gpu.far.ladder.references import REFERENCES
from tilewright.core.dtypes import name_of_mlir
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.gpu_device import CheckingDevice, Device
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import HostProgram

#: What outputs hold before a run: NaN in every float type, -1 in integers.
POISON = 0xFF
#: Makes a device, with so many multiprocessors (0: its own number).
Opener = Callable[[int], Device]


def opener(arch: str, emulate: bool, seed: int | None = None) -> Opener:
    """What opens the GPU, or the emulator of an architecture.

    Raises:
        UserError: when it is called, where there is no driver or no GPU.
    """
    if not emulate:
        from tilewright.runtime.gpu.cuda import CudaDevice

        return lambda units: CudaDevice(0)
    from tilewright.sim import ptx as emulator

    return lambda units: emulator.Device(arch=arch, seed=seed, multiprocessors=units or None)


class Pack:
    """The ladder's part of a pack.

    Attributes:
        root: folder of the pack.
        entries: ladder.json.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries = json.loads((root / "ladder.json").read_text())

    def programs(self, rung: str | None = None) -> list[dict[str, Any]]:
        """Entries of compiled programs, of a rung or all."""
        return [one for one in self.entries["programs"] if rung in (None, one["rung"])]

    def probe(self, name: str) -> dict[str, Any]:
        """The entry of a probe."""
        return next(one for one in self.entries["probes"] if one["name"] == name)

    def probes(self, rung: str) -> list[dict[str, Any]]:
        """Entries of a rung's probes."""
        return [one for one in self.entries["probes"] if one["rung"] == rung]

    def text(self, probe: dict[str, Any]) -> str:
        """A probe's PTX."""
        return (self.root / probe["ptx"]).read_text()


class Program:
    """A compiled program with inputs and outputs in the device's memory."""

    def __init__(self, pack: Pack, entry: dict[str, Any], device: Device) -> None:
        artifact = Artifact(pack.root / entry["folder"])
        program, modules = gpu_code.read(artifact)
        self.entry, self.device = entry, device
        self.host = HostProgram(program, device, modules, artifact.weights())
        random = np.random.default_rng(20)
        specs = [(name_of_mlir(s.dtype), tuple(s.shape)) for s in artifact.manifest.inputs]
        self._kinds = [kind for kind, _ in specs]
        self._arrays = [drawn(kind, shape, entry["inputs"], random) for kind, shape in specs]
        self._inputs = [
            put(device, array, spec.dtype) for array, spec in zip(self._arrays, artifact.manifest.inputs, strict=True)
        ]
        self._output = artifact.manifest.outputs[0]
        self.place = View.contiguous(
            Memory.allocate(device, _nbytes(self._output)), self._output.dtype, tuple(self._output.shape)
        )

    def run(self) -> np.ndarray:
        """Poison the output, run, and return it as it is stored."""
        self.poison()
        self.host.run(self._inputs, [self.place])
        return self.result()

    def poison(self) -> None:
        """Fill the output with what no run may leave there; the emulator knows what was not written."""
        if not isinstance(self.device, CheckingDevice):
            self.device.fill(self.place.address, POISON, _nbytes(self._output))

    def record(self) -> Any:
        """The call as a CUDA graph. UnsupportedError on a device that has none."""
        return self.host.record(self._inputs, [self.place])

    def result(self) -> np.ndarray:
        """The output as it is stored."""
        found = np.empty(tuple(self._output.shape), STORED[name_of_mlir(self._output.dtype)])
        self.device.synchronize()
        self.device.download(self.place.address, memoryview(found.reshape(-1).view(np.uint8)))
        return found

    def numbers(self, found: np.ndarray) -> np.ndarray:
        """A stored result in f64."""
        return widened(name_of_mlir(self._output.dtype), found)

    def wanted(self) -> np.ndarray:
        """What the program should compute, in f64."""
        held = [(kind, constants(kind, shape)) for kind, shape in self.entry["constants"]]
        given = [*zip(self._kinds, self._arrays, strict=True), *held]
        values = [widened(kind, array) for kind, array in given]
        return REFERENCES[self.entry["reference"]](*values, **self.entry["arguments"])


def put(device: Device, array: np.ndarray, dtype: str) -> View:
    """An array in the device's memory; `dtype` as a manifest names it."""
    data = np.ascontiguousarray(array)
    memory = Memory.allocate(device, data.nbytes)
    device.upload(memory.address, memoryview(data.reshape(-1).view(np.uint8)))
    return View.contiguous(memory, dtype, data.shape)


def _nbytes(spec: Any) -> int:
    return int(np.prod(spec.shape, dtype=np.int64)) * np.dtype(STORED[name_of_mlir(spec.dtype)]).itemsize
