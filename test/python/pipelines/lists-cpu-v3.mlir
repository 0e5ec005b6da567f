// A program of nested lists with a 2:4 sparse weight and one of bytes, by tile-opt and named phases to AVX2.
// RUN: tile-opt %S/Inputs/lists.mlir --tile-set-target=target=cpu:x86-64-v3 --tile-cpu-normalize -o %t.normal
// RUN: FileCheck %s --check-prefix=NORMAL < %t.normal
// RUN: tile-opt %t.normal --tile-cpu-plan --tile-cpu-tile --tile-cpu-schedule -o %t.tile
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: tile-opt %t.tile --tile-cpu-lower -o %t.lower
// RUN: FileCheck %s --check-prefix=LLVM < %t.lower
// RUN: tile-opt %t.lower --tile-emit-cpu | FileCheck %s --check-prefix=ASM

// NORMAL-NOT: fractal.
// NORMAL: sparse_tile.pack
// NORMAL: linalg.generic
// NORMAL: sparse_tile.decode
// NORMAL: scf.for
// NORMAL: sparse_tile.matmul {{.*}} tensor<8x8xf32, #{{.*}}>, tensor<8x3xf32>, tensor<8x3xf32>

// TILE-NOT: sparse_tile.matmul
// TILE: tile.kernel @sparse_gemv(%{{.*}}: memref<1x16x8xf32>
// TILE: func.func @main
// TILE: scf.for
// TILE: tile.launch @sparse_gemv
// TILE: tile.launch @product_tanh_3x8x8

// LLVM: llvm.func @sparse_gemv
// LLVM: vector<8xf32>
// LLVM: llvm.func @tw_main

// ASM: sparse_gemv
// ASM: vfmadd{{.*}}%ymm
