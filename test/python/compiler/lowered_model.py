"""A model as MLIR text that carries its own lowering, for tests of the driver: y = x + w, in one kernel.

`@main` is layer 1; @tw_main and @add are what lowering would make of it. The pipeline only drops the former.
"""

from __future__ import annotations

import numpy as np

from tilewright.passes.pipeline import PassSpec, Phase, Pipeline

WEIGHT = np.arange(100, 108, dtype=np.float32)

TEXT = """
module {
  ml_program.global private @w_0(#ml_program.extern<tensor<8xf32>>) : tensor<8xf32>
  func.func private @main(%x: tensor<8xf32> {tile.name = "x"}) -> (tensor<8xf32> {tile.name = "y"}) {
    %w = ml_program.global_load_const @w_0 : tensor<8xf32>
    %y = arith.addf %x, %w : tensor<8xf32>
    return %y : tensor<8xf32>
  }
  llvm.func @twrt_launch(!llvm.ptr, !llvm.ptr, i64, i64)
  llvm.func @add(%argv: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr)
      attributes {tile.scratch_bytes = 64 : i64} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %py = llvm.getelementptr %argv[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %pw = llvm.getelementptr %argv[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %x = llvm.load %argv : !llvm.ptr -> !llvm.ptr
    %y = llvm.load %py : !llvm.ptr -> !llvm.ptr
    %w = llvm.load %pw : !llvm.ptr -> !llvm.ptr
    llvm.br ^head(%begin : i64)
  ^head(%i: i64):
    %more = llvm.icmp "slt" %i, %end : i64
    llvm.cond_br %more, ^body, ^done
  ^body:
    %xi = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %wi = llvm.getelementptr %w[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %yi = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %a = llvm.load %xi : !llvm.ptr -> f32
    %b = llvm.load %wi : !llvm.ptr -> f32
    %c = llvm.fadd %a, %b : f32
    llvm.store %c, %yi : f32, !llvm.ptr
    %n = llvm.add %i, %one : i64
    llvm.br ^head(%n : i64)
  ^done:
    llvm.return
  }
  llvm.func @tw_main(%bufs: !llvm.ptr) attributes {
      tile.inputs = ["x"], tile.outputs = ["y"], tile.globals = ["w_0"], tile.arena_bytes = 128 : i64} {
    %eight = llvm.mlir.constant(8 : i64) : i64
    %zero = llvm.mlir.constant(0 : i64) : i64
    %k = llvm.mlir.addressof @add : !llvm.ptr
    llvm.call @twrt_launch(%k, %bufs, %eight, %zero) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
    llvm.return
  }
}
"""


def pipeline() -> Pipeline:
    """Return the pipeline that drops layer 1."""
    drop = PassSpec("symbol-dce", reason="the text carries its lowering")
    return Pipeline("test", [Phase("normalize", []), Phase("lower", [drop])])
