//===- Passes.td - kernels and launches for the run-time --------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETORUNTIME_PASSES
#define TILEWRIGHT_CONVERSION_TILETORUNTIME_PASSES

include "mlir/Pass/PassBase.td"

def ConvertHostMathToLibm : Pass<"convert-host-math-to-libm", "::mlir::ModuleOp"> {
  let summary = "Turn the functions that are left into calls of the C library";
  let description = [{
    Scalar functions of the host on f64 have no expansion into arithmetic; the C
    library has them, to the last bits. What a processor computes itself (square
    roots, rounding) stays.

    Before:
    ```mlir
    func.func @main(%x: f64) -> f64 {
      %s = math.sqrt %x : f64
      %y = math.exp %s : f64
      return %y : f64
    }
    ```
    After:
    ```mlir
    func.func private @exp(f64) -> f64 attributes {llvm.readnone}
    func.func @main(%x: f64) -> f64 {
      %s = math.sqrt %x : f64
      %y = call @exp(%s) : (f64) -> f64
      return %y : f64
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"
  ];
}

def ConvertTileKernelToFunc : Pass<"convert-tile-kernel-to-func", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into functions over a range of tasks";
  let description = [{
    A kernel becomes a function with the signature that the run-time calls. It
    reads its arguments' descriptors {allocated, aligned, offset, sizes,
    strides} and the grid's bounds through `argv`, and runs the tasks of
    [begin, end), the first grid id varying slowest. Buffers of tile.alloc get
    constant places in `scratch`, in bytes the attribute `tile.scratch_bytes`.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64xf32>) grid(%i) {
      %v = arith.constant 1.0 : f32
      memref.store %v, %x[%i] : memref<64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    func.func @k(%argv: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr {llvm.noalias})
        attributes {tile.code, tile.scratch_bytes = 0 : i64} {
      %0 = llvm.load %argv : !llvm.ptr -> !llvm.ptr
      ...
      scf.for %i = %b to %e step %c1 {
        %v = arith.constant 1.000000e+00 : f32
        memref.store %v, %x[%i] : memref<64xf32>
      }
      return
    }
    ```
    Arguments that no launch lets overlap are marked as distinct objects.

    With `tile.tasks_inside` on a kernel whose body is a row of loops, which all
    tasks run in the same steps, the loop over tasks is inside of each of them:
    rows that the tasks of one thread read side by side are then read in one
    stretch.

    A program becomes such a function too, over a range of units: it runs their
    steps in the order of the text, and calls the kernels. One thread may run
    several units, so a wait must stand behind the signals that it waits for.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ConvertTileLaunchToRuntime : Pass<"convert-tile-launch-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Turn the host function into tw_main and launches into calls of the run-time";
  let description = [{
    `@main` becomes `@tw_main(bufs)`, which gets raw data pointers: inputs,
    outputs, weights, arena. A launch writes the descriptors of its operands and
    its grid on the stack and calls `twrt_launch`. A failing assertion calls
    `twrt_fail`, which ends the call (`twrt_fail_at` for one with `tile.tell`,
    with the number that its condition compares with another); buffers that are no place in the arena come
    from `twrt_alloc`; a result of @main, whose sizes are known at run time only,
    is handed over by `twrt_give`.

    Before:
    ```mlir
    func.func private @k(!llvm.ptr, i64, i64, !llvm.ptr) attributes {tile.code, tile.scratch_bytes = 0 : i64}
    func.func @main(%x: memref<64xf32> {tile.name = "x"}, %y: memref<64xf32> {tile.name = "y", tile.result = 0 : i64}) {
      %c4 = arith.constant 4 : index
      tile.launch @k grid(%c4) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
      return
    }
    ```
    After:
    ```mlir
    func.func @tw_main(%bufs: !llvm.ptr) attributes {tile.arena_bytes = 0 : i64,
        tile.globals = [], tile.inputs = ["x"], tile.outputs = ["y"]} {
      ...
      call @twrt_launch(%k, %argv, %tasks, %scratch_bytes) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"
  ];
}

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_PASSES
