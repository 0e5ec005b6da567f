// A matrix product for Hopper, by tile-opt alone from linalg to PTX, over the gpu, nvvm and llvm dialects.
// RUN: tile-opt %s --tile-set-target=target=cuda:sm_90a --tile-cuda-normalize --tile-cuda-plan --tile-cuda-tile \
// RUN:   --tile-cuda-schedule -o %t.tile
// RUN: tile-opt %t.tile --tile-split-host-device --tile-pipeline-loads --canonicalize --tile-mark-multicasts \
// RUN:   --tile-select-wgmma \
// RUN:   --tile-kernels-to-gpu | FileCheck-22 %s --check-prefix=GPU
// RUN: tile-opt %t.tile --tile-cuda-lower -o %t.lower
// RUN: FileCheck-22 %s --check-prefix=NVVM < %t.lower
// RUN: tile-opt %t.lower --tile-emit-ptx | FileCheck-22 %s --check-prefix=PTX

// GPU: gpu.module
// GPU: gpu.func @product_{{.*}} kernel

// NVVM: gpu.module
// NVVM: llvm.func @product_
// NVVM: wgmma

// PTX: gpu.binary @product_{{.*}} [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx86">
// PTX-SAME: cp.async.bulk.tensor
// PTX-SAME: wgmma.mma_async

func.func @main(%x: tensor<2048x256xf16>, %y: tensor<256x2048xf16>) -> tensor<2048x2048xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %r = linalg.matmul ins(%x, %y : tensor<2048x256xf16>, tensor<256x2048xf16>) outs(%f : tensor<2048x2048xf32>)
      -> tensor<2048x2048xf32>
  return %r : tensor<2048x2048xf32>
}
