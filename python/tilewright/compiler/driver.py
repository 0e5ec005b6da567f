# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to an artifact: the phases, weights that are computed once, code, manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tilewright
from tilewright.compiler.source import Imported, Source
from tilewright.compiler.split import Unit, split, symbol_of
from tilewright.core import cache
from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import InternalError, UserError
from tilewright.core.workers import Job, shared_pool
from tilewright.runtime.artifact import write_artifact
from tilewright.runtime.cpu.cpu_features import MATRIX_UNIT
from tilewright.runtime.manifest import KernelInfo, Manifest, TensorSpec
from tilewright.targets.cpu.linker import link
from tilewright.targets.target import Target

if TYPE_CHECKING:
    from tilewright.mlir import ir
    from tilewright.passes.pipeline import Pipeline

PHASES = ("import", "normalize", "plan", "tile", "schedule", "lower", "emit")
ENTRY = "tw_main"
_REPORT_IR = 400_000


@dataclass(frozen=True)
class Options:
    """What the user may choose.

    Attributes:
        shapes: sizes of symbolic dimensions, or their ranges.
        symbolic: compile for all sizes of the dimensions that `shapes` leaves open.
        stop_after: name of the last phase to run; None: all.
        dump_ir: folder that receives the IR after each phase.
        pipeline: passes instead of the target's own.
        opt_level: LLVM's optimization level.
        cubin: for a GPU, machine code beside the PTX.
    """

    shapes: tuple[tuple[str, Any], ...] = ()
    symbolic: bool = False
    stop_after: str | None = None
    dump_ir: Path | None = None
    pipeline: Pipeline | None = None
    opt_level: int = 3
    cubin: bool = False

    def __post_init__(self) -> None:
        """Check the name of the phase."""
        if self.stop_after is not None and self.stop_after not in PHASES:
            raise UserError(f"there is no phase {self.stop_after!r}; the phases are {', '.join(PHASES)}")


@dataclass
class Compilation:
    """One compilation under way: the module, the weights, what the report will tell.

    For a GPU `host` is the host program, made after phase `schedule`; `choices` are the numbers of the candidates that
    kernels take because ptxas refused the ones before, and `kept` the remarks that say so.
    """

    source: Source
    target: Target
    options: Options
    imported: Imported | None = None
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[dict[str, str]] = field(default_factory=list)
    insight: dict[str, Any] = field(default_factory=dict)
    host: Any = None
    choices: dict[str, int] = field(default_factory=dict)
    kept: list[dict[str, str]] = field(default_factory=list)

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


def lower(work: Compilation) -> str | None:
    """Run the phases up to `lower`; returns the IR's text where the options say to stop before the end."""
    from tilewright.report import kernel_statistics

    stop = work.options.stop_after
    work.remarks += work.kept
    with work.phase("import") as entry:
        many = work.target.kind == "cuda"
        work.imported = work.source.load(dict(work.options.shapes) or None, work.options.symbolic, many)
        work.weights = dict(work.imported.weights)
        for node, message in work.imported.remarks.items():
            work.remarks.append({"phase": "import", "severity": "remark", "message": message, "location": node})
    if _has_kernels(work.module):
        kernel_statistics.observe(work.insight, "tile", work.module, work.target.device)
    _record(work, entry)
    if stop == "import":
        return str(work.module)
    for phase in _pipeline(work).phases:
        existing = next((p for p in work.phases if p["name"] == phase.name), None)
        with contextlib.nullcontext(existing) if existing else work.phase(phase.name) as entry:
            _run_phase(work, phase, entry)
        kernel_statistics.observe(work.insight, phase.name, work.module, work.target.device)
        _record(work, entry)
        if stop == phase.name:
            return str(work.module)
        if phase.name == "schedule" and work.target.kind == "cuda":
            from tilewright.targets.cuda import emit

            emit.export_host(work)
    return None


def build(work: Compilation, folder: Path) -> None:
    """Run everything and write the artifact to `folder`.

    Raises:
        UserError, UnsupportedError: what the model asks for cannot be done.
        InternalError: a pass, LLVM or the linker failed.
    """
    pool = shared_pool()  # the workers start while the front end runs
    if work.target.kind == "cuda":
        from tilewright.targets.cuda import runner_up

        return runner_up.build(work, pool, folder)
    lower(work)
    with work.phase("emit"):
        entry = _entry_attributes(work.module)
        units, shared = split(work.module, ENTRY)
        dump_units(work.options.dump_ir, units)
        link(_object_codes(pool, units, work), folder / "model.so")
        code = (folder / "model.so").read_bytes()
        (folder / "model.so").unlink()
    weights = {name: weight(work, name) for name in entry["globals"]}
    manifest = manifest_of(work, [unit.symbol for unit in units if unit.symbol != ENTRY], shared, weights)
    features = _needed(work.target.needed, units)
    manifest = dataclasses.replace(manifest, arena_bytes=entry["arena_bytes"], entry=ENTRY, cpu_features=features)
    write_artifact(folder, manifest, code, weights, report(work))


def dump_units(folder: Path | None, units: Sequence[Unit]) -> None:
    """Write what each compile worker gets."""
    if folder is None:
        return
    inner = folder / f"{PHASES.index('emit')}-emit"
    inner.mkdir(parents=True, exist_ok=True)
    for unit in units:
        (inner / f"{unit.symbol}.mlir").write_bytes(unit.module)


def _pipeline(work: Compilation) -> Pipeline:
    if work.choices:
        from tilewright.targets.cuda import runner_up

        return runner_up.pipeline(work, _first_pipeline(work))
    return _first_pipeline(work)


def _first_pipeline(work: Compilation) -> Pipeline:
    if work.options.pipeline is not None:
        return work.options.pipeline
    if work.target.kind == "cuda":
        from tilewright.pipelines.cuda import pipeline
    else:
        from tilewright.pipelines.cpu import pipeline
    assert work.target.device is not None
    whole = pipeline(work.target.device)
    return whole.after("tile") if _has_kernels(work.module) else whole


def _has_kernels(module: ir.Module) -> bool:
    """Return whether the module is of layer 3: kernels, and a @main that launches them."""
    return any(op.operation.name == "tile.kernel" for op in module.body.operations)


def _run_phase(work: Compilation, phase: Any, entry: dict[str, Any]) -> None:
    from tilewright.passes import run_pipeline
    from tilewright.plan.attention.masks import known_weights

    if phase.passes:
        with known_weights(work.weights):
            done = run_pipeline(work.module.operation, str(phase))
        entry["passes"] += [[name, seconds] for name, seconds in done.timings]
        for diagnostic in done.diagnostics:
            work.remarks.append({"phase": phase.name, **_remark(diagnostic)})
    if phase.name == "plan":
        _compute_weights(work, entry)


def _remark(diagnostic: Any) -> dict[str, str]:
    return {"severity": diagnostic.severity, "message": diagnostic.message, "location": str(diagnostic.location)}


def _compute_weights(work: Compilation, entry: dict[str, Any]) -> None:
    """Run @init, which packs and folds weights, and keep its results under their globals' names."""
    from tilewright import reference
    from tilewright.mlir import ir

    function = next((op for op in work.module.body.operations if symbol_of(op) == "init"), None)
    if function is None:
        return
    start = time.perf_counter()
    results = reference.run(work.module, "init", [], work.weights)
    attributes = ir.ArrayAttr(function.attributes["res_attrs"])
    for attrs, value in zip(attributes, results, strict=True):
        work.weights[ir.StringAttr(ir.DictAttr(attrs)["tile.global"]).value] = value
    entry["passes"].append(["(compute @init: pack and fold weights)", time.perf_counter() - start])


def _record(work: Compilation, entry: dict[str, Any]) -> None:
    text = str(work.module)
    entry["ir_bytes"] = len(text)
    entry["ir"] = text if len(text) <= _REPORT_IR else text[:_REPORT_IR].rpartition("\n")[0]
    folder = work.options.dump_ir
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{PHASES.index(entry['name'])}-{entry['name']}.mlir").write_text(text + "\n")


def _entry_attributes(module: ir.Module) -> dict[str, Any]:
    """Return what lowering wrote on the entry: names of inputs, outputs and globals in order, the arena's bytes."""
    for op in module.body.operations:
        if symbol_of(op) == ENTRY:
            attributes = op.operation.attributes
            names = {key: [a.value for a in attributes[f"tile.{key}"]] for key in ("inputs", "outputs", "globals")}
            return {**names, "arena_bytes": attributes["tile.arena_bytes"].value}
    raise InternalError(f"the lowered module has no function @{ENTRY}")


def weight(work: Compilation, name: str) -> np.ndarray:
    """The bytes of a weight, of the model's own or one that @init made."""
    if name not in work.weights:
        raise InternalError(f"the code needs the weight {name}, which neither the model nor @init holds")
    return work.weights[name]


def _object_codes(pool: Any, units: Sequence[Unit], work: Compilation) -> list[bytes]:
    target, level = work.target, work.options.opt_level
    build_id = cache.libraries_id()
    keys = [cache.digest(unit.module, target.cpu, target.features, str(level), build_id) for unit in units]
    codes = [cache.find_kernel(key) for key in keys]
    missing = [i for i, code in enumerate(codes) if code is None]
    jobs = [Job(units[i].symbol, units[i].module, target.cpu, target.features, level) for i in missing]
    for i, code in zip(missing, pool.compile(jobs), strict=True):
        codes[i] = code
        cache.add_kernel(keys[i], code)
    return [code for code in codes if code is not None]


def _needed(features: tuple[str, ...], units: Sequence[Unit]) -> tuple[str, ...]:
    """The features without those of the matrix unit where no kernel calls it: it needs the kernel's permission."""
    if any(b"llvm.x86.tile" in unit.module for unit in units):
        return features
    return tuple(name for name in features if name not in MATRIX_UNIT)


def manifest_of(
    work: Compilation, symbols: Sequence[str], shared: dict[str, str], weights: dict[str, np.ndarray]
) -> Manifest:
    """The manifest, but for what depends on the kind of target.

    Args:
        work: the compilation.
        symbols: of the kernels' code.
        shared: the symbol whose code each kernel has.
        weights: in order.
    """
    assert work.imported is not None
    specs = tuple(TensorSpec(name, from_numpy(a.dtype), a.shape) for name, a in weights.items())
    details = work.insight.get("kernels", {})
    kernels = []
    for symbol in symbols:
        merged = [details[name] for name, code in shared.items() if code == symbol and name in details]
        launches = sum(d["launches"] for d in merged) or 1
        info = merged[0] if merged else {}
        more = {key: value for key, value in info.items() if key not in ("launches", "tasks")}
        scratch = work.insight.get("scratch", {}).get(symbol, 0)
        kernels.append(KernelInfo(symbol, symbol, launches, info.get("tasks"), scratch, more))
    return Manifest(
        inputs=work.imported.inputs,
        outputs=work.imported.outputs,
        weights=specs,
        kernels=tuple(kernels),
        target=work.target.name,
        cpu=work.target.cpu,
        producer=f"tilewright {tilewright.__version__}",
        compile={
            "model": work.source.name,
            "seconds": {p["name"]: round(p["seconds"], 4) for p in work.phases},
            "ranges": work.imported.ranges,
            "dims": work.imported.dims,
        },
    )


def report(work: Compilation) -> dict[str, Any]:
    """What the artifact keeps for explain()."""
    device = work.target.device
    return {
        "phases": work.phases,
        "remarks": work.remarks,
        "groups": work.insight.get("groups", []),
        "kernel_text": work.insight.get("kernel_text", {}),
        "device": device.to_dict() if device is not None else {},
        "target": {"name": work.target.name, "cpu": work.target.cpu, "features": work.target.features},
    }
