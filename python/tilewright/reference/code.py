# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks as Python functions, so that scalar loops run at Python's own speed.

A block is written out once as the source of a function: SSA values are local variables, `scf.for`, `scf.while` and
`scf.if` are Python's statements, ops on scalars are expressions (scalar_code.py), and every other op is a call of its
handler. A handler that runs regions finds the values which they read from outside in ``frame.values``.

Tensors are values, but `tensor.insert` in a loop must not copy its tensor for each element, nor `tensor.insert_slice`
the list of a network's weights for each layer: where nothing reads the old tensor any more (liveness.py), and the
variable is the only reference to the array (which Python counts), the array is written in place. To make that count
exact, a variable is emptied where its tensor dies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.liveness import Scope, captured
from tilewright.reference.program import Block, Node, where
from tilewright.reference.registry import HANDLERS, TERMINATORS
from tilewright.reference.scalar_code import expression
from tilewright.reference.slices import put_slice
from tilewright.reference.sums import sum_loop

_NESTING = 15  # statements that Python lets one nest: 20


class Code:
    """A block as a function of (frame, *arguments) that returns the operands of its terminator."""

    def __init__(self, block: Block) -> None:
        writer = _Writer(block)
        self._origins = writer.origins
        source = compile("\n".join(writer.lines), "<tilewright reference>", "exec")
        exec(source, writer.names)
        self._function = writer.names["block"]

    def __call__(self, frame: Any, arguments: Sequence[Any]) -> list[Any]:
        """Run the block.

        Raises:
            InterpreterError: whatever an op refuses, with its name and location.
        """
        try:
            return self._function(frame, *arguments)
        except InterpreterError as error:
            node = self._failing(error)
            if not error.location and node is not None:
                error.location = f"{node.name} at {where(node)}"
            raise
        except (IndexError, ValueError, TypeError, ArithmeticError) as error:
            node = self._failing(error)
            if node is None:
                raise
            raise InterpreterError(f"{node.name}: {error}", location=where(node), ir=str(node.op)) from error

    def _failing(self, error: BaseException) -> Node | None:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not self._function.__code__:
            trace = trace.tb_next
        return None if trace is None else self._origins[trace.tb_lineno - 1]


class _Writer:
    """The source of one block: ``lines``, the node that each stands for, and the ``names`` they use."""

    def __init__(self, block: Block) -> None:
        self.lines: list[str] = []
        self.origins: list[Node | None] = []
        self.names: dict[str, Any] = {"numpy": np, "int64": np.int64, "float64": np.float64, "refs": sys.getrefcount}
        self._values: dict[int, str] = {}
        self._bound: dict[int, str] = {}
        self._tensors: set[int] = set()
        self._scopes: list[Scope] = []
        self._node: Node | None = None
        self._kinds: dict[ir.Type, np.dtype | None] = {}
        self._free = captured(block)
        self._write(block)

    def _write(self, block: Block) -> None:
        parameters = "".join(f", {self._define(number)}" for number in block.arguments)
        self._line(f"def block(frame{parameters}):")
        self._scopes.append(Scope(block, repeats=False))
        self._line("values = frame.values")
        for number in sorted(self._free):
            self._line(f"{self._define(number)} = values[{number}]")
        self._body(lambda operands: self._line(f"return [{', '.join(map(self._value, operands))}]"))
        self._scopes.pop()

    # Lines and names -----------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append(" " * len(self._scopes) + text)
        self.origins.append(self._node)

    def _define(self, number: int) -> str:
        return self._values.setdefault(number, f"v{number}")

    def _value(self, number: int) -> str:
        return self._values[number]

    def _bind(self, value: Any, letter: str) -> str:
        """Return the name of an object that the source refers to."""
        if id(value) not in self._bound:
            self._bound[id(value)] = name = f"{letter}{len(self.names)}"
            self.names[name] = value
        return self._bound[id(value)]

    def _kind(self, type_: ir.Type) -> np.dtype | None:
        """The dtype of a scalar; None for anything else."""
        if type_ not in self._kinds:
            scalar = isinstance(type_, ir.IntegerType | ir.IndexType | ir.FloatType)
            self._kinds[type_] = types.dtype_of(type_) if scalar else None
        return self._kinds[type_]

    # Blocks --------------------------------------------------------------------------------------------------

    def _nested(self, block: Block, repeats: bool, ending: Callable[[Sequence[int]], None]) -> None:
        """Write a region's block, indented."""
        self._scopes.append(Scope(block, repeats))
        outer = self._node
        self._line("pass")
        self._body(ending)
        self._node = outer
        self._scopes.pop()

    def _body(self, ending: Callable[[Sequence[int]], None]) -> None:
        scope = self._scopes[-1]
        self._note_arguments(scope.block)
        for position, node in enumerate(scope.block.nodes):
            scope.position, self._node = position, node
            if node.name in TERMINATORS:
                ending(node.operands)
                return
            self._statement(node)
            self._release(scope)
        ending(())

    def _note_arguments(self, block: Block) -> None:
        for number, type_ in zip(block.arguments, block.types, strict=True):
            self._note(number, type_)

    def _note(self, number: int, type_: ir.Type) -> None:
        if isinstance(type_, ir.RankedTensorType):
            self._tensors.add(number)

    def _release(self, scope: Scope) -> None:
        for number in sorted(scope.dying()):
            self._empty(number)

    def _empty(self, number: int) -> None:
        if number in self._tensors and self._values[number].startswith("v"):
            self._line(f"{self._values[number]} = None")

    def _dies(self, number: int) -> bool:
        """True when nothing reads the tensor after the present op, on any path."""
        if number not in self._tensors or number in self._free:
            return False
        for scope in reversed(self._scopes):
            if scope.last.get(number, -1) > scope.position:
                return False
            if number in scope.defined:
                return True
            if scope.repeats:
                return False
        return False

    # Statements ----------------------------------------------------------------------------------------------

    def _statement(self, node: Node) -> None:
        for i, number in enumerate(node.results):
            self._note(number, node.result_type(i))
        special = _STATEMENTS.get(node.name)
        if special is not None and len(self._scopes) < _NESTING:
            special(self, node)
        elif any(node.regions):
            self._region_op(node)
        else:
            self._plain(node)

    def _plain(self, node: Node) -> None:
        kinds = [self._kind(node.operand_type(i)) for i in range(len(node.operands))]
        form = expression(node, kinds) if len(node.results) == 1 else None
        if form is None:
            self._assign(node.results, self._call(node))
            return
        result = self._kind(node.result_type())
        names = {"call": self._call(node), "T": "" if result is None else self._bind(result.type, "t")}
        self._assign(node.results, form.format(*map(self._value, node.operands), **names))

    def _call(self, node: Node) -> str:
        handler = self._bind(HANDLERS.get(node.name, unknown), "h")
        operands = "".join(f", {self._value(number)}" for number in node.operands)
        return f"{handler}(frame, {self._bind(node, 'n')}{operands})"

    def _assign(self, results: Sequence[int], value: str) -> None:
        names = ", ".join(map(self._define, results))
        self._line(f"{names} = {value}" if results else value)

    def _region_op(self, node: Node) -> None:
        """A handler that runs regions: it finds what they read in the frame."""
        shared = sorted(number for number in captured(node) if number not in self._free)
        for number in shared:
            self._line(f"values[{number}] = {self._value(number)}")
        self._assign(node.results, self._call(node))
        for number in shared:
            self._line(f"del values[{number}]")

    def _constant(self, node: Node) -> None:
        value = HANDLERS[node.name](None, node)
        self._values[node.results[0]] = self._bind(value, "c")

    def _insert(self, node: Node) -> None:
        """`tensor.insert`, in place where the old tensor dies and nobody else has it."""
        value, _, *index = (self._value(number) for number in node.operands)
        self._store(node, self._own(node), index, value)

    def _insert_slice(self, node: Node) -> None:
        """`tensor.insert_slice`, likewise."""
        source, _, *sizes = (self._value(number) for number in node.operands)
        arguments = ", ".join([self._bind(node, "n"), source, self._own(node), *sizes])
        self._line(f"{self._bind(put_slice, 'h')}({arguments})")

    def _own(self, node: Node) -> str:
        """The result that starts as operand 1 and may be written to: that itself where nobody reads it any more."""
        number = node.operands[1]
        tensor = self._value(number)
        (result,) = (self._define(number) for number in node.results)
        if self._dies(number) and node.operands.count(number) == 1:
            self._line(f"{result} = {tensor} if {OWNED.format(tensor)} else numpy.array({tensor})")
            self._empty(number)
        else:
            self._line(f"{result} = numpy.array({tensor})")
        return result

    def _memref_store(self, node: Node) -> None:
        value, memory, *index = (self._value(number) for number in node.operands)
        self._store(node, memory, index, value)

    def _store(self, node: Node, target: str, index: list[str], value: str) -> None:
        if index:
            outside = " or ".join(f"{i} < 0" for i in index)
            handler = self._bind(HANDLERS[node.name], "h")  # which refuses it; the old tensor may be emptied by now
            operands = ", ".join([value, target, *index])
            self._line(f"if {outside}: {handler}(frame, {self._bind(node, 'n')}, {operands})")
        self._line(f"{target}[{', '.join(index) or '()'}] = {value}")

    # Control flow --------------------------------------------------------------------------------------------

    def _enter(self, node: Node, arguments: Sequence[int], start: Sequence[int]) -> None:
        """Give a loop's arguments their first values, which its body may read too."""
        self._move(arguments, start, captured(node))

    def _move(self, targets: Sequence[int], sources: Sequence[int], kept: frozenset[int] = frozenset()) -> None:
        """Assign all at once, then empty the variables whose tensors live on under another name only."""
        if not targets:
            return
        names = ", ".join(map(self._define, targets))
        self._line(f"{names} = {', '.join(map(self._value, sources))}")
        for number in dict.fromkeys(sources):
            if number not in targets and number not in kept and self._dies(number):
                self._empty(number)

    def _for(self, node: Node) -> None:
        if sum_loop(node) is not None:  # the handler does it at once
            self._region_op(node)
            return
        lower, upper, step, *start = node.operands
        counter, *carried = node.body.arguments
        kind = self._kind(node.operand_type(0)) or np.dtype(np.int64)
        bounds = ", ".join(f"int({self._value(number)})" for number in (lower, upper))
        self._enter(node, carried, start)
        step_ = self._value(step)
        self._line(f"for i{counter} in range({bounds}, int({step_}) if {step_} > 0 else {self._bad_step()}({step_})):")
        self._scopes.append(Scope(node.body, repeats=True))
        self._line(f"{self._define(counter)} = {self._bind(kind.type, 't')}(i{counter})")
        self._scopes.pop()
        self._nested(node.body, True, lambda operands: self._move(carried, operands))
        self._hand_on(node.results, carried)

    def _bad_step(self) -> str:
        return self._bind(bad_step, "h")

    def _hand_on(self, results: Sequence[int], carried: Sequence[int]) -> None:
        if results:
            self._line(f"{', '.join(map(self._define, results))} = {', '.join(map(self._value, carried))}")
        for number in carried:
            self._empty(number)

    def _if(self, node: Node) -> None:
        then, other = node.regions
        self._line(f"if {self._value(node.operands[0])}:")
        assert then is not None
        self._nested(then, False, lambda operands: self._move(node.results, operands))
        if other is not None:
            self._line("else:")
            self._nested(other, False, lambda operands: self._move(node.results, operands))

    def _while(self, node: Node) -> None:
        before, after = node.regions
        assert before is not None and after is not None
        passed = after.arguments
        self._enter(node, before.arguments, node.operands)
        self._note_arguments(after)
        self._line("while True:")

        def decide(operands: Sequence[int]) -> None:
            condition, *values = operands
            self._move(passed, values)
            self._line(f"if not {self._value(condition)}: break")

        self._nested(before, True, decide)
        self._nested(after, True, lambda operands: self._move(before.arguments, operands))
        self._hand_on(node.results, passed)


_STATEMENTS: dict[str, Callable[[_Writer, Node], None]] = {
    "arith.constant": _Writer._constant,
    "index.constant": _Writer._constant,
    "index.bool.constant": _Writer._constant,
    "tensor.insert": _Writer._insert,
    "tensor.insert_slice": _Writer._insert_slice,
    "memref.store": _Writer._memref_store,
    "scf.for": _Writer._for,
    "scf.if": _Writer._if,
    "scf.while": _Writer._while,
}


def unknown(_frame: Any, node: Node, *_operands: Any) -> Any:
    """Stand in for the handler of an op that has none.

    Raises:
        InterpreterError: always.
    """
    raise InterpreterError(f"the reference does not know the op '{node.name}'", location=where(node))


def bad_step(step: Any) -> int:
    """Refuse the step of a loop.

    Raises:
        InterpreterError: always.
    """
    raise InterpreterError(f"scf.for needs a positive step, got {step}")


def own() -> int:
    """Return what Python counts for an array that one local variable holds, and nothing else."""
    array = np.zeros(1)
    return sys.getrefcount(array)


OWNED = f"refs({{0}}) == {own()} and {{0}}.base is None and {{0}}.flags.writeable"
