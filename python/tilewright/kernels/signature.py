# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel takes: names, types, and which memory it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.text import parse
from tilewright.ir.units import symbol_of

#: Ops whose result is another view of their first operand.
_VIEWS = tuple(
    "memref.subview memref.cast memref.expand_shape memref.collapse_shape memref.reinterpret_cast "
    "memref.assume_alignment".split()
)
#: Ops that read memory by all their memref operands, and those that write by one, by its position.
_READS = ("tile.load", "memref.load", "vector.load", "vector.transfer_read")
_WRITES = {"tile.store": 1, "memref.store": 1, "tile.copy": 1, "memref.copy": 1}
_NEUTRAL = ("memref.dim",)


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel.

    Attributes:
        name: as in the text, or by its position.
        element: the element's type in MLIR; of a scalar its type.
        shape: sizes, -1 where each call brings one; None for a scalar.
        reads: whether a task may read it.
        writes: whether a task may write it.
    """

    name: str
    element: str
    shape: tuple[int, ...] | None
    reads: bool
    writes: bool

    def __str__(self) -> str:
        """The name with type and use, for messages."""
        if self.shape is None:
            return f"{self.name}: {self.element}"
        sizes = "".join("?x" if size < 0 else f"{size}x" for size in self.shape)
        use = "inout " if self.reads and self.writes else "out " if self.writes else ""
        return f"{self.name}: {use}{sizes}{self.element}"


@dataclass(frozen=True)
class Signature:
    """A kernel's name, arguments, number of grid coordinates, and its module's text without @main."""

    name: str
    arguments: tuple[Argument, ...]
    grid_rank: int
    text: str

    @property
    def written(self) -> tuple[Argument, ...]:
        """The arguments that it writes, in order: what a call returns."""
        return tuple(argument for argument in self.arguments if argument.writes)

    def __str__(self) -> str:
        """The signature on one line."""
        return f"{self.name}({', '.join(map(str, self.arguments))}), {self.grid_rank} grid coordinates"


def read_kernel(text: str, name: str | None = None) -> Signature:
    """Find a kernel in MLIR text.

    Raises:
        UserError: the text does not parse, or has no kernel, or several and no name was given.
    """
    module = parse(text, name or "kernel")
    with module.context:
        for op in [op for op in module.body.operations if op.operation.name == "func.func"]:
            op.operation.erase()  # a @main that launches it, in text that was compiled as a whole
        kernels = {symbol_of(op): op for op in module.body.operations if op.operation.name == "tile.kernel"}
        chosen = _choose(kernels, name)
        _set_names(chosen, kernels[chosen].operation, text)
        shown = [op.operation.get_asm(enable_debug_info=True, use_local_scope=True) for op in module.body.operations]
        return _signature(chosen, kernels[chosen].operation, text, "\n".join(shown))


def _set_names(name: str, kernel: Any, source: str) -> None:
    """Let the kernel keep the names of its arguments, for messages about it."""
    from tilewright.mlir import ir

    count = len(kernel.regions[0].blocks[0].arguments) - kernel.attributes["grid_rank"].value
    given = [ir.DictAttr(each) for each in kernel.attributes["arg_attrs"]] if "arg_attrs" in kernel.attributes else []
    kept = [{named.name: named.attr for named in each} for each in given] or [{} for _ in range(count)]
    names = _names(name, kernel, source, count)
    shown = [{**each, decisions.NAME: ir.StringAttr.get(called)} for each, called in zip(kept, names, strict=True)]
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in shown])


def _choose(kernels: dict[str, Any], name: str | None) -> str:
    if not kernels:
        raise UserError("the text has no tile.kernel")
    if name is None and len(kernels) > 1:
        raise UserError(f"the text has several kernels, choose one with name=: {', '.join(kernels)}")
    if name is not None and name not in kernels:
        raise UserError(f"the text has no kernel {name!r}; it has {', '.join(kernels)}")
    return name or next(iter(kernels))


def _signature(name: str, kernel: Any, source: str, text: str) -> Signature:
    rank = kernel.attributes["grid_rank"].value
    values = list(kernel.regions[0].blocks[0].arguments)
    inputs = values[: len(values) - rank]
    found = _names(name, kernel, source, len(inputs))
    uses = [_uses(value) for value in inputs]
    arguments = [_argument(*parts) for parts in zip(found, inputs, uses, strict=True)]
    return Signature(name, tuple(arguments), rank, text)


def _argument(name: str, value: Any, use: tuple[bool, bool]) -> Argument:
    from tilewright.mlir import ir

    if not isinstance(value.type, ir.MemRefType):
        return Argument(name, str(value.type), None, True, False)
    kind = ir.MemRefType(value.type)
    shape = tuple(-1 if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))
    return Argument(name, str(kind.element_type), shape, *use)


def _names(name: str, kernel: Any, source: str, count: int) -> list[str]:
    """Names that the arguments have as attributes, else in the text that was parsed, else by position."""
    from tilewright.mlir import ir

    if "arg_attrs" in kernel.attributes:
        given = [ir.DictAttr(attributes) for attributes in kernel.attributes["arg_attrs"]]
        if all(decisions.NAME in attributes for attributes in given):
            return [ir.StringAttr(attributes[decisions.NAME]).value for attributes in given]
    start = re.search(rf"\btile\.kernel\s+(?:private\s+)?@{re.escape(name)}\s*\(", source)
    header = source[start.end() :].partition("{\n")[0].partition(") grid")[0] if start else ""
    found = re.findall(r"%([A-Za-z_$.-][\w$.-]*)\s*:", header)
    return found if len(found) == count == len(set(found)) else [f"arg{i}" for i in range(count)]


def _uses(value: Any) -> tuple[bool, bool]:
    """Whether memory behind a value may be read and written. An op that is not known may do both."""
    reads = writes = False
    for op, position in _users(value):
        if op.name in _READS:
            reads = True
        elif _WRITES.get(op.name) == position:
            reads |= "reduce" in op.attributes
            writes = True
        elif op.name in _WRITES:
            reads = True
        elif op.name not in _NEUTRAL:
            reads = writes = True
    return reads, writes


def _users(value: Any) -> Iterator[tuple[Any, int]]:
    """Users of a value and of its views, with the operand's position."""
    for use in value.uses:
        op = use.owner.operation
        if op.name in _VIEWS and use.operand_number == 0:
            yield from _users(op.results[0])
        else:
            yield op, use.operand_number
