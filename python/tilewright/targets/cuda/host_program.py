# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host function after phase `schedule` as a host program: JSON that pure Python runs on a GPU or the emulator.

Every memref operation becomes one of a view, every scalar one keeps its name. Buffers are counted at run time, so
deallocations are dropped; instead, a register is cleared after its last use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.core.arithmetic import PREDICATES
from tilewright.core.errors import UnsupportedError
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.mlir import ir
from tilewright.reference.affine import Term, read_map
from tilewright.runtime.gpu.host_program import FORMAT, VERSION
from tilewright.runtime.gpu.host_scalars import check_known
from tilewright.targets.cuda import host_views

Op = dict[str, Any]

#: Operations that have nothing to do at run time.
_NOTHING = frozenset({"memref.dealloc", "memref.assume_alignment", "memref.prefetch"})
#: Operations whose result is what their first operand is.
_SAME = frozenset({"memref.cast", "memref.memory_space_cast"})
#: Where an operation of a program keeps registers that it reads.
_READS = (
    "grid args source target sizes offsets strides offset shift indices value axis lower upper step inits condition "
    "yield operands".split()
)


@dataclass
class HostProgram:
    """What the exporter makes.

    Attributes:
        program: the JSON, without its kernels.
        constants: tensors that the host function holds, by the names of weights.
        kernels: names of the kernels that are launched, in order of first use.
    """

    program: dict[str, Any]
    constants: dict[str, np.ndarray]
    kernels: tuple[str, ...]


def export(module: ir.Module, entry: str, arch: str) -> HostProgram:
    """Return the host program of a scheduled module.

    Args:
        module: kernels, and the host function on memrefs.
        entry: symbol of the host function.
        arch: of the GPU, for the reader.

    Raises:
        UnsupportedError: the host function holds an operation that no host program has.
    """
    function = next(op for op in module.body.operations if symbol_of(op) == entry)
    return Exporter(module, arch).run(function.operation)


@dataclass
class Exporter:
    """Writes one function; `emit`, `register` and `constant` serve the files that know one kind of operation each."""

    module: ir.Module
    arch: str
    registers: dict[ir.Value, int] = field(default_factory=dict)
    constants: dict[tuple[type, str], tuple[int, Any]] = field(default_factory=dict)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    arguments: list[Op] = field(default_factory=list)
    kernels: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def run(self, function: ir.Operation) -> HostProgram:
        """Export the function."""
        block = function.regions[0].blocks[0]
        self._number_arguments(function, block)
        body, values = self.block(block)
        returned = _result_numbers(function, len(values))
        body.append({"op": "return", "values": [[i, v] for i, v in zip(returned, values, strict=True)]})
        arena = next((a["type"]["shape"][0] for a in self.arguments if a["kind"] == "arena"), 0)
        program = {
            "format": FORMAT,
            "version": VERSION,
            "arch": self.arch,
            "arena_bytes": arena,
            "registers": self.count,
            "arguments": self.arguments,
            "constants": [list(entry) for entry in self.constants.values()],
            "kernels": {},
            "body": body,
        }
        return HostProgram(program, self.tensors, tuple(self.kernels))

    # What the files of single operations use -------------------------------------------------------------------------

    def new(self) -> int:
        """Return a register that nothing uses yet."""
        self.count += 1
        return self.count - 1

    def define(self, value: ir.Value) -> int:
        """Return a new register for a value."""
        self.registers[value] = self.new()
        return self.registers[value]

    def register(self, value: ir.Value) -> int:
        """Return the register that holds a value."""
        return self.registers[value]

    def all(self, values: Iterable[ir.Value]) -> list[int]:
        """Return the registers of some values."""
        return [self.registers[value] for value in values]

    def constant(self, value: bool | int | float) -> int:
        """Return a register that holds a number before the program runs."""
        key = (type(value), repr(value))  # zeros have signs, and NaN is equal to nothing
        if key not in self.constants:
            self.constants[key] = (self.new(), value)
        return self.constants[key][0]

    def mixed(self, op: ir.Operation, static: str, dynamic: Sequence[ir.Value]) -> list[int]:
        """Return registers for a list of numbers, some of them known before the run."""
        given = iter(dynamic)
        numbers = list(ir.DenseI64ArrayAttr(op.attributes[static]))
        return [self.register(next(given)) if n == host_views.DYNAMIC else self.constant(n) for n in numbers]

    def block(self, block: ir.Block) -> tuple[list[Op], list[int]]:
        """Return the operations of a block, and the registers that its terminator takes."""
        body: list[Op] = []
        first = self.count
        *inner, last = (op.operation for op in block.operations)
        for op in inner:
            self._op(op, body)
        ends = self.all(last.operands)
        body = _late_views(body, ends)
        _read_together(body, {register for register, _ in self.constants.values()})
        return _with_drops(body, ends, first), ends

    # One operation ---------------------------------------------------------------------------------------------------

    def _op(self, op: ir.Operation, body: list[Op]) -> None:
        if op.name in _NOTHING:
            return
        if op.name in _SAME:
            self.registers[op.results[0]] = self.register(op.operands[0])
            return
        maker = _MAKERS.get(op.name) or host_views.MAKERS.get(op.name)
        if op.name == "arith.select" and isinstance(op.results[0].type, ir.MemRefType):
            maker = _select
        if maker is not None:
            body += maker(self, op)
        elif op.name.startswith(("arith.", "math.")):
            body.append(_scalar(self, op))
        else:
            raise located(
                UnsupportedError(
                    f"'{op.name}' is left in the host function; on GPUs that is a host program, which has no such "
                    "operation"
                ),
                op,
            )

    def _number_arguments(self, function: ir.Operation, block: ir.Block) -> None:
        attributes = ir.ArrayAttr(function.attributes["arg_attrs"])
        inputs = 0
        for argument, attrs in zip(block.arguments, attributes, strict=True):
            entry: Op = {"register": self.define(argument), "type": host_views.buffer_type(argument.type)}
            names = ir.DictAttr(attrs)
            if decisions.ARENA in names:
                entry["kind"] = "arena"
            elif decisions.GLOBAL in names:
                entry |= {"kind": "weight", "name": ir.StringAttr(names[decisions.GLOBAL]).value}
            elif decisions.RESULT in names:
                entry |= {"kind": "output", "index": ir.IntegerAttr(names[decisions.RESULT]).value}
            else:
                entry |= {"kind": "input", "index": inputs}
                inputs += 1
            self.arguments.append(entry)


def _result_numbers(function: ir.Operation, count: int) -> list[int]:
    if not count:
        return []
    found = []
    for position, attrs in enumerate(ir.ArrayAttr(function.attributes["res_attrs"])):
        names = ir.DictAttr(attrs)
        found.append(ir.IntegerAttr(names[decisions.RESULT]).value if decisions.RESULT in names else position)
    return found


# First and last uses ------------------------------------------------------------------------------------------------


#: What makes views of other views, or tells their sizes, and touches no memory.
_PURE = frozenset("view subview reinterpret permute collapse expand metadata dim address".split())


def _late_views(body: list[Op], ends: Sequence[int]) -> list[Op]:
    """Put views right before what first touches their memory: there a temporary in the arena begins.

    A kernel that launches others takes the arena as a whole. What it leaves in a temporary must not begin behind it,
    nor before it, where the same bytes may hold what it reads: such a view begins nothing.
    """
    waiting: dict[int, Op] = {}
    result: list[Op] = []

    def place(register: int, **more: bool) -> None:
        op = waiting.get(register)
        if op is not None:
            for made in _made(op):
                del waiting[made]
            for needed in _reads(op):
                place(needed)
            result.append({**op, **more})

    for op in body:
        if op["op"] in _PURE:
            waiting.update(dict.fromkeys(_made(op), op))
            continue
        touched = set(_reads(op))
        parts = [made for made, view in waiting.items() if view["op"] == "view" and view["source"] in touched]
        for register in parts:
            place(register, begins=False)
        for register in _reads(op):
            place(register)
        result.append(op)
    for register in ends:
        place(register)
    return result


def _read_together(body: list[Op], known: set[int]) -> None:
    """Tell the first of some reads of a view which ones follow (`beside`), so that the host waits once for all.

    Between them only numbers are computed. What they read is certain where their indices are.

    Args:
        body: operations of one list, in order.
        known: registers of numbers that are known before the run.
    """
    first: dict[int, Op] = {}
    for op in body:
        if op["op"] == "load":
            if not known.issuperset(op["indices"]):
                continue
            if op["source"] in first:
                first[op["source"]].setdefault("beside", []).append(op["indices"])
            else:
                first[op["source"]] = op
        elif op["op"] not in _PURE and op["op"] not in ("scalar", "affine"):
            first.clear()


def _made(op: Op) -> list[int]:
    return [op["result"]] if "result" in op else list(op["results"])


# Last uses -----------------------------------------------------------------------------------------------------------


def _with_drops(body: list[Op], ends: Sequence[int], first: int) -> list[Op]:
    """Clear each register that holds a view made in this list (its number is at least `first`) after its last use."""
    last: dict[int, int] = {}
    for position, op in enumerate(body):
        for register in _reads(op):
            last[register] = position
    made = {register for op in body for register in _made_views(op) if register >= first} - set(ends)
    dying: dict[int, list[int]] = {}
    for position, op in enumerate(body):
        for register in _made_views(op):
            if register in made:
                dying.setdefault(last.get(register, position), []).append(register)
    result = []
    for position, op in enumerate(body):
        result.append(op)
        if position in dying:
            result.append({"op": "drop", "registers": sorted(set(dying[position]))})
    return result


_VIEW_MAKERS = frozenset(
    "alloc view subview reinterpret permute collapse expand reshape metadata select for if while".split()
)


def _made_views(op: Op) -> list[int]:
    if op["op"] not in _VIEW_MAKERS:
        return []
    return _made(op)


def _reads(op: Op) -> Iterable[int]:
    """All registers that an operation reads, those of its regions too."""
    for key in _READS:
        value = op.get(key)
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value
    for key in ("then", "else", "before", "after"):
        if key in op:
            yield from _reads(op[key])
    for inner in op.get("body", ()):
        yield from _reads(inner)


# Launches, control, numbers ------------------------------------------------------------------------------------------


def _launch(exporter: Exporter, op: ir.Operation) -> list[Op]:
    name = kernel_of(op)
    exporter.kernels[name] = None
    rank = list(op.attributes["operandSegmentSizes"])[0]
    operands = exporter.all(op.operands)
    return [{"op": "launch", "kernel": name, "grid": operands[:rank], "args": operands[rank:]}]


def _select(exporter: Exporter, op: ir.Operation) -> list[Op]:
    condition, *operands = exporter.all(op.operands)
    result = exporter.define(op.results[0])
    return [{"op": "select", "condition": condition, "operands": operands, "result": result}]


def _constant(exporter: Exporter, op: ir.Operation) -> list[Op]:
    value: Any = op.attributes["value"].value
    if str(op.results[0].type) == "i1":
        value = bool(value)
    exporter.registers[op.results[0]] = exporter.constant(value)
    return []


def _for(exporter: Exporter, op: ir.Operation) -> list[Op]:
    block = op.regions[0].blocks[0]
    lower, upper, step, *inits = exporter.all(op.operands)
    args = [exporter.define(argument) for argument in block.arguments]
    body, ends = exporter.block(block)
    bounds = {"lower": lower, "upper": upper, "step": step}
    results = [exporter.define(result) for result in op.results]
    return [{"op": "for", **bounds, "inits": inits, "args": args, "results": results, "body": body, "yield": ends}]


def _if(exporter: Exporter, op: ir.Operation) -> list[Op]:
    branches = []
    for region in op.regions:
        body, ends = exporter.block(region.blocks[0]) if len(region.blocks) else ([], [])
        branches.append({"body": body, "yield": ends})
    results = [exporter.define(result) for result in op.results]
    condition = exporter.register(op.operands[0])
    return [{"op": "if", "condition": condition, "results": results, "then": branches[0], "else": branches[1]}]


def _while(exporter: Exporter, op: ir.Operation) -> list[Op]:
    inits = exporter.all(op.operands)
    parts = []
    for region in op.regions:
        block = region.blocks[0]
        args = [exporter.define(argument) for argument in block.arguments]
        body, ends = exporter.block(block)
        parts.append({"args": args, "body": body, "yield": ends})
    before, after = parts
    before["condition"], *before["yield"] = before["yield"]
    results = [exporter.define(result) for result in op.results]
    return [{"op": "while", "inits": inits, "results": results, "before": before, "after": after}]


def _assert(exporter: Exporter, op: ir.Operation) -> list[Op]:
    message = ir.StringAttr(op.attributes["msg"]).value
    return [{"op": "assert", "condition": exporter.register(op.operands[0]), "message": message}]


def _scalar(exporter: Exporter, op: ir.Operation) -> Op:
    check_known(op.name)
    made: Op = {
        "op": "scalar",
        "name": op.name,
        "operands": exporter.all(op.operands),
        "type": _element(op.operands[-1].type, op),
        "to": _element(op.results[0].type, op),
    }
    if op.name in PREDICATES:
        made["predicate"] = PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
    made["result"] = exporter.define(op.results[0])
    return made


def _element(kind: ir.Type, op: ir.Operation) -> str:
    if isinstance(kind, ir.ShapedType | ir.MemRefType):
        raise located(UnsupportedError(f"'{op.name}' on {kind} is left in the host function"), op)
    return str(kind)


_OPERATORS = {"+": "add", "*": "mul", "mod": "mod", "floordiv": "floordiv", "ceildiv": "ceildiv"}


def _expression(term: Term) -> Any:
    if term.kind == "constant":
        return term.value
    if term.kind == "dim":
        return ["operand", term.value]
    return [_OPERATORS[term.kind], *(_expression(part) for part in term.parts)]


def _affine(kind: str) -> Callable[[Exporter, ir.Operation], list[Op]]:
    def make(exporter: Exporter, op: ir.Operation) -> list[Op]:
        found = next(op.attributes[name] for name in ("map", "upperMap", "lowerMap") if name in op.attributes)
        terms = read_map(ir.AffineMapAttr(found).value)
        return [
            {
                "op": "affine",
                "kind": kind,
                "exprs": [_expression(term) for term in terms],
                "operands": exporter.all(op.operands),
                "result": exporter.define(op.results[0]),
            }
        ]

    return make


_MAKERS: Mapping[str, Callable[[Exporter, ir.Operation], list[Op]]] = {
    "tile.launch": _launch,
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "cf.assert": _assert,
    "affine.apply": _affine("apply"),
    "affine.min": _affine("min"),
    "affine.max": _affine("max"),
}
