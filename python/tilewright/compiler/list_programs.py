# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of nested lists (`tilewright.fractal`) as models: traced for the lengths that they are compiled for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import UserError
from tilewright.runtime.manifest import Shortest

if TYPE_CHECKING:
    import numpy as np

    from tilewright.fractal.function import Function
    from tilewright.fractal.tracing.program import Traced
    from tilewright.mlir import ir


def is_program(model: Any) -> bool:
    """Whether it is made by `ft.function`; nothing is imported to find out."""
    return any(
        f"{kind.__module__}.{kind.__name__}" == "tilewright.fractal.function.Function" for kind in type(model).__mro__
    )


def traced(program: Function, shapes: Mapping[str, Any] | None) -> Traced:
    """The program for lists of these lengths.

    Args:
        program: made by `ft.function`.
        shapes: the lengths of each list's levels, by the parameter's name, outermost first; ``("ragged", 64)`` where
            each list of a level has its own, of at most 64.

    Raises:
        UserError: a length is missing or wrong, or the program cannot be traced.
    """
    from tilewright.fractal.function import in_python

    for name, kind in program.inputs(shapes):
        unknown = [n for n in getattr(kind, "lengths", ()) if not isinstance(n, int)]
        if not unknown:
            continue
        wanted = ", ".join(_wanted(n) for n in kind.lengths) + "," * (len(kind.lengths) == 1)
        raise UserError(
            f"the lengths of {in_python(name)} are not known: a program of lists is compiled for given ones, and for "
            f'the largest where lists have lengths of their own; say shapes={{"{name}": ({wanted})}}, as in '
            f'{{"{name}": ({wanted.replace("...", "64")})}}'
        )
    return program.trace(shapes, flat=True)


def _wanted(length: Any) -> str:
    """What the user writes for a length."""
    if isinstance(length, int):
        return str(length)
    return '("ragged", ...)' if length == "ragged" else "..."


def unsigned_types(program: Traced) -> dict[str, str]:
    """Element types of inputs and outputs that have no sign, by name: integers of IR have none at all."""
    specs = (*program.inputs, *program.outputs)
    return {spec.name: from_numpy(spec.dtype) for spec in specs if spec.dtype.kind == "u"}


def signless(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights of the types of their globals: the bytes of integers as those of ones with a sign."""
    return {
        name: array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array for name, array in weights.items()
    }


def shortest_of(attributes: ir.DictAttr | None) -> Shortest | None:
    """What the attributes of an argument say of how long lists are whose offsets it has."""
    from tilewright.dialects.fractal.flat_inputs import SHORTEST
    from tilewright.mlir import ir

    if attributes is None or SHORTEST not in attributes:
        return None
    said = ir.DictAttr(attributes[SHORTEST])
    length, element = (ir.IntegerAttr(said[key]).value for key in ("length", "element"))
    return Shortest(length, element, ir.StringAttr(said["location"]).value)


def shape_of(kind: ir.Type) -> tuple[tuple[int, ...], ir.Type] | None:
    """Sizes of the tensor that holds an array, levels first, and its element type; None for any other type."""
    from tilewright.mlir import ir
    from tilewright.mlir.dialects.fractal import ArrayType

    if not ArrayType.isinstance(kind):
        return None
    array = ArrayType(kind)
    leaf = ir.RankedTensorType(array.leaf)
    return (*(n if n >= 0 else -1 for n in array.lengths), *leaf.shape), leaf.element_type
