# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The artifact of a model for a mesh: its programs as IR, its weights, and the simulated times."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.ir.generics import walk
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.runtime.artifact import CODE, write_files
from tilewright.runtime.manifest import KernelInfo
from tilewright.sim.coremesh.machine import PRESETS, Machine, machine
from tilewright.targets import emitting
from tilewright.targets.mesh.times import Step, outside_of, steps_of

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation

#: The file of the module, as bytecode.
MODULE = f"{CODE}/module.mlirbc"


def emit(work: Compilation, folder: Path) -> None:
    """Write a module whose functions are programs, with the time of each step of a call.

    Raises:
        UserError: a program cannot be timed.
    """
    assert work.target.device is not None
    with work.phase("emit"):
        block = _main(work.module)
        machines = {preset: machine(work.target.device, preset) for preset in PRESETS}
        names = [symbol_of(op) for op in walk(work.module.operation, "ml_program.global") if not _has_elements(op)]
        weights = {name: emitting.weight(work, name) for name in names}
        buffer = io.BytesIO()
        work.module.operation.write_bytecode(buffer)
        code = buffer.getvalue()
        manifest = emitting.manifest_of(work, [], {}, weights)
        steps = steps_of(block, machines)
        manifest.compile["mesh"] = _told(block, machines["ideal"], steps)
    kernels = [
        KernelInfo(f"{one.name}_{at}", one.name, details=one.to_dict()) for at, one in enumerate(steps["calibrated"])
    ]
    digest = hashlib.sha256(code).hexdigest()
    manifest = dataclasses.replace(
        manifest, kernels=tuple(kernels), code_files=(MODULE,), code_sha256=digest, entry="main"
    )
    write_files(folder, manifest, {MODULE: code}, weights, emitting.report(work))


def _has_elements(op: ir.Operation) -> bool:
    """Whether a global holds its elements itself: a table that a pass made."""
    return "value" in op.attributes and isinstance(op.attributes["value"], ir.DenseElementsAttr)


def _main(module: ir.Module) -> ir.Block:
    function = next(op for op in walk(module.operation, "func.func") if symbol_of(op) == "main")
    return function.regions[0].blocks[0]


def _told(block: ir.Block, any_machine: Machine, steps: dict[str, list[Step]]) -> dict[str, Any]:
    """What holds for the whole model."""
    return {
        "machine": any_machine.name,
        "clock": any_machine.clock,
        "sram": any_machine.sram_bytes,
        "edge": any_machine.mesh.offchip_bytes_per_cycle,
        "sync": "dataflow",
        "tier": "T1",
        "cycles": {preset: sum(one.cycles for one in found) for preset, found in steps.items()},
        "outside": outside_of(block),
    }
