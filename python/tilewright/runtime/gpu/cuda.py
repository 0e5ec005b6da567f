# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An NVIDIA GPU as a `Device`: libcuda through ctypes, with no compiled part and no toolkit.

The context is the primary one, which torch, CuPy and the CUDA runtime use too, so that tensors are shared as they are.
Work goes to one stream at a time, by default the legacy default stream, on which those libraries work unless told
otherwise; `stream` may be set to theirs. What is asked for on one stream waits for what was asked for on another: the
temporaries of a model are there once. A thread that calls has the device's context current from then on.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from typing import Any, TypeVar, cast

from tilewright.core.errors import TilewrightError, UnsupportedError, UserError
from tilewright.runtime.gpu import cuda_driver as cu
from tilewright.runtime.gpu import cuda_launch, cuda_module, tensor_map
from tilewright.runtime.gpu.cuda_memory import MemoryPool
from tilewright.runtime.gpu.cuda_module import Kernel, Module
from tilewright.runtime.gpu.cuda_resources import Event, Graph, Owner
from tilewright.runtime.gpu.gpu_device import Extent, Limits, check_launch

#: PTX of an architecture with this suffix runs on it alone.
_SPECIFIC = {90: "a", 100: "a", 103: "a", 110: "a", 120: "a", 121: "a"}
_PORTABLE_CLUSTER = 8


def available() -> bool:
    """Return whether a driver and a GPU are there."""
    return unavailable() is None


def unavailable() -> str | None:
    """Return None where a driver and a GPU are there, else why not, in words for a user."""
    try:
        driver = cu.driver()
        count = c_int()
        driver.cuDeviceGetCount(byref(count))
    except TilewrightError as error:
        return error.message
    return None if count.value else "the driver sees no GPU; see the variable CUDA_VISIBLE_DEVICES"


def arch(ordinal: int = 0) -> str:
    """Return the architecture of a GPU, with the suffix that opens all its instructions: ``sm_80``, ``sm_90a``.

    Raises:
        UserError: no driver, or no GPU of that number.
    """
    driver = cu.driver()
    return _arch(driver, _handle(driver, ordinal))


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _alone(method: _Method) -> _Method:
    """Let the calls of other threads wait meanwhile."""

    @functools.wraps(method)
    def call(self: CudaDevice, *args: Any, **named: Any) -> Any:
        with self.lock:
            return method(self, *args, **named)

    return cast(_Method, call)


class CudaDevice(Owner):
    """One GPU (see :class:`tilewright.runtime.gpu.gpu_device.Device` for the calls).

    Args:
        ordinal: the GPU's number, as CUDA_VISIBLE_DEVICES leaves it.
        stream: handle of the stream for all work (``torch.cuda.current_stream().cuda_stream``); 0 is the legacy default
            stream, which other streams wait for unless they were made not to.

    Attributes:
        ordinal: the GPU's number.
        lock: held during each call, and during a block of `on_stream`: threads take turns.

    Raises:
        UserError: no driver or no such GPU.
        UnsupportedError: a GPU older than sm_80, or one without memory pools.
    """

    def __init__(self, ordinal: int = 0, stream: int = 0) -> None:
        super().__init__(cu.driver())
        self._driver = self.driver
        self._handle = _handle(self._driver, ordinal)
        self.ordinal = ordinal
        self.lock = threading.RLock()
        self._stream = stream
        self._has_work = False
        #: Another stream that got work before; the event (made once) is behind it.
        self._before: int | None = None
        self._switch = c_void_p()
        self._capture: c_void_p | None = None
        self._recorded: list[Any] = []
        self._freed_in_capture: list[int] = []
        self._limits = _limits(self._driver, self._handle)
        if self._limits.capability < 80:
            raise UnsupportedError(
                f"GPU {ordinal} ({self.name}) is {self._limits.arch}; sm_80 (A100) or newer is needed"
            )
        self._context = c_void_p()
        self._driver.cuDevicePrimaryCtxRetain(byref(self._context), self._handle)
        self._pool: MemoryPool | None = None
        try:
            self.enter()
            self._pool = MemoryPool(self._driver, self._handle)
        except TilewrightError:
            self._driver.cuDevicePrimaryCtxRelease_v2(self._handle)
            raise

    @_alone
    def close(self) -> None:
        """Wait for all work, free the device's memory and let go of the context. The device is of no use then."""
        if self._pool is None:
            return
        self.synchronize()
        if self._switch:
            self._driver.status("cuEventDestroy_v2", self._switch)
        self.release_all()
        self._pool.destroy()
        self._pool = None
        self._driver.cuDevicePrimaryCtxRelease_v2(self._handle)

    def __del__(self):
        if getattr(self, "_pool", None) is not None:
            with contextlib.suppress(TilewrightError):  # the driver may have shut down, with nothing left to free
                self.close()

    def __enter__(self) -> CudaDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._pool is None

    @property
    def limits(self) -> Limits:
        """What launches may ask for."""
        return self._limits

    @property
    def name(self) -> str:
        """The GPU's product name."""
        text = ctypes.create_string_buffer(256)
        self._driver.cuDeviceGetName(text, len(text), self._handle)
        return text.value.decode()

    @property
    def driver_version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports: (13, 0)."""
        return self._driver.version

    @property
    def stream(self) -> int:
        """Handle of the stream that gets all work; the next work waits for what another one got before.

        A stream must live while it is set, and as long as results that were made on it.
        """
        return self._stream

    @stream.setter
    @_alone
    def stream(self, stream: int) -> None:
        if stream == self._stream:
            return
        if self._has_work and not self.closed:
            self._mark()
        self._stream = stream

    @contextlib.contextmanager
    def on_stream(self, stream: int) -> Iterator[None]:
        """Send the work of a block to another stream; other threads wait until it ends."""
        with self.lock:
            before, self.stream = self.stream, stream
            try:
                yield
            finally:
                self.stream = before

    # Code

    @_alone
    def load(self, image: bytes) -> Module:
        """Load PTX (assembled by the driver, which keeps the result in its own cache) or a cubin."""
        self.enter()
        return Module(self, image)

    @_alone
    def function(self, module: Module, name: str) -> Kernel:
        """Look a kernel up; ``.info`` of the result says what it needs."""
        self.enter()
        return cuda_module.kernel(module, name)

    @_alone
    def resident(self, function: Kernel, threads: int, shared_bytes: int) -> int:
        """Return how many CTAs of a kernel a multiprocessor holds at a time."""
        self.enter()
        return cuda_module.resident(function, threads, shared_bytes)

    @_alone
    def launch(
        self,
        function: Kernel,
        grid: Extent,
        block: Extent,
        cluster: Extent,
        shared_bytes: int,
        params: Sequence[bytes],
        together: bool = False,
    ) -> None:
        """Start a kernel; the parameters are copied."""
        check_launch(function.name, self._limits, grid, block, cluster, shared_bytes + function.info.shared_bytes)
        stream = self._current_stream(function)
        cuda_launch.launch(self._driver, function, grid, block, cluster, shared_bytes, params, stream, together)

    @_alone
    def tensor_map(
        self,
        element: str,
        address: int,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        box: Sequence[int],
        swizzle: int,
        fill: str,
        steps: Sequence[int] = (),
    ) -> bytes:
        """Return a TMA descriptor."""
        if self._limits.capability < 90:
            raise UnsupportedError(f"{self._limits.arch} has no TMA: compile for this GPU with target='cuda'")
        tensor_map.check(element, address, dims, strides_bytes, box, swizzle, fill, steps)
        self.enter()
        return cuda_launch.encode_tensor_map(
            self._driver, element, address, dims, strides_bytes, box, swizzle, fill, steps
        )

    # Memory

    @_alone
    def alloc(self, nbytes: int) -> int:
        """Take memory from the device's pool, in the order of the stream."""
        self._refuse_in_capture("alloc")
        return self._live_pool().alloc(nbytes, self._queue())

    @_alone
    def free(self, address: int) -> None:
        """Give memory back to the pool, for work that is called later; in a capture, when it ends."""
        if self._pool is None:
            return  # went with the pool
        if self._capture is not None:
            self._freed_in_capture.append(address)
            return
        self._pool.free(address, self._queue())

    @_alone
    def trim(self) -> None:
        """Give memory that no tensor uses back to the system."""
        self.synchronize()
        self._live_pool().trim()

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes in use and bytes held by the device's pool."""
        self.enter()
        return self._live_pool().bytes

    @_alone
    def upload(self, address: int, data: memoryview) -> None:
        """Copy from the host; waits, as page-locked memory would else be read later."""
        self._refuse_in_capture("upload")
        if data.nbytes:
            source, stream = _host_address(data, writeable=False), self._queue()
            self._driver.cuMemcpyHtoDAsync_v2(address, source, data.nbytes, stream)
            self._driver.cuStreamSynchronize(stream)

    @_alone
    def download(self, address: int, data: memoryview) -> None:
        """Copy to the host, and wait."""
        self._refuse_in_capture("download")
        stream = self._queue()
        if data.nbytes:
            target = _host_address(data, writeable=True)
            self._driver.cuMemcpyDtoHAsync_v2(target, address, data.nbytes, stream)
        self._driver.cuStreamSynchronize(stream)

    @_alone
    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy inside the device's memory."""
        if nbytes:
            self._driver.cuMemcpyDtoDAsync_v2(destination, source, nbytes, self._current_stream())

    @_alone
    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set bytes."""
        if nbytes:
            self._driver.cuMemsetD8Async(address, byte, nbytes, self._current_stream())

    # Time

    @_alone
    def synchronize(self) -> None:
        """Wait for the stream."""
        self._refuse_in_capture("synchronize")
        self._driver.cuStreamSynchronize(self._queue())

    @_alone
    def record(self) -> Event:
        """Return an event on the stream."""
        self._refuse_in_capture("record")
        self._queue()
        return self._event()

    @_alone
    def wait_for(self, stream: int) -> None:
        """Let later work wait for what another stream of this GPU got before; the host does not wait."""
        self._refuse_in_capture("wait_for")
        if stream != self.stream:
            event = self._event(stream)
            self._driver.cuStreamWaitEvent(self._queue(), event.handle, 0)

    @_alone
    def let_wait(self, stream: int) -> None:
        """Let another stream of this GPU wait for what this device was asked to do before; the host does not wait."""
        event = self.record()
        if stream != self.stream:
            self._driver.cuStreamWaitEvent(stream or None, event.handle, 0)

    @_alone
    def synchronize_all(self) -> None:
        """Wait for all streams of the GPU, those of other libraries included."""
        self._refuse_in_capture("synchronize_all")
        self.enter()
        self._driver.cuCtxSynchronize()

    @_alone
    def is_done(self, event: Event) -> bool:
        """Return whether an event has happened; does not wait."""
        self.enter()
        code = self._driver.status("cuEventQuery", event.handle)
        if code not in (0, cu.ERROR_NOT_READY):
            raise self._driver.error("cuEventQuery", code)
        return code == 0

    def elapsed(self, start: Event, end: Event) -> float:
        """Return seconds between two events; the clock's step is about 0.5 us."""
        self.enter()
        self._driver.cuEventSynchronize(end.handle)
        milliseconds = c_float()
        self._driver.cuEventElapsedTime(byref(milliseconds), start.handle, end.handle)
        return milliseconds.value * 1e-3

    # Graphs

    @_alone
    def begin_capture(self) -> None:
        """Record from here on, on a stream of its own (the legacy default stream cannot be recorded)."""
        self._refuse_in_capture("begin_capture")
        self.enter()
        stream = c_void_p()
        self._driver.cuStreamCreate(byref(stream), cu.STREAM_NON_BLOCKING)
        try:
            self._driver.cuStreamBeginCapture_v2(stream, cu.STREAM_CAPTURE_MODE_THREAD_LOCAL)
        except TilewrightError:
            self._driver.cuStreamDestroy_v2(stream)
            raise
        self._capture, self._recorded = stream, []

    @_alone
    def end_capture(self) -> Graph:
        """Return what was recorded since `begin_capture`."""
        if self._capture is None:
            raise UserError("end_capture without begin_capture")
        self.enter()
        stream, self._capture = self._capture, None
        keep, self._recorded = self._recorded, []
        recorded = c_void_p()
        try:
            self._driver.cuStreamEndCapture(stream, byref(recorded))
        finally:
            self._driver.cuStreamDestroy_v2(stream)
            freed, self._freed_in_capture = self._freed_in_capture, []
            for address in freed:
                self.free(address)
        return Graph(self, recorded, keep)

    @_alone
    def replay(self, graph: Graph) -> None:
        """Run a graph on the stream."""
        self._refuse_in_capture("replay")
        self._driver.cuGraphLaunch(graph.handle, self._queue())

    # Own

    def enter(self) -> None:
        """Make the GPU's context current in the calling thread."""
        current = c_void_p()
        self._driver.cuCtxGetCurrent(byref(current))
        if current.value != self._context.value:
            self._driver.cuCtxSetCurrent(self._context)

    def _queue(self) -> int | None:
        """Return the stream of the next work as the driver names it, behind what another stream got before."""
        self.enter()
        before, self._before = self._before, None
        if before is not None and before != self._stream:
            self._driver.cuStreamWaitEvent(self._stream or None, self._switch, 0)
        self._has_work = True
        return self._stream or None

    def _mark(self) -> None:
        """Put the event behind what the stream got. It is no `Event`: those keep the device."""
        self.enter()
        if not self._switch:
            self._driver.cuEventCreate(byref(self._switch), 0)
        self._driver.cuEventRecord(self._switch, self._stream or None)
        self._before, self._has_work = self._stream, False

    def _event(self, stream: int | None = None) -> Event:
        """Return an event behind what a stream got, by default that of this device."""
        self.enter()
        event = Event(self)
        self._driver.cuEventRecord(event.handle, (self._stream if stream is None else stream) or None)
        return event

    def _current_stream(self, keep: Any = None) -> Any:
        if self._capture is None:
            return self._queue()
        self.enter()
        if keep is not None:
            self._recorded.append(keep)
        return self._capture

    def _refuse_in_capture(self, call: str) -> None:
        if self._capture is not None:
            raise UserError(f"{call} during the capture of a graph: do it before begin_capture or after end_capture")

    def _live_pool(self) -> MemoryPool:
        if self._pool is None:
            raise UserError("the device is closed")
        return self._pool


def _handle(driver: cu.Driver, ordinal: int) -> int:
    handle = c_int()
    driver.cuDeviceGet(byref(handle), ordinal)
    return handle.value


def _attribute(driver: cu.Driver, device: int, number: int) -> int:
    value = c_int()
    driver.cuDeviceGetAttribute(byref(value), number, device)
    return value.value


def _arch(driver: cu.Driver, device: int) -> str:
    major = _attribute(driver, device, cu.COMPUTE_CAPABILITY_MAJOR)
    number = major * 10 + _attribute(driver, device, cu.COMPUTE_CAPABILITY_MINOR)
    return f"sm_{number}{_SPECIFIC.get(number, '')}"


def _limits(driver: cu.Driver, device: int) -> Limits:
    total = c_size_t()
    driver.cuDeviceTotalMem_v2(byref(total), device)
    x, y, z = (_attribute(driver, device, cu.MAX_GRID_DIM_X + axis) for axis in range(3))
    return Limits(
        arch=_arch(driver, device),
        multiprocessors=_attribute(driver, device, cu.MULTIPROCESSOR_COUNT),
        threads=_attribute(driver, device, cu.MAX_THREADS_PER_BLOCK),
        grid=(x, y, z),
        shared_bytes=_attribute(driver, device, cu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        cluster=_PORTABLE_CLUSTER if _attribute(driver, device, cu.CLUSTER_LAUNCH) else 1,
        memory_bytes=total.value,
        cubins=True,
    )


def _host_address(data: memoryview, writeable: bool) -> int:
    """Return where host memory lies. UserError unless it is contiguous (and writeable)."""
    if not data.c_contiguous or (writeable and data.readonly):
        raise UserError("host memory must be C-contiguous, and writeable where results go")
    if not data.readonly:
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    import numpy as np  # reads the address of read-only memory, which ctypes refuses

    return np.frombuffer(data, np.uint8).ctypes.data
