# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs a GPU program: the interface that a real GPU (cuda.py) and the emulator (tilewright.sim.ptx) share.

Addresses are plain integers in the device's global memory, parameters are bytes as the kernel's PTX declares them, and
all work of a device is done in the order of its calls (one stream). A host program needs nothing else, so whatever runs
on the emulator runs on a GPU with the same calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tilewright.core.errors import UserError

#: x, y, z.
Extent: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Limits:
    """What a launch may ask for.

    Attributes:
        arch: of the device, as in PTX's ``.target``: ``sm_90a``.
        multiprocessors: number of streaming multiprocessors.
        threads: per CTA.
        grid: CTAs along x, y, z.
        shared_bytes: static and dynamic shared memory of a CTA.
        cluster: CTAs in a cluster (8 is what any kernel may have); 1 where the architecture has no clusters.
        memory_bytes: of the device.
        cubins: whether it loads machine code of its architecture, not PTX alone.
    """

    arch: str
    multiprocessors: int
    threads: int = 1024
    grid: Extent = (2**31 - 1, 65535, 65535)
    shared_bytes: int = 48 << 10
    cluster: int = 1
    memory_bytes: int = 0
    cubins: bool = False

    @property
    def capability(self) -> int:
        """The architecture as a number: 90 for ``sm_90a``."""
        return _number(self.arch)

    def runs(self, arch: str) -> bool:
        """Whether PTX for an architecture runs here: older ones do, those with a suffix on their own chip only."""
        return arch == self.arch or (arch[-1].isdigit() and _number(arch) <= self.capability)


def _number(arch: str) -> int:
    return int("".join(c for c in arch if c.isdigit()))


@runtime_checkable
class Device(Protocol):
    """A GPU or its emulator. Handles of modules, functions and events are the implementation's own.

    Calls that start work return at once or when it is done, as the implementation likes: `download` and `synchronize`
    see everything that was called before. All errors are those of :mod:`tilewright.core.errors`; a fault of a kernel
    (an access out of bounds, a trap) may be raised by any later call.
    """

    @property
    def limits(self) -> Limits:
        """What launches may ask for."""
        ...

    def load(self, image: bytes) -> Any:
        """Return the module of a PTX text or a cubin. UserError with the assembler's log where it cannot be loaded."""
        ...

    def function(self, module: Any, name: str) -> Any:
        """Return the handle of a kernel. UserError where the module has none of that name."""
        ...

    def alloc(self, nbytes: int) -> int:
        """Return the address of `nbytes` (0 counts as 1) of memory with undefined content, aligned to 256 bytes."""
        ...

    def free(self, address: int) -> None:
        """Give back what `alloc` returned; work that was called before may still use it."""
        ...

    def upload(self, address: int, data: memoryview) -> None:
        """Copy C-contiguous host memory to the device; `data` may be changed as soon as this returns."""
        ...

    def download(self, address: int, data: memoryview) -> None:
        """Copy device memory to C-contiguous, writeable host memory; it is there when this returns."""
        ...

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy inside the device's memory; the two ranges do not overlap."""
        ...

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set `nbytes` bytes to `byte` (0 to 255)."""
        ...

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
        """Return a TMA descriptor of 128 bytes. Its rules: :func:`tilewright.runtime.gpu.tensor_map.check`.

        Args:
            element: element type, by the names of :mod:`tilewright.core.dtypes`.
            address: of element 0, aligned to 16 bytes.
            dims: sizes in elements, innermost first, 1 to 5 of them.
            strides_bytes: distance of neighbours along dims 1 and up (one fewer than `dims`), multiples of 16.
            box: sizes in elements of what one instruction moves, innermost first.
            swizzle: bytes of the span that is permuted in shared memory: 0, 32, 64 or 128.
            fill: what reads as elements outside: ``zero`` or ``nan``.
            steps: of a box, every so manieth element is moved along each dimension, 1 to 8; none: all of them.
        """
        ...

    def resident(self, function: Any, threads: int, shared_bytes: int) -> int:
        """Return how many CTAs of a kernel a multiprocessor holds at a time, 0 where they are too large for it.

        Args:
            function: from `function`.
            threads: of a CTA.
            shared_bytes: dynamic shared memory of a CTA.
        """
        ...

    def launch(
        self,
        function: Any,
        grid: Extent,
        block: Extent,
        cluster: Extent,
        shared_bytes: int,
        params: Sequence[bytes],
        together: bool = False,
    ) -> None:
        """Start a kernel.

        Args:
            function: from `function`.
            grid: number of CTAs (not of clusters) along x, y, z, each at least 1.
            block: threads of a CTA.
            cluster: CTAs of a cluster, (1, 1, 1) for none; divides `grid`.
            shared_bytes: dynamic shared memory of a CTA.
            params: one entry per parameter of the kernel, each as long as its type, little endian.
            together: whether CTAs wait for each other: UserError where they cannot all be resident.
        """
        ...

    def synchronize(self) -> None:
        """Wait for all work; raise what went wrong in it."""
        ...

    def record(self) -> Any:
        """Return an event that happens when all work called before is done."""
        ...

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the seconds between two events (waiting for them). UnsupportedError on a device without a clock."""
        ...


@runtime_checkable
class TimingDevice(Device, Protocol):
    """A device whose events have times (a GPU)."""

    def is_done(self, event: Any) -> bool:
        """Return whether an event has happened; does not wait."""
        ...


@runtime_checkable
class CapturingDevice(Device, Protocol):
    """A device that records calls once and repeats them at little cost (CUDA graphs)."""

    def begin_capture(self) -> None:
        """From here on, `launch`, `copy` and `fill` are recorded and not run; other calls are errors."""
        ...

    def end_capture(self) -> Any:
        """Return the graph of what was recorded."""
        ...

    def replay(self, graph: Any) -> None:
        """Run a graph, with the addresses and parameters that it was recorded with."""
        ...


@runtime_checkable
class CheckingDevice(Device, Protocol):
    """A device that knows which bytes have been written, and says what broke a rule (the emulator)."""

    def discard(self, address: int, nbytes: int) -> None:
        """Make `nbytes` bytes undefined: what was written there is of no use any more."""
        ...

    def label(self, address: int, name: str) -> None:
        """Say what the memory at an address is, for messages."""
        ...


def check_launch(name: str, limits: Limits, grid: Extent, block: Extent, cluster: Extent, shared_bytes: int) -> None:
    """Check a launch against what every device of its kind allows, so that the emulator refuses what a GPU refuses.

    Raises:
        UserError: naming kernel, figure and limit.
    """
    _check_extents(name, limits, grid, block)
    if shared_bytes > limits.shared_bytes:
        raise UserError(
            f"kernel {name} asks for {shared_bytes} bytes of shared memory; a CTA on {limits.arch} has at most "
            f"{limits.shared_bytes}: choose smaller tiles or fewer pipeline stages"
        )
    _check_cluster(name, limits, grid, cluster)


def _check_extents(name: str, limits: Limits, grid: Extent, block: Extent) -> None:
    if min(grid) < 1 or any(size > most for size, most in zip(grid, limits.grid, strict=True)):
        raise UserError(f"kernel {name}: a grid of {grid} CTAs is outside 1 to {limits.grid}; leave out empty grids")
    threads = block[0] * block[1] * block[2]
    if not (1 <= threads <= limits.threads and min(block) >= 1 and block[2] <= 64):
        raise UserError(
            f"kernel {name}: a CTA of {block} threads; {limits.arch} takes 1 to {limits.threads}, z up to 64"
        )


def _check_cluster(name: str, limits: Limits, grid: Extent, cluster: Extent) -> None:
    ctas = cluster[0] * cluster[1] * cluster[2]
    if ctas == 1:
        return
    if not 1 <= ctas <= limits.cluster:
        raise UserError(
            f"kernel {name}: clusters of {cluster} CTAs; {limits.arch} takes at most {limits.cluster} "
            "(compile for this architecture)"
        )
    if any(size % part for size, part in zip(grid, cluster, strict=True)):
        raise UserError(f"kernel {name}: clusters of {cluster} CTAs do not divide a grid of {grid}; round the grid up")
