// A matrix product, by tile-opt alone from linalg to PTX.
// RUN: tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-cuda-normalize --tile-cuda-plan --tile-cuda-tile \
// RUN:   --tile-cuda-schedule -o %t.tile
// RUN: FileCheck-22 %s --check-prefix=TILE < %t.tile
// RUN: tile-opt %t.tile --tile-cuda-lower -o %t.lower
// RUN: FileCheck-22 %s --check-prefix=NVVM < %t.lower
// RUN: tile-opt %t.lower --tile-emit-ptx | FileCheck-22 %s --check-prefix=PTX
// RUN: rm -rf %t.d && tile-opt %t.lower --tile-emit-ptx=output=%t.d | FileCheck-22 %s --check-prefix=NVVM
// RUN: cat %t.d/product_512x512x256.ptx | FileCheck-22 %s --check-prefix=FILE
// RUN: tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-cuda --tile-emit-ptx | FileCheck-22 %s --check-prefix=PTX
// RUN: not tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-emit-ptx 2>&1 | FileCheck-22 %s --check-prefix=NONE

// TILE: tile.kernel @product_512x512x256
// TILE: tile.mma
// TILE: tile.launch @product_512x512x256

// NVVM: gpu.module
// NVVM: llvm.func @product_512x512x256
// NVVM: nvvm.mma.m16n8k16

// PTX: gpu.binary @product_512x512x256 [#gpu.object<#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">
// PTX-SAME: .visible .entry product_512x512x256(
// PTX-SAME: cp.async
// PTX-SAME: mma.sync.aligned.m16n8k16

// FILE: .target sm_80
// FILE: .visible .entry product_512x512x256(
// FILE: mma.sync.aligned.m16n8k16

// NONE: error: tile-emit-ptx makes PTX of a gpu.module, and there is none: run --tile-cuda-lower first

func.func @main(%x: tensor<512x256xf16>, %y: tensor<256x512xf16>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.matmul ins(%x, %y : tensor<512x256xf16>, tensor<256x512xf16>) outs(%f : tensor<512x512xf32>)
      -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}
