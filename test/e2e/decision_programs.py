# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose decisions are edited: IR from which the passes of a plan start, small models, parts of lit tests."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from models._graph import Graph
from tilewright.compiler.driver import Compilation, lower
from tilewright.compiler.source import Source, open_source
from tilewright.core.options import CompileOptions
from tilewright.ir import decisions
from tilewright.passes.weights import write_weights
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
    "float8": (
        "tile-plan-fusion",
        _product(1024, 1024, 512, "f8E4M3FN", True, ("tile.promotion = 128 : i64", "test.negation")),
    ),
    "large": ("tile-plan-fusion", _product(4096, 4096, 1024, "f16", True, ("test.product", "test.negation"))),
    "open": (
        "tile-apply-layouts",
        _OPEN.replace("tensor.empty()", "tensor.empty(%n)").replace(
            "  %zero =", "  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : tensor<?x48xf32>\n  %zero ="
        ),
    ),
}


_TESTS = "test/lib/"


def part(program: str) -> str:
    """A part of a lit test without comments: `test/x.mlir#2` is its third."""
    file, _, number = program.partition("#")
    text = (ROOT / file).read_text().split("// -----")[int(number)]
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


_LOOPED = """
tile.kernel @k(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  %v = memref.load %x[%i] : memref<8xf32>
  memref.store %v, %y[%i] : memref<8xf32>
  tile.return
}
func.func @main(%h: memref<8xf32> {tile.name = "h"}, %n: memref<8xf32> {tile.name = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) ins(%h : memref<8xf32>) outs(%n : memref<8xf32>)
  } {tile.blocks = 8 : i64}
  return
}
"""

_TASKS = """
tile.kernel @k(%x: memref<64xf32>) grid(%i) {
  %r = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %a = tile.load %x[%r] : memref<64xf32>, !tile.tile<8xf32>
  %s = arith.addf %a, %a : !tile.tile<8xf32>
  tile.store %s, %x[%r] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
func.func @main(%x: memref<64xf32> {tile.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
  }
  return
}
"""

PROGRAMS |= {
    "looped": ("tile-form-loops", _LOOPED),
    "tasks": ("tile-find-task-loops", _TASKS),
    "dealt": (  # stream-K, of which the results go through shared memory
        "tile-stream-k",
        part(_TESTS + "Transforms/Pipelining/tile-stream-k.mlir#0").replace(
            "tile.persistent", "tile.warps = 4 : i64, tile.staged = 2 : i64, tile.persistent"
        ),
    ),
    "program": ("convert-tile-kernel-to-func", part(_TESTS + "Conversion/TileToRuntime/programs.mlir#0")),
}


# Models ---------------------------------------------------------------------------------------------------------------


def _attention(
    heads: int, rows: int | str, keys: int | str, kind: str, causal: bool = False, depth: int = 32
) -> onnx.ModelProto:
    """softmax(q k^T) v; where it is causal a constant lets a query see the keys up to its own."""
    g, number = Graph("attention", 17), np.dtype(kind)
    q, k, v = (g.input(name, number, [1, heads, rows if name == "q" else keys, depth]) for name in "qkv")
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    if causal:
        low = g.const(np.array(-np.inf, number), number)
        scores = g.op("Where", g.const(np.tril(np.ones((rows, keys), bool)), np.bool_), scores, low)
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", number, [1, heads, rows, depth])
    return g.model()


def _masked() -> onnx.ModelProto:
    """Attention whose mask a run brings."""
    g, kind = Graph("masked", 17), np.dtype(np.float32)
    q, k, v = (g.input(name, kind, [1, 8, 512, 64]) for name in "qkv")
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    low = g.const(np.array(-np.inf, kind), kind)
    scores = g.op("Where", g.input("mask", np.dtype(np.bool_), [1, 1, 512, 512]), scores, low)
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", kind, [1, 8, 512, 64])
    return g.model()


def _windows() -> onnx.ModelProto:
    """A convolution with zeros around its image."""
    g, kind = Graph("windows", 17), np.dtype(np.float32)
    w = g.weight((np.arange(16 * 9 * 8) % 7).reshape(16, 8, 3, 3).astype(kind), "w")
    y = g.op("Conv", g.op("Relu", g.input("x", kind, [1, 8, 12, 12])), w, pads=[1] * 4)
    g.output(y, "y", kind, [1, 16, 12, 12])
    return g.model()


def _half() -> onnx.ModelProto:
    """A product of f16 with odd rows."""
    g, kind = Graph("half", 17), np.dtype(np.float16)
    w = g.weight((np.arange(32 * 128) % 7).reshape(32, 128).astype(kind), "w")
    g.output(g.op("Relu", g.op("MatMul", g.input("x", kind, [2, 9, 32]), w)), "y", kind, [2, 9, 128])
    return g.model()


def _softmax() -> onnx.ModelProto:
    g, kind = Graph("softmax", 17), np.dtype(np.float32)
    g.output(g.op("Softmax", g.input("x", kind, [40, 70]), axis=-1), "y", kind, [40, 70])
    return g.model()


def _gathered() -> onnx.ModelProto:
    """Rows by indices that are computed."""
    g, kind = Graph("gathered", 17), np.dtype(np.float32)
    x, i = g.input("x", kind, [100, 48]), g.input("i", np.dtype(np.int64), [32])
    g.output(g.op("Relu", g.op("Gather", x, g.op("Abs", i))), "y", kind, [32, 48])
    return g.model()


def _opened() -> onnx.ModelProto:
    """A product of rows whose number a run knows, which two inputs share."""
    g, kind = Graph("opened", 17), np.dtype(np.float32)
    a, b = (g.input(name, kind, ["n", 48]) for name in "ab")
    w = g.weight(np.ones((48, 64), np.float32), "w")
    g.output(g.op("Relu", g.op("MatMul", g.op("Add", a, b), w)), "y", kind, ["n", 64])
    return g.model()


def _open_rows() -> onnx.ModelProto:
    """Softmax of a sum, over rows whose length a run knows."""
    g, kind = Graph("open_rows", 17), np.dtype(np.float32)
    total = g.op("Add", *(g.input(name, kind, [40, "n"]) for name in "ab"))
    g.output(g.op("Softmax", total, axis=-1), "y", kind, [40, "n"])
    return g.model()


def _small(floats: int, kind: int, rows: int = 1, size: int = 64) -> onnx.ModelProto:
    """A few rows times weights of 8 bits with a scale per column."""
    weights = [
        helper.make_tensor("w", kind, [size, size], np.arange(size * size) % 100),
        helper.make_tensor("s", floats, [size], np.linspace(0.5, 1.0, size)),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["v"], axis=1),
        helper.make_node("MatMul", ["x", "v"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, floats, [rows, size]) for name in "xy")
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


MODELS = {
    "attention": functools.partial(_attention, 2, 96, 96, "float32"),
    "masked": _masked,
    "causal": functools.partial(_attention, 2, 256, 256, "float32", causal=True),
    "causal heads": functools.partial(_attention, 64, 512, 512, "float16", causal=True),
    "open heads": functools.partial(_attention, 64, "m", "n", "float16", depth=16),
    "windows": _windows,
    "half": _half,
    "softmax": _softmax,
    "gathered": _gathered,
    "opened": _opened,
    "open rows": _open_rows,
    "small": functools.partial(_small, TensorProto.FLOAT, TensorProto.INT8),
    "few rows": functools.partial(_small, TensorProto.FLOAT16, TensorProto.INT8, 16, 512),
}
_folder = tempfile.TemporaryDirectory(prefix="tilewright-decisions-")


@functools.cache
def normalized(name: str, target: str) -> str:
    """The IR of a model after phase `normalize`; it names a file with its weights."""
    work = Compilation(
        open_source(MODELS[name]()), parse_target(target), CompileOptions(stop_after="normalize", symbolic=True)
    )
    lower(work)
    if work.weights:
        file = Path(_folder.name) / write_weights(Path(_folder.name), work.weights)
        decisions.WEIGHTS.set(work.module.operation, str(file))
    return str(work.module)


def start_of(program: str, target: str) -> tuple[str, str]:
    """The pass that a program begins with, none for that which is edited, and its IR."""
    if program in PROGRAMS:
        return PROGRAMS[program]
    if program in MODELS:
        return "tile-verify-target", normalized(program, target)
    return "", part(program)


def source_of(program: str, text: str) -> Source:
    """A program as `tilewright.compile` takes it: a model, or this IR."""
    return open_source(MODELS[program]() if program in MODELS else text)
