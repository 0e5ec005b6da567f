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
    entries in a register. A division of vectors by a constant (on GPUs of any f32) becomes a
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
    %log2e = arith.constant dense<1.44269502> : vector<16xf32>
    %magic = arith.constant dense<0x4B400000> : vector<16xf32>
    %n = math.fma %x, %log2e, %magic : vector<16xf32>
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

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES
