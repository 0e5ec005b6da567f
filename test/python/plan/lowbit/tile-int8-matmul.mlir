// RUN: tile-opt %s --tile-int8-matmul | FileCheck %s

// Dequantized bytes: (x - 3) * 0.5 times w * s[n]. The product is one of bytes; the sums of the columns are weights
// only.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>

// CHECK-LABEL: @scaled
// CHECK-DAG: %[[W:.*]] = ml_program.global_load_const @w
// CHECK-DAG: %[[S:.*]] = ml_program.global_load_const @s
// CHECK: %[[P:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK-SAME: {{^}} ins(%arg0, %[[W]] : tensor<8x64xi8>, tensor<64x32xi8>) outs(%{{.*}} : tensor<8x32xi32>)
// CHECK-DAG: arith.extui
// CHECK-DAG: arith.extsi
// CHECK: %[[C:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[W]] : tensor<64x32xi8>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<32xi32>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: ins(%[[P]], %[[C]], %[[S]] : tensor<8x32xi32>, tensor<32xi32>, tensor<32xf32>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<8x32xf32>)
// CHECK: arith.subi
// CHECK: arith.sitofp
// CHECK: return %[[Y]]
ml_program.global private @w(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>
ml_program.global private @s(#ml_program.extern<tensor<32xf32>>) : tensor<32xf32>
func.func @scaled(%x: tensor<8x64xi8>) -> tensor<8x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xi8>
  %s = ml_program.global_load_const @s : tensor<32xf32>
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %point = arith.constant 3 : i8
  %ex = tensor.empty() : tensor<8x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xi8>) outs(%ex : tensor<8x64xf32>) {
  ^bb0(%q: i8, %o: f32):
    %m = sparse_tile.decode unsigned %q zero_point %point : i8 scale %half : f32 : i8 to f32
    linalg.yield %m : f32
  } -> tensor<8x64xf32>
  %ew = tensor.empty() : tensor<64x32xf32>
  %wf = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<64x32xi8>, tensor<32xf32>) outs(%ew : tensor<64x32xf32>) {
  ^bb0(%q: i8, %v: f32, %o: f32):
    %m = sparse_tile.decode %q scale %v : f32 : i8 to f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%xf, %wf : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// Rows of the run: result and corrections take their number from the bytes, and nothing of the wide factor is left.

// CHECK-LABEL: @rows_of_the_run
// CHECK: %[[ROWS:.*]] = tensor.dim %arg0, %{{.*}} : tensor<?x64xi8>
// CHECK: tensor.empty(%[[ROWS]]) : tensor<?x32xi32>
// CHECK: linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// CHECK-SAME: {{^}} ins(%arg0, %{{.*}} : tensor<?x64xi8>, tensor<64x32xi8>) outs(%{{.*}} : tensor<?x32xi32>)
// CHECK-NOT: tensor<?x64xi32>
// CHECK: return
func.func @rows_of_the_run(%x: tensor<?x64xi8>) -> tensor<?x32xi32> {
  %w = ml_program.global_load_const @w : tensor<64x32xi8>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %point = arith.constant 7 : i8
  %n = tensor.dim %x, %c0 : tensor<?x64xi8>
  %ex = tensor.empty(%n) : tensor<?x64xi32>
  %xi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xi8>) outs(%ex : tensor<?x64xi32>) {
  ^bb0(%q: i8, %o: i32):
    %d = sparse_tile.decode unsigned %q zero_point %point : i8 : i8 to i32
    linalg.yield %d : i32
  } -> tensor<?x64xi32>
  %ew = tensor.empty() : tensor<64x32xi32>
  %wi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x32xi8>) outs(%ew : tensor<64x32xi32>) {
  ^bb0(%q: i8, %o: i32):
    %s = arith.extsi %q : i8 to i32
    linalg.yield %s : i32
  } -> tensor<64x32xi32>
  %e = tensor.empty(%n) : tensor<?x32xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<?x32xi32>) -> tensor<?x32xi32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%xi, %wi : tensor<?x64xi32>, tensor<64x32xi32>) outs(%f : tensor<?x32xi32>) {
  ^bb0(%p: i32, %q: i32, %o: i32):
    %m = arith.muli %p, %q : i32
    %t = arith.addi %o, %m : i32
    linalg.yield %t : i32
  } -> tensor<?x32xi32>
  return %y : tensor<?x32xi32>
}
