# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That kernels, messages and tensors have the shapes of what they are stored in, and kernels take each slot once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.program import Buffer, Compute, Place, Program, Recv, Relay, Send
from tilewright.sim.coremesh.steps import Step, incoming, outgoing


def check_shapes(program: Program, field: Field, steps: list[Step]) -> None:
    """Check the tiles of kernels, each run once on one core's zeros, of messages, and of inputs and outputs.

    Raises:
        UserError: a kernel fails, makes other tiles than its buffers hold, or takes as many tiles of a buffer as that
            has slots and one of them twice; a route whose messages are received into buffers of another shape or type.
    """
    buffers = {buffer.name: buffer for buffer in program.buffers}
    turning: dict[int, bool] = {}  # by instruction, each with its first step alone where others say nothing new
    sizes: dict[str, dict[str, list[Step]]] = {}
    for step in steps:
        instruction = step.instruction
        is_first = id(instruction) not in turning
        if is_first:
            turning[id(instruction)] = isinstance(instruction, Compute) and _turns(instruction, buffers)
            _add_ends(step, sizes)
        if isinstance(instruction, Compute):
            if is_first:
                _check_kernel(instruction, buffers, step)
            if is_first or turning[id(instruction)]:
                _check_slots(instruction, buffers, field, step)
    for kind, places in (("input", program.inputs), ("output", program.outputs)):
        for name in dict.fromkeys(place.name for place in places):
            _check_tensor(f"{kind} '{name}'", [place for place in places if place.name == name], field, buffers)
    for name, ends in sizes.items():
        _check_route(name, ends.get("out", []), ends.get("in", []), buffers)


def _add_ends(step: Step, sizes: dict[str, dict[str, list[Step]]]) -> None:
    """Note by route, and by which end, that a step sends or receives there."""
    if isinstance(step.instruction, Send | Recv | Relay):
        for kind, name in (("in", incoming(step.instruction)), ("out", outgoing(step.instruction))):
            if name is not None:
                sizes.setdefault(name, {}).setdefault(kind, []).append(step)


def _check_slots(instruction: Compute, buffers: dict[str, Buffer], field: Field, step: Step) -> None:
    """A kernel that takes as many slots of a buffer as that has, more than two, takes each: tiles of a cache."""
    taken: dict[str, list[np.ndarray]] = {}
    for slot in instruction.reads:
        index = field.index(slot.index, instruction.cores.order, step.loops)
        taken.setdefault(slot.buffer, []).append(index)
    mask = field.mask(instruction.cores, step.loops)
    for name, every in taken.items():
        for number, index in enumerate(every if len(every) == buffers[name].slots > 2 else []):
            for before in every[:number]:
                if (twice := mask & (index == before)).any():
                    core = field.first(twice)
                    slot = int(np.broadcast_to(index, twice.shape)[twice][0])
                    raise UserError(
                        f"{core_name(*core)}: kernel '{instruction.name}' takes {len(every)} tiles of buffer '{name}', "
                        f"which has as many slots, and slot {slot} twice, so that another is left out. Let each "
                        "operand be a slot of its own.",
                        location=str(step),
                    )


def _turns(instruction: Compute, buffers: dict[str, Buffer]) -> bool:
    """Whether it takes all tiles of a cache, which and where each turn of a loop says anew."""
    counts = Counter(slot.buffer for slot in instruction.reads)
    of_caches = [slot.index for slot in instruction.reads if counts[slot.buffer] == buffers[slot.buffer].slots > 2]
    return bool(of_caches) and depth(*of_caches, *instruction.cores.at_least_zero, *instruction.cores.zero) > 2


def _check_kernel(instruction: Compute, buffers: dict[str, Buffer], step: Step) -> None:
    tiles = [np.zeros((1, *buffers[slot.buffer].shape), buffers[slot.buffer].dtype) for slot in instruction.reads]
    shapes = ", ".join(_tile(buffers[slot.buffer]) for slot in instruction.reads)
    try:
        made = _made(instruction, tiles)
    except (ValueError, IndexError, TypeError) as error:
        raise UserError(
            f"Kernel '{instruction.name}' cannot take tiles {shapes}: {error}. Give it buffers of fitting shapes.",
            location=str(step),
        ) from error
    kept = [buffers[slot.buffer] for slot in instruction.writes]
    if len(made) != len(kept):
        raise UserError(
            f"Kernel '{instruction.name}' makes {len(made)} tiles, and {len(kept)} are stored: as many are needed.",
            location=str(step),
        )
    for tile, buffer in zip(made, kept, strict=True):
        shape = np.shape(tile)[1:]
        if tiles and (shape != buffer.shape or np.asarray(tile).dtype != buffer.dtype):
            raise UserError(
                f"Kernel '{instruction.name}' makes {np.asarray(tile).dtype}{list(shape)} of {shapes}, and buffer "
                f"'{buffer.name}' holds {_tile(buffer)}. Give it a buffer of that shape and type.",
                location=str(step),
            )


def _made(instruction: Compute, tiles: list[np.ndarray]) -> Sequence[np.ndarray]:
    """What a kernel makes of tiles: what it says itself, or made of zeros.

    With zeros, a body of ops might never end, or read beside a tensor.
    """
    signature = getattr(instruction.run, "signature", None)
    if signature is None:
        return instruction.run(*tiles)
    reads, writes = signature()
    for tile, (shape, dtype) in zip(tiles, reads, strict=True):
        if tile.shape[1:] != tuple(shape) or tile.dtype != dtype:
            raise ValueError(f"it reads {dtype}{list(shape)}, not {tile.dtype}{list(tile.shape[1:])}")
    return [np.zeros((1, *shape), dtype) for shape, dtype in writes]


def _check_tensor(name: str, places: list[Place], field: Field, buffers: dict[str, Buffer]) -> None:
    """Each dimension has as many blocks as it needs."""
    for dim, size in enumerate(places[0].shape):
        have = set()
        for place in places:
            buffer = buffers[place.slot.buffer]
            if len(buffer.shape) != len(place.shape):
                raise UserError(
                    f"{name} has {len(place.shape)} dimensions, and buffer '{buffer.name}' holds {_tile(buffer)}: a "
                    "tile needs as many dimensions as its tensor."
                )
            have |= set(np.unique(field.index(place.block[dim], place.order, ())).tolist())
        tile = buffers[places[0].slot.buffer].shape[dim]
        missing = sorted(set(range(-(-size // tile))) - have)
        if missing:
            raise UserError(
                f"{name}, {list(places[0].shape)}: dimension {dim} in tiles of {tile} needs {-(-size // tile)} blocks, "
                f"and block {missing[0]} lies on no core. Use larger tiles, or more cores."
            )


def _check_route(name: str, sends: list[Step], receives: list[Step], buffers: dict[str, Buffer]) -> None:
    """Every size that is sent is received, and the reverse; the same ones, where each end has one."""
    sent = {_size(step, buffers): step for step in sends}
    taken = {_size(step, buffers): step for step in receives}
    for size, step in sent.items():
        if size not in taken:
            other = next(iter(taken.values()), None)
            there = f"; {other} takes {_text(other, buffers)}" if other else ""
            raise UserError(
                f"Route '{name}' carries {_text(step, buffers)}, and no core receives that{there}. Both ends of a path "
                "need buffers of one size and type.",
                location=str(step),
            )
    for size, step in taken.items():
        if size not in sent and sent:
            other = next(iter(sent.values()))
            raise UserError(
                f"On route '{name}' cores receive {_text(step, buffers)}, and no core sends that; {other} sends "
                f"{_text(other, buffers)}. Both ends of a path need buffers of one size and type.",
                location=str(step),
            )


def _size(step: Step, buffers: dict[str, Buffer]) -> tuple[int, np.dtype]:
    buffer = buffers[step.instruction.slot.buffer]
    return int(np.prod(buffer.shape, dtype=np.int64)), buffer.dtype


def _text(step: Step, buffers: dict[str, Buffer]) -> str:
    return _tile(buffers[step.instruction.slot.buffer])


def _tile(buffer: Buffer) -> str:
    return f"{buffer.dtype}{list(buffer.shape)}"
