# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching kernels: a grid is cut into batches of CTAs that run in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.ptx.machine import Launch, Machine, Options
from tilewright.sim.ptx.memory.global_memory import GlobalMemory
from tilewright.sim.ptx.program import Program
from tilewright.sim.ptx.syntax.parser import parse
from tilewright.sim.ptx.syntax.tree import Module

Size = int | Sequence[int]


class LoadedModule:
    """A PTX file, every instruction decoded.

    Attributes:
        module: what the parser read.
        kernels: {name: Program}.
    """

    def __init__(self, ptx: str | bytes) -> None:
        self.module: Module = parse(ptx)
        self.kernels = {name: Program(kernel) for name, kernel in self.module.kernels.items()}

    def kernel(self, name: str) -> Program:
        """A kernel by its name."""
        if name not in self.kernels:
            raise UserError(f"the module has no kernel '{name}'; it has {', '.join(self.kernels) or 'none'}")
        return self.kernels[name]


def load(ptx: str | bytes) -> LoadedModule:
    """Parse and decode PTX.

    Raises:
        UserError: the text is no PTX that can be read. UnsupportedError: an opcode or modifier that the emulator does
            not know. Both name the line.
    """
    return LoadedModule(ptx)


def launch(
    program: Program,
    grid: Size,
    params: Sequence[bytes],
    *,
    memory: GlobalMemory,
    block: Size | None = None,
    cluster: Size | None = None,
    shared_bytes: int = 0,
    options: Options | None = None,
    resident: int | None = None,
) -> None:
    """Run a kernel to its end.

    Args:
        program: from `load(...).kernel(name)`.
        grid: CTAs, (x, y, z) or x.
        params: the bytes of each parameter, little endian.
        memory: what pointers point into.
        block: threads of a CTA; default: `.reqntid` or `.maxntid` of the kernel.
        cluster: CTAs of a cluster; default: `.reqnctapercluster` or 1.
        shared_bytes: dynamic shared memory.
        options: see `Options`.
        resident: CTAs that run at a time; the others begin when some of these have ended. None: all of them.

    Raises:
        UserError: the launch does not fit the kernel. EmulationError: the program broke a rule.
    """
    options = options or Options()
    setup = _setup(program, grid, params, block, cluster, shared_bytes)
    per_cta = -(-int(np.prod(setup.block)) // 32) * 32
    ctas = _ctas(setup)
    size = int(np.prod(setup.cluster))
    if options.seed is not None:  # whole clusters in any order
        order = np.random.default_rng(options.seed).permutation(len(ctas) // size)
        ctas = ctas.reshape(-1, size, 3)[order].reshape(-1, 3)
    batch = max(options.lanes // (per_cta * size), 1) * size
    room = len(ctas) if resident is None else max(resident // size, 1) * size
    if options.trace is not None:
        options.trace.begin(program, setup)
    memory.launches += 1
    memory.released.clear()
    with np.errstate(all="ignore"):
        _run(ctas, batch, room, size, lambda some: Machine(program, setup, some, memory, options))


_Running = list[tuple[Machine, Iterator[None]]]


def _run(ctas: np.ndarray, batch: int, room: int, cluster: int, make: Callable[[np.ndarray], Machine]) -> None:
    """Run batches one after the other; those that can only poll stay, and get turns between the others.

    Args:
        ctas: of the grid, in the order in which they begin.
        batch: CTAs that run in step, at most.
        room: CTAs that may have begun and not ended.
        cluster: CTAs that begin together.
        make: the machine of some CTAs.
    """
    waiting: _Running = []
    start = 0
    while start < len(ctas):
        free = room - sum(machine.alive for machine, _ in waiting)
        count = min(batch, free // cluster * cluster)
        if count <= 0:
            waiting = _turns(waiting, f"; {len(ctas) - start} CTAs have not begun, as {room} run at a time")
            continue
        machine = make(ctas[start : start + count])
        start += count
        waiting = [each for each in [*waiting, (machine, machine.run())] if _turn(each)]
    while waiting:
        waiting = _turns(waiting, "")


def _turns(waiting: _Running, more: str) -> _Running:
    """Let each batch run once; those that are left.

    Raises:
        EmulationError: nobody can go on.
    """
    before = [(machine.progress, machine.alive) for machine, _ in waiting]
    left = [each for each in waiting if _turn(each)]
    if len(left) == len(waiting) and before == [(machine.progress, machine.alive) for machine, _ in left]:
        raise left[0][0].scheduler.dead_lock(f"all threads that run are polling{more}")
    return left


def _turn(each: tuple[Machine, Iterator[None]]) -> bool:
    """Let a batch run; whether it is still there."""
    return next(each[1], True) is None


def _setup(program, grid, params, block, cluster, shared_bytes) -> Launch:
    kernel = program.kernel
    directives = kernel.directives
    fixed = directives.get("reqntid") or directives.get("maxntid")
    if block is None and fixed is None:
        raise UserError(f"kernel '{kernel.name}': block= must be given, the kernel does not fix its threads")
    sizes = _three(fixed if block is None else block)
    limit = directives.get("reqntid")
    if limit and _three(limit) != sizes:
        raise UserError(f"kernel '{kernel.name}': block {sizes}, but .reqntid says {_three(limit)}")
    limit = directives.get("maxntid")
    if limit and int(np.prod(sizes)) > int(np.prod(limit)):
        raise UserError(f"kernel '{kernel.name}': a block of {sizes} threads, but .maxntid allows {limit}")
    if not 0 < int(np.prod(sizes)) <= 1024:
        raise UserError(f"kernel '{kernel.name}': a block of {sizes} threads; 1 to 1024 are possible")
    required = directives.get("reqnctapercluster")
    clusters = _three(cluster if cluster is not None else required or 1)
    if required and clusters != _three(required):
        raise UserError(f"kernel '{kernel.name}': cluster {clusters}, but .reqnctapercluster says {_three(required)}")
    grids = _three(grid)
    if any(count % each for count, each in zip(grids, clusters, strict=True)) or min(grids) < 1:
        raise UserError(f"kernel '{kernel.name}': a grid of {grids} CTAs is no multiple of clusters of {clusters}")
    return Launch(grids, sizes, clusters, shared_bytes, _pack(kernel, params))


def _pack(kernel, params) -> bytes:
    if len(params) != len(kernel.parameters):
        raise UserError(f"kernel '{kernel.name}' takes {len(kernel.parameters)} parameters, not {len(params)}")
    data = bytearray(kernel.parameter_bytes)
    for declared, value in zip(kernel.parameters, params, strict=True):
        if len(value) != declared.size:
            raise UserError(
                f"kernel '{kernel.name}': parameter {declared.name} has {declared.size} bytes, not {len(value)}"
            )
        data[declared.offset : declared.offset + declared.size] = value
    return bytes(data)


def _three(size: Size) -> tuple[int, int, int]:
    values = [int(size)] if isinstance(size, (int, np.integer)) else [int(value) for value in size]
    if not 1 <= len(values) <= 3:
        raise UserError(f"a size of {len(values)} dimensions: 1 to 3 are possible")
    x, y, z = [*values, 1, 1][:3]
    return x, y, z


def _ctas(setup: Launch) -> np.ndarray:
    """Coordinates of all CTAs, (count, 3), clusters one after another, ranks ascending within."""
    gx, gy, gz = setup.grid
    cx, cy, cz = setup.cluster
    z, y, x, rz, ry, rx = np.indices((gz // cz, gy // cy, gx // cx, cz, cy, cx)).reshape(6, -1)
    return np.stack([x * cx + rx, y * cy + ry, z * cz + rz], axis=1)
