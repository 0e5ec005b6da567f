// A matrix product, by tile-opt alone from linalg to assembly, over the vector and llvm dialects.
// RUN: tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-cpu-normalize --tile-cpu-plan --tile-cpu-tile \
// RUN:   --tile-cpu-schedule -o %t.tile
// RUN: FileCheck-22 %s --check-prefix=TILE < %t.tile
// RUN: tile-opt %t.tile --convert-tile-to-vector | FileCheck-22 %s --check-prefix=VECTOR
// RUN: tile-opt %t.tile --tile-cpu-lower -o %t.lower
// RUN: FileCheck-22 %s --check-prefix=LLVM < %t.lower
// RUN: tile-opt %t.lower --tile-emit-cpu | FileCheck-22 %s --check-prefix=ASM
// RUN: rm -rf %t.d && tile-opt %t.lower --tile-emit-cpu="format=object output=%t.d" \
// RUN:   | FileCheck-22 %s --check-prefix=LLVM
// RUN: llvm-objdump-22 -d %t.d/product_64x128x96.o | FileCheck-22 %s --check-prefix=ASM
// RUN: not tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-emit-cpu 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=NONE

// TILE: tile.kernel @product_64x128x96
// TILE: tile.mma
// TILE: tile.launch @product_64x128x96

// VECTOR: vector.fma {{.*}} : vector<8xf32>

// LLVM: llvm.func @product_64x128x96
// LLVM: vector<8xf32>
// LLVM: llvm.func @tw_main

// ASM: product_64x128x96
// ASM: vfmadd231ps{{.*}}%ymm

// NONE: error: tile-emit-cpu makes code of @tw_main in the llvm dialect: run --tile-cpu-lower first

func.func @main(%x: tensor<64x96xf32>, %y: tensor<96x128xf32>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = linalg.matmul ins(%x, %y : tensor<64x96xf32>, tensor<96x128xf32>) outs(%f : tensor<64x128xf32>)
      -> tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}
