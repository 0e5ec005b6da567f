# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembly for AMD GPUs (``rocm:gfx942``). It is text: nothing here runs it, and it is untested on hardware."""

from __future__ import annotations

import shlex
import subprocess
import sys

from tilewright.core.errors import InternalError, UserError
from tilewright.pipelines.rocm_lower import emit, lower


def assembly(kernels: str, target: str = "rocm:gfx942") -> str:
    """Return the AMDGCN assembly of tile kernels.

    ``tile.launch`` and models are left to targets that can run them: this shows what kernels become.

    Args:
        kernels: MLIR text with ``tile.kernel`` ops.
        target: ``rocm:gfx942``.

    Raises:
        UserError: the text is malformed or of other ops, or there is no such target.
        InternalError: a pass, or LLVM, cannot do it; the message has the command that repeats it.
    """
    kind, _, arch = target.partition(":")
    if kind != "rocm":
        raise UserError(f"{target!r} is no AMD GPU: use 'rocm:gfx942'")
    phases = (lower(arch), emit(arch))
    _check(kernels)
    passes = ",".join(spec for phase in phases for spec in map(str, phase.passes))
    # A process of its own: LLVM ends it where it finds no instruction.
    command = [sys.executable, "-m", "tilewright.passes", "-", f"--pass-pipeline=builtin.module({passes})"]
    result = subprocess.run(command, input=kernels, capture_output=True, text=True)
    if result.returncode:
        raise InternalError(
            f"no assembly for {target}: {result.stderr.strip() or f'LLVM ended with {result.returncode}'}",
            ir=kernels,
            command=shlex.join([*command[:3], "kernels.mlir", *command[4:]]),
        )
    return "\n".join(_objects(result.stdout))


def _check(kernels: str) -> None:
    from tilewright.mlir import ir

    with ir.Context():
        try:
            module = ir.Module.parse(kernels)
        except ir.MLIRError as error:
            raise UserError(f"the kernels are malformed: {error}") from None
        names = [op.operation.name for op in module.body.operations]
    if "tile.kernel" not in names or set(names) - {"tile.kernel"}:
        raise UserError(f"assembly is made of tile.kernel ops alone; the module has {', '.join(names) or 'nothing'}")


def _objects(text: str) -> list[str]:
    """What each gpu.binary of a module holds."""
    from tilewright.mlir import ir
    from tilewright.mlir.dialects import gpu

    with ir.Context():
        module = ir.Module.parse(text)
        binaries = [op for op in module.body.operations if op.operation.name == "gpu.binary"]
        return [gpu.ObjectAttr(one).object.decode() for op in binaries for one in op.operation.attributes["objects"]]
