// RUN: tile-opt %s --tile-set-target=target=nvidia-h100 --tile-split-k --split-input-file 2>/dev/null | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=nvidia-h100 --tile-split-k --split-input-file 2>&1 >/dev/null \
// RUN:   | FileCheck-22 %s --check-prefix=REMARK

// Few tiles and a deep sum: parts of the depth are tasks of their own, and a second kernel adds them.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1)>
// CHECK-LABEL: @deep
// CHECK: %[[X:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [64, [[P:[0-9]+]], {{[0-9]+}}]
// CHECK-SAME: {{^}} : tensor<64x8192xf16>
// CHECK: %[[W:.*]] = tensor.expand_shape
// CHECK: linalg.fill {{.*}} -> tensor<[[P]]x64x64xf32>
// CHECK: %[[PART:.*]] = linalg.generic {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]],
// CHECK-SAME: {{^}} iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
// CHECK-SAME: ins(%[[X]], %[[W]] {{.*}}attrs = {tile.apart}
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[PART]] :
// CHECK: arith.addf
// CHECK: return %[[SUM]]
func.func @deep(%x: tensor<64x8192xf16>, %w: tensor<64x8192xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x8192xf16>, tensor<64x8192xf16>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// A product that fills the machine stays whole, and so does a sum that starts from something else than nothing.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(i) -> (i)>
#s = affine_map<(i) -> ()>

// CHECK-LABEL: @whole
// CHECK-NOT: expand_shape
func.func @whole(%x: tensor<4096x1024xf16>, %w: tensor<4096x1024xf16>, %v: tensor<1048576xf32>)
    -> (tensor<4096x4096xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x1024xf16>, tensor<4096x1024xf16>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  %g = tensor.empty() : tensor<f32>
  %h = linalg.fill ins(%one : f32) outs(%g : tensor<f32>) -> tensor<f32>
  %z = linalg.generic {indexing_maps = [#i, #s], iterator_types = ["reduction"]}
      ins(%v : tensor<1048576xf32>) outs(%h : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %y, %z : tensor<4096x4096xf32>, tensor<f32>
}

// -----

// What had better be cut and cannot be says so: no number of parts divides 8191.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// REMARK: remark: a sum of 8191 terms runs in few tasks, as no number of parts divides it (predicted
// REMARK-SAME: us; in {{[0-9]+}} equal parts it would take {{.*}} us)
// CHECK-LABEL: @prime
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @prime(%x: tensor<64x8191xf16>, %w: tensor<64x8191xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x8191xf16>, tensor<64x8191xf16>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// A sum that goes on from what another one left cannot begin anew in each part.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// REMARK: remark: a sum of 8192 terms runs in few tasks, as it goes on from another tensor
// CHECK-LABEL: @goes_on
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @goes_on(%x: tensor<64x8192xf16>, %w: tensor<64x8192xf16>, %f: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x8192xf16>, tensor<64x8192xf16>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// A sum that reads the result of one that was cut reads the sum of its parts.

#m = affine_map<(o, k) -> (o, k)>
#o = affine_map<(o, k) -> (o)>

// CHECK-LABEL: @one_after_the_other
// CHECK: tensor.expand_shape %arg0
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%{{[0-9]+}} : tensor<{{[0-9]+}}x8xf32>)
// CHECK: tensor.expand_shape %arg1
// CHECK: %[[PARTS:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[FIRST]] : {{.*}}attrs = {tile.apart}
// CHECK: return
func.func @one_after_the_other(%x: tensor<8x1048576xf32>, %y: tensor<8x1048576xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#m, #o], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x1048576xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#m, #o, #o], iterator_types = ["parallel", "reduction"]}
      ins(%y, %p : tensor<8x1048576xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %c = arith.subf %a, %b : f32
    %t = arith.addf %s, %c : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %q : tensor<8xf32>
}
