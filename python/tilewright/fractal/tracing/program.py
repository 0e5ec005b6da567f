# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A traced program: from a function and the types of its arguments to a module of layer 1 with `fractal` ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.core.errors import InternalError, UserError
from tilewright.fractal.tracing.compute import Tracer
from tilewright.fractal.tracing.ragged import stored
from tilewright.fractal.tracing.recursion import TreeTracer
from tilewright.fractal.tracing.shortest import annotate
from tilewright.fractal.tracing.values import Value
from tilewright.fractal.trees import Shape, flatten, rebuild, unzipped
from tilewright.fractal.types import Length, ListType, Type
from tilewright.ir import decisions
from tilewright.mlir import ir


@dataclass(frozen=True)
class Spec:
    """An input or output.

    Attributes:
        name: of the parameter (`p.0`, `p.1` of what is in a tuple); outputs are `output0`, ...
        kind: ``list`` or ``tensor``.
        shape: of the tensor, or of each leaf.
        dtype: element type.
        lengths: of each level, outermost first: a number, None where only a run knows it, or ``ragged``.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype
    lengths: tuple[int | str | None, ...] = ()


@dataclass(frozen=True)
class Traced:
    """What a compiler needs to know of a program.

    Attributes:
        name: of the function.
        module_text: a module with `@main`; each op has the user's line as its location.
        weights: bytes of its external globals, by name.
        inputs: arguments of `@main`, in order.
        outputs: results of `@main`, in order.
        output_shape: how they stand in tuples, for :meth:`structured`.
    """

    name: str
    module_text: str = field(repr=False)
    weights: dict[str, np.ndarray] = field(repr=False)
    inputs: list[Spec]
    outputs: list[Spec]
    output_shape: Shape = None

    def structured(self, outputs: Sequence[Any]) -> Any:
        """Outputs in the tuples that the function returns."""
        return rebuild(self.output_shape, outputs)


def trace_program(
    name: str,
    function: Callable[..., Any],
    inputs: Sequence[tuple[str, Type]],
    place: tuple[str, int],
    using: Callable[[Any], Any],
    flat: bool = False,
) -> Traced:
    """Run a function on symbolic arguments.

    Args:
        name: what it is called.
        function: takes all arguments by position, in the order of `inputs`.
        inputs: name and type of each.
        place: file and line of the function.
        flat: lists of lengths that only a run knows are returned as `tilewright.fractal.ragged` says.
        using: while in ``with using(tracer)``, functions of `ft` emit ops.

    Raises:
        UserError: the program does what cannot be traced; the message says where.
    """
    with ir.Context(), ir.Location.file(*place, 0):
        tracer = TreeTracer(ir.Module.create())
        kinds = [kind for _, kind in inputs]
        with ir.InsertionPoint(tracer.module.body):
            main = ir.Operation.create("func.func", attributes=_signature(tracer, inputs, []), regions=1)
        block = ir.Block.create_at_start(main.regions[0], [tracer.mlir(kind) for kind in kinds])
        tracer.emitter.entry = block
        with ir.InsertionPoint(block), using(tracer):
            arguments = [tracer.symbol(a, kind) for a, kind in zip(block.arguments, kinds, strict=True)]
            results, shape = flatten(unzipped(function(*arguments)))
            values = [_result(tracer, name, value) for value in results]
            named = {f"output{i}": value for i, value in enumerate(values)}
            if flat:
                named = {part: value for key in named for part, value in stored(tracer, key, named[key]).items()}
            ir.Operation.create("func.return", operands=[value.value for value in named.values()])
        outputs = [(key, value.type) for key, value in named.items()]
        for key, attribute in _signature(tracer, inputs, outputs).items():
            main.attributes[key] = attribute
        annotate(main)
        _verify(tracer.module, name)
        text = tracer.module.operation.get_asm(enable_debug_info=True)
        ours, theirs = ([_spec(*entry) for entry in group] for group in (inputs, outputs))
        return Traced(name, text, tracer.emitter.weights, ours, theirs, shape)


def _signature(tracer: Tracer, inputs: Sequence[tuple[str, Type]], outputs: Sequence[tuple[str, Type]]) -> dict:
    types = [[tracer.mlir(kind) for _, kind in group] for group in (inputs, outputs)]
    names = [
        ir.ArrayAttr.get([ir.DictAttr.get({decisions.NAME: ir.StringAttr.get(name)}) for name, _ in group])
        for group in (inputs, outputs)
    ]
    return {
        "sym_name": ir.StringAttr.get("main"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(*types)),
        "arg_attrs": names[0],
        "res_attrs": names[1],
    }


def _result(tracer: Tracer, name: str, value: Any) -> Value:
    try:
        return tracer.as_value(value)
    except UserError as error:
        raise UserError(f"{name}: returns what is no result: {error.message}", location=error.location) from None


def _verify(module: ir.Module, name: str) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise InternalError(f"tracing {name} made invalid IR: {error}", ir=str(module)) from error


def _spec(name: str, kind: Type) -> Spec:
    if not isinstance(kind, ListType):
        return Spec(name, "tensor", kind.shape, kind.dtype)
    lengths = tuple(None if isinstance(n, Length) else n for n in kind.lengths)
    return Spec(name, "list", kind.leaf.shape, kind.leaf.dtype, lengths)
