# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wgmma: products of matrices in shared memory by four warps, in the background.

Source: PTX ISA 9.7.15; sparse products: 9.7.15.6. Sums of float8 have Hopper's short accumulators
(`numbers/short_sums.py`): wgmma is Hopper's alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.descriptors import MatrixDescriptor
from tilewright.sim.ptx.numbers import fragments
from tilewright.sim.ptx.numbers.element_types import ElementType, pack_sums, unpack, unpack_sums
from tilewright.sim.ptx.numbers.element_types import decode as decode_elements
from tilewright.sim.ptx.numbers.products import Product
from tilewright.sim.ptx.numbers.short_sums import HOPPER_FLOAT8
from tilewright.sim.ptx.ops.tensor_sparse import Metadata
from tilewright.sim.ptx.order.races import detector
from tilewright.sim.ptx.sync.warpgroups import Warpgroups
from tilewright.sim.ptx.syntax.flow import reads_writes, registers
from tilewright.sim.ptx.syntax.registry import INSTRUMENTS, opcode
from tilewright.sim.ptx.syntax.tree import Register, Vector

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.program import Program
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction, Operand

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_ROWS = 64


def warpgroups(machine: Machine) -> Warpgroups:
    """The state of a machine's warpgroups."""
    return machine.state.setdefault("wgmma", Warpgroups())


def numbers(step: Step) -> list[int]:
    """The warpgroups of a step of whole warpgroups."""
    return (step.ids[::128] >> 7).tolist()


@dataclass(frozen=True)
class Shape:
    """An instruction's types and sizes; of a sparse one, half of a is stored."""

    name: str
    product: Product
    columns: int
    depth: int
    sparse: bool = False

    @property
    def stored(self) -> int:
        """Elements of a row of a that are there."""
        return self.depth // 2 if self.sparse else self.depth


def _shape(ins: Instruction, decode: Decoder) -> Shape:
    """The shape of a product, checked against the tables of the ISA (9.7.15.2 and 9.7.15.3)."""
    shapes = [m for part in ins.parts if (m := _SHAPE.match(part))]
    after = [p for p in ins.parts[ins.parts.index(shapes[0][0]) + 1 :] if p != "satfinite"] if shapes else []
    bitwise = after[3] if len(after) == 5 and after[4] == "popc" else "".join(after[3:])
    if len(after) < 3 or not ins.has("sync") or not ins.has("aligned"):
        raise decode.unsupported("only wgmma.mma_async.sync.aligned.shape.dtype.atype.btype is known")
    try:
        product = Product.make(after[0], after[1], after[2], ins.has("satfinite"), bitwise)
    except ValueError as error:
        raise decode.unsupported(str(error)) from None
    columns, depth = int(shapes[0][1]), int(shapes[0][2])
    step = 16 if product.a.is_integer and columns > 32 else 8
    sparse = ins.has("sp")
    if depth * product.a.bits != (512 if sparse else 256) or (sparse and product.a.bits == 1):
        raise decode.unsupported(f"no shape .{shapes[0][0]} of .{after[1]}")
    if columns % step or not 8 <= columns <= 256 or after[1] in ("f64", "s4", "u4"):
        raise decode.unsupported(f"no shape .{shapes[0][0]} of .{after[1]}")
    return Shape(shapes[0][0] + "." + ".".join(after), product, columns, depth, sparse)


def _flags(ins: Instruction, decode: Decoder, shape: Shape, in_registers: bool) -> tuple[int, int, bool, bool]:
    """scale-a, scale-b, whether a and b are K-major."""
    before = 6 if shape.sparse else 4
    values = [decode.constant(operand) for operand in ins.args[before:]]
    scales = 0 if shape.product.a.is_integer else 2
    transposes = 0 if shape.product.a.bits != 16 else 1 if in_registers else 2
    if len(values) != scales + transposes:
        decode.wrong(f"{before + scales + transposes} operands are needed here, not {len(ins.args)}")
    if any(v not in (1, -1) for v in values[:scales]) or any(v not in (0, 1) for v in values[scales:]):
        decode.wrong("scales are 1 or -1, transpositions 0 or 1")
    scale_a, scale_b = values[:2] if scales else (1, 1)
    transposed = values[scales:]
    transposed_a = bool(transposed[0]) if len(transposed) == 2 else False
    return scale_a, scale_b, not transposed_a, not (bool(transposed[-1]) if transposed else False)


def _indices(operand: Operand) -> tuple[int, ...]:
    items = operand.items if isinstance(operand, Vector) else ()
    return tuple(item.index for item in items if isinstance(item, Register))


@opcode("wgmma.mma_async", sync=128)
def mma_async(ins: Instruction, decode: Decoder) -> Run:
    """d = a * b + d (or a * b if scale-d is false) by each warpgroup, in the background."""
    shape = _shape(ins, decode)
    product, columns = shape.product, shape.columns
    target, fragment = _indices(ins.args[0]), _indices(ins.args[1])
    count = columns // (4 if product.accumulator == "f16" else 2)
    if len(target) != count or (isinstance(ins.args[1], Vector) and len(fragment) != 4):
        decode.wrong(f"d has {count} registers and a has 4 (or is a descriptor)")
    scale_a, scale_b, a_major, b_major = _flags(ins, decode, shape, bool(fragment))
    read_a = _left(ins, decode, shape, a_major)
    read_b = _Operand(decode.source(ins.args[2], "b64"), product.b, columns, shape.depth, b_major)
    read_d = decode.sources(ins.args[0], "b32")
    read_scale = decode.source(ins.args[5 if shape.sparse else 3], "pred")
    held = (*fragment, *_metadata_register(ins))

    def multiply(step: Step, adds: bool) -> None:
        state, groups = warpgroups(step.machine), numbers(step)
        _check_order(step, state, groups, target, held, shape.name)
        a, b = read_a(step), read_b(step)
        a = a if scale_a > 0 else -a
        b = b if scale_b > 0 else -b

        def sums_in_registers() -> np.ndarray:
            values = unpack_sums(read_d(step).reshape(-1, 32, count), product.accumulator)
            return fragments.c_matrix(values, 16).reshape(-1, _ROWS, columns)

        c = state.held(groups, target, sums_in_registers) if adds else None
        sums = product.multiply(a, b.swapaxes(-1, -2), c, HOPPER_FLOAT8)
        if step.machine.trace is not None:
            step.machine.trace.product(ins, 2 * a.size * columns)
        if product.accumulator == "f16":
            with np.errstate(over="ignore"):
                sums = sums.astype(np.float16).astype(np.float32)
        state.hold(groups, target, sums)
        for group in groups:
            state[group].issue(target, held, shape.name, ins.line)

    return _by_groups(read_scale, multiply)


def _by_groups(read_scale: Callable[[Step], np.ndarray], multiply: Callable[[Step, bool], None]) -> Run:
    """Multiply, adding to the sums where scale-d says so: of a loop, one warpgroup may be in the first step alone."""

    def run(step: Step) -> None:
        adds = step.full(read_scale(step))
        if adds.all() or not adds.any():
            multiply(step, bool(adds[0]))
            return
        rows = adds.reshape(-1, 128)
        if (rows != rows[:, :1]).any():
            step.fail("convergence", "scale-d differs between the lanes of a warpgroup", (rows != rows[:, :1]).ravel())
        for flag in (False, True):
            multiply(step.narrowed(adds == flag), flag)

    return run


def _check_order(step: Step, state: Warpgroups, groups: list[int], target, fragment, shape: str) -> None:
    if not step.check("asynchronous"):
        return
    for i, group in enumerate(groups):
        why = state[group].unordered(target, fragment, shape)
        if why:
            step.fail("asynchronous", f"wgmma.mma_async: {why}: put wgmma.fence between", np.arange(step.n) // 128 == i)


def _metadata_register(ins: Instruction) -> tuple[int, ...]:
    """The register of metadata, which a product in flight reads as it reads those of a."""
    sparse = ins.has("sp") and isinstance(ins.args[3], Register)
    return (ins.args[3].index,) if sparse else ()


def _left(ins: Instruction, decode: Decoder, shape: Shape, k_major: bool) -> Callable[[Step], np.ndarray]:
    """Reader of a: (warpgroups, 64, depth), from registers or shared memory."""
    element = shape.product.a
    if not isinstance(ins.args[1], Vector):
        stored = _Operand(decode.source(ins.args[1], "b64"), element, _ROWS, shape.stored, k_major)
    else:
        read = decode.sources(ins.args[1], "b32")

        def stored(step: Step) -> np.ndarray:
            values = unpack(read(step).reshape(-1, 32, 4), element)
            return fragments.a_matrix(values, 16).reshape(-1, _ROWS, shape.stored)

    if not shape.sparse:
        return stored
    metadata = Metadata.of(decode, (ins.args[3], ins.args[4]), shape.depth, element.bits, ordered=False)
    return lambda step: metadata.expand(step, stored(step).reshape(-1, 16, shape.stored)).reshape(
        -1, _ROWS, shape.depth
    )


class _Operand:
    """Reader of an operand in shared memory: (warpgroups, outer, depth), found by a matrix descriptor."""

    def __init__(self, read: Callable, element: ElementType, outer: int, depth: int, k_major: bool) -> None:
        self.read, self.element, self.outer, self.depth, self.k_major = read, element, outer, depth, k_major
        self.bytes = max(1, element.bits // 8)

    def __call__(self, step: Step) -> np.ndarray:
        """Values of all warpgroups of a step."""
        bits = step.full(self.read(step)).reshape(-1, 128)
        if (bits != bits[:, :1]).any():
            step.fail(
                "convergence",
                "a matrix descriptor differs between the lanes of a warpgroup",
                (bits != bits[:, :1]).ravel(),
            )
        chunks = np.stack([self._chunks(step, int(one), i) for i, one in enumerate(bits[:, 0])])
        data = self._fetch(step, chunks)
        if self.element.bits < 8:
            words = data.view(np.uint32).reshape(len(bits), self.outer, -1)
            return unpack(words, self.element).reshape(len(bits), self.outer, self.depth)
        parts = data.view(self.element.storage)
        if self.k_major:
            return decode_elements(parts.reshape(len(bits), self.outer, self.depth), self.element)
        values = decode_elements(parts.reshape(len(bits), -1, self.depth, 8), self.element)
        return values.swapaxes(-1, -2).reshape(len(bits), self.outer, self.depth)

    def _chunks(self, step: Step, bits: int, group: int) -> np.ndarray:
        """Flat positions of the operand's 16-byte chunks, in the order of its elements."""
        where = np.arange(step.n) // 128 == group
        try:
            descriptor = MatrixDescriptor.decode(bits)
        except ValueError as error:
            step.fail("misaligned", str(error), where)
        shared = step.machine.shared
        depth = self.depth if self.element.bits >= 8 else 32
        if self.k_major and 0 < descriptor.swizzle < depth * self.bytes:
            step.fail(
                "misaligned", f"{depth * self.bytes} bytes of k do not fit a swizzle of {descriptor.swizzle}", where
            )
        found = descriptor.chunks(self.outer, depth, self.bytes, self.k_major)
        flat = shared.flat_local(step.slots[128 * group], found)
        base = int(step.slots[128 * group]) * shared.stride
        if int(flat.min()) < base or int(flat.max()) + 16 > base + shared.used:
            at = int(flat.max()) + 16 - base
            step.fail(
                "out-of-bounds", f"a matrix descriptor reaches byte {at} of {shared.used} of shared memory", where
            )
        return flat

    def _fetch(self, step: Step, chunks: np.ndarray) -> np.ndarray:
        """The bytes of the chunks (warpgroups, chunks), after the checks of reading them in the background."""
        shared, flat = step.machine.shared, chunks.ravel()
        if step.check("uninitialised"):
            bad = shared.undefined(flat, 16)
            if bad is not None:
                group = int(np.flatnonzero(bad)[0]) // chunks.shape[1]
                step.fail(
                    "uninitialised",
                    "wgmma reads shared memory that was never written",
                    np.arange(step.n) // 128 == group,
                )
        _note_reads(step, chunks)
        return shared.rows(8, 2).take(flat // 16, axis=0)


def _note_reads(step: Step, chunks: np.ndarray) -> None:
    """Tell the race detector that products read these chunks until their batch is waited for."""
    races = detector(step.machine)
    if races is None:
        return
    state = warpgroups(step.machine)
    for group, flat in zip(numbers(step), chunks, strict=True):
        races.read_later(step, races.column(("wgmma", group), 4 * group), state[group].epoch(), flat, 16, 4 * group)


@opcode("wgmma.fence", sync=128)
def fence(ins: Instruction, decode: Decoder) -> Run:
    """Orders earlier accesses to registers before later products."""
    decode.known("fence", "sync", "aligned")

    def run(step: Step) -> None:
        state = warpgroups(step.machine)
        for group in numbers(step):
            state[group].fence()

    return run


@opcode("wgmma.commit_group", sync=128)
def commit_group(ins: Instruction, decode: Decoder) -> Run:
    """Makes a group of the products since the last commit."""
    decode.known("commit_group", "sync", "aligned")

    def run(step: Step) -> None:
        state = warpgroups(step.machine)
        for group in numbers(step):
            state[group].commit()

    return run


@opcode("wgmma.wait_group", sync=128)
def wait_group(ins: Instruction, decode: Decoder) -> Run:
    """Waits until at most so many groups of products are in flight."""
    decode.known("wait_group", "sync", "aligned")
    pending = decode.constant(ins.args[0])

    def run(step: Step) -> None:
        state, races = warpgroups(step.machine), detector(step.machine)
        for group in numbers(step):
            for accumulator in state[group].wait(pending):
                _write_back(step, state, group, accumulator)
            if races is not None:
                races.see(4 * group + np.arange(4), races.column(("wgmma", group), 4 * group), state[group].done)

    return run


def _write_back(step: Step, state: Warpgroups, group: int, accumulator: tuple[int, ...]) -> None:
    """Put an accumulator whose products are done into its registers."""
    sums = state.sums.pop((group, accumulator))
    # two values of f16 share a register
    name = "f16" if len(accumulator) == sums.shape[1] // 4 else "s32" if sums.dtype == np.int32 else "f32"
    words = pack_sums(fragments.c_fragment(sums.reshape(4, 16, -1)), name).reshape(128, -1)
    lanes = slice(128 * group, 128 * group + 128)
    for column, index in enumerate(accumulator):
        step.registers[index][lanes] = words[:, column]
        if index in step.machine.defined:
            step.machine.defined[index][lanes] = True


def _watch(program: Program) -> None:
    """Wrap the instructions that touch registers of products, so that touching them too early is noticed."""
    products = [op.ins for op in program.ops if op.ins.op.startswith("wgmma.mma_async")]
    used = set().union(*({*registers(ins.args[:2]), *_metadata_register(ins)} for ins in products))
    for op in program.ops:
        if used and op.run is not None and op.ins.parts[0] != "wgmma":
            reads, writes = reads_writes(op.ins)
            touched = frozenset((reads | writes) & used)
            if touched:
                op.run = _watched(op.run, touched)


def _watched(run: Run, touched: frozenset[int]) -> Run:
    def check(step: Step):
        state = step.machine.state.get("wgmma")
        if state is not None and step.check("asynchronous"):
            _touch(step, state, touched)
        return run(step)

    return check


def _touch(step: Step, state: Warpgroups, touched: frozenset[int]) -> None:
    for group in step.lanes.warpgroups:
        found = state.groups.get(group)
        if found is None:
            continue
        found.touched |= touched
        if found.busy:
            held = [register for register in touched if register in found.busy]
            if held:
                name, line = step.machine.program.kernel.register_names[held[0]], found.busy[held[0]]
                why = f"register {name} belongs to the wgmma at PTX line {line}, which is not waited for"
                step.fail("asynchronous", why + ": put wgmma.wait_group before", step.ids >> 7 == group)


INSTRUMENTS.append(_watch)
