# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the parser makes of PTX text: operands, instructions, kernels, modules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Register:
    """A virtual register; `index` counts all registers of the kernel, `type` is the declared one ("b32")."""

    name: str
    index: int
    type: str
    negated: bool = False


@dataclass(frozen=True)
class Immediate:
    """A literal: an integer (kind "int") or the bits of a float (kind "f32", "f64")."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class Symbol:
    """The address of a variable or parameter, or a label, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Special:
    """A register of the machine such as %tid.x."""

    name: str


@dataclass(frozen=True)
class Sink:
    """The operand `_`: a result that nobody wants."""


@dataclass(frozen=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Memory:
    """`[base+offset, extra...]`."""

    base: Register | Symbol | Immediate
    offset: int
    extra: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Pair:
    """`a|b`: two results of one instruction."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Special | Sink | Vector | Memory | Pair


@dataclass
class Instruction:
    """One instruction.

    Attributes:
        op: the mnemonic with its modifiers, as written.
        parts: `op` split at dots (`::` stays inside a part).
        args: operands.
        guard: the predicate before it, or None.
        line: line of the PTX text, from 1.
        source: "file:line" of the last `.loc`, or None.
        text: the instruction as written, on one line.
        target: number of the instruction that a branch goes to; a tuple of them for `brx.idx`.
        uses: what `flow.operand_uses` found.
    """

    op: str
    parts: list[str]
    args: list[Operand]
    guard: Register | None
    line: int
    source: str | None
    text: str
    target: int | tuple[int, ...] | None = None
    uses: tuple[frozenset[int], frozenset[int]] | None = field(default=None, repr=False)

    def has(self, part: str) -> bool:
        """Whether a modifier is there."""
        return part in self.parts

    def where(self) -> str:
        """PTX line and source location, for messages."""
        return f"PTX line {self.line}" + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: offset, size and alignment in bytes within the parameter space."""

    name: str
    offset: int
    size: int
    align: int


@dataclass(frozen=True)
class Variable:
    """A variable in memory: `space` is shared, local, global or const; size 0 = dynamic shared memory."""

    name: str
    space: str
    size: int
    align: int
    data: bytes | None = None
    references: tuple[tuple[int, str, int], ...] = ()


@dataclass
class Kernel:
    """An entry: its code and what it needs.

    Attributes:
        name: its name.
        parameters: in order.
        parameter_bytes: size of the parameter space.
        registers: declared type of each register.
        code: its instructions; labels are resolved in `Instruction.target`.
        variables: variables declared inside the body (shared, local).
        directives: performance directives as written: {"maxntid": [128, 1, 1], ...}.
        module: the module that it belongs to.
    """

    name: str
    parameters: list[Parameter] = field(default_factory=list)
    parameter_bytes: int = 0
    registers: list[str] = field(default_factory=list)
    register_names: list[str] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    directives: dict[str, list[int]] = field(default_factory=dict)
    module: Module | None = None


@dataclass(frozen=True)
class Function:
    """A function that kernels call: names of its parameters, and where its body stands in the text."""

    parameters: tuple[str, ...]
    start: int


@dataclass
class Module:
    """A PTX file."""

    version: str = ""
    target: str = ""
    kernels: dict[str, Kernel] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    text: str = ""
