# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel's body from a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tilewright.core.errors import UserError
from tilewright.ir import decisions


def tile_type(*sizes: int, element: str = "f32") -> Any:
    """Return the type of a tile, for use inside a function that builds a kernel: ``tile_type(8, 32)``."""
    from tilewright.mlir import ir

    return ir.Type.parse(f"!tile.tile<{''.join(f'{size}x' for size in sizes)}{element}>")


def build(function: Callable[..., None]) -> str:
    """Return the text of the kernel that a function builds; it is named after the function.

    Raises:
        UserError: a parameter's annotation is not an MLIR type, or what was built does not verify.
    """
    from tilewright.dialects import tile
    from tilewright.mlir import ir

    names, types = _parameters(function)
    with ir.Context(), _location(function):
        module = ir.Module.create()
        try:
            kinds = [ir.Type.parse(types[name]) for name in names if name in types]
        except ir.MLIRError as error:
            raise UserError(f"{function.__name__}: a parameter's annotation is not an MLIR type: {error}") from None
        with ir.InsertionPoint(module.body), tile.kernel(function.__name__, kinds, len(names) - len(kinds)) as made:
            function(*made.inputs, *made.grid_ids)
        shown = [ir.DictAttr.get({decisions.NAME: ir.StringAttr.get(name)}) for name in names if name in types]
        made.attributes["arg_attrs"] = ir.ArrayAttr.get(shown)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise UserError(f"{function.__name__} builds a kernel that does not verify: {error}") from None
        return module.operation.get_asm(enable_debug_info=True)


def _parameters(function: Callable[..., None]) -> tuple[list[str], dict[str, str]]:
    """Names of all parameters, and the types of those that have one: they come first."""
    names = list(inspect.signature(function).parameters)
    types = {name: _annotation(function, kind) for name, kind in inspect.get_annotations(function).items()}
    types.pop("return", None)
    wrong = [name for name, kind in types.items() if not isinstance(kind, str)]
    if wrong:
        raise UserError(
            f"{function.__name__}: annotate {wrong[0]} with an MLIR type as a string, as in 'memref<8xf32>'"
        )
    if names[: len(types)] != [name for name in names if name in types]:
        raise UserError(f"{function.__name__}: coordinates of the grid come after all arguments that have a type")
    return names, types


def _annotation(function: Callable[..., None], kind: Any) -> Any:
    """An annotation's value: as it stands, or what its text says where the module postpones annotations (PEP 563)."""
    if not isinstance(kind, str):
        return kind
    try:
        return eval(kind, inspect.unwrap(function).__globals__)
    except (SyntaxError, NameError):  # an MLIR type is no Python: this is the value itself
        return kind


def _location(function: Callable[..., None]) -> Any:
    from tilewright.mlir import ir

    code = inspect.unwrap(function).__code__
    return ir.Location.file(code.co_filename, code.co_firstlineno, 0)
