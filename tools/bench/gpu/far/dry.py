# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches every kernel of a pack through the driver's interface alone: no PyTorch, undefined values, no checks.

It shows whether code loads, parameters are taken, and launches and graphs are accepted. With a library in
TILEWRIGHT_LIBCUDA that records its calls it shows what reaches a driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.gpu_device import CapturingDevice, Device
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import HostProgram


def launch_once(folder: Path, device: Device) -> bool:
    """Run a model once, and once more as a graph where device and program allow it.

    Args:
        folder: the compiled model.
        device: that runs it; its memory is filled with zeros.

    Returns:
        Whether there was a graph.

    Raises:
        UserError: the device refuses code or a launch.
    """
    artifact = Artifact(folder)
    program, modules = gpu_code.read(artifact)
    host = HostProgram(program, device, modules, artifact.weights())
    inputs, outputs = ([_zeros(device, spec) for spec in specs] for specs in _specs(artifact))
    host.run(inputs, outputs)
    device.synchronize()
    if not host.is_recordable or not isinstance(device, CapturingDevice):
        return False
    graph, _, _ = host.record(inputs, outputs)
    device.replay(graph)
    device.synchronize()
    return True


def _specs(artifact: Artifact) -> tuple[Sequence[Any], Sequence[Any]]:
    return artifact.manifest.inputs, artifact.manifest.outputs


def _zeros(device: Device, spec: Any) -> View:
    nbytes = View.contiguous(Memory(None, 0), spec.dtype, spec.shape).nbytes
    view = View.contiguous(Memory.allocate(device, nbytes), spec.dtype, spec.shape)
    if nbytes:
        device.fill(view.address, 0, nbytes)
    return view


def dry_run(root: Path, cases: Sequence[Mapping[str, Any]], suite: Mapping[str, Any], emulate: bool) -> int:
    """Launch the cases of a pack; prints a line for each; returns 1 where one is refused."""
    refused = 0
    for case in cases:
        if case["folder"] is None:
            print(f"not built  {case['name']}: {case['failure']}")
            continue
        try:
            graph = launch_once(root / case["folder"], _device(suite["arch"], emulate))
        except TilewrightError as error:
            refused += 1
            print(f"refused    {case['name']}: {error}")
        else:
            print(f"launched   {case['name']}{', and as a graph' if graph else ''}", flush=True)
    return int(refused > 0)


def _device(arch: str, emulate: bool) -> Device:
    if emulate:
        from tilewright.sim import ptx

        return ptx.Device(arch=arch)
    from tilewright.runtime.gpu.cuda import CudaDevice

    return CudaDevice()
