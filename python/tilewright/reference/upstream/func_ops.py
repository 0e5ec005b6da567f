# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions and globals: `func`, `ml_program`, `memref.global`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.dialects.fractal.values import Lists
from tilewright.dialects.sparse_tile.encoded import Encoded
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.lists import Kind
from tilewright.reference.machine import Frame, Machine
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, terminators
from tilewright.reference.upstream.scf_ops import results

terminators("func.return", "ml_program.output", "ml_program.return")


def invoke(machine: Machine, name: str, arguments: list[Any]) -> list[Any]:
    """Run function ``name`` and return its results.

    Raises:
        InterpreterError: no such function, or not as many arguments as it takes.
    """
    function = machine.symbol(name)
    body = function.body
    if len(body.arguments) != len(arguments):
        raise InterpreterError(f"@{name} takes {len(body.arguments)} arguments, got {len(arguments)}")
    return Frame(machine).run(body, arguments)


@handles("func.call")
def call(frame: Any, node: Node, *arguments: Any) -> Any:
    """Call a function of the module."""
    name = node.op.attributes["callee"].value
    return results(node, invoke(frame.machine, name, list(arguments)))


def _symbol(node: Node, attribute: str) -> str:
    return str(node.op.attributes[attribute]).lstrip("@").strip('"')


@handles("ml_program.global_load_const", "ml_program.global_load")
def global_load(frame: Any, node: Node) -> Any:
    """The value of a global: stored, inline, or from the weights given to the machine."""
    name = node.once("global", lambda: _symbol(node, "global"))
    machine = frame.machine
    if name not in machine.globals:
        machine.globals[name] = _initial(machine, name, node)
    return machine.globals[name]


def _initial(machine: Machine, name: str, node: Node) -> Any:
    value = machine.symbol(name).attribute("value")
    if value is not None and not str(value).startswith("#ml_program.extern"):
        return types.constant(value)
    if name not in machine.weights:
        raise InterpreterError(f"no weight given for the external global @{name}")
    return checked(machine.weights[name], node.result_type(), f"weight @{name}")


@handles("ml_program.global_store")
def global_store(frame: Any, node: Node, value: Any) -> None:
    """Replace the value of a mutable global."""
    frame.machine.globals[_symbol(node, "global")] = value


@handles("memref.get_global")
def get_global(frame: Any, node: Node) -> Any:
    """The memory of a memref.global, initialised at first use."""
    name = _symbol(node, "name")
    stored = frame.machine.globals
    if name not in stored:
        value = frame.machine.symbol(name).attribute("initial_value")
        type_ = node.result_type()
        if value is None or not isinstance(value, ir.DenseElementsAttr):
            stored[name] = types.uninitialised(types.shape_of(type_), types.dtype_of(type_))
        else:
            stored[name] = np.array(types.constant(value))
    return stored[name]


def checked(value: Any, type_: ir.Type, what: str) -> Any:
    """Return ``value`` as an argument of ``type_``: the dtype must be equal, and the shape must fit.

    Raises:
        InterpreterError: it does not fit; the message names ``what``.
    """
    if isinstance(value, Encoded):
        return _checked_encoding(value, type_, what)
    kind = Kind.of(type_)
    if kind is not None:
        return _checked_lists(value, kind, what)
    if types.shaped(type_) is None:
        return np.asarray(value).astype(types.dtype_of(type_))[()]
    shape, dtype = types.shape_of(type_), types.dtype_of(type_)
    array = np.asarray(value)
    if unsigned_alias(array.dtype) != unsigned_alias(dtype):
        raise InterpreterError(f"{what} has dtype {array.dtype}, but {type_} needs {dtype}")
    fits = len(shape) == array.ndim and all(s in (types.DYNAMIC, n) for s, n in zip(shape, array.shape, strict=True))
    if not fits:
        raise InterpreterError(f"{what} has shape {array.shape}, which does not fit {type_}")
    return array.view(dtype) if array.dtype != dtype else array


def _checked_lists(value: Any, kind: Kind, what: str) -> Lists:
    """Return an argument of an array type; InterpreterError where it does not fit."""
    if isinstance(value, Lists) and value.dtype != kind.dtype and unsigned_alias(value.dtype) == kind.dtype:
        value = Lists(value.flat.view(kind.dtype), value.offsets)
    kind.check(value, what)
    return value


def _checked_encoding(value: Encoded, type_: ir.Type, what: str) -> Encoded:
    """Return an encoded argument of an encoded type; InterpreterError where it does not fit."""
    shape = types.shape_of(type_)
    fits = len(shape) == len(value.shape) and all(
        s in (types.DYNAMIC, n) for s, n in zip(shape, value.shape, strict=True)
    )
    if not fits or Tesa.of(type_) != value.tesa or types.dtype_of(type_) != value.dtype:
        raise InterpreterError(f"{what} is {value.tesa} of {value.dtype} {value.shape}, which does not fit {type_}")
    return value


def unsigned_alias(dtype: np.dtype) -> np.dtype:
    """Return the signed dtype of the same width for unsigned integers: signless types hold either."""
    return np.dtype(f"int{dtype.itemsize * 8}") if dtype.kind == "u" else dtype
