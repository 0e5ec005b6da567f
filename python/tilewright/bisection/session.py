# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One bisection from a model to the guilty pass, and what is written about it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bisection.compare import Difference, differences
from tilewright.bisection.entry import interpret
from tilewright.bisection.reduce import Reduced, reduce_case
from tilewright.bisection.search import Case, Found, Search, steps_text
from tilewright.bisection.stages import Run, Step, run_steps, start, steps_of
from tilewright.compiler.source import open_source
from tilewright.core.dtypes import stored
from tilewright.core.errors import UserError
from tilewright.ir.target_info import annotate
from tilewright.passes.pipeline import Pipeline
from tilewright.passes.registry import load_builtin_passes, load_file, registered_passes, source_file
from tilewright.reference import AssertionFailedError
from tilewright.report.measure import random_inputs
from tilewright.runtime.binding import Signature
from tilewright.targets.registry import parse_target


@dataclass(frozen=True)
class Bisection:
    """What a bisection found.

    Attributes:
        passes: the passes of which one moved the result: one, where it could be told; none where nothing moved.
        positions: their places in the pipeline, from 1.
        differences: the outputs after them against the baseline.
        error: what running the IR after them raised, if anything.
        failure: the error of the pass that stopped the pipeline, if one did.
        before: IR before the (first) pass, as text.
        after: IR after the (last) one.
        reduced: a module of few operations that the pass still breaks, as text; empty where there is none.
        reduced_operations: how many operations its @main holds.
        inputs: of the reduced module, by name.
        command: one shell command that shows it again (with the files that :meth:`write` makes).
        runs: how many states of the IR were run.
        seconds: how long it took.
        total: number of passes in the pipeline.
    """

    passes: tuple[Step, ...] = ()
    positions: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    error: str = ""
    failure: str = ""
    before: str = ""
    after: str = ""
    reduced: str = ""
    reduced_operations: int = 0
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    command: str = ""
    runs: int = 0
    seconds: float = 0.0
    total: int = 0

    @property
    def moved(self) -> bool:
        """True where some pass moved a result."""
        return bool(self.passes)

    def __str__(self) -> str:
        """Return the findings in a few lines."""
        work = f"{self.total} passes, {self.runs} states run, {self.seconds:.1f} s"
        if not self.passes:
            lines = [f"no pass moved a result ({work})"]
        else:
            lines = [*self._guilty(), *(f"  {d}" for d in self.differences if d.moved)]
            lines += [f"  {self.error}"] if self.error else []
            lines += [f"  reduced to {self.reduced_operations} operations"] if self.reduced else []
            lines += [f"  again: {self.command}"] if self.command else []
            lines += [f"  {work}"]
        return "\n".join([*lines, self.failure] if self.failure else lines)

    def _guilty(self) -> list[str]:
        if len(self.passes) == 1:
            return [f"pass {self.positions[0]} of {self.total} moved the result: {self.passes[0]}"]
        first, last = self.positions[0], self.positions[-1]
        head = f"one of the passes {first} to {last} of {self.total} moved the result; none of them can be left out:"
        return [head, *(f"    {number}. {step}" for number, step in zip(self.positions, self.passes, strict=True))]

    def write(self, folder: str | Path) -> Path:
        """Write report, IR before and after, the reduced module and its inputs; return the folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / "report.txt").write_text(f"{self}\n")
        data = {
            "passes": [step.text for step in self.passes],
            "positions": self.positions,
            "moved": [{**vars(d), "expected": str(d.expected), "got": str(d.got)} for d in self.differences if d.moved],
            "error": self.error or self.failure,
            "command": self.command,
        }
        (path / "report.json").write_text(json.dumps(data, indent=1) + "\n")
        for name, text in (("before", self.before), ("after", self.after), ("reduced", self.reduced)):
            if text:
                (path / f"{name}.mlir").write_text(text + "\n")
        for name, array in self.inputs.items():
            np.save(path / f"{name}.npy", array)
        return path


def bisect(
    model: Any,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    target: str = "cpu",
    *,
    shapes: Mapping[str, Any] | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
    pipeline: Pipeline | str | None = None,
    load_python: Sequence[str | Path] = (),
    insert: Sequence[tuple[str, str]] = (),
    tolerance: float | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    reduce: bool = True,
    tell: Callable[[str], Any] = lambda _: None,
) -> Bisection:
    """Find the first pass of a pipeline that moves a result of a model.

    The baseline is the imported module in the reference interpreter.

    Args:
        model: what :func:`tilewright.compile` takes.
        inputs: arrays by name or in order; random ones for those that are not given.
        target: whose pipeline and machine. Of a ``cuda`` target the passes up to phase `schedule`: what the others
            make is run by the emulator (``emulate=True``).
        shapes: sizes of symbolic dimensions.
        weights: arrays of the external globals of an MLIR module.
        pipeline: passes instead of the target's: a Pipeline, or text such as ``builtin.module(canonicalize,cse)``.
        load_python: files that register passes; these passes are the first suspects.
        insert: (pass as text, name of a pass or phase after which it is to stand).
        tolerance: largest difference of floats, as a share of the output's largest value; default: by dtype.
        seed: of random inputs.
        output: folder for what :meth:`Bisection.write` writes.
        reduce: make a small module that shows it too.
        tell: called with a line of progress.

    Raises:
        UserError: the model, an input or the pipeline is wrong, or a pass failed before any result moved.
    """
    began = time.monotonic()
    load_builtin_passes()
    for file in load_python:
        load_file(file)
    suspects = {name for name, cls in registered_passes().items() if source_file(cls)}
    machine = parse_target(target)
    imported = open_source(model, weights, shapes=shapes).load(shapes, many_threads=machine.many_threads)
    steps = _inserted(steps_of(machine.states() if pipeline is None else pipeline), insert)
    if machine.device is not None:
        annotate(imported.module, machine.device)
    arrays = _arrays(imported, inputs, seed)
    begin = start(imported.module, imported.weights)
    tell(f"imported in {time.monotonic() - began:.1f} s")
    try:
        baseline = interpret(begin, arrays, imported.outputs)
    except AssertionFailedError as error:
        raise UserError(f"the model refuses these inputs: {error.message}; give others") from None
    tell("baseline computed")
    case = Case(machine, (imported.inputs, imported.outputs), arrays, baseline, tolerance, tell)
    run = run_steps(begin, steps, tell)
    found = Search(case, run, suspects).find()
    if run.error is not None and not found.positions:
        raise run.error
    reduced = _reduced(case, run, found, tell) if reduce else None
    folder = None if output is None else Path(output).resolve()
    result = _result(run, found, reduced, folder, load_python, time.monotonic() - began)
    if folder is not None and result.moved:
        result.write(folder)
    return result


def _inserted(steps: list[Step], insert: Sequence[tuple[str, str]]) -> list[Step]:
    """Return the passes with others among them.

    Raises:
        UserError: no pass or phase has the name that one is to stand behind.
    """
    steps = list(steps)
    for text, name in insert:
        places = [i for i, step in enumerate(steps) if name in (step.phase, step.name)]
        if not places:
            known = ", ".join(dict.fromkeys(word for step in steps for word in (step.phase, step.name) if word))
            raise UserError(f"cannot insert {text} after {name!r}; passes and phases are: {known}")
        steps.insert(places[-1] + 1, Step(text, steps[places[-1]].phase))
    return steps


def _arrays(imported: Any, inputs: Any, seed: int) -> list[np.ndarray]:
    given = inputs if isinstance(inputs, Mapping) else {}
    positional = [] if inputs is None or isinstance(inputs, Mapping) else list(inputs)
    open_ = [spec for spec in imported.inputs[len(positional) :] if spec.name not in given]
    unknown = [spec for spec in open_ if -1 in spec.shape]
    if unknown:
        names = ", ".join(map(str, unknown))
        raise UserError(f"give inputs for {names}, or fix their sizes with shapes=: random ones need a shape")
    named = {**random_inputs(open_, seed), **given}
    return Signature(imported.inputs, imported.outputs).arrays(positional, named)[0]


def _reduced(case: Case, run: Run, found: Found, tell: Callable[[str], Any]) -> Reduced | None:
    if len(found.positions) != 1 or found.positions[0] >= len(run.stages):
        return None
    position = found.positions[0]
    before, after = run.stages[position - 1], run.stages[position]

    def moved(good: list[Any], bad: list[Any]) -> bool:
        names = [str(k) for k in range(len(good))]
        return len(good) != len(bad) or any(d.moved for d in differences(names, good, bad, case.tolerance))

    arguments = [stored(array) for array in case.inputs]
    reduced = reduce_case(before, after, run.steps[position - 1].text, arguments, moved)
    tell("no smaller case found" if reduced is None else f"reduced to {reduced.operations} operations")
    return reduced


def _result(
    run: Run,
    found: Found,
    reduced: Reduced | None,
    folder: Path | None,
    load_python: Sequence[str | Path],
    seconds: float,
) -> Bisection:
    work = {"runs": found.runs, "seconds": seconds, "total": len(run.steps), "failure": str(run.error or "")}
    if not found.positions or found.after is None:
        return Bisection(**work)
    first, last = found.positions[0], found.positions[-1]
    inputs = {} if reduced is None else {f"input{k}": array for k, array in enumerate(reduced.inputs)}
    passes = tuple(run.steps[position - 1] for position in found.positions)
    return Bisection(
        passes=passes,
        positions=found.positions,
        differences=found.after.differences,
        error=found.after.error,
        before=str(run.stages[first - 1].module),
        after=str(run.stages[last].module),
        reduced="" if reduced is None else str(reduced.module),
        reduced_operations=0 if reduced is None else reduced.operations,
        inputs=inputs,
        command="" if folder is None else _command(folder, passes, reduced is not None, inputs, load_python),
        **work,
    )


def _command(
    folder: Path, passes: Sequence[Step], reduced: bool, inputs: Mapping[str, Any], load_python: Sequence[str | Path]
) -> str:
    """Return a command that runs the pass on the written IR: with a comparison where it is reduced."""
    files = [word for file in load_python for word in ("--load-python", str(Path(file).resolve()))]
    pipeline = steps_text(list(passes))
    if reduced:
        given = [word for name in inputs for word in ("--input", f"{name}={folder / name}.npy")]
        words = ["tilewright", "bisect", str(folder / "reduced.mlir"), *files, "--pipeline", pipeline, *given]
    else:
        words = ["tile-opt", str(folder / "before.mlir"), *files, f"--pass-pipeline={pipeline}"]
    return shlex.join(words)
