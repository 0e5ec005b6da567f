//===- Passes.td - math without a library -----------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES
#define TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES

include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"tile-expand-math"> {
  let summary = "Replace math functions by arithmetic on the same vectors";
  let description = [{
    No function of a math library is called from a kernel: exp, log, erf, tanh,
    pow, sin and the others become polynomials on whole vectors, accurate to
    about 2 units in the last place of f32, with infinities, NaN, denormals and
    signed zeros as in IEEE 754. f16 and bf16 go through f32;
    f64 has its own series, to a few units in the last place, where it is in a
    kernel (the host calls the C library). On GPUs the remainder of a division
    of floats (`arith.remf`) becomes a division of integers, digit by digit. What a processor
    computes itself (sqrt, floor, fma, ...) stays. A function that has no
    expansion here is an error that names it. With `avx512`, exp and erf use
    instructions of AVX-512F: scaling by powers of two, and tables of sixteen
    entries in a register. A sum of 1 and an exponential (of a logistic function)
    is made as a whole, in fewer operations: there neither zeros nor denormals
    of the exponential matter. A division of vectors by a constant (on GPUs of any f32) becomes a
    multiplication and one step of Newton, which gives the same bits.

    Before:
    ```mlir
    func.func @f(%x: vector<16xf32>) -> vector<16xf32> {
      %y = math.exp %x : vector<16xf32>
      return %y : vector<16xf32>
    }
    ```
    After:
    ```mlir
    %magic = arith.constant dense<0x4B4000FE> : vector<16xf32>
    %log2e = arith.constant dense<1.44269502> : vector<16xf32>
    %n = math.fma %c, %log2e, %magic : vector<16xf32>
    ...
    %y = arith.mulf %p, %scale : vector<16xf32>
    ```
  }];
  let options = [Option<"avx512", "avx512", "bool", /*default=*/"false",
                        "the processor has AVX-512F; set where the "
                        "module's device is a CPU with vectors of 512 bits">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def FoldExponents : Pass<"tile-fold-exponents", "::tilewright::tile::KernelOp"> {
  let summary = "Make approximate exponentials of one multiply-add and a power of two";
  let description = [{
    exp((s - m) c) is 2^(s k - m k), with k = c log2(e). Where `tile.approximate`
    stands on an exponential of a score less a maximum, the number of operations
    per score falls to one maximum, one multiply-add, one power and one sum:

    - Scores that were rounded to 16 bits stay f32: an operand of 16 bits is all
      that is made of them. Sums add what was not rounded either, as
      FlashAttention does (Dao, 2023): they lose one conversion per score, and
      errors of roundings cancel in them.
    - A scale from 0 to 1 in front of the maximum is left to the multiply-add:
      max(s c) = c max(s), in every bit, as rounding is monotonic. The maximum is
      carried unscaled; what reads it elsewhere multiplies.
    - The factors by which sums of earlier steps fall, once per row, are powers
      of the same kind.

    Scores to which something was added (a mask of numbers) are subtracted from
    first: a maximum near the lowest number has no product with k.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64x64xf32>, %y: memref<64x64xf16>) {
      %c0 = arith.constant 0 : index
      %c = arith.constant dense<0.125> : !tile.tile<64x64xf32>
      %s = tile.load %x[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
      %t = arith.mulf %s, %c : !tile.tile<64x64xf32>
      %m = tile.reduce max %t dims [1] : !tile.tile<64x64xf32> -> !tile.tile<64x1xf32>
      %b = tile.broadcast %m : !tile.tile<64x1xf32> -> !tile.tile<64x64xf32>
      %d = arith.subf %t, %b : !tile.tile<64x64xf32>
      %e = math.exp %d {tile.approximate} : !tile.tile<64x64xf32>
      %p = tile.convert %e : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
      tile.store %p, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
      tile.return
    }
    ```
    After:
    ```mlir
    %m = tile.reduce max %s dims [1] : !tile.tile<64x64xf32> -> !tile.tile<64x1xf32>
    ...
    %f = arith.mulf %m, %k : !tile.tile<64x1xf32>
    %n = arith.negf %f : !tile.tile<64x1xf32>
    %b = tile.broadcast %n : !tile.tile<64x1xf32> -> !tile.tile<64x64xf32>
    ...
    %d = math.fma %s, %q, %b : !tile.tile<64x64xf32>
    %e = math.exp2 %d {tile.approximate} : !tile.tile<64x64xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::tilewright::tile::TileDialect"
  ];
}

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES
