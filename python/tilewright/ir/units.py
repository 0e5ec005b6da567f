# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module of the LLVM dialect -> one module per function, so that LLVM's work runs in parallel and is shared.

Works on text: each top-level op is printed alone, and a unit is the text of a function with what it mentions. Equal
kernels (up to their name) become one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.core.errors import InternalError

if TYPE_CHECKING:
    from tilewright.mlir import ir

_SYMBOL = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_$.][\w$.-]*))')
#: Linkage as it is printed; reading it as an attribute would import all of the dialect's Python classes.
_LOCAL = re.compile(r"llvm\.func (internal|private|linkonce|linkonce_odr) ")


@dataclass(frozen=True)
class Unit:
    """A function that is compiled alone: its symbol and the module that holds it."""

    symbol: str
    module: bytes


@dataclass(frozen=True)
class _Definition:
    """A top-level op: its text, and the text of a declaration of it ("" where it must be copied instead)."""

    text: str
    declaration: str


def symbol_of(op: ir.Operation | ir.OpView) -> str:
    """The name that an operation defines; "" where it defines none."""
    attributes = op.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else ""


def kernel_of(launch: ir.Operation | ir.OpView) -> str:
    """The name of the kernel or program that a `tile.launch` starts."""
    return launch.operation.attributes["kernel"].value


def split(module: ir.Module, entry: str) -> tuple[list[Unit], dict[str, str]]:
    """Return the units of a module, and for each kernel the symbol whose code it shares.

    Args:
        module: functions and globals of the LLVM dialect.
        entry: symbol of the host function.

    Raises:
        InternalError: an op is of another dialect, or the entry is missing.
    """
    definitions = {name: _definition(name, op) for name, op in _symbols(module.operation)}
    if entry not in definitions:
        raise InternalError(f"the lowered module has no function @{entry}")
    return _units(definitions, entry, _attributes(module.operation))


def split_kernels(device: ir.Operation) -> tuple[list[Unit], dict[str, str]]:
    """Return the same for a `gpu.module`, whose functions are all kernels; each unit is a plain module.

    Raises:
        InternalError: an op is of another dialect.
    """
    return _units({name: _definition(name, op) for name, op in _symbols(device)}, "", _attributes(device))


def twins(units: Sequence[Unit]) -> dict[str, str]:
    """For each unit the first one whose code differs from its own in the name alone: plans of another length.

    Both stay: each has launches and predicted times of its own.
    """
    first: dict[str, str] = {}
    found = {}
    for unit in units:
        text = _unread().sub("", _nameless(unit.symbol, unit.module.decode()))
        found[unit.symbol] = first.setdefault(text, unit.symbol)
    return found


@functools.cache
def _unread() -> re.Pattern[str]:
    """What is told of a kernel's launches and times, which its code does not depend on."""
    from tilewright.ir import decisions  # loading a model from the cache imports this module, but no IR

    return re.compile(rf"\b(?:{decisions.GRID} = array<[^<>]*>|{decisions.PREDICTION} = \{{[^{{}}]*\}})")


def _nameless(name: str, text: str) -> str:
    return re.sub(rf"@{re.escape(name)}\b", "@self", text)


def _units(definitions: Mapping[str, _Definition], entry: str, attributes: str) -> tuple[list[Unit], dict[str, str]]:
    functions = [name for name, d in definitions.items() if d.declaration and d.declaration != d.text]
    shared = _share([name for name in functions if name != entry], definitions)
    units = []
    for name in functions:
        if shared.get(name, name) == name:
            units.append(Unit(name, _module_text(name, definitions, attributes, shared).encode()))
    return units, shared


def _symbols(module: ir.Operation) -> list[tuple[str, ir.Operation]]:
    from tilewright.ir.generics import nested

    found = []
    for op in nested(module):
        if op.name not in ("llvm.func", "llvm.mlir.global"):
            raise InternalError(f"'{op.name}' is left at the top of the lowered module", ir=str(op)[:2000])
        found.append((symbol_of(op), op))
    return found


def _definition(name: str, op: ir.Operation) -> _Definition:
    text = op.get_asm(use_local_scope=True)
    if op.name == "llvm.mlir.global" or _LOCAL.match(text):
        return _Definition(text, "")
    if not op.regions[0].blocks:
        return _Definition(text, text)
    declaration = (
        f'"llvm.func"() <{{sym_name = "{name}", function_type = {op.attributes["function_type"]}, '
        "linkage = #llvm.linkage<external>, CConv = #llvm.cconv<ccc>}> ({}) : () -> ()"
    )
    return _Definition(text, declaration)


def _references(text: str) -> list[str]:
    return list(dict.fromkeys(quoted or plain for quoted, plain in _SYMBOL.findall(text)))


def _share(kernels: list[str], definitions: Mapping[str, _Definition]) -> dict[str, str]:
    """Map each kernel to the first one whose text differs in the name only."""
    first: dict[str, str] = {}
    shared = {}
    for name in kernels:
        shared[name] = first.setdefault(_nameless(name, definitions[name].text), name)
    return shared


def _module_text(name: str, definitions: Mapping[str, _Definition], attributes: str, shared: Mapping[str, str]) -> str:
    text = _SYMBOL.sub(lambda match: _rename(match, shared), definitions[name].text)
    parts, pending, seen = [text], _references(text), {name}
    while pending:
        other = pending.pop(0)
        if other in seen or other not in definitions:
            continue
        seen.add(other)
        definition = definitions[other]
        parts.append(definition.declaration or definition.text)
        if not definition.declaration:
            pending += _references(definition.text)
    return f"module {attributes}{{\n" + "\n".join(parts) + "\n}\n"


def _rename(match: re.Match, shared: Mapping[str, str]) -> str:
    name = match.group(1) or match.group(2)
    return f"@{shared[name]}" if shared.get(name, name) != name else match.group(0)


def _attributes(module: ir.Operation) -> str:
    """Return the data layout and the like, which LLVM's translation looks at."""
    kept = {name: value for name, value in _items(module) if name.startswith(("llvm.", "dlti."))}
    if not kept:
        return ""
    return "attributes {" + ", ".join(f"{name} = {value}" for name, value in kept.items()) + "} "


def _items(module: ir.Operation) -> list[tuple[str, str]]:
    attributes = module.attributes
    return [(attributes[i].name, str(attributes[i].attr)) for i in range(len(attributes))]
