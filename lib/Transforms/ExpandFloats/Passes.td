//===- Passes.td - small floats as integers ---------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES
#define TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES

include "mlir/Pass/PassBase.td"

def ExpandFloats : Pass<"tile-expand-floats"> {
  let summary = "Replace conversions of small floats by integer arithmetic";
  let description = [{
    `arith.extf` and `arith.truncf` between f32 or f64 and bf16,
    f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f6E2M3FN, f6E3M2FN or
    f4E2M1FN, on scalars and vectors, become integer arithmetic on their bits: no processor
    need know the types, and no library is called. f16 is left to the processor
    unless the option `f16` is set; from f64 it is reached without double
    rounding in either case.

    Extension is exact. Truncation rounds to nearest, ties to even, once, from
    f64 too. What the result cannot hold:

    | type | too large, infinity | NaN | -0 |
    |---|---|---|---|
    | bf16, f16, f8E5M2 | infinity | quiet NaN of the sign | -0 |
    | f8E4M3FN | NaN of the sign | NaN of the sign | -0 |
    | f8E4M3FNUZ, f8E5M2FNUZ | NaN (0x80) | NaN (0x80) | 0 |
    | f6E2M3FN, f6E3M2FN, f4E2M1FN | the largest | 0 of the other sign | -0 |
    | f8E8M0FNU | NaN (0xFF), as zero and all negative numbers | NaN (0xFF) | NaN |

    f8E8M0FNU rounds ties up, and up between its two smallest numbers. All of it
    is what the package ml_dtypes does.

    Before:
    ```mlir
    func.func @f(%x: f8E5M2) -> f32 {
      %y = arith.extf %x : f8E5M2 to f32
      return %y : f32
    }
    ```
    After:
    ```mlir
    func.func @f(%x: f8E5M2) -> f32 {
      %bits = arith.bitcast %x : f8E5M2 to i8
      %word = arith.extui %bits : i8 to i32
      ...
      %y = arith.bitcast %signed : i32 to f32
      return %y : f32
    }
    ```
  }];
  let options = [
    Option<"expandF16", "f16", "bool", /*default=*/"false",
           "also conversions of f16, for processors without them; set where "
           "the module's device is such a CPU">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FloatsToBits : Pass<"tile-floats-to-bits"> {
  let summary = "Let small floats be integers where they only move";
  let description = [{
    When no arithmetic on bf16 is left, loads, stores and shuffles are all that
    is done with it. The type becomes i16 everywhere, constants included: for a
    processor without bf16, LLVM would widen elements that it moves one by one,
    and call a library to narrow them again. The same for f16 with the option
    `f16`. Arithmetic that is left fails to verify.

    Before:
    ```mlir
    llvm.func @f(%x: !llvm.ptr) -> bf16 {
      %y = llvm.load %x : !llvm.ptr -> bf16
      llvm.return %y : bf16
    }
    ```
    After:
    ```mlir
    llvm.func @f(%x: !llvm.ptr) -> i16 {
      %y = llvm.load %x : !llvm.ptr -> i16
      llvm.return %y : i16
    }
    ```
  }];
  let options = [
    Option<"moveF16", "f16", "bool", /*default=*/"false",
           "also f16, for processors without conversions of it; set where "
           "the module's device is such a CPU">
  ];
}

#endif // TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES
