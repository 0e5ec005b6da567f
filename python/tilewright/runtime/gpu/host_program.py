# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a host program: what the host function of a model for a GPU does, as JSON, against any device.

The compiler writes it (targets/cuda/host_program.py); rationale/host_programs.md tells the format.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError
from tilewright.runtime.gpu.gpu_device import CapturingDevice, CheckingDevice, Device
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.gpu_timing import Backlog
from tilewright.runtime.gpu.host_steps import HOST_TRAFFIC, Frame, steps_of, walk
from tilewright.runtime.gpu.launch_params import Packer

log = logging.getLogger("tilewright")

FORMAT = "tilewright-host-program"
#: Raised by any change that an older run-time cannot read.
VERSION = 2


@dataclass(frozen=True)
class Kernel:
    """A loaded kernel: its handle and how it is launched.

    Attributes:
        name: in the program.
        handle: the device's.
        threads: of a CTA.
        shared_bytes: dynamic shared memory of a CTA.
        cluster: CTAs of a cluster.
        rank: coordinates of its grid.
        params: what each parameter is.
        persistent: CTAs per multiprocessor, each of which runs several tasks; None: one for each task.
        rounded: what the bound of each coordinate is rounded up to a multiple of, so that clusters are whole; none: as
            they are.
        waits: whether CTAs wait for others of their grid, so that all must be resident.
        most: of a kernel that launches others: CTAs that share their tasks, if so many are resident.
    """

    name: str
    handle: Any
    threads: int
    shared_bytes: int
    cluster: tuple[int, int, int]
    rank: int
    params: tuple[Mapping[str, Any], ...]
    persistent: int | None = None
    rounded: tuple[int, ...] = ()
    waits: bool = False
    most: int | None = None

    def tasks(self, grid: Sequence[int]) -> int:
        """Tasks of a grid; those among them that fill clusters have nothing to do."""
        bounds = [max(0, bound) for bound in grid]
        return prod(
            -(-bound // size) * size for bound, size in zip(bounds, self.rounded or (1,) * len(bounds), strict=True)
        )

    def blocks(self, tasks: int, device: Device) -> int:
        """CTAs that run a number of tasks: whole clusters; where they wait for each other, no more than are resident.

        Raises:
            UserError: a multiprocessor does not hold one that others wait for.
        """
        if self.most is not None:
            return min(self.most, self._resident(device) * device.limits.multiprocessors)
        if self.persistent is None:
            return tasks
        held = self.persistent
        if self.waits:
            held = min(held, self._resident(device))
        whole = prod(self.cluster)
        return min(tasks, max(held * device.limits.multiprocessors // whole, 1) * whole)

    def _resident(self, device: Device) -> int:
        held = device.resident(self.handle, self.threads, self.shared_bytes)
        if held < 1:
            raise UserError(
                f"kernel {self.name}: a multiprocessor of this {device.limits.arch} holds no CTA of {self.threads} "
                f"threads and {self.shared_bytes} bytes of shared memory; compile for this GPU (target='cuda')"
            )
        return held


class _Reserve:
    """Memory that a run takes, for its repetition as a graph: what is recorded are addresses."""

    def __init__(self) -> None:
        self.held: list[Memory] = []
        self._again: Iterator[Memory] | None = None

    def repeat(self) -> None:
        """From here on `take` returns what it returned before, in the same order."""
        self._again = iter(self.held)

    def take(self, device: Device, nbytes: int, name: str) -> Memory:
        """Return memory that this object holds."""
        if self._again is not None:
            return next(self._again)
        self.held.append(Memory.allocate(device, nbytes, name))
        return self.held[-1]


class HostProgram:
    """A program with its kernels and weights on a device. Calls run one after the other: a device is one stream.

    Args:
        program: the parsed JSON.
        device: that runs it.
        modules: images (PTX or cubin) by file name.
        weights: arrays by name.

    Attributes:
        device: that runs it.
        lock: held during a run; the device's own where it has one.

    Raises:
        UserError: a format of another version, a damaged model, or a device that cannot load it.
    """

    def __init__(
        self,
        program: Mapping[str, Any],
        device: Device,
        modules: Mapping[str, bytes],
        weights: Mapping[str, np.ndarray],
    ) -> None:
        _check_format(program)
        self.device = device
        self._forget = device.discard if isinstance(device, CheckingDevice) else None
        self._program = program
        self._steps = steps_of(program["body"])
        self._packer = Packer(device)
        exact = device.limits.cubins and device.limits.arch == program.get("arch")
        self._modules, self._exact = modules, exact
        self._aborted: set[str] = set()
        self._kernels = {name: self._loaded(name) for name in program["kernels"]}
        self._weights = {name: self._upload(array, name) for name, array in weights.items()}
        self.lock = getattr(device, "lock", None) or threading.RLock()
        self._arena: Memory | None = None
        self._reserve: _Reserve | None = None
        self._profile: list[tuple[str, int, Any, Any]] | None = None
        self._backlog = Backlog()

    @property
    def is_recordable(self) -> bool:
        """Whether a run can be a graph: what it does follows from the sizes of its inputs alone."""
        return not any(op["op"] in HOST_TRAFFIC for op in walk(self._program["body"]))

    def run(self, inputs: Sequence[View], outputs: Sequence[View | None]) -> dict[int, View]:
        """Run once; work is started, not waited for.

        Args:
            inputs: in the model's order, contiguous.
            outputs: where results of known sizes go; None for one that the run makes.

        Returns:
            The outputs that the run made, by index.

        Raises:
            UserError: the model found that it cannot go on, or the device refused a launch.
        """
        with self.lock:
            frame = Frame(self, self._registers(inputs, outputs))
            for step in self._steps:
                step(frame)
            frame.memory.finish(temporary=self._arena)
            return frame.results

    def record(
        self, inputs: Sequence[View], outputs: Sequence[View | None]
    ) -> tuple[Any, dict[int, View], Sequence[Memory]]:
        """Run once, and again as the recording of a graph, with the same memory.

        Args:
            inputs: as for `run`.
            outputs: as for `run`.

        Returns:
            The graph, the outputs that the run made, by index, and the memory that the graph uses beside that.

        Raises:
            UnsupportedError: the program moves numbers between host and device in its midst, or there are no graphs.
            UserError: as `run`.
        """
        device = self.device
        if not self.is_recordable:
            raise UnsupportedError(
                "the model moves numbers between host and GPU in its midst, as its sizes or branches depend on data: "
                "it cannot be recorded as a CUDA graph"
            )
        if not isinstance(device, CapturingDevice):
            raise UnsupportedError("this device has no graphs")
        with self.lock:
            reserve = self._reserve = _Reserve()
            try:
                self.run(inputs, outputs)
                reserve.repeat()
                device.begin_capture()
                try:
                    made = self.run(inputs, outputs)
                finally:
                    graph = device.end_capture()
            finally:
                self._reserve = None
        return graph, made, reserve.held

    def profile(self, inputs: Sequence[View], outputs: Sequence[View | None]) -> list[tuple[str, int, float]]:
        """Run, again where the GPU was faster than its host, and return (kernel, tasks, seconds) of each launch.

        Seconds are between events before and after a launch, while the GPU is never idle (gpu_timing.py).
        """

        def launch() -> Any:
            self._profile = []
            self.run(inputs, outputs)
            return self._profile[0][2] if self._profile else None

        try:
            self._backlog.run(self.device, launch)
            self.device.synchronize()
            return [(name, tasks, self.device.elapsed(a, b)) for name, tasks, a, b in self._profile or ()]
        finally:
            self._profile = None

    def launch(self, name: str, grid: tuple[int, ...], args: Sequence[Any]) -> None:
        """Launch a kernel on a grid of tasks; nothing where there are none."""
        if name in self._aborted:
            # Its semaphores may hold what some CTAs posted and none took: they are zero in a module loaded anew. That
            # costs launches that succeed nothing, as clearing before each of them would. A GPU loses its context by any
            # fault of a kernel, and graphs with it, so that recorded launches need no more than others.
            self._kernels[name] = self._loaded(name)
            self._aborted.discard(name)
        kernel = self._kernels[name]
        tasks = kernel.tasks(grid)
        if tasks == 0:
            return
        blocks = kernel.blocks(tasks, self.device)
        extents = (blocks, 1, 1), (kernel.threads, 1, 1)
        params = self._packer.pack(name, kernel.params, grid, args)
        start = self.device.record() if self._profile is not None else None
        together = {"together": True} if kernel.waits else {}
        try:
            self.device.launch(kernel.handle, *extents, kernel.cluster, kernel.shared_bytes, params, **together)
        except BaseException:
            self._aborted |= {name for name, kernel in self._kernels.items() if kernel.waits}
            raise
        if self._profile is not None:
            self._profile.append((name, tasks, start, self.device.record()))

    def new_view(self, dtype: str, sizes: Sequence[int]) -> View:
        """Return a contiguous view of memory of its own."""
        nbytes = View.contiguous(Memory(None, 0), dtype, sizes).nbytes
        return View.contiguous(self.new_memory(nbytes), dtype, sizes)

    def new_memory(self, nbytes: int, name: str = "") -> Memory:
        """Return memory of its own, with undefined content; messages name it."""
        if self._reserve is not None:
            return self._reserve.take(self.device, nbytes, name)
        return Memory.allocate(self.device, nbytes, name)

    def begin(self, view: View) -> None:
        """A temporary begins in memory that another one had: what is there is undefined from here on."""
        if self._forget is not None and view.nbytes:
            self._forget(view.address, view.nbytes)

    def _loaded(self, name: str) -> Kernel:
        return _load(self.device, name, self._program["kernels"][name], self._modules, self._exact)

    def _registers(self, inputs: Sequence[View], outputs: Sequence[View | None]) -> list[Any]:
        registers: list[Any] = [None] * self._program["registers"]
        for register, value in self._program["constants"]:
            registers[register] = value
        for argument in self._program["arguments"]:
            registers[argument["register"]] = self._argument(argument, inputs, outputs)
        return registers

    def _argument(self, argument: Mapping[str, Any], inputs: Sequence[View], outputs: Sequence[View | None]) -> View:
        kind, shape = argument["kind"], argument["type"]["shape"]
        if kind == "input":
            return inputs[argument["index"]]
        if kind == "output":
            view = outputs[argument["index"]]
            if view is None:
                raise InternalError(f"output {argument['index']} has a place of the caller's, but none was given")
            return view
        if kind == "weight":
            return View.contiguous(self._weights[argument["name"]], argument["type"]["dtype"], shape)
        if self._arena is None:
            self._arena = Memory.allocate(self.device, self._program["arena_bytes"], "the arena of temporaries")
        return View.contiguous(self._arena, "i8", shape)

    def _upload(self, array: np.ndarray, name: str) -> Memory:
        memory = Memory.allocate(self.device, array.nbytes, f"weight {name}")
        if array.nbytes:
            self.device.upload(memory.address, memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        return memory


def _check_format(program: Mapping[str, Any]) -> None:
    if program.get("format") != FORMAT:
        raise UserError("code/program.json is not the host program of a Tilewright model; compile the model again")
    if program.get("version") != VERSION:
        raise UserError(
            f"code/program.json has format version {program.get('version')}, this run-time reads {VERSION}: "
            "compile the model again, or update tilewright"
        )


def _machine_code(device: Device, name: str, cubin: bytes | None) -> Any:
    """The module of a kernel's machine code; None where there is none, or a driver refuses it (an older one, say)."""
    if cubin is None:
        return None
    try:
        return device.load(cubin)
    except TilewrightError as error:
        log.warning("kernel %s: its machine code cannot be loaded, its PTX is assembled instead: %s", name, error)
        return None


def _load(device: Device, name: str, entry: Mapping[str, Any], modules: Mapping[str, bytes], exact: bool) -> Kernel:
    module = _machine_code(device, name, modules.get(entry.get("cubin", ""))) if exact else None
    if module is None:
        image = modules.get(entry["module"])
        if image is None:
            raise UserError(f"the model has no module {entry['module']} for kernel {name}; compile or save it again")
        module = device.load(image)
    handle = device.function(module, entry["entry"])
    cluster = tuple(entry["cluster"] or (1, 1, 1))
    return Kernel(
        name,
        handle,
        entry["threads"],
        entry["shared_bytes"],
        (cluster[0], cluster[1], cluster[2]),
        entry["rank"],
        tuple(entry["params"]),
        entry.get("persistent"),
        tuple(entry.get("rounded") or ()),
        bool(entry.get("waits")),
        entry.get("blocks"),
    )
