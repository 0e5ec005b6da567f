# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for a mesh of cores, as the simulator takes it: the ops of `coremesh.program` one by one, as values.

All cores run the same instructions in the same order; `Cores` says who takes part in one. Communication is
asynchronous: an instruction starts it and makes a token, `Wait` waits for tokens. What is sent on a route from one core
arrives at another in the order in which it was sent. The dimensions of expressions are the row ``y``, the column ``x``,
then the indices of the loops around, outermost first; a route's are ``p``, the position along its axis, ``q``, that
along the other axis, then the loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilewright.sim.coremesh.combinations import Combine
from tilewright.sim.coremesh.expressions import Const, Expr

#: (operand, dimension) and (operand, dimension) of a kernel that sums over what both are parts of.
Meeting = tuple[tuple[int, int], tuple[int, int]]
#: How positions are counted: as cores stand, or along the folded ring, whose neighbours stand two hops apart
#: (WaferLLM, OSDI 2025, section 5).
Order = Literal["linear", "ring"]


@dataclass(frozen=True)
class Cores:
    """Cores that take part: those for which each ``expr >= 0`` and each ``expr == 0`` holds. Without any: all.

    Attributes:
        order: how ``y`` and ``x`` are counted.
        at_least_zero, zero: expressions of (y, x, loops...).
    """

    at_least_zero: tuple[Expr, ...] = ()
    zero: tuple[Expr, ...] = ()
    order: Order = "linear"


@dataclass(frozen=True)
class Buffer:
    """Memory of each core: ``slots`` tiles of one shape.

    Attributes:
        shape, dtype: of one slot.
        address: first byte in the core's memory; None before allocation.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    slots: int = 1
    address: int | None = None


@dataclass(frozen=True)
class Slot:
    """One slot of a buffer.

    Attributes:
        buffer: its name.
        index: of (y, x, loops...), ``order`` as of the instruction's cores.
    """

    buffer: str
    index: Expr = Const(0)


@dataclass(frozen=True)
class Route:
    """Paths along one axis, of one pattern, straight from the source to each destination.

    Attributes:
        axis: ``x``: along a row; ``y``: along a column.
        source: of (p, q, loops...): the position whose data arrive at ``p``. Several with one source: a multicast,
            which crosses each link once. A path exists where a core receives on the route and its source sends on it.
        order: how ``p`` and ``q`` are counted.
        colors: names of virtual channels; a core listens at ``p`` on color ``colors[color(p, q)]``. Empty before
            assignment.
        color: index into ``colors``, of (p, q) as cores stand (linear).
    """

    name: str
    axis: Literal["x", "y"]
    source: Expr
    order: Order = "linear"
    colors: tuple[int, ...] = ()
    color: Expr = Const(0)


@dataclass(frozen=True)
class Cost:
    """What one execution of a kernel does on one core.

    Attributes:
        macs: multiply-adds.
        vector_calls: vector instructions over columns, each with a fixed overhead on real machines.
        elements: of results that no multiply-add makes.
        dtype_bits: of the numbers that are multiplied or made.
        single: elements that are made one after the other, a cycle each, whatever the vector unit holds.
        doubles: operations on f64, for which most machines have no unit.
    """

    macs: int = 0
    vector_calls: int = 0
    elements: int = 0
    dtype_bits: int = 32
    single: int = 0
    doubles: int = 0


@dataclass(frozen=True)
class Compute:
    """Run a kernel on tiles of the core's own memory; done when the next instruction starts.

    Attributes:
        run: tiles of ``reads``, each ``[cores, *shape]``, to tiles of ``writes``, with the rounding of the machine.
    """

    cores: Cores
    name: str
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    cost: Cost
    run: Callable[..., tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Send:
    """Start to send a slot on a route. The token: the slot may be written again."""

    cores: Cores
    route: str
    slot: Slot
    token: str


@dataclass(frozen=True)
class Recv:
    """Start to receive into a slot from a route. The token: all of it is there.

    Attributes:
        combine: None: stored; else how it is combined with what is there, as numbers arrive. Several that combine into
            one slot do so in the order of the program, whichever arrives first: results do not depend on timing.
    """

    cores: Cores
    route: str
    slot: Slot
    token: str
    combine: Combine | None = None


@dataclass(frozen=True)
class Relay:
    """Receive on a route, combine with a slot of memory, send on another, one number per cycle, storing nothing.

    One software stage of a streaming reduction. The token: all has been sent on.
    """

    cores: Cores
    incoming: str
    outgoing: str
    slot: Slot
    token: str
    combine: Combine = "add"


@dataclass(frozen=True)
class Wait:
    """Each core waits until those of its instructions that made these tokens are done.

    Attributes:
        overhead: which fixed cost of the machine a core pays here, where tasks are switched: once per compute-shift
            round, once per collective, or none.
    """

    tokens: tuple[str, ...]
    overhead: Literal["", "round", "collective"] = ""


@dataclass(frozen=True)
class Loop:
    """Run the body ``count`` times; its index becomes the last dimension of expressions inside."""

    count: int
    body: tuple[Instruction, ...]


Instruction = Compute | Send | Recv | Relay | Wait | Loop


@dataclass(frozen=True)
class Place:
    """Where tiles of a tensor lie: an input before the program, an output after it.

    Attributes:
        name: of the tensor.
        shape: of the tensor.
        slot: where a core's tile lies.
        block: of (y, x): index of the block per dimension of the tensor that the core holds; blocks are of the
            buffer's shape, the last ones padded by zeros. Several cores with one block: replicated.
        order: how ``y`` and ``x`` are counted.
        alike: dimensions of an output along which all blocks are copies: what an allreduce leaves in each core.
    """

    name: str
    shape: tuple[int, ...]
    slot: Slot
    block: tuple[Expr, ...]
    order: Order = "linear"
    alike: tuple[int, ...] = ()


@dataclass(frozen=True)
class Program:
    """A program of ``height`` x ``width`` cores."""

    name: str
    height: int
    width: int
    buffers: tuple[Buffer, ...]
    routes: tuple[Route, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    body: tuple[Instruction, ...]
