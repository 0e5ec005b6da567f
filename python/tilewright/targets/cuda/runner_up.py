# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happens when ptxas refuses a kernel: the plan takes its runner-up, a few times, and a remark says so.

Shapes are chosen by predicted time, and no prediction knows how many registers ptxas will need. The choice stays the
plan's: `tile-plan-gpu-tiles` gets ``choices`` with the number of the candidate, and the IR tells number and shape in
`tile.prediction`. All phases run again, so that nothing else in the IR is of another plan; other kernels are what they
were, and come from the cache of compiled code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.compiler import driver
from tilewright.compiler.tuning import plan_name
from tilewright.pipelines import cuda_plan
from tilewright.targets.cuda import emit, ptxas

#: Candidates of a kernel that are tried: the first one, and runners-up.
TRIES = 5


def build(work: driver.Compilation, pool: Any, folder: Path) -> None:
    """Compile a model for a GPU into an artifact, with other tiles for kernels that ptxas refuses.

    Raises:
        RefusedError: it refuses a kernel in all its tiles, or one that no plan made.
    """
    while True:
        driver.lower(work)
        try:
            return emit.emit(work, pool, folder)
        except ptxas.RefusedError as error:
            work = _with_runners_up(work, error)
            error.forget()


def _with_runners_up(work: driver.Compilation, error: ptxas.RefusedError) -> driver.Compilation:
    """The same compilation from its start, where each refused kernel takes the next candidate."""
    choices, remarks = dict(work.choices), list(work.kept)
    for symbol, message in error.kernels.items():
        plan = work.insight.get("kernels", {}).get(symbol, {}).get("plan", {})
        name, number = plan_name(symbol), plan.get("number", 0) + 1
        if number >= min(plan.get("candidates", 1), TRIES) or number <= work.choices.get(name, 0):
            raise error
        choices[name] = max(number, choices.get(name, 0))  # several kernels may have the name
        text = f"{message}; instead of {plan.get('shape', 'it')} the plan takes its runner-up, {plan['runner_up']}"
        remarks.append({"phase": "emit", "severity": "remark", "message": text, "location": symbol})
    return driver.Compilation(work.source, work.target, work.options, choices=choices, kept=remarks)


def pipeline(work: driver.Compilation, chosen: Any) -> Any:
    """A pipeline whose plan takes the candidates that were chosen by now."""
    texts = tuple(f"{name}:{number}" for name, number in sorted(work.choices.items()))
    return cuda_plan.with_choices(chosen, texts) if texts else chosen
