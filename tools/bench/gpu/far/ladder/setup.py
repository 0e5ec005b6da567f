# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rung of the ladder was set up with: what the diagnosis compares an observation with.

A set-up says what the host and the kernel *mean* to do, in the terms of the PTX ISA and the driver API. All of them are
frozen, of plain numbers and strings, and go to JSON and back; a diagnosis names their fields.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, TypeAlias

#: x, y, z
Extent: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class TmaSetup:
    """One box that TMA loads into shared memory, by the arguments of ``cuTensorMapEncodeTiled``; innermost first.

    Attributes:
        element: name of the element type, as ``Device.tensor_map`` takes it.
        dims: ``globalDim``, elements.
        strides: ``globalStrides``, bytes, of dimensions 1 and up.
        box: ``boxDim``, elements.
        steps: ``elementStrides``; the first is 1.
        swizzle: 0, 32, 64 or 128 bytes.
        fill: ``oobFill``: "zero" or "nan".
        coordinates: of the box's first element; negative ones lie outside.
        smem_offset: where the box goes, bytes from the start of the dumped shared memory (a multiple of 128).
        expected_bytes: what ``mbarrier.arrive.expect_tx`` announces.
        offset: bytes from the start of the buffer to element 0 (``globalAddress``).
        arrivals: count of the mbarrier; one thread arrives.
        parity: of the wait; 0 for the first phase.
        interleave, l2_promotion: what they are set to; no dump can show the second.
    """

    element: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    fill: str
    coordinates: tuple[int, ...]
    smem_offset: int
    expected_bytes: int
    offset: int = 0
    arrivals: int = 1
    parity: int = 0
    interleave: int = 0
    l2_promotion: int = 0


@dataclass(frozen=True)
class OperandSetup:
    """An operand of wgmma in shared memory: the fields of its matrix descriptor, bytes, and where its data really lies.

    Attributes:
        address: start address, bytes from the start of shared memory (a multiple of 16).
        leading: leading-dimension byte offset (LBO).
        stride: stride-dimension byte offset (SBO).
        base_offset: 0 to 7.
        swizzle: 0, 32, 64 or 128 bytes.
        k_major: whether k runs fastest in memory; else MN-major (``tnspA``/``tnspB`` is 1).
        advance: bytes added to the start address per instruction along k.
    """

    address: int
    leading: int
    stride: int
    base_offset: int
    swizzle: int
    k_major: bool = True
    advance: int = 0


@dataclass(frozen=True)
class WgmmaSetup:
    """``steps`` wgmma instructions along k on one warpgroup.

    Attributes:
        n: columns of the shape m64nNkK.
        dtype: PTX type of A and B: "f16", "bf16", "tf32", "e4m3", "e5m2", "s8" or "u8"; sums are f32 (s32).
        a: operand A in shared memory; None: A is in registers.
        b: operand B.
        scale_d: scale-d of the first instruction; later ones add. The accumulators start as `initial`.
        negate_a, negate_b: whether ``imm-scale-a`` and ``imm-scale-b`` are -1.
        steps: instructions.
        initial: value of each accumulator before.
        shared_bytes: of the dump of shared memory that the probe fills.
    """

    n: int
    dtype: str
    a: OperandSetup | None
    b: OperandSetup
    scale_d: bool = False
    negate_a: bool = False
    negate_b: bool = False
    steps: int = 1
    initial: float = 0.0
    shared_bytes: int = 32768


@dataclass(frozen=True)
class MbarrierSetup:
    """A ring of buffers that a producer fills and a consumer empties: its mbarriers and what orders them.

    Attributes:
        stages: buffers of the ring.
        rounds: loads in all; load i goes to buffer ``i % stages``.
        full_count, empty_count: arrivals that ``mbarrier.init`` sets.
        tx_bytes: what each ``arrive.expect_tx`` announces.
        box_bytes: what one load moves.
        full_parity, empty_parity: parity of the first wait for buffer 0's full and empty barrier (0 and 1 are usual).
    """

    stages: int
    rounds: int
    full_count: int
    empty_count: int
    tx_bytes: int
    box_bytes: int
    full_parity: int = 0
    empty_parity: int = 1


@dataclass(frozen=True)
class LaunchSetup:
    """A launch.

    Attributes:
        grid: CTAs.
        block: threads of a CTA.
        cluster: CTAs of a cluster.
        shared_bytes: dynamic shared memory.
        parameters: names of the parameters in order.
        values: their values as the host gives them (addresses as the number of the buffer), in order.
        persistent: CTAs that a persistent kernel is launched with; 0 where the grid is one CTA per tile.
    """

    grid: Extent
    block: Extent
    cluster: Extent = (1, 1, 1)
    shared_bytes: int = 0
    parameters: tuple[str, ...] = ()
    values: tuple[int, ...] = ()
    persistent: int = 0


@dataclass(frozen=True)
class TileSetup:
    """A tile of a product made of a ring of TMA loads, wgmma and a store: the parts that a rung is set up with."""

    a: TmaSetup
    b: TmaSetup
    product: WgmmaSetup
    ring: MbarrierSetup
    launch: LaunchSetup
    sizes: tuple[int, int, int] = field(default=(0, 0, 0))


Setup: TypeAlias = TmaSetup | WgmmaSetup | MbarrierSetup | LaunchSetup | TileSetup
_KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (TmaSetup, OperandSetup, WgmmaSetup, MbarrierSetup, LaunchSetup, TileSetup)
}


def to_json(setup: Any) -> dict[str, Any]:
    """A set-up as a tree of plain values, each part with its kind."""
    tree: dict[str, Any] = {"kind": type(setup).__name__}
    for one in dataclasses.fields(setup):
        value = getattr(setup, one.name)
        tree[one.name] = to_json(value) if dataclasses.is_dataclass(value) else value
    return tree


def from_json(tree: dict[str, Any]) -> Any:
    """What `to_json` wrote, also after a round through text. Raises ValueError for a kind that there is not."""
    kind = _KINDS.get(tree["kind"])
    if kind is None:
        raise ValueError(f"no kind of set-up is called {tree['kind']!r}; there are {', '.join(_KINDS)}")
    return kind(**{name: _value(value) for name, value in tree.items() if name != "kind"})


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return from_json(value)
    return tuple(value) if isinstance(value, list) else value
