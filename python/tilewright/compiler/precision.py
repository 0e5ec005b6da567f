# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Precision as a choice: which products become narrow, with which ranges, and what it costs in accuracy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.ir.units import symbol_of

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation

#: Of a dimension that is open, where random inputs tell the error.
_SIZE = 8
Sample = dict[str, np.ndarray]


def samples(calibration: Any, names: Sequence[str]) -> list[Sample]:
    """Return calibration data as inputs by name.

    Raises:
        UserError: a sample that has other inputs than the model, or no sample.
    """
    given = calibration if isinstance(calibration, list) else [calibration]
    found = []
    for one in given:
        if not isinstance(one, Mapping):
            values = one if isinstance(one, tuple) else (one,)
            if len(values) != len(names):
                raise UserError(f"a calibration sample has {len(values)} inputs, the model {len(names)}")
            one = dict(zip(names, values, strict=True))
        if set(one) != set(names):
            raise UserError(f"a calibration sample has the inputs {sorted(one)}, the model {sorted(names)}")
        found.append({name: np.asarray(one[name]) for name in names})
    if not found:
        raise UserError("calibration= is an empty list")
    return found


def observe(work: Compilation) -> None:
    """Look at a normalized model: how many products become narrow, and which ranges their operands have.

    The number is kept in `work.narrowed`, the ranges in `work.options`. The module stays as it is.

    Args:
        work: a compilation after phase `normalize`.
    """
    from tilewright.mlir import ir

    options = work.options
    if options.precision == "f32":
        return
    root = work.module.operation
    with root.context, ir.Location.unknown():
        work.narrowed = len(work.target.products(root, options.precision))
    if options.precision == "int8" and work.narrowed and not options.ranges:
        assert work.imported is not None
        data = samples(options.calibration, [spec.name for spec in work.imported.inputs])
        work.options = replace(options, ranges=_ranges(work, data))


def _ranges(work: Compilation, data: list[Sample]) -> tuple[str, ...]:
    """The ranges that products' operands have over the data, by the interpreter, in a copy of the module."""
    from tilewright.mlir import ir

    with work.module.context, ir.Location.unknown():
        copy = ir.Module.parse(str(work.module))
        values = [op.inputs[at].value for op, at in work.target.products(copy.operation, "int8")]
        return _observe(replace(work.imported, module=copy), values, data)


def _observe(imported: Any, values: list[Any], data: list[Sample]) -> tuple[str, ...]:
    """The ranges of values of @main over the data, by the interpreter."""
    from tilewright import reference

    _return_also(imported.module, values)
    low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    for sample in data:
        results = reference.run(imported.module, "main", list(sample.values()), imported.weights)
        for i, value in enumerate(results[-len(values) :]):
            finite = value[np.isfinite(value)]
            if finite.size:
                low[i], high[i] = min(low[i], finite.min()), max(high[i], finite.max())
    low, high = (np.where(np.isfinite(x), x, 0.0) for x in (low, high))
    return tuple(f"{float(a)!r}:{float(b)!r}" for a, b in zip(low, high, strict=True))


def _return_also(module: Any, values: list[Any]) -> None:
    """Let @main return further values of its body."""
    from tilewright.mlir import ir

    main = next(op for op in module.body.operations if symbol_of(op) == "main").operation
    block = main.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    results = [*end.operands, *values]
    with ir.InsertionPoint(end):
        ir.Operation.create("func.return", operands=results)
    end.erase()
    kind = ir.FunctionType.get([a.type for a in block.arguments], [value.type for value in results])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)
    if "res_attrs" in main.attributes:
        old = list(ir.ArrayAttr(main.attributes["res_attrs"]))
        main.attributes["res_attrs"] = ir.ArrayAttr.get([*old, *[ir.DictAttr.get({})] * len(values)])


def error(model: Any, exact: Callable[[], Any], calibration: Any) -> dict[str, Any]:
    """Return how far the results are from those of f32, over the calibration data or one set of random inputs."""
    from tilewright.report.measure import random_inputs
    from tilewright.runtime.structure import flat

    names = [spec.name for spec in model.inputs]
    data = samples(calibration, names) if calibration is not None else [random_inputs(_sized(model), seed=0)]
    wide = exact()
    most, largest = 0.0, 0.0
    for sample in data:
        for ours, theirs in zip(flat(model)(**sample), flat(wide)(**sample), strict=True):
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            if b.size:
                most, largest = max(most, float(np.abs(a - b).max())), max(largest, float(np.abs(b).max()))
    return {
        "data": "calibration" if calibration is not None else "random",
        "samples": len(data),
        "max_abs_error": most,
        "relative_error": most / largest if largest else 0.0,
    }


def _sized(model: Any) -> list[Any]:
    """The inputs, with a size for each dimension that is open: one that the model takes."""
    found = {name: max(low, _SIZE if high is None else min(high, _SIZE)) for name, (low, high) in model.ranges.items()}
    return [replace(spec, shape=tuple(found.get(n, n) for n in spec.shape)) for spec in model.inputs]


def note(model: Any, entry: dict[str, Any], name: str = "precision") -> None:
    """Keep what is known of the precision in the manifest, for the report; under another name, of another choice."""
    model._manifest.compile[name] = entry
    path = model.path / "manifest.json"
    if path.is_file():
        values = json.loads(path.read_text())
        values["compile"][name] = entry
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(values, indent=1))
        temporary.replace(path)
