# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR of a program before each pass, and the code that the rest of the pipeline makes of it, edited or not."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import tempfile
from pathlib import Path

from decision_edit import ARTIFACT
from decision_programs import source_of, start_of

from tilewright.compiler.driver import Compilation, lower
from tilewright.core.options import CompileOptions
from tilewright.core.workers import Job, shared_pool
from tilewright.ir import decisions
from tilewright.ir.target_info import annotate
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import PassSpec
from tilewright.targets.cuda import host_program
from tilewright.targets.registry import parse_target

#: The pass that begins with kernels.
_KERNELS = "tile-globals-to-arguments"


@functools.cache
def passes_of(target: str) -> tuple[PassSpec, ...]:
    """All passes, with the last ones of phases `normalize` and `schedule` marked by their positions."""
    pipeline = parse_target(target).pipeline(CompileOptions())
    return tuple(spec for phase in pipeline.phases for spec in phase.passes)


@functools.cache
def _normalized(target: str) -> int:
    """How many of them run in phase `normalize`."""
    return len(parse_target(target).pipeline(CompileOptions()).phase("normalize").passes)


@functools.cache
def _host_end(target: str) -> int:
    """How many of them run before phase `lower`: a GPU's host program is exported there."""
    return len(passes_of(target)) - len(parse_target(target).pipeline(CompileOptions()).phase("lower").passes)


@functools.cache
def before(program: str, target: str, reader: str) -> str:
    """The IR that a pass reads, or who writes the artifact: of one of the programs, or of a part of a lit test."""
    if reader == ARTIFACT:
        return str(_lowered(program, target).module)
    start, text = start_of(program, target)
    if not start:
        return text
    with ir.Context(), ir.Location.unknown():
        module = _parsed(text, target)
        specs = passes_of(target)[_first(target, start) : _first(target, reader)]
        if specs:
            run_pipeline(module.operation, _text(specs), replay=False)
        return str(module)


def _parsed(text: str, target: str) -> ir.Module:
    """A module that says what it is compiled for."""
    module = ir.Module.parse(text)
    if not decisions.DEVICE.on(module.operation):
        device = parse_target(target).device
        assert device is not None
        annotate(module, device)
    return module


def _first(target: str, name: str) -> int:
    """Number of the first pass of that name behind phase `normalize`; where there is none, of all."""
    found = [i for i, spec in enumerate(passes_of(target)) if spec.name == name]
    return next((i for i in found if i >= _normalized(target)), found[0])


def _made(kind: str, module: ir.Module, cpu: str, features: str) -> str:
    """What LLVM makes of a module, in a worker; a low level keeps what the IR says visible, and is fast."""
    return shared_pool().compile([Job("test", str(module).encode(), cpu, features, 1, kind)])[0].decode()


@functools.cache
def code(text: str, target: str, reader: str) -> str:
    """What the pass and all behind it make of the IR: LLVM IR and the entry, or PTX, launches and host program."""
    specs = passes_of(target)
    first = _first(target, reader)
    gpu = target.startswith("cuda")
    with ir.Context(), ir.Location.unknown():
        module = _parsed(text, target)
        host = ""
        if gpu and first < _host_end(target):
            run_pipeline(module.operation, _text(specs[first : _host_end(target)]), replay=False)
            if any(symbol_of(op) == "main" for op in module.body.operations):
                host = str(host_program.export(module, "main", target.partition(":")[2]))
            first = _host_end(target)
        run_pipeline(module.operation, _text(specs[first:]), replay=False)
        launched = "\n".join(_called(module))
        if gpu:
            return f"{host}\n{launched}\n" + _made("ptx", module, target.partition(":")[2], "+ptx88")
        found = parse_target(target)
        return f"{launched}\n" + _made("llvm-ir", module, found.cpu, found.features)


@functools.cache
def _lowered(program: str, target: str) -> Compilation:
    """A program before it is emitted."""
    start, text = start_of(program, target)
    kernels = before(program, target, _KERNELS) if start == "tile-stream-k" else text
    work = Compilation(source_of(program, kernels), parse_target(target), CompileOptions(symbolic=True, opt_level=1))
    lower(work)
    return work


@functools.cache
def artifact(text: str, program: str, target: str) -> dict[str, bytes]:
    """The files of the artifact, but for reports, of a program whose lowered IR is this."""
    work = _lowered(program, target)
    with work.module.context, ir.Location.unknown(), tempfile.TemporaryDirectory() as folder:
        imported = dataclasses.replace(work.imported, module=ir.Module.parse(text))
        work.target.emit(dataclasses.replace(work, imported=imported, phases=[], remarks=[]), Path(folder))
        files = {str(file.relative_to(folder)): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}
    manifest = json.loads(files["manifest.json"])
    del manifest["compile"]
    return {**files, "manifest.json": json.dumps(manifest).encode(), "report.json": b""}


def _called(module: ir.Module) -> list[str]:
    """How functions of the code are called, which artifacts hold: what entries are given, kernels' launches."""
    names = "inputs|outputs|globals|arena_bytes|params|threads|shared_bytes|cluster|persistent|rounded|waits"
    pattern = re.compile(rf"tile\.(?:{names})( = (\[.*?\]|array<[^>]*>|[^,}}]*))?")
    return [match[0] for line in str(module).splitlines() if "llvm.func" in line for match in pattern.finditer(line)]


def _text(specs: tuple[PassSpec, ...]) -> str:
    return "builtin.module(" + ",".join(map(str, specs)) + ")"
