// RUN: tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-lower-sparse --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=cuda:sm_90a --tile-lower-sparse --split-input-file | FileCheck-22 %s

// Half of the terms, with metadata, where the pattern is 2:4; what a task is given are values, metadata and b.

// CHECK-LABEL: tile.kernel @sparse_mma(
// CHECK: tile.load %{{.*}} : memref<{{.*}}xi16>
// CHECK: tile.mma {{.*}} sparsity [2, 4]
// CHECK: func.func @main
// CHECK: tile.launch @sparse_mma
#w = #sparse_tile.tesa<nm<2 : 4, axis = 1>>
#e = #ml_program.extern : tensor<64x128xf16>
ml_program.global private @w(#e) : tensor<64x128xf16>
func.func @main(%x: tensor<128x64xf16>) -> tensor<64x64xf32> {
  %w = ml_program.global_load_const @w : tensor<64x128xf16>
  %p = sparse_tile.pack %w : tensor<64x128xf16> to tensor<64x128xf16, #w>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = sparse_tile.matmul %p, %x, %c : tensor<64x128xf16, #w>, tensor<128x64xf16>, tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// Places name rows of a window in shared memory where each row of weights has its own.

// CHECK-LABEL: tile.kernel @sparse_windows(
// CHECK: tile.alloc : memref<{{.*}}#tile.level<"shared">>
// CHECK: tile.load %{{.*}} indices %{{.*}} along 0
// CHECK: math.fma
// CHECK: tile.launch @sparse_windows
#w = #sparse_tile.tesa<nm<8 : 32, axis = 1>>
#e = #ml_program.extern : tensor<64x128xf32>
ml_program.global private @w(#e) : tensor<64x128xf32>
func.func @main(%x: tensor<128x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %w = ml_program.global_load_const @w : tensor<64x128xf32>
  %p = sparse_tile.pack %w : tensor<64x128xf32> to tensor<64x128xf32, #w>
  %y = sparse_tile.matmul %p, %x, %c {kernel = "gpu_nm"}
      : tensor<64x128xf32, #w>, tensor<128x64xf32>, tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
