# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR after each pass of a pipeline, with the weights that @init has computed by then."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import reference
from tilewright.core.errors import TilewrightError, UserError
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import Pipeline


@dataclass(frozen=True)
class Step:
    """One pass of a pipeline as text, and the phase that it is in."""

    text: str
    phase: str = ""

    @property
    def name(self) -> str:
        """The pass's name, without options and nesting."""
        inner = self.text.rsplit("(", 1)[-1] if "(" in self.text.split("{", 1)[0] else self.text
        return inner.split("{", 1)[0].rstrip(")")

    def __str__(self) -> str:
        """Return the pass and its phase."""
        return f"{self.text} (phase {self.phase})" if self.phase else self.text


@dataclass
class Stage:
    """A state of the IR: after how many passes, the module (a copy), and the weights known there."""

    position: int
    module: ir.Operation
    weights: dict[str, np.ndarray]
    digest: str


@dataclass
class Run:
    """The stages of a pipeline, the first one before any pass; ``error`` is what stopped it, if anything did."""

    steps: list[Step]
    stages: list[Stage] = field(default_factory=list)
    error: TilewrightError | None = None


def steps_of(pipeline: Pipeline | str) -> list[Step]:
    """Return the passes of a pipeline; a text is ``builtin.module(a,b{x=1},func.func(c))``.

    Raises:
        UserError: the text is no pipeline on a module.
    """
    if isinstance(pipeline, Pipeline):
        return [Step(str(spec), phase.name) for phase in pipeline.phases for spec in phase.passes]
    text = " ".join(str(pipeline).split())
    if not (text.startswith("builtin.module(") and text.endswith(")")):
        raise UserError(f"a pipeline as text has the form builtin.module(pass,pass,...), got: {text[:80]}")
    return [Step(part) for part in _parts(text[len("builtin.module(") : -1])]


def _parts(text: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def digest(module: ir.Operation) -> str:
    """Return a digest of the IR."""
    buffer = io.BytesIO()
    module.write_bytecode(buffer)
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def start(module: ir.Module, weights: dict[str, np.ndarray]) -> Stage:
    """Return the state before any pass."""
    copy = module.operation.clone(ip=False)
    return Stage(0, copy, dict(weights), digest(copy))


def run_steps(begin: Stage, steps: Sequence[Step], tell: Callable[[str], Any] = lambda _: None) -> Run:
    """Run passes one by one from a state; the state itself stays as it is.

    Args:
        begin: where to begin.
        steps: the passes.
        tell: called with a line about what takes long.

    Returns:
        The stages; where a pass fails, those before it and the error.
    """
    begun = time.perf_counter()
    run = Run(list(steps), [begin])
    work = begin.module.clone(ip=False)
    known: dict[str, dict[str, np.ndarray]] = {}
    weights = begin.weights
    for position, step in enumerate(steps, begin.position + 1):
        try:
            run_pipeline(work, f"builtin.module({step.text})", replay=False, weights=weights)
        except TilewrightError as error:
            error.message = f"pass {step} failed: {error.message}"
            run.error = error
            break
        weights = _initial(work, weights, known)
        copy = work.clone(ip=False)
        run.stages.append(Stage(position, copy, weights, digest(copy)))
    tell(f"{len(run.stages) - 1} passes in {time.perf_counter() - begun:.1f} s")
    return run


def functions(module: ir.Operation) -> dict[str, ir.Operation]:
    """Return the symbols at the top of a module."""
    ops = (op.operation for op in module.regions[0].blocks[0].operations)
    return {op.attributes["sym_name"].value: op for op in ops if "sym_name" in op.attributes}


def _initial(
    module: ir.Operation, weights: dict[str, np.ndarray], known: dict[str, dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return the weights with those that @init computes, as a target does after phase `plan`."""
    function = functions(module).get("init")
    if function is None or "res_attrs" not in function.attributes:
        return weights
    key = str(function)
    if key not in known:
        names = [ir.DictAttr(attrs)[decisions.GLOBAL].value for attrs in ir.ArrayAttr(function.attributes["res_attrs"])]
        known[key] = dict(zip(names, reference.run(module, "init", [], weights), strict=True))
    return {**weights, **known[key]}
