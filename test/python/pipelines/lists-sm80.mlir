// A program of nested lists with a 2:4 sparse weight and one of bytes, by tile-opt and named phases to PTX, one kernel,
// whose CTAs run the loop. No family of kernels there has sparse products of f32 in groups of four.
// RUN: tile-opt %S/Inputs/lists.mlir --tile-set-target=target=cuda:sm_80 --tile-cuda-normalize -o %t.normal
// RUN: FileCheck %s --check-prefix=NORMAL < %t.normal
// RUN: tile-opt %t.normal --tile-cuda-plan --tile-cuda-tile --tile-cuda-schedule -o %t.tile 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOLD
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: tile-opt %t.tile --tile-cuda-lower -o %t.lower
// RUN: FileCheck %s --check-prefix=NVVM < %t.lower
// RUN: tile-opt %t.lower --tile-emit-ptx | FileCheck %s --check-prefix=PTX

// NORMAL-NOT: fractal.
// NORMAL: sparse_tile.pack
// NORMAL: sparse_tile.decode
// NORMAL: scf.for
// NORMAL: sparse_tile.matmul {{.*}} tensor<8x8xf32, #{{.*}}>, tensor<8x3xf32>, tensor<8x3xf32>

// TOLD: remark: a sparse product is multiplied as a dense one

// TILE-NOT: sparse_tile.matmul
// TILE: tile.kernel @[[LOOP:loop_.*]](
// TILE-SAME: tile.blocks
// TILE: scf.for
// TILE: tile.launch @product_8x3x8
// TILE: tile.launch @product_tanh_3x8x8
// TILE: func.func @main
// TILE-NOT: scf.for
// TILE: tile.launch @[[LOOP]]

// NVVM: gpu.module
// NVVM-COUNT-1: llvm.func @loop_
// NVVM-NOT: llvm.func {{.*}}gpu.kernel

// PTX: gpu.binary
// PTX-SAME: chip = "sm_80"
// PTX-SAME: .entry loop_
// PTX-SAME: atom.release.gpu
