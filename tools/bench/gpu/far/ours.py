# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A packed model of ours, called with PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.gpu.far.machine import Emulator, Gpu
from tilewright.core.errors import UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.host_program import HostProgram


class Ours:
    """A model on a machine, with fixed places for inputs and results.

    Args:
        folder: the compiled model.
        machine: that runs it.
        inputs: all of the model's inputs, weights included, in order.
        outputs: places for the results.
    """

    def __init__(
        self, folder: Path, machine: Gpu | Emulator, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> None:
        artifact = Artifact(folder)
        program, modules = gpu_code.read(artifact)
        self._machine, self._outputs = machine, outputs
        self._program = HostProgram(program, machine.device, modules, artifact.weights())
        names = [spec.dtype for spec in artifact.manifest.inputs]
        self._inputs = machine.views(inputs, names)
        self._places = machine.views(outputs, [spec.dtype for spec in artifact.manifest.outputs])

    def run(self) -> None:
        """Call the model."""
        made = self._program.run(self._inputs, self._places)
        if made:
            raise UserError(f"outputs {sorted(made)} have sizes that the run decides; the suite takes known sizes only")

    def results(self) -> list[torch.Tensor]:
        """The latest results."""
        self._machine.device.synchronize()
        self._machine.fetch(self._places, self._outputs)
        return list(self._outputs)

    def graph(self) -> Callable[[], Any] | None:
        """The call as a CUDA graph, where the machine has them and the program allows it."""
        if isinstance(self._machine, Gpu) and self._program.is_recordable:
            return self._machine.capture(self.run)
        return None

    def kernels(self) -> list[dict[str, Any]]:
        """Time of each kernel in one run, on a machine with a clock."""
        records = self._program.profile(self._inputs, self._places)
        return [{"kernel": name, "tasks": tasks, "us": round(1e6 * seconds, 2)} for name, tasks, seconds in records]
