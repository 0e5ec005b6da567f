# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model compiled for GPUs, ready to be called: on a GPU, or on the emulator of one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.dtypes import from_numpy, make_canonical, to_numpy
from tilewright.core.errors import SizesError, UnsupportedError, UserError
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.compiled import CompiledModel
from tilewright.runtime.gpu import gpu_code
from tilewright.runtime.gpu.gpu_device import Device
from tilewright.runtime.gpu.gpu_interop import is_on_gpu
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import HostProgram
from tilewright.runtime.result import Outputs

if TYPE_CHECKING:
    from tilewright.runtime.gpu.gpu_calls import CapturedCall, GpuCalls


class GpuModel(CompiledModel):
    """A compiled model for GPUs. It is called like :class:`tilewright.Model`.

    The device is opened, and the kernels are loaded, by the first call: a model can be compiled and saved on a machine
    that cannot run it. Calls of several threads run one after the other.

    Args:
        artifact: the compiled model.
        emulator: makes the device that runs the PTX in place of a GPU, for an architecture such as ``sm_90a``.

    Raises (when called):
        UserError: what :class:`tilewright.Model` raises; there is no GPU, or one of another architecture; an
            option that the emulator has not.
    """

    def __init__(self, artifact: Artifact, emulator: Callable[[str], Device] | None = None) -> None:
        super().__init__(artifact)
        self._emulator = emulator
        self._device: Device | None = None
        self._program: HostProgram | None = None
        self._calls: GpuCalls | None = None
        self._opening = threading.RLock()

    @property
    def arch(self) -> str:
        """The architecture that the code is for, e.g. ``sm_90a``."""
        return self._manifest.cpu

    @property
    def threads(self) -> int:
        """Multiprocessors that share the work, in the description that the plan was made for."""
        return self._manifest.compile.get("units", 1)

    @property
    def emulated(self) -> bool:
        """Whether calls run on the emulator."""
        return self._emulator is not None

    @property
    def runs_on(self) -> str:
        """What runs a call, in words."""
        return "on the emulator" if self.emulated else "on a GPU"

    @property
    def device(self) -> Device:
        """What runs the model.

        Raises:
            UserError: there is no GPU, or one that cannot run this code.
        """
        with self._opening:
            if self._device is None:
                self._device = self._emulator(self.arch) if self._emulator is not None else self._gpu()
            return self._device

    def ptx(self) -> dict[str, str]:
        """Return the PTX of each module by its file's name."""
        modules = gpu_code.read(self._artifact)[1]
        return {name: data.decode() for name, data in modules.items() if name.endswith(".ptx")}

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Outputs:
        """Run the model; see the class."""
        values = self._signature.bind(args, named)
        if any(map(is_on_gpu, values)):
            return self._on_gpu().call(values, out)
        arrays, export = self._signature.arrays(values, {})
        into = None if out is None else self._signature.check_out(out, arrays)
        program = self._loaded()
        with program.lock:
            inputs, places = self._views(arrays)
            try:
                made = program.run(inputs, places)
            except SizesError as error:
                shapes = [array.shape for array in arrays]
                raise UserError(self._signature.with_shapes(error.message, shapes)) from None
            results = self._download(places, made, into)
        if export is not None and out is None:
            return Outputs([export(array) for array in results], self._signature.output_names)
        return Outputs(results, self._signature.output_names)

    def capture(self, *args: Any, out: Any = None, **named: Any) -> CapturedCall:
        """Record a call as a CUDA graph, which is started at little cost: ``step = model.capture(x); step()``.

        Args:
            args: tensors on the GPU, which each start reads anew.
            out: tensors for the results; made where not given.
            named: inputs by name.

        Raises:
            UserError: an input is not on the GPU.
            UnsupportedError: the model decides by its data what it does; or the emulator, which has no graphs.
        """
        return self._on_gpu().capture(self._signature.bind(args, named), out)

    def profile(self, *args: Any, out: Any = None, **named: Any) -> list[tuple[str, int, int]]:
        """Run the model once and return (kernel, tasks, nanoseconds) of each launch, in order.

        Raises:
            UnsupportedError: on the emulator, which has no clock.
        """
        if self.emulated:
            raise UnsupportedError(
                "the emulator has no clock: its time says nothing of a GPU's; count instructions and bytes with trace= "
                "in emulate={...}, or measure on a GPU"
            )
        arrays, _ = self._signature.arrays(args, named)
        program = self._loaded()
        with program.lock:
            records = program.profile(*self._views(arrays))
        return [(name, tasks, round(seconds * 1e9)) for name, tasks, seconds in records]

    def explain(self, path: str | Path | None = None, *, measure: bool = True) -> str:
        """Return the page about the model; see :meth:`tilewright.Model.explain`. Times are a GPU's, or absent."""
        return super().explain(path, measure=measure and not self.emulated and _has_gpu())

    def _gpu(self) -> Device:
        from tilewright.runtime.gpu import cuda

        if not _has_gpu():
            raise UserError(
                f"{self._artifact.path} is for {self.target}, and this machine has no NVIDIA GPU with a driver: "
                "load it with emulate=True (--emulate on the command line) to run it on the emulator"
            )
        device = cuda.CudaDevice()
        if not device.limits.runs(self.arch):
            name, arch = device.name, device.limits.arch
            device.close()
            raise UserError(
                f"{self._artifact.path} has code for {self.arch}, this GPU ({name}) is {arch}: "
                "compile it with target='cuda' here, or with emulate=True for the emulator"
            )
        return device

    def _on_gpu(self) -> GpuCalls:
        """Calls with tensors that lie on the GPU."""
        from tilewright.runtime.gpu.cuda import CudaDevice
        from tilewright.runtime.gpu.gpu_calls import GpuCalls

        device = self.device
        if not isinstance(device, CudaDevice):
            raise UnsupportedError("the emulator runs on the host: pass arrays of the host; it has no CUDA graphs")
        with self._opening:
            if self._calls is None:
                self._calls = GpuCalls(self._loaded(), self._signature, device)
            return self._calls

    def _loaded(self) -> HostProgram:
        with self._opening:
            if self._program is None:
                program, modules = gpu_code.read(self._artifact)
                self._program = HostProgram(program, self.device, modules, self._weights())
            return self._program

    def _weights(self) -> dict[str, np.ndarray]:
        arrays = self._artifact.weights()
        for spec in self._manifest.weights:
            array = arrays.get(spec.name)
            if array is None or array.shape != spec.shape or array.dtype != to_numpy(spec.dtype):
                raise UserError(f"{self._artifact.path}: the weights do not match the manifest at {spec}")
        return {spec.name: arrays[spec.name] for spec in self._manifest.weights}

    def _views(self, arrays: Sequence[np.ndarray]) -> tuple[list[View], list[View | None]]:
        """Inputs on the device, and places for outputs of known sizes."""
        device, program = self.device, self._loaded()
        inputs = []
        for slot, array in zip(self._signature.inputs, arrays, strict=True):
            memory = Memory.allocate(device, array.nbytes, f"input {slot.name}")
            if array.nbytes:
                device.upload(memory.address, _bytes(array))
            inputs.append(View.contiguous(memory, from_numpy(array.dtype), array.shape))
        places: list[View | None] = []
        for slot in self._signature.outputs:
            if not slot.is_static:
                places.append(None)
                continue
            memory = program.new_memory(int(np.prod(slot.shape)) * slot.dtype.itemsize, f"output {slot.name}")
            places.append(View.contiguous(memory, from_numpy(slot.dtype), slot.shape))
        return inputs, places

    def _download(
        self, places: Sequence[View | None], made: Mapping[int, View], into: Sequence[np.ndarray] | None
    ) -> list[np.ndarray]:
        results = []
        for number, (slot, place) in enumerate(zip(self._signature.outputs, places, strict=True)):
            view = place if place is not None else made[number]
            array = np.empty(view.sizes, slot.dtype)
            if into is not None and place is not None:
                array = into[number]
            if array.nbytes:
                self.device.download(view.address, _bytes(array))
            if slot.is_small:
                make_canonical(array)
            if into is not None and place is None:
                self._signature.fill(slot, into[number], array)
                array = into[number]
            results.append(array)
        return results

    def __repr__(self) -> str:
        """Return the signature."""
        where = "emulated" if self.emulated else "on a GPU"
        return f"<tilewright.GpuModel {self._signature_text()}, {where}>"


def _has_gpu() -> bool:
    from tilewright.runtime.gpu import cuda

    return cuda.available()


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))
