# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The emulator behind the interface of a GPU, so that whole programs run on it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np

from tilewright.core.errors import UserError
from tilewright.runtime.gpu.gpu_device import Limits, check_launch
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.launch import LoadedModule, launch, load
from tilewright.sim.ptx.machine import CHECKS, Options
from tilewright.sim.ptx.memory.global_memory import GlobalMemory
from tilewright.sim.ptx.order.grid_races import synchronises
from tilewright.sim.ptx.program import Program
from tilewright.sim.ptx.trace import Trace

Extent = tuple[int, int, int]

#: reading PTX takes longer than many a run: models that are loaded again, for another order, share what was decoded
_decoded = functools.lru_cache(maxsize=64)(load)

#: launches that the GPUs of each architecture accept (CUDA C++ Programming Guide, "Compute Capabilities")
_LIMITS = {
    "sm_80": Limits("sm_80", multiprocessors=108, shared_bytes=163 << 10, memory_bytes=40 << 30),
    "sm_86": Limits("sm_86", multiprocessors=84, shared_bytes=99 << 10, memory_bytes=24 << 30),
    "sm_89": Limits("sm_89", multiprocessors=128, shared_bytes=99 << 10, memory_bytes=24 << 30),
    "sm_90": Limits("sm_90", multiprocessors=132, shared_bytes=227 << 10, cluster=8, memory_bytes=80 << 30),
    "sm_90a": Limits("sm_90a", multiprocessors=132, shared_bytes=227 << 10, cluster=8, memory_bytes=80 << 30),
}


#: registers and threads that a multiprocessor has, and bytes of shared memory that each CTA takes besides its own
_REGISTERS, _THREADS, _RESERVED = 65536, 2048, 1024

#: arguments of a `Device` besides the architecture
_OPTIONS = ("seed", "checks", "trace", "options", "replace", "multiprocessors")


def unknown_options(given: Mapping[str, object]) -> str | None:
    """What is wrong with the names of a device's options, in words for a user; None: nothing."""
    unknown = sorted(set(map(str, given)) - set(_OPTIONS))
    if not unknown:
        return None
    return f"the emulator has no option {', '.join(unknown)}; emulate= may hold {', '.join(_OPTIONS)}"


class Device:
    """An emulated GPU: the same calls as a real one, everything done when a call returns.

    Args:
        arch: what it pretends to be, as in PTX's ``.target``: the limits of launches, and which code it takes.
        seed: None for a fixed order of warps; a number for a random one.
        checks: optional checks, see `Options`.
        trace: counts what runs.
        options: all of these at once, and more; the other arguments are ignored then.
        replace: PTX texts that are loaded in the place of others, {text: other text} (fault injection).
        multiprocessors: how many it pretends to have, of which persistent kernels make as many CTAs as they hold; None:
            as many as the architecture's first GPU.
    """

    def __init__(
        self,
        arch: str = "sm_90a",
        *,
        seed: int | None = None,
        checks: frozenset[str] = CHECKS,
        trace: Trace | None = None,
        options: Options | None = None,
        replace: Mapping[str, str] | None = None,
        multiprocessors: int | None = None,
    ) -> None:
        if arch not in _LIMITS:
            raise UserError(f"the emulator does not know the architecture '{arch}'; it knows {', '.join(_LIMITS)}")
        if multiprocessors is not None and multiprocessors < 1:
            raise UserError(f"multiprocessors={multiprocessors}: a GPU has at least one")
        self.limits = _LIMITS[arch]
        if multiprocessors is not None:
            self.limits = dataclasses.replace(self.limits, multiprocessors=multiprocessors)
        self.options = options or Options(seed=seed, checks=checks, trace=trace)
        self.memory = GlobalMemory()
        self._replace = dict(replace or {})

    def load(self, image: bytes) -> LoadedModule:
        """Return the module of a PTX text. UserError where it is a cubin: the emulator reads PTX only."""
        if bytes(image[:4]) == b"\x7fELF":
            raise UserError("the emulator runs PTX; a cubin holds machine code: keep the PTX in the artifact")
        text = bytes(image).decode().rstrip("\0")
        text = self._replace.get(text, text)
        module = _decoded(text)
        if self.memory.holds(module.module):
            module = load(text)  # with variables of its own, as the driver has it
        self._fits(module.module.target)
        return module

    def _fits(self, target: str) -> None:
        """PTX runs on its own architecture and on later ones; with the suffix 'a' on its own alone."""
        need, have = (int("".join(c for c in name if c.isdigit())) for name in (target, self.limits.arch))
        if need > have or (target.endswith("a") and target != self.limits.arch):
            raise UserError(
                f"PTX for {target} does not run on {self.limits.arch}; compile for it, or use Device('{target}')"
            )

    def function(self, module: LoadedModule, name: str) -> Program:
        """Return the handle of a kernel."""
        return module.kernel(name)

    def alloc(self, nbytes: int) -> int:
        """Return the address of memory with undefined content, aligned to 256 bytes at least."""
        return self.memory.alloc(max(nbytes, 1))

    def free(self, address: int) -> None:
        """Give back what `alloc` returned."""
        self.memory.free(address)

    def upload(self, address: int, data: memoryview) -> None:
        """Copy C-contiguous host memory to the device."""
        self.memory.write(address, data)

    def download(self, address: int, data: memoryview) -> None:
        """Copy device memory to C-contiguous, writeable host memory."""
        target = memoryview(data).cast("B")
        self._check_written(address, len(target))
        target[:] = self.memory.read(address, len(target)).data

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy inside the device's memory; what is undefined stays undefined."""
        to, to_offset = self.memory.range(destination, nbytes)
        found, offset = self.memory.range(source, nbytes)
        to.data[to_offset : to_offset + nbytes] = found.data[offset : offset + nbytes]
        defined = found.defined[offset : offset + nbytes]
        to.defined[to_offset : to_offset + nbytes] = defined
        to.fully_defined = bool(defined.all()) and (to.fully_defined or nbytes == to.size)

    def discard(self, address: int, nbytes: int) -> None:
        """Make bytes undefined: reading them is an error until something is written there again."""
        found, offset = self.memory.range(address, nbytes)
        found.defined[offset : offset + nbytes] = False
        found.fully_defined = False

    def label(self, address: int, name: str) -> None:
        """Name an allocation in messages."""
        self.memory.range(address, 0)[0].name = name

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set bytes."""
        if not 0 <= byte <= 255:
            raise UserError(f"fill with {byte}: a byte is 0 to 255")
        self.memory.write(address, bytes([byte]) * nbytes)

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
        """Return a descriptor of 128 bytes in the emulator's own encoding; arguments as `runtime.gpu_device` says."""
        from tilewright.sim.ptx.memory.tensor_map import TensorMap

        sizes = (tuple(dims), tuple(strides_bytes), tuple(box))
        return TensorMap(element, address, *sizes, swizzle, fill, tuple(steps)).encode()

    def launch(
        self,
        function: Program,
        grid: Extent,
        block: Extent,
        cluster: Extent,
        shared_bytes: int,
        params: Sequence[bytes],
        together: bool = False,
    ) -> None:
        """Run a kernel to its end."""
        name, used = function.kernel.name, function.shared_used(shared_bytes)
        check_launch(name, self.limits, grid, block, cluster, used)
        resident = None
        if together or synchronises(function):
            resident = self.resident(function, block[0] * block[1] * block[2], shared_bytes)
            resident *= self.limits.multiprocessors
        if together and resident is not None and grid[0] * grid[1] * grid[2] > resident:
            raise UserError(
                f"kernel {name}: its CTAs wait for each other, and of a grid of {grid} only {resident} run at the same "
                f"time on {self.limits.multiprocessors} multiprocessors of {self.limits.arch}"
            )
        launch(
            function,
            grid,
            params,
            memory=self.memory,
            block=block,
            cluster=cluster,
            shared_bytes=shared_bytes,
            options=self.options,
            resident=resident,
        )

    def resident(self, function: Program, threads: int, shared_bytes: int) -> int:
        """Return how many CTAs of a kernel a multiprocessor holds at a time.

        What PTX says of registers is all that is known of them: as many CTAs as `.minnctapersm` asks for, else as many
        as there are registers for threads that have 255 each.
        """
        promised = function.kernel.directives.get("minnctapersm")
        registers = max(int(np.prod(promised or 1)), _REGISTERS // (256 * threads))
        shared = (self.limits.shared_bytes + _RESERVED) // (function.shared_used(shared_bytes) + _RESERVED)
        return min(registers, shared, _THREADS // threads)

    def _check_written(self, address: int, nbytes: int) -> None:
        """Fail where the host reads bytes that nothing has written."""
        found, offset = self.memory.range(address, nbytes)
        missing = np.flatnonzero(~found.defined[offset : offset + nbytes])
        if missing.size and "uninitialised" in self.options.checks:
            raise EmulationError(
                f"uninitialised: the host reads {nbytes} bytes of {found}, and nothing has written {missing.size} of "
                f"them (the first at offset {offset + int(missing[0])}): no task writes that part",
                rule="uninitialised",
            )

    def synchronize(self) -> None:
        """Everything is done already."""

    def record(self) -> float:
        """The time of the host; see `elapsed`."""
        return perf_counter()

    def elapsed(self, start: float, end: float) -> float:
        """Seconds that the emulation took: no prediction of a GPU's time."""
        return end - start
