//===- Passes.td - GPU functions for AMD GPUs --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES
#define TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES

include "mlir/Pass/PassBase.td"

def ShufflesToAMDGCN : Pass<"tile-shuffles-to-amdgcn", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn shuffles of 32 lanes into exchanges within a wave of 64";
  let description = [{
    Kernels are written for warps of 32 lanes. A wave of a CDNA GPU has 64: it
    is two warps side by side, and a lane's partner is in the same half. Its
    number within the wave is `mbcnt`'s; `ds_bpermute` reads another lane's
    value by the byte address of its register.

    Only `nvvm.shfl.sync` of modes `bfly` and `idx` over all 32 lanes, without
    the predicate as a result: what `convert-tile-to-gpu` makes.

    Before:
    ```mlir
    gpu.module @m {
      gpu.func @k(%x: i32) kernel {
        %all = llvm.mlir.constant(-1 : i32) : i32
        %mask = llvm.mlir.constant(8 : i32) : i32
        %last = llvm.mlir.constant(31 : i32) : i32
        %y = nvvm.shfl.sync bfly %all, %x, %mask, %last : i32 -> i32
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %low = llvm.call_intrinsic "llvm.amdgcn.mbcnt.lo"
    ...
    %lane = llvm.call_intrinsic "llvm.amdgcn.mbcnt.hi"
    ...
    %partner = arith.xori %lane, %mask : i32
    ...
    %y = llvm.call_intrinsic "llvm.amdgcn.ds.bpermute"
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def GPUMathToAMDGCN : Pass<"tile-gpu-math-to-amdgcn", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn scalar math into what the AMDGPU back end expands itself";
  let description = [{
    Upstream turns every `math` op into a call of ROCm's device library, which is
    not there when code is made. The back end has its own expansions of the
    functions that have an instruction, at the accuracy of OpenCL: they are
    called as LLVM intrinsics. A function without one (tanh, erf, tan, ...) is an
    error: it has to be taken apart before.

    Before:
    ```mlir
    gpu.module @m {
      gpu.func @k(%x: f32) kernel {
        %y = math.exp %x : f32
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %y = llvm.call_intrinsic "llvm.exp.f32"(%x)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

#endif // TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES
