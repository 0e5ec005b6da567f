# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compilation that begins behind a phase (``start_from=``): IR of that border, with decisions edited by hand or not.

Dumps (``dump_ir=``) and ``stop_after=`` write on the module what its IR does not show (:mod:`tilewright.ir.signature`),
and dumps the weights in a file beside it. Behind `normalize` the IR holds decisions: for which machine, with which
options, is then read from it, and not asked again.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.cache import digest
from tilewright.core.errors import UserError
from tilewright.core.options import PHASES, CompileOptions
from tilewright.runtime.manifest import spec_of

if TYPE_CHECKING:
    import numpy as np

    from tilewright.compiler.driver import Compilation
    from tilewright.mlir import ir

#: Phases whose IR a compilation can begin with.
STARTS = PHASES[:-1]
#: Options that later phases read, too: they may differ from those of the IR.
_LATER = frozenset({"opt_level", "sanitize"})
_LISTED = ("inputs", "outputs")


def sign(work: Compilation, phase: str) -> None:
    """Write on the module what a compilation that begins at it has to know, where its text will be seen."""
    from tilewright.ir import signature

    if work.options.dump_ir is None and work.options.stop_after != phase:
        return
    assert work.imported is not None
    known = work.imported
    specs = {name: [_plain(spec) for spec in getattr(known, name)] for name in _LISTED}
    more = {"ranges": known.ranges, "dims": known.dims, "boundary": known.boundary, "form": work.source.form}
    kept = _write_kept(work)
    values = {
        "phase": phase,
        "model": work.source.name,
        **specs,
        **{name: value for name, value in more.items() if value},
        **({"kept": kept} if kept else {}),
    }
    signature.write(work.module.operation, dict(sorted(values.items())))


def _write_kept(work: Compilation) -> str:
    """Put beside the dumps what the target keeps for the end, in a file named by what it holds; returns its name."""
    folder = work.options.dump_ir
    kept = work.target.kept_as_text(work) if folder is not None else ""
    if folder is None or not kept:
        return ""
    name = f"kept-{digest(kept)[:16]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(kept)
    return name


def _read_kept(work: Compilation, name: str) -> str:
    from tilewright.ir import decisions

    path = (work.source.folder or Path()) / name
    if not path.is_file():
        raise UserError(
            f"{work.source.name} needs '{name}' beside it ({decisions.SIGNATURE}), what its target keeps for the end: "
            "put the file there, or begin behind an earlier phase"
        )
    return path.read_text()


def _plain(spec: Any) -> dict[str, Any]:
    found = {name: value for name, value in dataclasses.asdict(spec).items() if value is not None}
    return dict(sorted(found.items()))


def weights_beside(text: str, folder: Path) -> Mapping[str, np.ndarray]:
    """The weights in the file that IR in a folder names; none where it names no file.

    Raises:
        UserError: there is no such file, or it is damaged.
    """
    from tilewright.ir import decisions

    found = re.search(rf'\b{re.escape(decisions.WEIGHTS)} = "([^"]*)"', text)
    if found is None:
        return {}
    from tilewright.core import safetensors

    path = next((p for p in (folder / found[1], Path(found[1])) if p.is_file()), None)
    if path is None:
        raise UserError(
            f"the IR's weights are to be in '{found[1]}' ({decisions.WEIGHTS}), and {folder} has no such file: put it "
            "beside the IR, or give weights="
        )
    return safetensors.read(path)


def weights_left(work: Compilation) -> dict[str, np.ndarray]:
    """The weights whose globals the module still has."""
    left = set(_external_globals(work.module))
    return {name: array for name, array in work.weights.items() if name in left}


def _external_globals(module: ir.Module) -> list[str]:
    """Names of the globals whose elements do not stand in the IR."""
    from tilewright.ir.generics import walk
    from tilewright.ir.units import symbol_of

    found = walk(module.operation, "ml_program.global")
    return [symbol_of(op) for op in found if str(op.attributes["value"]).startswith("#ml_program.extern")]


def read_signed(module: ir.Module, name: str, start: str | None) -> dict[str, Any] | None:
    """What the signature of IR says of its model, as fields of `Imported`, and the rest under ``form`` and ``kept``.

    Args:
        module: as it was given.
        name: what messages call it.
        start: the phase to begin behind; None for a model.

    Returns:
        None where the IR has no signature, and its text shows inputs and outputs itself.

    Raises:
        UserError: it was written behind another phase; or there is no signature where one is needed.
    """
    from tilewright.ir import decisions, signature

    found = signature.find(module.operation)
    if found is None:
        if start in STARTS[4:]:
            raise UserError(
                f"{name} has no `{decisions.SIGNATURE}`: behind phase {start} IR does not show the model's inputs and "
                "outputs. Write it with dump_ir= (--dump-ir) or stop_after= (--stop-after)"
            )
        return None
    phase = found.get("phase")
    if start is not None and phase != start:
        raise UserError(
            f"{name} is IR behind phase {phase} ({decisions.SIGNATURE}), and was given as start_from={start!r}: say "
            f"start_from={phase!r} (--start-from {phase})"
        )
    known: dict[str, Any] = {each: tuple(spec_of(spec) for spec in found.get(each, ())) for each in _LISTED}
    known["ranges"] = {each: (low, high) for each, (low, high) in found.get("ranges", {}).items()}
    known["dims"] = {each: tuple(sizes) for each, sizes in found.get("dims", {}).items()}
    known["boundary"] = found.get("boundary")
    return known


def begin(work: Compilation, phase: str) -> None:
    """Load the module that a compilation begins with, behind `phase`; its options become those that were decided.

    Raises:
        UserError: the IR is of another border, for another machine, or says nothing of the model's inputs.
    """
    from tilewright.ir import signature

    work.imported = work.source.load(None, start=phase)
    work.weights = dict(work.imported.weights)
    _check_complete(work)
    found = signature.find(work.module.operation) or {}
    work.source = replace(work.source, form=found.get("form", ""), name=found.get("model", work.source.name))
    if work.options.is_decided:
        _take_decided(work, work.module, phase)
    if any(size == -1 for spec in work.imported.inputs for size in spec.shape):
        work.options = replace(work.options, symbolic=True)
    if "kept" in found:
        work.target.keep_text(work, _read_kept(work, found["kept"]))


def _check_complete(work: Compilation) -> None:
    from tilewright.ir import decisions
    from tilewright.ir.units import symbol_of

    made = set()
    for op in work.module.body.operations:
        if op.operation.name == "func.func" and symbol_of(op.operation) == "init":
            made = {str(attrs[decisions.GLOBAL]).strip('"') for attrs in op.attributes["res_attrs"]}
    missing = [name for name in _external_globals(work.module) if name not in work.weights and name not in made]
    if missing:
        raise UserError(
            f"{work.source.name} has no elements of @{missing[0]} ({len(missing)} such weights): IR names a file with "
            f"them ({decisions.WEIGHTS}) where dump_ir= (--dump-ir) wrote it; or give weights="
        )


def _take_decided(work: Compilation, module: ir.Module, phase: str) -> None:
    """Compile with the machine and the options that the IR was planned with.

    Raises:
        UserError: the user asks for others.
    """
    from tilewright.ir.target_info import annotate, find_device, options_of

    planned, device = find_device(module.operation), work.target.device
    if planned is not None and device is not None and planned != device:
        raise UserError(
            f"{work.source.name} is IR behind phase {phase} for {planned.name} ({planned.cpu or planned.kind}), and "
            f"target {work.target.name} is {device.name} ({device.cpu or device.kind}): give the target it was planned "
            "for, or begin behind normalize, where nothing is decided"
        )
    said = dataclasses.asdict(options_of(module.operation))
    usual = CompileOptions()
    for name, value in said.items():
        asked = getattr(work.options, name)
        if name in _LATER:
            said[name] = asked
        elif asked not in (value, getattr(usual, name)):
            raise UserError(
                f"{name}={asked!r}: {work.source.name} is IR behind phase {phase}, where {name}={value!r} is decided; "
                "leave it out, or begin behind normalize"
            )
    work.options = replace(work.options, **said)
    if device is not None:
        annotate(module, planned or device, said)
