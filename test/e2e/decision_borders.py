# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR of a program before each pass, and the code that the rest of the pipeline makes of it, edited or not."""

from __future__ import annotations

import functools
import re
from pathlib import Path

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

ROOT = Path(__file__).resolve().parents[2]

_MAPS = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>
"""


def _product(rows: int, columns: int, depth: int, kind: str, given: bool, marks: tuple[str, str]) -> str:
    """y = -(x w^T): the operands of type `kind`, w an argument where it is `given`, else a weight."""
    x, w = f"tensor<{rows}x{depth}x{kind}>", f"tensor<{columns}x{depth}x{kind}>"
    y, wide = f"tensor<{rows}x{columns}xf32>", "arith.extf {} : " + kind + " to f32"
    widened = [f"%{v}w = {wide.format(f'%{v}')}" if kind != "f32" else "" for v in "qs"]
    q, s = ("%qw", "%sw") if kind != "f32" else ("%q", "%s")
    weight = f"ml_program.global private @w_0(#ml_program.extern<{w}> : {w}) : {w}\n"
    return f"""{_MAPS}{"" if given else weight}
func.func @main(%x: {x} {{tile.name = "x"}}{f', %w: {w} {{tile.name = "w"}}' if given else ""})
    -> ({y} {{tile.name = "y"}}) {{
  {"" if given else f"%w = ml_program.global_load_const @w_0 : {w}"}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%f : {y}) attrs = {{{marks[0]}}} {{
  ^bb0(%q: {kind}, %s: {kind}, %o: f32):
    {widened[0]}
    {widened[1]}
    %m = arith.mulf {q}, {s} : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> {y}
  %r = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {y}) outs(%e : {y}) attrs = {{{marks[1]}}} {{
  ^bb0(%q: f32, %o: f32):
    %t = arith.negf %q : f32
    linalg.yield %t : f32
  }} -> {y}
  return %r : {y}
}}
"""


_PLAN = (
    'tile.task = 0 : i64, tile.nest = 0 : i64, tile.kernel = "product", '
    "tile.rtile = #tile.rtile<l2 = [16, 32, 48], register = [8, 32, 1], order = [1, 0, 2]>, "
    "tile.layouts = [unit, #tile.layout<perm = [1, 0]>], "
    "tile.pack_rtiles = [unit, #tile.rtile<l2 = [48, 32], register = [16, 16], order = [0, 1]>]",
    "tile.task = 0 : i64, tile.nest = 0 : i64",
)
_APART = (
    "tile.task = 0 : i64, tile.nest = 7 : i64, "
    "tile.rtile = #tile.rtile<l2 = [16, 32], register = [1, 32], order = [0, 1]>"
)
_OPEN = (
    _product(32, 64, 48, "f32", True, (_PLAN[0], _APART))
    .replace("tensor<32x", "tensor<?x")
    .replace("l2 = [16,", "l2 = [?,")
)

#: Programs: the first pass that they are for, and their IR.
PROGRAMS = {
    "plain": ("tile-plan-fusion", _product(32, 64, 48, "f32", True, ("test.product", "test.negation"))),
    "planned": ("tile-apply-layouts", _product(32, 64, 48, "f32", True, _PLAN)),
    "streamed": (
        "tile-apply-layouts",
        _product(32, 64, 48, "f32", True, (_PLAN[0] + ", tile.stream", _PLAN[1])),
    ),
    "weights": ("tile-plan-fusion", _product(32, 64, 48, "f32", False, ("test.product", "test.negation"))),
    "large": ("tile-plan-fusion", _product(4096, 4096, 1024, "f16", True, ("test.product", "test.negation"))),
    "open": (
        "tile-apply-layouts",
        _OPEN.replace("tensor.empty()", "tensor.empty(%n)").replace(
            "  %zero =", "  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : tensor<?x48xf32>\n  %zero ="
        ),
    ),
}


@functools.cache
def passes_of(target: str) -> tuple[PassSpec, ...]:
    """All passes behind phase `normalize`, with the last one of phase `schedule` marked by its position."""
    pipeline = parse_target(target).pipeline(CompileOptions())
    return tuple(spec for phase in pipeline.after("normalize").phases for spec in phase.passes)


@functools.cache
def _host_end(target: str) -> int:
    """How many of them run before phase `lower`: a GPU's host program is exported there."""
    return len(passes_of(target)) - len(parse_target(target).pipeline(CompileOptions()).phase("lower").passes)


@functools.cache
def before(program: str, target: str, reader: str) -> str:
    """The IR that a pass reads: of one of the programs, or of a lit test, `test/x.mlir#2` for its third part."""
    if program in PROGRAMS:
        start, text = PROGRAMS[program]
        with ir.Context(), ir.Location.unknown():
            module = _parsed(text, target)
            specs = passes_of(target)[_first(target, start) : _first(target, reader)]
            if specs:
                run_pipeline(module.operation, _text(specs), replay=False)
            return str(module)
    file, _, number = program.partition("#")
    part = (ROOT / file).read_text().split("// -----")[int(number)]
    return "\n".join(line for line in part.splitlines() if not line.lstrip().startswith("//"))


def _parsed(text: str, target: str) -> ir.Module:
    """A module that says what it is compiled for."""
    module = ir.Module.parse(text)
    if not decisions.DEVICE.on(module.operation):
        device = parse_target(target).device
        assert device is not None
        annotate(module, device)
    return module


def _first(target: str, name: str) -> int:
    """Number of the first pass of that name."""
    return next(i for i, spec in enumerate(passes_of(target)) if spec.name == name)


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
            return host + launched + _made("ptx", module, target.partition(":")[2], "+ptx88")
        found = parse_target(target)
        return launched + _made("llvm-ir", module, found.cpu, found.features)


def after(text: str, pipeline: str) -> str:
    """What a pass makes of the IR, without attributes: for IR that is too small to become code."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, pipeline, replay=False)
        return re.sub(r"tile\.\w+( = (array<[^>]*>|\"[^\"]*\"|-?\d+ : i64|[{\[][^\]}]*[}\]]))?,? ?", "", str(module))


def _called(module: ir.Module) -> list[str]:
    """How functions of the code are called, which artifacts hold: what entries are given, kernels' launches."""
    names = "inputs|outputs|globals|arena_bytes|params|threads|shared_bytes|cluster|persistent|rounded|waits"
    pattern = re.compile(rf"tile\.(?:{names})( = (\[.*?\]|array<[^>]*>|[^,}}]*))?")
    return [match[0] for line in str(module).splitlines() if "llvm.func" in line for match in pattern.finditer(line)]


def _text(specs: tuple[PassSpec, ...]) -> str:
    return "builtin.module(" + ",".join(map(str, specs)) + ")"
