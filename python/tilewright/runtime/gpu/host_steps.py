# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a host program as Python functions: how each is made from its JSON.

A function takes a running call's :class:`Frame` and changes its registers. rationale/host_programs.md tells the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import InternalError, SizesError
from tilewright.runtime.gpu import host_scalars
from tilewright.runtime.gpu.gpu_memory import View, row_major
from tilewright.runtime.gpu.host_numbers import HostNumbers
from tilewright.runtime.gpu.launch_params import scalar_bytes

Op = Mapping[str, Any]


class Frame:
    """One running call: its registers, and what launches kernels.

    Attributes:
        registers: numbers and views, by number.
        memory: numbers of the device's memory that the host knows.
        program: the :class:`~tilewright.runtime.gpu.host_program.HostProgram` that runs.
        results: views of outputs that the run made, by index.
    """

    __slots__ = ("memory", "program", "registers", "results")

    def __init__(self, program: Any, registers: list[Any]) -> None:
        self.program = program
        self.registers = registers
        self.memory = HostNumbers(program.device)
        self.results: dict[int, View] = {}

    def numbers(self, registers: Sequence[int]) -> tuple[int, ...]:
        """Return what some registers hold."""
        return tuple(self.registers[r] for r in registers)


Step = Callable[[Frame], None]


def steps_of(body: Sequence[Op]) -> list[Step]:
    """Return the functions of a list of operations.

    Raises:
        InternalError: the program holds an operation that this version does not know.
    """
    return [_step(op) for op in body]


def _step(op: Op) -> Step:
    maker = _MAKERS.get(op["op"])
    if maker is None:
        raise InternalError(f"a host program holds the operation {op['op']!r}, which this version does not know")
    return maker(op)


def _run(steps: Sequence[Step], frame: Frame) -> None:
    for step in steps:
        step(frame)


# Launches and memory -------------------------------------------------------------------------------------------------


def _launch(op: Op) -> Step:
    name, grid, args = op["kernel"], op["grid"], op["args"]

    def launch(frame: Frame) -> None:
        values = [frame.registers[r] for r in args]
        frame.memory.give_views(values)
        frame.program.launch(name, frame.numbers(grid), values)

    return launch


def _sizes(frame: Frame, shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape with the numbers of registers in place of -1."""
    given = iter(sizes)
    return tuple(frame.registers[next(given)] if size < 0 else size for size in shape)


def _alloc(op: Op) -> Step:
    kind, result = op["type"], op["result"]

    def alloc(frame: Frame) -> None:
        sizes = _sizes(frame, kind["shape"], op["sizes"])
        if min(sizes, default=0) < 0:
            raise SizesError(f"the model makes a tensor of sizes {list(sizes)}")
        view = frame.registers[result] = frame.program.new_view(kind["dtype"], sizes)
        frame.memory.forget(view.address, view.nbytes)

    return alloc


def _drop(op: Op) -> Step:
    def drop(frame: Frame) -> None:
        for register in op["registers"]:
            frame.registers[register] = None

    return drop


def _copy(op: Op) -> Step:
    def copy(frame: Frame) -> None:
        source, target = frame.registers[op["source"]], frame.registers[op["target"]]
        if not (source.is_contiguous and target.is_contiguous):
            raise InternalError("a host program copies between views with gaps, which is a kernel's work")
        if source.address == target.address or not source.nbytes:
            return
        if not frame.memory.copy(target, source):
            frame.memory.give(source.address, source.nbytes)
            frame.memory.forget(target.address, target.nbytes)
            frame.program.device.copy(target.address, source.address, source.nbytes)

    return copy


def _load(op: Op) -> Step:
    beside = op.get("beside", ())

    def load(frame: Frame) -> None:
        view: View = frame.registers[op["source"]]
        dtype = of_mlir(view.dtype)
        others = [view.address_of(frame.numbers(indices)) for indices in beside]
        raw = frame.memory.read(view.address_of(frame.numbers(op["indices"])), dtype.itemsize, others)
        frame.registers[op["result"]] = host_scalars.number(np.frombuffer(raw, dtype)[0])

    return load


def _store(op: Op) -> Step:
    def store(frame: Frame) -> None:
        view: View = frame.registers[op["target"]]
        data = scalar_bytes(frame.registers[op["value"]], view.dtype)
        frame.memory.write(view.memory, view.address_of(frame.numbers(op["indices"])), bytes(data))

    return store


# Views ---------------------------------------------------------------------------------------------------------------


def _view(op: Op) -> Step:
    kind, begins = op["type"], op.get("begins", True)

    def view(frame: Frame) -> None:
        source: View = frame.registers[op["source"]]
        shift = source.address - source.memory.address + frame.registers[op["shift"]]
        sizes = _sizes(frame, kind["shape"], op["sizes"])
        made = frame.registers[op["result"]] = View.contiguous(source.memory, kind["dtype"], sizes, shift)
        if begins:
            frame.memory.forget(made.address, made.nbytes)
            frame.program.begin(made)

    return view


def _derived(op: Op, make: Callable[[Frame, View], tuple[int, Sequence[int], Sequence[int]]]) -> Step:
    """A view of the same memory, with another offset, sizes and strides."""

    def derive(frame: Frame) -> None:
        source: View = frame.registers[op["source"]]
        offset, sizes, strides = make(frame, source)
        frame.registers[op["result"]] = View(
            source.memory, source.dtype, offset, tuple(sizes), tuple(strides), source.shift
        )

    return derive


def _subview(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        offsets, sizes, strides = (frame.numbers(op[key]) for key in ("offsets", "sizes", "strides"))
        _check_inside(source, offsets, sizes, strides)
        start = source.offset + sum(o * s for o, s in zip(offsets, source.strides, strict=True))
        steps = [a * b for a, b in zip(strides, source.strides, strict=True)]
        return start, [sizes[d] for d in op["keep"]], [steps[d] for d in op["keep"]]

    return _derived(op, make)


def _check_inside(source: View, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> None:
    for axis, (offset, size, step) in enumerate(zip(offsets, sizes, strides, strict=True)):
        last = offset + (size - 1) * step
        if size < 0 or (size > 0 and not (0 <= offset < source.sizes[axis] and 0 <= last < source.sizes[axis])):
            raise SizesError(
                f"the model takes {size} elements from {offset} in steps of {step} along dimension {axis} of a tensor "
                f"of sizes {list(source.sizes)}"
            )


def _reinterpret(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        return frame.registers[op["offset"]], frame.numbers(op["sizes"]), frame.numbers(op["strides"])

    return _derived(op, make)


def _permute(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        return source.offset, [source.sizes[d] for d in op["order"]], [source.strides[d] for d in op["order"]]

    return _derived(op, make)


def _collapse(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        groups = [_collapsed([source.sizes[d] for d in g], [source.strides[d] for d in g]) for g in op["groups"]]
        return source.offset, [size for size, _ in groups], [stride for _, stride in groups]

    return _derived(op, make)


def _collapsed(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Size and stride of the one dimension that some make: the stride of the innermost one that has neighbours."""
    total = 1
    for size in sizes:
        total *= size
    wide = [stride for size, stride in zip(sizes, strides, strict=True) if size != 1]
    return total, wide[-1] if wide else (strides[-1] if strides else 1)


def _expand(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        sizes = frame.numbers(op["sizes"])
        strides: list[int] = []
        for stride, group in zip(source.strides, op["groups"], strict=True):
            strides += [inner * stride for inner in row_major([sizes[d] for d in group])]
        if not op["groups"]:
            strides = [1] * len(sizes)
        return source.offset, sizes, strides

    return _derived(op, make)


def _reshape(op: Op) -> Step:
    def make(frame: Frame, source: View) -> tuple[int, Sequence[int], Sequence[int]]:
        sizes = frame.numbers(op["sizes"])
        return source.offset, sizes, row_major(sizes)

    return _derived(op, make)


def _dim(op: Op) -> Step:
    def dim(frame: Frame) -> None:
        frame.registers[op["result"]] = frame.registers[op["source"]].sizes[frame.registers[op["axis"]]]

    return dim


def _metadata(op: Op) -> Step:
    def metadata(frame: Frame) -> None:
        source: View = frame.registers[op["source"]]
        base = View(source.memory, source.dtype, 0, (), (), source.shift)
        for register, value in zip(op["results"], (base, source.offset, *source.sizes, *source.strides), strict=True):
            frame.registers[register] = value

    return metadata


def _address(op: Op) -> Step:
    def address(frame: Frame) -> None:
        frame.registers[op["result"]] = frame.registers[op["source"]].base

    return address


def _select(op: Op) -> Step:
    def select(frame: Frame) -> None:
        register = op["operands"][0 if frame.registers[op["condition"]] else 1]
        frame.registers[op["result"]] = frame.registers[register]

    return select


# Control -------------------------------------------------------------------------------------------------------------


def _move(frame: Frame, targets: Sequence[int], sources: Sequence[int]) -> None:
    values = frame.numbers(sources)
    for target, value in zip(targets, values, strict=True):
        frame.registers[target] = value


def _for(op: Op) -> Step:
    steps = steps_of(op["body"])
    counter, carried = op["args"][0], op["args"][1:]

    def loop(frame: Frame) -> None:
        lower, upper, step = frame.numbers((op["lower"], op["upper"], op["step"]))
        _move(frame, carried, op["inits"])
        for number in range(lower, upper, step):
            frame.registers[counter] = number
            _run(steps, frame)
            _move(frame, carried, op["yield"])
        _move(frame, op["results"], carried)

    return loop


def _if(op: Op) -> Step:
    branches = {name: steps_of(op[name]["body"]) for name in ("then", "else")}

    def branch(frame: Frame) -> None:
        name = "then" if frame.registers[op["condition"]] else "else"
        _run(branches[name], frame)
        _move(frame, op["results"], op[name]["yield"])

    return branch


def _while(op: Op) -> Step:
    before, after = op["before"], op["after"]
    test, work = steps_of(before["body"]), steps_of(after["body"])

    def loop(frame: Frame) -> None:
        _move(frame, before["args"], op["inits"])
        while True:
            _run(test, frame)
            if not frame.registers[before["condition"]]:
                break
            _move(frame, after["args"], before["yield"])
            _run(work, frame)
            _move(frame, before["args"], after["yield"])
        _move(frame, op["results"], before["yield"])

    return loop


def _assert(op: Op) -> Step:
    def check(frame: Frame) -> None:
        if not frame.registers[op["condition"]]:
            raise SizesError(op["message"])

    return check


def _return(op: Op) -> Step:
    def finish(frame: Frame) -> None:
        frame.results = {index: frame.registers[register] for index, register in op["values"]}
        frame.memory.give_views(frame.results.values())  # they may lie among the temporaries, which end with the run

    return finish


# Numbers -------------------------------------------------------------------------------------------------------------


def _scalar(op: Op) -> Step:
    operands, result = op["operands"], op["result"]
    function = host_scalars.function(op["name"], op["type"], op["to"], op.get("predicate", ""))

    def compute(frame: Frame) -> None:
        frame.registers[result] = function(*frame.numbers(operands))

    return compute


_AFFINE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
}


def evaluate(expression: Any, operands: Sequence[int]) -> int:
    """Return the value of an affine expression: a number, or a list of an operator and what it takes."""
    if isinstance(expression, int):
        return expression
    if expression[0] == "operand":
        return operands[expression[1]]
    left, right = (evaluate(part, operands) for part in expression[1:])
    return _AFFINE[expression[0]](left, right)


def _affine(op: Op) -> Step:
    choose: Callable[[list[int]], int] = {"apply": lambda v: v[0], "min": min, "max": max}[op["kind"]]

    def compute(frame: Frame) -> None:
        operands = frame.numbers(op["operands"])
        frame.registers[op["result"]] = choose([evaluate(e, operands) for e in op["exprs"]])

    return compute


_MAKERS: dict[str, Callable[[Op], Step]] = {
    "launch": _launch,
    "alloc": _alloc,
    "drop": _drop,
    "copy": _copy,
    "load": _load,
    "store": _store,
    "view": _view,
    "subview": _subview,
    "reinterpret": _reinterpret,
    "permute": _permute,
    "collapse": _collapse,
    "expand": _expand,
    "reshape": _reshape,
    "select": _select,
    "dim": _dim,
    "metadata": _metadata,
    "address": _address,
    "for": _for,
    "if": _if,
    "while": _while,
    "assert": _assert,
    "return": _return,
    "scalar": _scalar,
    "affine": _affine,
}

#: Operations that bring a number from or to the device, and wait for it.
HOST_TRAFFIC = frozenset({"load", "store"})


def walk(body: Sequence[Op]):
    """Yield all operations, those in loops and branches too."""
    for op in body:
        yield op
        for key in ("body", "then", "else", "before", "after"):
            inner = op.get(key)
            if inner is not None:
                yield from walk(inner if key == "body" else inner["body"])
