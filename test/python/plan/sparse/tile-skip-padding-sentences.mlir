// RUN: tile-opt %s --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding -o /dev/null 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=TOLD
// RUN: sed -e s/-3.0e38/-3.0/ %s \
// RUN:   | tile-opt --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=SEEN
// RUN: sed -e s/x256/x64/g %s \
// RUN:   | tile-opt --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=SHORT

// TOLD: remark: 1 groups of operations where tokens meet run sentence by sentence
// SEEN: remark: {{.*}} operations where tokens meet run on padding, too: padding is not surely hidden
// SEEN-NOT: scf.for
// SHORT: remark: 1 operations where tokens meet run on padding, too: a sentence has 1 tasks for 4 cores
// SHORT-NOT: scf.for

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#all = affine_map<(b, i, j) -> (b, i, j)>
#key = affine_map<(b, i, j) -> (b, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#e = affine_map<(b, i, d, j) -> (b, i, j)>
#v = affine_map<(b, i, d, j) -> (b, j, d)>
#o = affine_map<(b, i, d, j) -> (b, i, d)>

// Scores, their exponentials, sums, and the product with values: for each sentence as many places as it has tokens.
// CHECK-LABEL: func.func @main
// CHECK: %[[LENGTHS:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg1 : tensor<8x256xi64>)
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x64xf32>, tensor<64x64xf32>)
// CHECK: %[[M:.*]] = sparse_tile.gather {{.*}} to tensor<?xi64>
// CHECK: %[[Y:.*]]:3 = scf.for %[[B:.*]] = %c0{{.*}} to %c8{{.*}} iter_args(%[[AT:.*]] = %c0{{[^,]*}},
// CHECK-SAME: %[[L:[a-z0-9]+]] = %{{[0-9]+}}, %[[O:[a-z0-9]+]] = %{{[0-9]+}})
// CHECK: tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK: %[[N:.*]] = arith.minsi
// CHECK-DAG: tensor.extract_slice %[[Q]][%[[AT]], 0] [%[[N]], 64]
// CHECK-DAG: tensor.extract_slice %[[M]][%[[AT]]] [%[[N]]]
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x?xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?xf32>, tensor<?xi64>)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK: %[[MIX:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?xf32>, tensor<?x64xf32>)
// CHECK: %[[NEW_L:.*]] = tensor.insert_slice %[[SUM]] into %[[L]][%[[AT]]] [%[[N]]]
// CHECK: %[[NEW_O:.*]] = tensor.insert_slice %[[MIX]] into %[[O]][%[[AT]], 0] [%[[N]], 64]
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %[[N]]
// CHECK: scf.yield %[[NEXT]], %[[NEW_L]], %[[NEW_O]]
// CHECK: linalg.generic {{.*}} ins(%[[Y]]#2, %[[Y]]#1 : tensor<?x64xf32>, tensor<?xf32>)
func.func @main(%x: tensor<8x256x64xf32> {tile.name = "x"}, %mask: tensor<8x256xi64> {tile.name = "mask"})
    -> tensor<8x256x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -3.0e38 : f32
  %none = arith.constant 0 : i64
  %w = arith.constant dense<1.0> : tensor<64x64xf32>
  %e = tensor.empty() : tensor<8x256x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x256x64xf32>) -> tensor<8x256x64xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x256x64xf32>, tensor<64x64xf32>) outs(%f : tensor<8x256x64xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %r : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x256x64xf32>
  %es = tensor.empty() : tensor<8x256x256xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %q : tensor<8x256x64xf32>, tensor<8x256x64xf32>) outs(%fs : tensor<8x256x256xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %r : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x256x256xf32>
  %h = linalg.generic {indexing_maps = [#all, #key, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<8x256x256xf32>, tensor<8x256xi64>) outs(%es : tensor<8x256x256xf32>) {
  ^bb0(%p: f32, %r: i64, %o: f32):
    %m = arith.cmpi ne, %r, %none : i64
    %u = arith.select %m, %p, %low : f32
    %t = math.exp %u : f32
    linalg.yield %t : f32
  } -> tensor<8x256x256xf32>
  %el = tensor.empty() : tensor<8x256xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<8x256xf32>) -> tensor<8x256xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h : tensor<8x256x256xf32>) outs(%fl : tensor<8x256xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x256xf32>
  %g = linalg.generic {indexing_maps = [#e, #v, #o],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%h, %q : tensor<8x256x256xf32>, tensor<8x256x64xf32>) outs(%f : tensor<8x256x64xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %r : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x256x64xf32>
  %d = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g, %l : tensor<8x256x64xf32>, tensor<8x256xf32>) outs(%e : tensor<8x256x64xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %t = arith.divf %p, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x256x64xf32>
  %z = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%d, %w : tensor<8x256x64xf32>, tensor<64x64xf32>) outs(%f : tensor<8x256x64xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %m = arith.mulf %p, %r : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x256x64xf32>
  return %z : tensor<8x256x64xf32>
}
