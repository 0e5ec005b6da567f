// RUN: tile-opt %s --tile-split-micro-batches=l3-bytes=65536 --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-split-micro-batches=l3-bytes=33554432 --split-input-file \
// RUN:   | FileCheck-22 %s --check-prefix=NEAR

// Two windows follow each other, over images that are larger than the cache together. The border is made for each
// image. What follows the last window goes along; what meets all images does not.

// NEAR-NOT: scf.for
// CHECK-LABEL: @windows
// CHECK: %[[ALL:.*]] = tensor.empty() : tensor<6x1022xf32>
// CHECK: %[[DONE:.*]] = scf.for %[[N:.*]] = %c0{{.*}} to %c6{{.*}} step %c2{{.*}} iter_args(%[[STATE:.*]] = %[[ALL]])
// CHECK-SAME: {{^}} -> (tensor<6x1022xf32>)
// CHECK: tensor.extract_slice %arg0[%[[N]], 0] [2, 1024] [1, 1]
// CHECK: linalg.generic {{.*}}ins({{.*}}tensor<2x1024xf32>, tensor<3xf32>)
// CHECK: tensor.insert_slice {{.*}} tensor<2x1022xf32> into tensor<2x1024xf32>
// CHECK: linalg.generic {{.*}}ins({{.*}}tensor<2x1024xf32>, tensor<3xf32>)
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[STATE]][%[[N]], 0] [2, 1022] [1, 1]
// CHECK: linalg.generic {{.*}} outs(%[[PLACE]] : tensor<2x1022xf32>)
// CHECK: math.absf
// CHECK: tensor.insert_slice {{.*}} into %[[STATE]][%[[N]], 0] [2, 1022] [1, 1]
// CHECK: scf.yield
// CHECK: linalg.generic {{.*}}ins(%[[DONE]]
// CHECK-NOT: scf.for
#x = affine_map<(n, i, t) -> (n, i + t)>
#w = affine_map<(n, i, t) -> (t)>
#y = affine_map<(n, i, t) -> (n, i)>
#id = affine_map<(n, i) -> (n, i)>
#i = affine_map<(n, i) -> (i)>
func.func @windows(%x: tensor<6x1024xf32>, %w: tensor<3xf32>) -> tensor<1022xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x1022xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x1022xf32>) -> tensor<6x1022xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x1024xf32>, tensor<3xf32>) outs(%f : tensor<6x1022xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x1022xf32>
  %p = tensor.empty() : tensor<6x1024xf32>
  %q = linalg.fill ins(%zero : f32) outs(%p : tensor<6x1024xf32>) -> tensor<6x1024xf32>
  %bordered = tensor.insert_slice %y into %q[0, 1] [6, 1022] [1, 1] : tensor<6x1022xf32> into tensor<6x1024xf32>
  %z = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%bordered, %w : tensor<6x1024xf32>, tensor<3xf32>) outs(%f : tensor<6x1022xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x1022xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%z : tensor<6x1022xf32>) outs(%e : tensor<6x1022xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.absf %a : f32
    linalg.yield %s : f32
  } -> tensor<6x1022xf32>
  %l = tensor.empty() : tensor<1022xf32>
  %k = linalg.fill ins(%zero : f32) outs(%l : tensor<1022xf32>) -> tensor<1022xf32>
  %sum = linalg.generic {indexing_maps = [#id, #i], iterator_types = ["reduction", "parallel"]}
      ins(%r : tensor<6x1022xf32>) outs(%k : tensor<1022xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<1022xf32>
  return %sum : tensor<1022xf32>
}

// -----

// Tasks of products share rows, so a batch of them needs no rounds.

// CHECK-LABEL: @products
// CHECK-NOT: scf.for
#a = affine_map<(n, i, j, k) -> (n, i, k)>
#b = affine_map<(n, i, j, k) -> (k, j)>
#c = affine_map<(n, i, j, k) -> (n, i, j)>
func.func @products(%x: tensor<4x256x64xf32>, %w: tensor<64x64xf32>) -> tensor<4x256x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x256x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x256x64xf32>) -> tensor<4x256x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x256x64xf32>, tensor<64x64xf32>) outs(%f : tensor<4x256x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x256x64xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<4x256x64xf32>, tensor<64x64xf32>) outs(%f : tensor<4x256x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x256x64xf32>
  return %z : tensor<4x256x64xf32>
}

// -----

// The second window of the chain reads an image backwards in the batch: rounds would not find it.

// CHECK-LABEL: @neighbours
// CHECK-NOT: scf.for
#x = affine_map<(n, i, t) -> (n, i + t)>
#w = affine_map<(n, i, t) -> (t)>
#y = affine_map<(n, i, t) -> (n, i)>
#v = affine_map<(n, i, t) -> (n + t, i)>
func.func @neighbours(%x: tensor<6x1024xf32>, %w: tensor<3xf32>) -> tensor<4x1022xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x1022xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x1022xf32>) -> tensor<6x1022xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x1024xf32>, tensor<3xf32>) outs(%f : tensor<6x1022xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x1022xf32>
  %d = tensor.empty() : tensor<4x1022xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<4x1022xf32>) -> tensor<4x1022xf32>
  %z = linalg.generic {indexing_maps = [#v, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<6x1022xf32>, tensor<3xf32>) outs(%g : tensor<4x1022xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x1022xf32>
  return %z : tensor<4x1022xf32>
}
