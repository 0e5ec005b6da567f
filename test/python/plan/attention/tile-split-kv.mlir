// RUN: tile-opt %s --tile-set-target=target=nvidia-h100 --tile-split-kv --split-input-file | FileCheck-22 %s

// Eight rows with 16384 steps each: parts of the steps are tasks of their own, which make maxima, sums and weighted
// sums. A maximum of parts starts from the lowest number: a part in which all is masked leaves zeros behind. The
// largest maximum rescales both sums, in a fixed order of parts.

// CHECK-LABEL: @main
// CHECK: tensor.expand_shape %arg1 {{\[\[}}0], [1, 2], [3]] output_shape [8, [[P:[0-9]+]], [[S:[0-9]+]], 64]
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %{{.*}} : tensor<8x64xf32>, tensor<8x[[P]]x[[S]]x64xf32>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<[[P]]x8x[[S]]xf32>) attrs = {tile.apart = 0 : i64}
// CHECK: arith.constant -3.40282347E+38 : f32
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: outs(%{{.*}} : tensor<[[P]]x8xf32>) attrs = {tile.apart = 0 : i64}
// CHECK: arith.maximumf
// CHECK: %[[M:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: {{^}} ins(%{{.*}} : tensor<[[P]]x8xf32>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<8xf32>) {
// CHECK: math.exp
// CHECK: %[[L:.*]] = linalg.generic {{.*}} %[[M]] : tensor<[[P]]x8xf32>, tensor<[[P]]x8xf32>, tensor<8xf32>)
// CHECK-NEXT: ^bb0(%[[TERM:.*]]: f32, %[[PART:.*]]: f32, %[[TOP:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[PART]], %[[TOP]] : f32
// CHECK-NEXT: %[[X:.*]] = math.exp %[[D]] : f32
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[TERM]], %[[X]] : f32
// CHECK-NEXT: arith.addf %[[SUM]], %[[T]] : f32
// CHECK: attrs = {tile.apart = 0 : i64,
// CHECK-SAME: {{^}} tile.parts = {ns = {{[0-9]+}} : i64, parts = [[P]] : i64, runner_up = {{[0-9]+}} : i64,
// CHECK-SAME: {{^}} runner_up_ns = {{[0-9]+}} : i64, whole_ns = {{[0-9]+}} : i64}}
// CHECK: %[[W:.*]] = linalg.generic {{.*}} %[[M]] : tensor<[[P]]x8x64xf32>, tensor<[[P]]x8xf32>, tensor<8xf32>)
// CHECK: return %[[W]], %[[L]]
#s = affine_map<(h, j, c) -> (h, j)>
#q = affine_map<(h, j, c) -> (h, c)>
#k = affine_map<(h, j, c) -> (h, j, c)>
#hj = affine_map<(h, j) -> (h, j)>
#h = affine_map<(h, j) -> (h)>
#p = affine_map<(h, c, j) -> (h, j)>
#v = affine_map<(h, c, j) -> (h, j, c)>
#y = affine_map<(h, c, j) -> (h, c)>
func.func @main(%q: tensor<8x64xf32>, %k: tensor<8x16384x64xf32>, %v: tensor<8x16384x64xf32>)
    -> (tensor<8x64xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x16384xf32>
  %r = tensor.empty() : tensor<8xf32>
  %o = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16384xf32>) -> tensor<8x16384xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x64xf32>, tensor<8x16384x64xf32>) outs(%f : tensor<8x16384xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x16384xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x16384xf32>) outs(%g : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %x = linalg.generic {indexing_maps = [#hj, #h, #hj], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x16384xf32>, tensor<8xf32>) outs(%e : tensor<8x16384xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<8x16384xf32>
  %i = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16384xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %n = linalg.fill ins(%zero : f32) outs(%o : tensor<8x64xf32>) -> tensor<8x64xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x16384xf32>, tensor<8x16384x64xf32>) outs(%n : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %w, %l : tensor<8x64xf32>, tensor<8xf32>
}

// -----

// Rows enough for all multiprocessors: nothing is cut.

// CHECK-LABEL: @many
// CHECK-NOT: expand_shape
#s = affine_map<(h, j, c) -> (h, j)>
#q = affine_map<(h, j, c) -> (h, c)>
#k = affine_map<(h, j, c) -> (h, j, c)>
#hj = affine_map<(h, j) -> (h, j)>
#h = affine_map<(h, j) -> (h)>
#p = affine_map<(h, c, j) -> (h, j)>
#v = affine_map<(h, c, j) -> (h, j, c)>
#y = affine_map<(h, c, j) -> (h, c)>
func.func @many(%q: tensor<512x64xf32>, %k: tensor<512x16384x64xf32>, %v: tensor<512x16384x64xf32>)
    -> (tensor<512x64xf32>, tensor<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x16384xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x16384xf32>) -> tensor<512x16384xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x64xf32>, tensor<512x16384x64xf32>) outs(%f : tensor<512x16384xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<512x16384xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<512x16384xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#hj, #h, #hj], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<512x16384xf32>, tensor<512xf32>) outs(%e : tensor<512x16384xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x16384xf32>
  %i = linalg.fill ins(%zero : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %l = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x16384xf32>) outs(%i : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %n = linalg.fill ins(%zero : f32) outs(%o : tensor<512x64xf32>) -> tensor<512x64xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x16384xf32>, tensor<512x16384x64xf32>) outs(%n : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x64xf32>
  return %w, %l : tensor<512x64xf32>, tensor<512xf32>
}

// -----

// A run brings the length: parts have a fixed one, and a run has so many of them. Each masks the steps of others, and
// `tile.live` says which steps are its own.

// CHECK-LABEL: @open
// CHECK: %[[P:.*]] = arith.ceildivui %{{.*}}, %{{.*}} : index
// CHECK: tensor.empty(%[[P]], %{{.*}}) : tensor<?x8x?xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : tensor<8x64xf32>, tensor<8x?x64xf32>) outs(%{{.*}} : tensor<?x8x?xf32>)
// CHECK-SAME: {{^}} attrs = {tile.apart = 0 : i64}
// CHECK: attrs = {tile.apart = 0 : i64, tile.live = array<i64: 0, 1, 0, 0, [[L:[0-9]+]], [[L]], [[L]]>}
// CHECK: arith.shrui
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: tile.parts = {length = [[L]] : i64
#s = affine_map<(h, j, c) -> (h, j)>
#q = affine_map<(h, j, c) -> (h, c)>
#k = affine_map<(h, j, c) -> (h, j, c)>
#hj = affine_map<(h, j) -> (h, j)>
#h = affine_map<(h, j) -> (h)>
#p = affine_map<(h, c, j) -> (h, j)>
#v = affine_map<(h, c, j) -> (h, j, c)>
#y = affine_map<(h, c, j) -> (h, c)>
func.func @open(%q: tensor<8x64xf32>, %k: tensor<8x?x64xf32>, %v: tensor<8x?x64xf32>)
    -> (tensor<8x64xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %one = arith.constant 1 : index
  %size = tensor.dim %k, %one : tensor<8x?x64xf32>
  %e = tensor.empty(%size) : tensor<8x?xf32>
  %r = tensor.empty() : tensor<8xf32>
  %o = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x?xf32>) -> tensor<8x?xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x64xf32>, tensor<8x?x64xf32>) outs(%f : tensor<8x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x?xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x?xf32>) outs(%g : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %x = linalg.generic {indexing_maps = [#hj, #h, #hj], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x?xf32>, tensor<8xf32>) outs(%e : tensor<8x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<8x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x?xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %n = linalg.fill ins(%zero : f32) outs(%o : tensor<8x64xf32>) -> tensor<8x64xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x?xf32>, tensor<8x?x64xf32>) outs(%n : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %w, %l : tensor<8x64xf32>, tensor<8xf32>
}
