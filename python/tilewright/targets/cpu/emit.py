# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lowered module for a CPU -> a shared object, by compile workers and the linker; and its artifact."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import InternalError
from tilewright.ir import decisions
from tilewright.ir.decision import Texts
from tilewright.ir.generics import nested
from tilewright.ir.units import Unit, split, symbol_of
from tilewright.runtime.artifact import write_artifact
from tilewright.runtime.cpu.cpu_features import MATRIX_UNIT
from tilewright.runtime.manifest import TensorSpec
from tilewright.targets import emitting
from tilewright.targets.cpu.linker import link
from tilewright.targets.cpu.symbols import ENTRY
from tilewright.targets.emission import unit_codes

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation
    from tilewright.mlir import ir


def emit(work: Compilation, folder: Path) -> None:
    """Make object code of each kernel, link it and write the artifact to `folder`.

    Raises:
        InternalError: LLVM or the linker failed.
    """
    with work.phase("emit"):
        entry = _entry_attributes(work.module)
        units, shared = split(work.module, ENTRY)
        emitting.dump_units(work.options.dump_ir, units)
        target = work.target
        codes = unit_codes(units, (target.cpu, target.features), work.options.opt_level, "object")
        link(list(codes.values()), folder / "model.so")
        code = (folder / "model.so").read_bytes()
        (folder / "model.so").unlink()
    weights = {name: emitting.weight(work, name) for name in entry["globals"]}
    manifest = emitting.manifest_of(work, [unit.symbol for unit in units if unit.symbol != ENTRY], shared, weights)
    manifest = dataclasses.replace(
        manifest,
        inputs=_ordered(decisions.INPUTS, entry["inputs"], manifest.inputs),
        outputs=_ordered(decisions.OUTPUTS, entry["outputs"], manifest.outputs),
        arena_bytes=entry["arena_bytes"],
        appends=entry["appends"],
        entry=ENTRY,
        cpu_features=_needed(work.target.needed, units),
    )
    write_artifact(folder, manifest, code, weights, emitting.report(work))


def _entry_attributes(module: ir.Module) -> dict[str, Any]:
    """Return what lowering wrote on the entry: names of inputs, outputs and globals in order, the arena's bytes."""
    for op in nested(module.operation):
        if symbol_of(op) == ENTRY:
            read = (decisions.INPUTS, decisions.OUTPUTS, decisions.GLOBALS)
            names = {name.removeprefix("tile."): name.read(op) for name in read}
            numbers = decisions.APPENDS.get(op) or []
            appends = tuple(zip(*[iter(numbers)] * 3, strict=True))
            return {**names, "arena_bytes": decisions.ARENA_BYTES.read(op), "appends": appends}
    raise InternalError(f"the lowered module has no function @{ENTRY}")


def _ordered(decision: Texts, names: Sequence[str], specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """The model's inputs or outputs in the order in which the entry takes them; one without a name stays in its place.

    Raises:
        InternalError: the entry takes others than the model has.
    """
    known = {spec.name: spec for spec in specs}
    found = [known.get(name) if name else spec for name, spec in zip(names, specs, strict=False)]
    taken = [spec for spec in found if spec is not None]
    if len(names) != len(specs) or set(taken) != set(specs):
        raise InternalError(
            f"the code's entry takes {', '.join(names) or 'none'} ({decision} of @{ENTRY}), but the model has "
            f"{', '.join(known) or 'none'}: the names must be the model's, each once"
        )
    return tuple(taken)


def _needed(features: tuple[str, ...], units: Sequence[Unit]) -> tuple[str, ...]:
    """The features without those of the matrix unit where no kernel calls it: it needs the kernel's permission."""
    if any(b"llvm.x86.tile" in unit.module for unit in units):
        return features
    return tuple(name for name in features if name not in MATRIX_UNIT)
