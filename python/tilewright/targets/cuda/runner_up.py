# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happens when ptxas refuses a kernel: the plan takes its runner-up, a few times, and a remark says so.

Shapes are chosen by predicted time, and no prediction knows how many registers ptxas will need. The choice stays the
plan's: `tile-plan-gpu-tiles` reads the number of the candidate in the module's options, and the IR tells number and
shape in `tile.prediction`. All phases run again, so that nothing else in the IR is of another plan; other kernels are
what they were, and come from the cache of compiled code.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.plan.model.names import plan_name
from tilewright.targets.cuda import emit as cuda_emit
from tilewright.targets.cuda import ptxas

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation

#: Candidates of a kernel that are tried: the first one, and runners-up.
TRIES = 5


def emit(work: Compilation, folder: Path) -> Compilation | None:
    """Write the artifact of a model for a GPU; or return the compilation with other tiles for refused kernels.

    Raises:
        RefusedError: ptxas refuses a kernel in all its tiles, or one that no plan made.
    """
    try:
        cuda_emit.emit(work, folder)
    except ptxas.RefusedError as error:
        work = _with_runners_up(work, error)
        error.forget()
        return work
    return None


def _with_runners_up(work: Compilation, error: ptxas.RefusedError) -> Compilation:
    """The same compilation from its start, where each refused kernel takes the next candidate."""
    if work.options.is_decided:
        raise error  # its tiles stand in the IR that was given
    choices, remarks = dict(_chosen(work)), list(work.kept)
    for symbol, message in error.kernels.items():
        plan = work.statistics.get("kernels", {}).get(symbol, {}).get("plan", {})
        name, number = plan_name(symbol), plan.get("number", 0) + 1
        if number >= min(plan.get("candidates", 1), TRIES) or number <= _chosen(work).get(name, 0):
            raise error
        choices[name] = max(number, choices.get(name, 0))  # several kernels may have the name
        text = f"{message}; instead of {plan.get('shape', 'it')} the plan takes its runner-up, {plan['runner_up']}"
        remarks.append({"phase": "emit", "severity": "remark", "message": text, "location": symbol})
    texts = tuple(f"{name}:{number}" for name, number in choices.items())
    return work.again(replace(work.options, choices=texts), remarks)


def _chosen(work: Compilation) -> dict[str, int]:
    """The number of the candidate that each kernel takes, where it is not the first."""
    return {name: int(number) for name, _, number in (text.rpartition(":") for text in work.options.choices)}
