//===- Passes.td - small launches as work of the host ----------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOHOST_PASSES
#define TILEWRIGHT_CONVERSION_TILETOHOST_PASSES

include "mlir/Pass/PassBase.td"

def FindHostWork : Pass<"tile-find-host-work", "::mlir::ModuleOp"> {
  let summary = "Find launches that the host could do as operations on single numbers";
  let description = [{
    Such a launch gets `tile.host_operations`, the number of these operations. Its
    buffers have at most 64 elements each, the grid and all bounds are constants,
    and the kernel is arithmetic of elements: no products, no memory of a task, no
    meetings of tasks.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<i64>, %y: memref<1xi1>) {
      %c0 = arith.constant 0 : index
      %nine = arith.constant dense<9> : !tile.tile<1xi64>
      %n = memref.load %x[] : memref<i64>
      %t = tile.splat %n : i64 -> !tile.tile<1xi64>
      %less = arith.cmpi slt, %t, %nine : !tile.tile<1xi64>
      tile.store %less, %y[%c0] : !tile.tile<1xi1>, memref<1xi1>
      tile.return
    }
    func.func @main(%x: memref<i64>, %y: memref<1xi1>) {
      tile.launch @k ins(%x : memref<i64>) outs(%y : memref<1xi1>)
      return
    }
    ```
    After:
    ```mlir
    tile.launch @k ins(%x : memref<i64>) outs(%y : memref<1xi1>) {tile.host_operations = 3 : i64}
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::tilewright::tile::TileDialect"
  ];
}

def InlineHostWork : Pass<"tile-inline-host-work", "::mlir::ModuleOp"> {
  let summary = "Make operations on single numbers of launches that the plan has given the host";
  let description = [{
    Launches with `tile.level = "host"` become loads, arithmetic and stores of the
    host, which reads and writes the device's memory number by number; kernels that
    nothing launches any more go. A launch that has no such form is an error, which
    says why.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<i64>, %y: memref<1xi1>) {
      %c0 = arith.constant 0 : index
      %nine = arith.constant dense<9> : !tile.tile<1xi64>
      %n = memref.load %x[] : memref<i64>
      %t = tile.splat %n : i64 -> !tile.tile<1xi64>
      %less = arith.cmpi slt, %t, %nine : !tile.tile<1xi64>
      tile.store %less, %y[%c0] : !tile.tile<1xi1>, memref<1xi1>
      tile.return
    }
    func.func @main(%x: memref<i64>, %y: memref<1xi1>) {
      tile.launch @k ins(%x : memref<i64>) outs(%y : memref<1xi1>) {tile.level = "host"}
      return
    }
    ```
    After:
    ```mlir
    %n = memref.load %x[] : memref<i64>
    %less = arith.cmpi slt, %n, %c9_i64 : i64
    memref.store %less, %y[%c0] : memref<1xi1>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::tilewright::tile::TileDialect"
  ];
}

#endif // TILEWRIGHT_CONVERSION_TILETOHOST_PASSES
