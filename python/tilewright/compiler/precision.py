# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Precision as a choice: which products become narrow, with which ranges, and what it costs in accuracy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.compiler.split import symbol_of
from tilewright.core.errors import UserError
from tilewright.passes.pipeline import PassSpec

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


def narrowing(
    source: Any, shapes: Any, precision: str, calibration: Any, tensor_cores: bool = False
) -> tuple[PassSpec, int]:
    """Return the pass that narrows a model's products, and how many it will narrow.

    Args:
        source: the model.
        shapes: sizes of its inputs.
        precision: ``bf16``, ``int8`` or ``tf32``.
        calibration: what ranges are observed on, for ``int8``.
        tensor_cores: whether the machine multiplies convolutions and, in bf16, two activations narrow, too.
    """
    from tilewright.mlir import ir
    from tilewright.normalize import PASSES
    from tilewright.passes import load_builtin_passes, run_pipeline
    from tilewright.passes.pipeline import Phase
    from tilewright.plan.lowbit.narrow_products import products

    load_builtin_passes()
    imported = source.load(shapes)
    if precision == "tf32":
        return PassSpec("tile-allow-tf32", "precision tf32 was asked for"), _wide_products(imported)
    root = imported.module.operation
    run_pipeline(root, str(Phase("normalize", PASSES)))
    with root.context, ir.Location.unknown():
        pairs = tensor_cores and precision == "bf16"  # bytes of keys would need ranges that no weight tells
        found = products(root, tensor_cores, pairs)
        count = len(found)
        ranges: tuple[str, ...] = ()
        if precision == "int8" and count:
            data = samples(calibration, [spec.name for spec in imported.inputs])
            ranges = _observe(imported, [op.inputs[at].value for op, at in found], data)
    options: dict[str, Any] = {"ranges": ranges} if ranges else {}
    if tensor_cores:
        options["windows"] = True
    if pairs:
        options["pairs"] = True
    return PassSpec("tile-narrow-products", f"precision {precision} was asked for", options), count


def _wide_products(imported: Any) -> int:
    """How many products of f32 a model has."""
    from tilewright.mlir import ir
    from tilewright.normalize import PASSES
    from tilewright.passes import run_pipeline
    from tilewright.passes.pipeline import Phase
    from tilewright.plan.gpu.allow_tf32 import wide_products

    root = imported.module.operation
    run_pipeline(root, str(Phase("normalize", PASSES)))
    with root.context, ir.Location.unknown():
        return len(wide_products(root))


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


def with_pass(pipeline: Any, spec: PassSpec) -> Any:
    """Return a pipeline with `spec` as the first pass of phase `plan`."""
    from dataclasses import replace

    phases = [replace(p, passes=(spec, *p.passes)) if p.name == "plan" else p for p in pipeline.phases]
    return replace(pipeline, phases=tuple(phases))


def error(model: Any, exact: Callable[[], Any], calibration: Any) -> dict[str, Any]:
    """Return how far the results are from those of f32, over the calibration data or one set of random inputs."""
    from tilewright.report.measure import random_inputs

    names = [spec.name for spec in model.inputs]
    data = samples(calibration, names) if calibration is not None else [random_inputs(model.inputs, seed=0)]
    wide = exact()
    most, largest = 0.0, 0.0
    for sample in data:
        for ours, theirs in zip(model(**sample), wide(**sample), strict=True):
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            if b.size:
                most, largest = max(most, float(np.abs(a - b).max())), max(largest, float(np.abs(b).max()))
    return {
        "data": "calibration" if calibration is not None else "random",
        "samples": len(data),
        "max_abs_error": most,
        "relative_error": most / largest if largest else 0.0,
    }


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
