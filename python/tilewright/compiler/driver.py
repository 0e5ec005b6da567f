# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to an artifact: the phases, weights that are computed once, code, manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.compiler import precision, starting
from tilewright.compiler.source import Imported, Source
from tilewright.core.options import PHASES, CompileOptions
from tilewright.core.workers import shared_pool
from tilewright.ir.units import symbol_of
from tilewright.passes.pipeline import PassSpec, Phase
from tilewright.targets.base import Target

if TYPE_CHECKING:
    from tilewright.mlir import ir
    from tilewright.passes.pipeline import Pipeline

_REPORT_IR = 400_000


@dataclass(frozen=True)
class Start:
    """What phases `import` and `normalize` made of a model: other compilations of it can begin there.

    Attributes:
        key: of the options and passes that it follows from.
        imported: with the module as it was imported.
        module: as it was normalized, in bytecode.
        phases: of the report, with their remarks.
    """

    key: str
    imported: Imported
    module: bytes
    phases: list[dict[str, Any]]
    remarks: list[dict[str, str]]

    def copy(self) -> Imported:
        """The normalized module in a context of its own, with weights and signature."""
        from tilewright.mlir import ir

        with ir.Context():
            module = ir.Module.parse(self.module)
        return replace(self.imported, module=module, weights=dict(self.imported.weights))


@dataclass
class Compilation:
    """One compilation under way: the module, the weights, what the report will tell.

    Attributes:
        start: phases `import` and `normalize` of the same model, if another compilation has been through them; of this
            one, as soon as it has and `shares` is set.
        kept: remarks of a compilation that this one replaces.
        kept_for_emit: what the target took out of the module on the way.
        narrowed: number of products that a precision makes narrow; None where none was asked for.
        from_kernels: whether the model is a module of layer 3: kernels, and a @main that only launches them.
    """

    source: Source
    target: Target
    options: CompileOptions = field(default_factory=CompileOptions)
    imported: Imported | None = None
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[dict[str, str]] = field(default_factory=list)
    statistics: dict[str, Any] = field(default_factory=dict)
    start: Start | None = None
    shares: bool = False
    kept: list[dict[str, str]] = field(default_factory=list)
    kept_for_emit: Any = None
    narrowed: int | None = None
    from_kernels: bool = False

    @property
    def module(self) -> ir.Module:
        """The module in its present form."""
        assert self.imported is not None
        return self.imported.module

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Time one phase, then record the IR after it."""
        entry: dict[str, Any] = {"name": name, "seconds": 0.0, "passes": []}
        self.phases.append(entry)
        start = time.perf_counter()
        yield entry
        entry["seconds"] = time.perf_counter() - start

    def again(self, options: CompileOptions, remarks: list[dict[str, str]]) -> Compilation:
        """The same from its start, with other options and remarks that say why."""
        shares = self.shares
        return Compilation(self.source, self.target, options, start=self.start, shares=shares, kept=remarks)


def lower(work: Compilation) -> str | None:
    """Run the phases up to `lower`; returns the IR's text where the options say to stop before the end."""
    stop = work.options.stop_after
    work.remarks += work.kept
    if work.options.start_from is not None:
        _begin_behind(work, work.options.start_from)
    elif work.start is not None and work.start.key == _start_key(work):
        _begin_at(work, work.start)
    else:
        _import(work)
    done = {entry["name"] for entry in work.phases}
    if stop in done:
        return str(work.module)
    for name in [name for name in _pipeline(work).names if name not in done - {"import"}]:
        # Looked up one by one: those after `normalize` follow from what was observed there, too.
        _run_phase(work, _pipeline(work).phase(name))
        if stop == name:
            return str(work.module)
        if name == "normalize":
            _share(work)
            _observe(work)
        work.target.after_phase(work, name)
    return None


def build(work: Compilation, folder: Path) -> Compilation:
    """Run everything and write the artifact to `folder`; returns the compilation that it is of.

    Raises:
        UserError, UnsupportedError: what the model asks for cannot be done.
        InternalError: a pass, LLVM or the linker failed.
    """
    shared_pool()  # the workers start while the front end runs
    other: Compilation | None = work
    while other is not None:
        work = other
        lower(work)
        other = work.target.emit(work, folder)
    return work


def _import(work: Compilation) -> None:
    from tilewright.compiler import kernel_statistics, list_graphs

    with work.phase("import") as entry:
        shapes = dict(work.options.shapes) or None
        work.imported = work.source.load(shapes, work.options.symbolic, work.target.many_threads)
        work.weights = dict(work.imported.weights)
        for node, message in work.imported.remarks.items():
            work.remarks.append({"phase": "import", "severity": "remark", "message": message, "location": node})
        _annotate(work)
    work.from_kernels = _is_layer_3(work.module)
    if work.from_kernels:
        _check_kernels(work, entry)
        kernel_statistics.observe(work.statistics, "tile", work.module, work.target.device)
    _record(work, entry)
    found = list_graphs.draw(work)
    if found is not None:
        entry["graphs"] = found


def _check_kernels(work: Compilation, entry: dict[str, Any]) -> None:
    """Kernels by hand reach nothing but their arguments."""
    if not work.options.checks:
        return
    guard = {"guard": work.target.kind == "cpu"}  # a GPU's memory is not the process's; the emulator checks all
    phase = Phase("import", [PassSpec("tile-check-accesses", "whoever wrote these kernels may have erred", guard)])
    _run_passes(work, phase, entry)


def _begin_at(work: Compilation, start: Start) -> None:
    """Take over what another compilation of the model went through."""
    work.imported = start.copy()
    work.weights = dict(work.imported.weights)
    work.phases += [dict(entry) for entry in start.phases]
    work.remarks += start.remarks
    precision.observe(work)
    _annotate(work)


def _begin_behind(work: Compilation, phase: str) -> None:
    """Take IR that was written behind a phase, with what is known of it behind that."""
    from tilewright.compiler import kernel_statistics

    with work.phase(phase) as entry:
        starting.begin(work, phase)
        if not work.options.is_decided:
            _annotate(work)
        if phase == "plan":
            _compute_weights(work, entry)
    if phase == "normalize":
        _observe(work)
    for name in ("tile", phase) if phase == "schedule" else (phase,):
        kernel_statistics.observe(work.statistics, name, work.module, work.target.device)
    _record(work, entry)
    work.target.after_phase(work, phase)


def _annotate(work: Compilation) -> None:
    """Write on the module what it is compiled for and how: passes read it there, in another process, too."""
    device, options = work.target.device, work.options
    if device is None:
        return
    from tilewright.ir.target_info import ModuleOptions, annotate

    names = [entry.name for entry in dataclasses.fields(ModuleOptions)]
    annotate(work.module, device, {name: getattr(options, name) for name in names})


def _observe(work: Compilation) -> None:
    """Let the module say what was observed, too: the IR after `normalize` then continues in another process."""
    precision.observe(work)
    if work.options.ranges:
        _annotate(work)
        _record(work, work.phases[-1])


def _dump_weights(work: Compilation, phase: str) -> None:
    """Put the weights beside the IR that is written: passes, and compilations that begin there, find them.

    Behind `tile` these are the weights that are left, those that @init made among them.
    """
    from tilewright.mlir import ir
    from tilewright.passes.weights import FILE, write_weights

    first = len(work.phases) == 1
    if not work.weights or not (first or phase in ("tile", "lower")):
        return
    weights = work.weights if first or phase == "lower" else starting.weights_left(work)
    name = write_weights(work.options.dump_ir, weights)
    work.module.operation.attributes[FILE] = ir.StringAttr.get(name, work.module.context)


def _share(work: Compilation) -> None:
    """Keep the normalized module for other compilations, if there will be some."""
    if not work.shares:
        return
    assert work.imported is not None
    buffer = io.BytesIO()
    work.module.operation.write_bytecode(buffer)
    remarks = work.remarks[len(work.kept) :]
    phases = [dict(entry) for entry in work.phases]
    work.start = Start(_start_key(work), work.imported, buffer.getvalue(), phases, remarks)


def _start_key(work: Compilation) -> str:
    """What phases `import` and `normalize` follow from."""
    first = [str(phase) for phase in _whole_pipeline(work).phases if phase.name == "normalize"]
    return repr((work.options.shapes, work.options.symbolic, first))


def _pipeline(work: Compilation) -> Pipeline:
    whole = _whole_pipeline(work)
    if work.options.start_from is not None:
        return whole if work.options.start_from == PHASES[0] else whole.after(work.options.start_from)
    own = work.options.pipeline is None
    return whole.after("tile") if own and work.from_kernels and "tile" in whole.names else whole


def _whole_pipeline(work: Compilation) -> Pipeline:
    return work.options.pipeline or work.target.pipeline(work.options)


def _is_layer_3(module: ir.Module) -> bool:
    """Return whether a module has kernels, and nothing else that planning is for."""
    from tilewright.ir.generics import walk

    functions = walk(module.operation, "func.func")
    planned = (walk(function, name) for function in functions for name in ("linalg.generic", "sparse_tile.matmul"))
    return bool(walk(module.operation, "tile.kernel")) and not any(planned)


def _run_phase(work: Compilation, phase: Phase) -> None:
    """Run the passes of a phase, and record what the report tells after it."""
    from tilewright.compiler import kernel_statistics

    existing = next((entry for entry in work.phases if entry["name"] == phase.name), None)
    with contextlib.nullcontext(existing) if existing else work.phase(phase.name) as entry:
        _run_passes(work, phase, entry)
    kernel_statistics.observe(work.statistics, phase.name, work.module, work.target.device)
    _record(work, entry)


def _run_passes(work: Compilation, phase: Phase, entry: dict[str, Any]) -> None:
    from tilewright.compiler import list_graphs
    from tilewright.passes import run_pipeline

    verify = True if work.options.pipeline is not None else None  # a user's: an order that nobody tried
    if phase.passes:
        for part in _parts(work, phase):
            done = run_pipeline(work.module.operation, str(part), verify=verify, weights=work.weights)
            entry["passes"] += [[name, seconds] for name, seconds in done.timings]
            for diagnostic in done.diagnostics:
                work.remarks.append({"phase": phase.name, **_remark(diagnostic)})
            for note in done.notes:
                work.statistics.setdefault(note.kind, []).append(note.values)
            _count_change(work, entry, part)
            list_graphs.draw_ordered(work, part)
    if phase.name == "plan":
        if work.options.symbolic:
            from tilewright.plan.model.mark_host_fallback import loops_of_open_sizes

            work.statistics["open_loops"] = loops_of_open_sizes(work.module.operation)
        _compute_weights(work, entry)


def _parts(work: Compilation, phase: Phase) -> list[Phase]:
    """A phase as it is run: as a whole, or one pass at a time where the IR is looked at."""
    from tilewright.compiler import list_graphs

    if work.options.dump_ir is None or phase.name == "lower":
        return list_graphs.parts(work, phase)
    return [replace(phase, passes=(each,)) for each in phase.passes]


def _count_change(work: Compilation, entry: dict[str, Any], part: Phase) -> None:
    """Note what a call costs behind a pass that changed it, where passes are run one at a time."""
    if work.options.dump_ir is None or len(part.passes) != 1:
        return
    from tilewright.compiler import run_counts

    found, known = run_counts.counts(work.module), entry.setdefault("changes", [])
    last = known[-1][1] if known else next((e["counts"] for e in reversed(work.phases) if "counts" in e), None)
    if found is not None and not run_counts.alike(found, last):
        known.append([str(part.passes[0]), found])


def _remark(diagnostic: Any) -> dict[str, str]:
    return {"severity": diagnostic.severity, "message": diagnostic.message, "location": str(diagnostic.location)}


def _compute_weights(work: Compilation, entry: dict[str, Any]) -> None:
    """Run @init, which packs and folds weights, and keep its results under their globals' names."""
    from tilewright import reference
    from tilewright.ir import decisions
    from tilewright.mlir import ir

    function = next((op for op in work.module.body.operations if symbol_of(op) == "init"), None)
    if function is None:
        return
    start = time.perf_counter()
    results = reference.run(work.module, "init", [], work.weights)
    attributes = ir.ArrayAttr(function.attributes["res_attrs"])
    for attrs, value in zip(attributes, results, strict=True):
        work.weights[ir.StringAttr(ir.DictAttr(attrs)[decisions.GLOBAL]).value] = value
    entry["passes"].append(["(compute @init: pack and fold weights)", time.perf_counter() - start])


def _count(work: Compilation, entry: dict[str, Any]) -> None:
    """Add what a call costs as the module stands; code has no launches to count, but meetings."""
    from tilewright.compiler import loop_predictions, run_counts

    if entry["name"] != "lower":
        found = run_counts.count(work.module)
        entry["counts"] = None if found is None else found.as_dict()
        if entry["name"] == "schedule" and found is not None:
            work.statistics["run"] = found, loop_predictions.plans_of(work.module)
        return
    meetings = work.statistics.get("meetings", {})
    before = next((e["counts"] for e in reversed(work.phases) if e.get("counts")), None)
    entry["counts"] = run_counts.met(before, meetings)
    if "run" in work.statistics and work.target.device is not None:
        run, plans = work.statistics["run"]
        kernels = work.statistics.setdefault("kernels", {})
        for name, plan in loop_predictions.held_plans(run, plans, meetings, work.target.device).items():
            kernels[name] = {"launches": before["holders"][name] if before else 1, "tasks": None, "plan": plan}


def _record(work: Compilation, entry: dict[str, Any]) -> None:
    _count(work, entry)
    starting.sign(work, entry["name"])
    if work.options.dump_ir is not None:
        _dump_weights(work, entry["name"])
    text = str(work.module)
    entry["ir_bytes"] = len(text)
    entry["ir"] = text if len(text) <= _REPORT_IR else text[:_REPORT_IR].rpartition("\n")[0]
    folder = work.options.dump_ir
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{PHASES.index(entry['name'])}-{entry['name']}.mlir").write_text(text + "\n")
