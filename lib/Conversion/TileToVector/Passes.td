//===- Passes.td - tile to vector ------------------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_PASSES
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_PASSES

include "mlir/Pass/PassBase.td"

def ConvertTileToVector : Pass<"convert-tile-to-vector", "::mlir::ModuleOp"> {
  let summary = "Turn tile values into lists of native vectors";
  let description = [{
    Every `!tile.tile` value becomes one list of native 1-D vectors, row by
    row: a last dimension of 1 gives one scalar per row, any other width is cut
    into vectors of `vector-bits / 32` lanes, whatever the element type (option,
    else those of the module's device, else 512). The rest of a row is one vector
    of the next power of two; its lanes beyond the tile are never read from or
    written to memory and never reach a reduction. Tiles that are held in blocks
    are in the registers of AMX, one for each block. A gather from a buffer of
    four floats picks in a register (vpermilps), where the module's device has
    vectors of 256 bits. Stores with `tile.streamed`
    go past the caches, in whole vectors where the memory of a run is aligned to
    them, else in units of 16 bytes.

    Before:
    ```mlir
    tile.kernel @double(%m: memref<384x32xf32>, %y: memref<384x32xf32>) grid(%k) {
      %c0 = arith.constant 0 : index
      %b = tile.load %m[%k, %c0] : memref<384x32xf32>, !tile.tile<1x32xf32>
      %s = arith.addf %b, %b : !tile.tile<1x32xf32>
      tile.store %s, %y[%k, %c0] : !tile.tile<1x32xf32>, memref<384x32xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %b0 = vector.load %m[%i0] : memref<12288xf32>, vector<16xf32>
    %c16 = arith.constant 16 : index
    %i1 = arith.addi %i0, %c16 : index
    %b1 = vector.load %m[%i1] : memref<12288xf32>, vector<16xf32>
    %s0 = arith.addf %b0, %b0 : vector<16xf32>
    %s1 = arith.addf %b1, %b1 : vector<16xf32>
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "bits of a native vector; 0: those of the module's device, or 512">,
    ListOption<"dots", "dots", "std::string",
               "element types whose products in groups the processor adds in "
               "one instruction: bf16, i8; others are widened first (default: "
               "those of the module's device)">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def SinkToUses : Pass<"tile-sink-to-uses", "::tilewright::tile::KernelOp"> {
  let summary = "Order what follows a matrix unit's sums vector by vector";
  let description = [{
    A matrix unit hands on its sums through memory, more vectors than there are
    registers. What follows them was made operation by operation, each for all
    vectors; here, whatever has no effect moves to its first use, so that each
    vector is loaded, computed on and stored before the next one. Loads from
    buffers of the task pass stores to other places. Zeros that sums begin with
    move into the loops, to where these begin: the unit has eight registers.
    Kernels without a matrix unit stay as they are: their tiles fit the
    registers.

    Before:
    ```mlir
    tile.kernel @halves(%a: memref<32xf32>, %y: memref<64xf32>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %rows = arith.constant 16 : i16
      %sums = tile.alloc : memref<32xf32>
      %block = llvm.call_intrinsic "llvm.x86.tilezero.internal"(%rows, %rows) : (i16, i16) -> !llvm.x86_amx
      %0 = vector.load %sums[%c0] : memref<32xf32>, vector<16xf32>
      %1 = vector.load %sums[%c16] : memref<32xf32>, vector<16xf32>
      %2 = arith.negf %0 : vector<16xf32>
      %3 = arith.negf %1 : vector<16xf32>
      vector.store %2, %y[%c0] : memref<64xf32>, vector<16xf32>
      vector.store %3, %y[%c16] : memref<64xf32>, vector<16xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %0 = vector.load %sums[%c0] : memref<32xf32>, vector<16xf32>
    %2 = arith.negf %0 : vector<16xf32>
    vector.store %2, %y[%c0] : memref<64xf32>, vector<16xf32>
    %1 = vector.load %sums[%c16] : memref<32xf32>, vector<16xf32>
    %3 = arith.negf %1 : vector<16xf32>
    vector.store %3, %y[%c16] : memref<64xf32>, vector<16xf32>
    ```
  }];
}

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_PASSES
