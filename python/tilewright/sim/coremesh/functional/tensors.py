# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Between tensors and tiles: where inputs lie before a program, and outputs after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.functional.memory import Memory
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Place, Program
from tilewright.sim.coremesh.steps import Step


def load(program: Program, memory: Memory, inputs: Mapping[str, np.ndarray]) -> None:
    """Put inputs into the cores' memories, padded by zeros; a core whose block lies outside its tensor gets zeros.

    Raises:
        UserError: an input is missing, unknown, or not of the shape and dtype that the program says.
    """
    wanted = {place.name for place in program.inputs}
    if wanted != set(inputs):
        raise UserError(f"Program '{program.name}' takes the inputs {sorted(wanted)}, not {sorted(inputs)}.")
    for place in program.inputs:
        tensor = np.asarray(inputs[place.name])
        tiles = memory[place.slot.buffer]
        if tensor.shape != place.shape or tensor.dtype != tiles.buffer.dtype:
            raise UserError(
                f"Input '{place.name}' is {tensor.dtype}{list(tensor.shape)}; program '{program.name}' takes "
                f"{tiles.buffer.dtype}{list(place.shape)}."
            )
        blocks, index, inside = _blocks(place, memory.grid, tiles.buffer.shape)
        cut = _cut(tensor, blocks, tiles.buffer.shape)
        cores = np.arange(memory.grid.cores)
        held = np.broadcast_to(cut[tuple(np.where(inside, at, 0) for at in index)], (cores.size, *tiles.buffer.shape))
        held = np.where(inside.reshape(-1, *[1] * len(tiles.buffer.shape)), held, np.zeros((), held.dtype))
        slots = memory.slots(place.slot, place.order, (), cores, f"Input '{place.name}'")
        tiles.write(cores, slots, held, memory.origins.numbers(place, tiles.buffer.shape, blocks, index, inside))


def collect(program: Program, memory: Memory, steps: list[Step]) -> dict[str, np.ndarray]:
    """Put outputs together from the cores' memories, by name; blocks of one may lie in several slots of a core.

    Raises:
        UserError: a block was never written, is still on its way, is on no core, or differs between cores that hold it.
    """
    places: dict[str, list[Place]] = {}
    for place in program.outputs:
        places.setdefault(place.name, []).append(place)
    return {name: _collect(several, memory, steps) for name, several in places.items()}


def _collect(places: list[Place], memory: Memory, steps: list[Step]) -> np.ndarray:
    place = places[0]
    tiles = memory[place.slot.buffer]
    _check_alike(places, memory)
    blocks = _blocks(place, memory.grid, tiles.buffer.shape)[0]
    parts = [_read(one, memory, steps) for one in places]
    cores, number, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    held, first, which = np.unique(number, return_index=True, return_inverse=True)
    count = int(np.prod(blocks, dtype=np.int64))
    if held.size < count:
        missing = int(np.setdiff1d(np.arange(count), held)[0])
        block = tuple(int(at) for at in np.unravel_index(missing, blocks))
        raise UserError(
            f"Block {block} of output '{place.name}' is on no core ({count - held.size} of {count} are not): its block "
            "expressions must reach all of them."
        )
    _check_replicas(place, memory.grid, values, cores, first[which.ravel()])
    if place.alike:
        _check_replicas(place, memory.grid, values, cores, _first_alike(number, blocks, place.alike))
    whole = values[first].reshape((*blocks, *tiles.buffer.shape))
    rank = len(blocks)
    whole = whole.transpose([axis for d in range(rank) for axis in (d, rank + d)])
    whole = whole.reshape(tuple(b * s for b, s in zip(blocks, tiles.buffer.shape, strict=True)))
    return np.array(whole[tuple(slice(size) for size in place.shape)], order="C")  # a single number keeps its rank 0


def _check_alike(places: list[Place], memory: Memory) -> None:
    """Slots that hold one tensor hold tiles of one shape and dtype."""
    kinds = {(one.shape, memory[one.slot.buffer].buffer.shape, memory[one.slot.buffer].buffer.dtype) for one in places}
    if len(kinds) > 1:
        raise UserError(
            f"Output '{places[0].name}' is collected from buffers {sorted({one.slot.buffer for one in places})}, which "
            "differ in the shape or dtype of their tiles, or as tensors of several shapes: they must be alike."
        )


def _read(place: Place, memory: Memory, steps: list[Step]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cores that hold a block of an output in one slot each, numbers of the blocks, and the tiles."""
    tiles = memory[place.slot.buffer]
    blocks, index, inside = _blocks(place, memory.grid, tiles.buffer.shape)
    cores, what = np.flatnonzero(inside), f"Output '{place.name}'"
    slots = memory.slots(place.slot, place.order, (), cores, what)
    tiles.check_written(cores, slots, what)
    tiles.check_free("reads", cores, slots, what, steps)
    number = np.ravel_multi_index(tuple(at[cores] for at in index), blocks) if blocks else np.zeros_like(cores)
    values = tiles.read(cores, slots) if cores.size else np.empty((0, *tiles.buffer.shape), tiles.buffer.dtype)
    return cores, number, values


def _first_alike(number: np.ndarray, blocks: tuple[int, ...], alike: tuple[int, ...]) -> np.ndarray:
    """For each block by number, where among them the first one is of which it is a copy."""
    at = [np.zeros_like(one) if axis in alike else one for axis, one in enumerate(np.unravel_index(number, blocks))]
    _, first, which = np.unique(np.ravel_multi_index(at, blocks), return_index=True, return_inverse=True)
    return first[which.ravel()]


def _check_replicas(place: Place, grid: Grid, values: np.ndarray, cores: np.ndarray, first: np.ndarray) -> None:
    """Cores that hold one block, or copies of it, must hold the same bits; ``first``: where that of each core is."""
    flat = np.ascontiguousarray(values).reshape(cores.size, -1)
    bits = flat.view(np.uint8).reshape(cores.size, flat.shape[1], flat.dtype.itemsize)
    other = (bits != bits[first]).any(axis=2)
    bad = np.argwhere(other)
    if bad.size:
        at, element = (int(number) for number in bad[0])
        raise UserError(
            f"Copies of output '{place.name}' differ: element {element} of the tile is {flat[at, element]} on "
            f"{grid.name(int(cores[at]))} and {flat[first[at], element]} on {grid.name(int(cores[first[at]]))}, which "
            "hold the same block. Replicated outputs must agree to the bit: sum in one order, or broadcast."
        )


def _blocks(
    place: Place, grid: Grid, tile: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[np.ndarray, ...], np.ndarray]:
    """Number of blocks per dimension, index of each core's block, and whether that lies inside the tensor."""
    if not len(place.shape) == len(tile) == len(place.block):
        raise UserError(
            f"Place of '{place.name}' has a tensor of rank {len(place.shape)}, tiles of rank {len(tile)} and "
            f"{len(place.block)} block expressions: they must be as many."
        )
    blocks = tuple(-(-size // part) if part else 0 for size, part in zip(place.shape, tile, strict=True))
    index = tuple(grid.index(expr, place.order, ()) for expr in place.block)
    inside = np.ones(grid.cores, dtype=bool)
    for at, count in zip(index, blocks, strict=True):
        inside &= (at >= 0) & (at < count)
    return blocks, index, inside


def _cut(tensor: np.ndarray, blocks: tuple[int, ...], tile: tuple[int, ...]) -> np.ndarray:
    """A tensor as blocks [*blocks, *tile], padded by zeros."""
    full = tuple(b * s for b, s in zip(blocks, tile, strict=True))
    padded = np.zeros(full, tensor.dtype)
    padded[tuple(_slices(tensor.shape))] = tensor
    parts = padded.reshape([size for pair in zip(blocks, tile, strict=True) for size in pair])
    rank = len(tile)
    return parts.transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])


def _slices(shape: tuple[int, ...]) -> Iterator[slice]:
    for size in shape:
        yield slice(size)
