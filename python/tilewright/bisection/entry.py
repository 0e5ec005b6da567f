# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling @main at any layer: tensors or memrefs, weights as globals or arguments, results returned or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilewright import reference
from tilewright.bisection.stages import Stage, functions
from tilewright.core.dtypes import presented, stored, to_numpy
from tilewright.core.errors import InternalError
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.registry import TERMINATORS, WHOLE
from tilewright.runtime.manifest import TensorSpec

_STRUCTURE = {"builtin.module", "func.func", "ml_program.global", "memref.global", "tile.kernel", "tile.program"}


def can_interpret(stage: Stage) -> bool:
    """Return whether the interpreter knows all ops of a state: no function of a library, and nothing behind @main."""
    symbols = functions(stage.module)
    foreign = any(op.name == "func.func" and not len(op.regions[0].blocks) for op in symbols.values())
    known = {*reference.HANDLERS, *TERMINATORS, *_STRUCTURE}  # a target may have told of more
    return "main" in symbols and not foreign and all(name in known for name in _names(stage.module))


def _names(op: ir.Operation) -> Iterator[str]:
    yield op.name
    for region in () if op.name in WHOLE else op.regions:
        for block in region:
            for inner in block.operations:
                yield from _names(inner.operation)


def interpret(stage: Stage, inputs: Sequence[np.ndarray], outputs: Sequence[TensorSpec]) -> list[np.ndarray]:
    """Run @main of a state in the interpreter.

    Args:
        stage: the state.
        inputs: in the model's order.
        outputs: what the model returns.

    Returns:
        The outputs in the model's order.

    Raises:
        InterpreterError: the IR does what has no meaning (an access outside, a deadlock, ...).
        InternalError: the function does not return all outputs.
    """
    main = functions(stage.module)["main"]
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    given = iter([np.array(stored(array)) for array in inputs])
    arguments: list[Any] = []
    found: dict[int, Any] = {}
    for type_, attrs in zip(kind.inputs, _attributes(main, "arg_attrs", len(kind.inputs)), strict=True):
        if decisions.GLOBAL in attrs:
            arguments.append(stage.weights[attrs[decisions.GLOBAL].value])
        elif decisions.RESULT in attrs:
            arguments.append(_memory(type_))
            found[attrs[decisions.RESULT].value] = arguments[-1]
        elif decisions.ARENA in attrs:
            arguments.append(np.zeros(types.shape_of(type_), np.int8))
        else:
            arguments.append(next(given))
    returned = reference.run(stage.module, "main", arguments, stage.weights)
    open_ = iter([k for k in range(len(outputs)) if k not in found])
    for value, attrs in zip(returned, _attributes(main, "res_attrs", len(returned)), strict=True):
        number = attrs[decisions.RESULT].value if decisions.RESULT in attrs else next(open_)
        found[number] = value
    if len(found) != len(outputs):
        raise InternalError(f"@main returns {len(found)} of {len(outputs)} outputs")
    return [presented(found[k], to_numpy(spec.dtype)) for k, spec in enumerate(outputs)]


def _attributes(main: ir.Operation, name: str, count: int) -> list[Any]:
    if name not in main.attributes:
        return [{}] * count
    return [ir.DictAttr(attrs) for attrs in ir.ArrayAttr(main.attributes[name])]


def _memory(type_: ir.Type) -> np.ndarray:
    return types.uninitialised(types.shape_of(type_), types.dtype_of(type_))
