# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A packed model of ours, called with PyTorch's tensors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.gpu.far import tensors as made
from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.sharing import may_vary
from tilewright.core.errors import UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.host_program import HostProgram

#: What the manifest says of a kernel that its row repeats.
_DETAILS = ("plan", "predicted", "moved", "flops", "element", "bytes", "registers", "spilled_bytes", "resident_ctas")
#: What the program says of it.
_LAUNCH = ("threads", "shared_bytes", "cluster", "persistent", "waits")


class Ours:
    """A model on a machine, with fixed places for inputs and results.

    Args:
        folder: the compiled model.
        machine: that runs it.
        inputs: copies of all of the model's inputs, weights included, in order; a call takes one of the copies.
        outputs: places for the results, the same for all copies.

    Attributes:
        copies: of the inputs.
        remarks: what there is to say of how the code was loaded.
        code: cubin or ptx: what the kernels were loaded from.
        may_vary: whether CTAs share work in an order that may differ (sharing.py).
    """

    def __init__(
        self,
        folder: Path,
        machine: Gpu | Emulator,
        inputs: Sequence[Sequence[torch.Tensor]],
        outputs: Sequence[torch.Tensor],
    ) -> None:
        artifact = Artifact(folder)
        program, modules = gpu_code.read(artifact)
        self._machine, self._outputs, self._manifest = machine, outputs, artifact.manifest
        self._entries: Mapping[str, Mapping[str, Any]] = program["kernels"]
        places = [kernel.details.get("locations", ()) for kernel in artifact.manifest.kernels]
        self.may_vary = may_vary(program, modules, places)
        with _Heard() as heard:
            self._program = HostProgram(program, machine.device, modules, artifact.weights())
        self.remarks = heard.said
        self.code = self._loaded_from(program["arch"], heard.said)
        names = [spec.dtype for spec in artifact.manifest.inputs]
        self._inputs = [machine.views(copy, names) for copy in inputs]
        self._places = machine.views(outputs, [spec.dtype for spec in artifact.manifest.outputs])

    @property
    def copies(self) -> int:
        """Of the inputs."""
        return len(self._inputs)

    def run(self, copy: int = 0) -> None:
        """Call the model with one of the copies of its inputs."""
        made_here = self._program.run(self._inputs[copy], self._places)
        if made_here:
            raise UserError(
                f"outputs {sorted(made_here)} have sizes that the run decides; the suite takes known sizes only"
            )

    def run_all(self) -> None:
        """Call the model with each copy."""
        for copy in range(self.copies):
            self.run(copy)

    def poison(self) -> None:
        """Put values into the results' places that no right run leaves there."""
        made.poison(self._outputs)
        self._machine.put(self._places, self._outputs)

    def results(self) -> list[torch.Tensor]:
        """The latest results."""
        self._machine.device.synchronize()
        self._machine.fetch(self._places, self._outputs)
        return list(self._outputs)

    def graph(self) -> Callable[[], Any] | None:
        """A call of each copy as one CUDA graph, where the machine has them and the program allows it."""
        if self._machine.graphs and self._program.is_recordable:
            return self._machine.capture(self.run_all)
        return None

    def kernels(self, timed: bool) -> list[dict[str, Any]]:
        """What the plan says of each kernel; the time of each launch of one run in microseconds where `timed`."""
        records = self._program.profile(self._inputs[0], self._places) if timed else []
        told = {kernel.symbol: kernel for kernel in self._manifest.kernels}
        found = []
        for name, entry in self._entries.items():
            kernel = told.get(entry["entry"])
            details = {key: kernel.details[key] for key in _DETAILS if key in kernel.details} if kernel else {}
            times = [round(1e6 * seconds, 2) for launched, _, seconds in records if launched == name]
            tasks = next((tasks for launched, tasks, _ in records if launched == name), kernel and kernel.tasks)
            launch = {key: entry.get(key) for key in _LAUNCH}
            found.append({"kernel": name, "tasks": tasks, "us": times, **launch, **details})
        return found

    def _loaded_from(self, arch: str, said: list[str]) -> str:
        limits = self._machine.device.limits
        if not limits.cubins:  # the emulator
            return "ptx"
        without = [name for name, entry in self._entries.items() if "cubin" not in entry]
        if limits.arch != arch:
            said.append(f"PTX was assembled by the driver: the pack is for {arch}, the GPU is {limits.arch}")
        elif without:
            said.append(f"PTX was assembled by the driver: the pack has no machine code of {', '.join(without)}")
        return "ptx" if said else "cubin"


class _Heard(logging.Handler):
    """The run-time's warnings while a block runs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self._logger = logging.getLogger("tilewright")

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage().splitlines()[0])

    def __enter__(self) -> _Heard:
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
