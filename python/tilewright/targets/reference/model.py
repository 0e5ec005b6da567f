# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``reference``: the model as the interpreter runs it, slow and exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.dtypes import presented, stored
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.dialects.fractal import ArrayType, Lists
from tilewright.mlir import ir
from tilewright.runtime.binding import Signature
from tilewright.runtime.manifest import TensorSpec
from tilewright.runtime.result import Outputs

if TYPE_CHECKING:
    from tilewright.compiler.source import Source


def listed(module: ir.Module, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Arguments of @main, with lists for arrays whose first dimensions are levels of lists."""
    main = ir.SymbolTable(module.operation)["main"]
    types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
    depths = [len(type_.lengths) if isinstance(type_, ArrayType) else 0 for type_ in types]
    return [Lists.from_array(x, depth) if depth else x for x, depth in zip(arrays, depths, strict=True)]


class Interpreted:
    """A call of @main in the interpreter, for models that hold a module.

    Attributes (of the class that mixes it in):
        _signature: what @main takes and returns.
        _module: the module.
        _weights: arrays of its globals by name.
    """

    _signature: Signature
    _module: Any
    _weights: Mapping[str, np.ndarray]

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Outputs:
        """Interpret the model; takes and returns what :class:`tilewright.Model` does.

        Raises:
            UserError: an argument does not fit, or the model itself refuses its values (a size that it demands).
        """
        from tilewright import reference

        arrays, export = self._signature.arrays(args, named)
        into = None if out is None else self._signature.check_out(out, arrays)
        given = listed(self._module, [stored(array) for array in arrays])
        try:
            computed = reference.run(self._module, "main", given, self._weights)
        except reference.AssertionFailedError as error:
            raise UserError(error.message) from None
        computed = [value.array() if isinstance(value, Lists) else value for value in computed]
        slots = self._signature.outputs
        results: list[Any] = [presented(array, slot.dtype) for array, slot in zip(computed, slots, strict=True)]
        if into is not None:
            for slot, array, result in zip(slots, into, results, strict=True):
                self._signature.fill(slot, array, result)
            results = into
        elif export is not None:
            results = [export(array) for array in results]
        return Outputs(results, self._signature.output_names)


class ReferenceModel(Interpreted):
    """A model that is interpreted. It is called like :class:`tilewright.Model`, and cannot be saved.

    Args:
        source: the model.
        shapes: sizes of symbolic dimensions.
    """

    target = "reference"
    threads = 1
    runs_on = "1 thread(s)"

    def __init__(self, source: Source, shapes: Mapping[str, Any] | None) -> None:
        self._imported = source.load(shapes)
        self._module, self._weights = self._imported.module, self._imported.weights
        self.boundary = self._imported.boundary
        self._signature = Signature(self._imported.inputs, self._imported.outputs)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and shape of each input, in order."""
        return self._imported.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and shape of each output, in order."""
        return self._imported.outputs

    def save(self, path: Any) -> None:
        """Refuse: there is nothing compiled.

        Raises:
            UserError: always.
        """
        raise UserError("a model for target 'reference' cannot be saved; compile it for 'cpu'")

    def explain(self, path: Any = None, *, measure: bool = True) -> str:
        """Refuse: there is nothing to explain.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("explain() is about compiled models; compile it for 'cpu'")
