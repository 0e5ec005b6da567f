// RUN: tile-opt %s --tile-join-rows | FileCheck-22 %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#id = affine_map<(b, s, n) -> (b, s, n)>
#s = affine_map<(b, s, n) -> (s, n)>
#row = affine_map<(b, s, n) -> (b, s)>

// The product, what is added to it and the sum of a row take all rows in one loop; what broadcasts along the batch
// stays.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<?x?x8xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[R:.*]]: tensor<?x?x4xf32>,
// CHECK-SAME: {{^}} {{.*}} %[[B:.*]]: index, %[[S:.*]]: index
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
// CHECK: %[[N:.*]] = arith.muli %[[B]], %[[S]]
// CHECK: %[[E:.*]] = tensor.empty(%[[N]]) : tensor<?x4xf32>
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E]] : tensor<?x4xf32>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: "parallel", "parallel", "reduction"]} ins(%[[ROWS]], %[[W]] : {{.*}}) outs(%[[F]]
// CHECK: %[[R2:.*]] = tensor.collapse_shape %[[R]]
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[R2]] : tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: %[[A3:.*]] = tensor.expand_shape %[[A]] {{\[}}[0, 1], [2]] output_shape [%[[B]], %[[S]], 4]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[A]] : tensor<?x4xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK: %[[SUM:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [%[[B]], %[[S]]]
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[A3]], %{{.*}} : tensor<?x?x4xf32>, tensor<?x4xf32>)
// CHECK: return %[[P]], %[[SUM]]
func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>, %r: tensor<?x?x4xf32>, %p: tensor<?x4xf32>, %b: index,
    %s: index)
    -> (tensor<?x?x4xf32>, tensor<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b, %s) : tensor<?x?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %r : tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %a = arith.addf %q, %t : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  %h = tensor.empty(%b, %s) : tensor<?x?xf32>
  %g = linalg.fill ins(%zero : f32) outs(%h : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%z : tensor<?x?x4xf32>) outs(%g : tensor<?x?xf32>) {
  ^bb0(%q: f32, %o: f32):
    %a = arith.addf %o, %q : f32
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  %placed = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %p : tensor<?x?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %a = arith.addf %q, %t : f32
    linalg.yield %a : f32
  } -> tensor<?x?x4xf32>
  return %placed, %sum : tensor<?x?x4xf32>, tensor<?x?xf32>
}

// Sizes that are known: tiles may take several loops as rows.

// CHECK-LABEL: func.func @known
// CHECK-NOT: collapse_shape
func.func @known(%x: tensor<?x5x8xf32>, %w: tensor<8x4xf32>, %b: index) -> tensor<?x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b) : tensor<?x5x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5x4xf32>) -> tensor<?x5x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x5x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x5x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?x5x4xf32>
  return %y : tensor<?x5x4xf32>
}

#q = affine_map<(h, i, r, t, d) -> (h, i, r, d)>
#k = affine_map<(h, i, r, t, d) -> (h, t, d)>
#qk = affine_map<(h, i, r, t, d) -> (h, i, r, t)>
#v = affine_map<(h, i, r, e, t) -> (h, t, e)>
#pv = affine_map<(h, i, r, e, t) -> (h, i, r, t)>
#o = affine_map<(h, i, r, e, t) -> (h, i, r, e)>
#all = affine_map<(h, i, r, t) -> (h, i, r, t)>
#rows = affine_map<(h, i, r, t) -> (h, i, r)>
#mask = affine_map<(h, i, r, t) -> (r, t)>

// Blocks of queries that attend to the same keys: rows of one matrix for each head, from one product to the other.
// CHECK-LABEL: func.func @attention
// CHECK: %[[Q:.*]] = tensor.collapse_shape %arg0 {{\[}}[0], [1, 2], [3]] : tensor<2x3x4x8xf32> into tensor<2x12x8xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[Q]], %arg1 : tensor<2x12x8xf32>, tensor<2x5x8xf32>)
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<2x12x5xf32>)
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[M]] : tensor<2x12x5xf32>, tensor<2x12xf32>)
// CHECK: %[[O:.*]] = linalg.generic {{.*}} ins(%[[E]], %arg2 : tensor<2x12x5xf32>, tensor<2x5x6xf32>)
// CHECK: tensor.expand_shape %[[O]] {{\[}}[0], [1, 2], [3]] output_shape [2, 3, 4, 6]
func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x3x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #qk],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x4x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x5xf32>
  %low = arith.constant 0xFF800000 : f32
  %re = tensor.empty() : tensor<2x3x4xf32>
  %rf = linalg.fill ins(%low : f32) outs(%re : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %top = linalg.generic {indexing_maps = [#all, #rows],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x4x5xf32>) outs(%rf : tensor<2x3x4xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4xf32>
  %p = linalg.generic {indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %top : tensor<2x3x4x5xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x5xf32>
  %oe = tensor.empty() : tensor<2x3x4x6xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
  %o = linalg.generic {indexing_maps = [#pv, #v, #o],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x3x4x5xf32>, tensor<2x5x6xf32>) outs(%of : tensor<2x3x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x6xf32>
  return %o : tensor<2x3x4x6xf32>
}

// A mask that all blocks of queries share has no such rows: all stays as it is. So do two
// products between which no maximum is taken.
// CHECK-LABEL: func.func @masked
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @masked(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x6xf32>, %mask: tensor<4x5xf32>)
    -> (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #qk],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x4x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x5xf32>
  %alone = linalg.generic {indexing_maps = [#q, #k, #qk],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x4x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x5xf32>
  %low = arith.constant 0xFF800000 : f32
  %re = tensor.empty() : tensor<2x3x4xf32>
  %rf = linalg.fill ins(%low : f32) outs(%re : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %top = linalg.generic {indexing_maps = [#all, #rows],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x4x5xf32>) outs(%rf : tensor<2x3x4xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4xf32>
  %p = linalg.generic {indexing_maps = [#all, #rows, #mask, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %top, %mask : tensor<2x3x4x5xf32>, tensor<2x3x4xf32>, tensor<4x5xf32>) outs(%e : tensor<2x3x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %n: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = arith.addf %d, %n : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x5xf32>
  %oe = tensor.empty() : tensor<2x3x4x6xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
  %o = linalg.generic {indexing_maps = [#pv, #v, #o],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x3x4x5xf32>, tensor<2x5x6xf32>) outs(%of : tensor<2x3x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x6xf32>
  %plain = linalg.generic {indexing_maps = [#pv, #v, #o],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%alone, %v : tensor<2x3x4x5xf32>, tensor<2x5x6xf32>) outs(%of : tensor<2x3x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4x6xf32>
  return %o, %plain : tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>
}

// Steps that a loop takes one after the other, in two levels: one loop over them all; rows of a step stay theirs. What
// the product reads is made of what it was before it was seen in levels.

#steps = affine_map<(s, g, b, n, k) -> (s, g, b, k)>
#weight = affine_map<(s, g, b, n, k) -> (k, n)>
#made = affine_map<(s, g, b, n, k) -> (s, g, b, n)>

// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[X:.*]]: tensor<12x5x8xf32>
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%[[X]], %{{.*}} : tensor<12x5x8xf32>, tensor<8x4xf32>) outs(%{{.*}} : tensor<12x5x4xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[}}[0, 1], [2], [3]] output_shape [3, 4, 5, 4]
// CHECK: scf.for
func.func @steps(%x: tensor<12x5x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x5x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %seen = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [3, 4, 5, 8]
      : tensor<12x5x8xf32> into tensor<3x4x5x8xf32>
  %e = tensor.empty() : tensor<3x4x5x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4x5x4xf32>) -> tensor<3x4x5x4xf32>
  %y = linalg.generic {indexing_maps = [#steps, #weight, #made],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%seen, %w : tensor<3x4x5x8xf32>, tensor<8x4xf32>) outs(%f : tensor<3x4x5x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3x4x5x4xf32>
  %s = tensor.empty() : tensor<4x5x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%s : tensor<4x5x4xf32>) -> tensor<4x5x4xf32>
  %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%state = %start) -> tensor<4x5x4xf32> {
    %step = tensor.extract_slice %y[%i, 0, 0, 0] [1, 4, 5, 4] [1, 1, 1, 1]
        : tensor<3x4x5x4xf32> to tensor<4x5x4xf32>
    %next = linalg.add ins(%state, %step : tensor<4x5x4xf32>, tensor<4x5x4xf32>)
        outs(%s : tensor<4x5x4xf32>) -> tensor<4x5x4xf32>
    scf.yield %next : tensor<4x5x4xf32>
  }
  return %last : tensor<4x5x4xf32>
}

// A product that is added to, too: what follows meets it in registers, loop by loop.

// CHECK-LABEL: func.func @added
// CHECK-NOT: collapse_shape
func.func @added(%x: tensor<3x4x5x8xf32>, %w: tensor<8x4xf32>, %i: index) -> tensor<3x4x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4x5x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4x5x4xf32>) -> tensor<3x4x5x4xf32>
  %y = linalg.generic {indexing_maps = [#steps, #weight, #made],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x4x5x8xf32>, tensor<8x4xf32>) outs(%f : tensor<3x4x5x4xf32>) {
  ^bb0(%q: f32, %t: f32, %o: f32):
    %m = arith.mulf %q, %t : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3x4x5x4xf32>
  %z = linalg.exp ins(%y : tensor<3x4x5x4xf32>) outs(%e : tensor<3x4x5x4xf32>) -> tensor<3x4x5x4xf32>
  return %z : tensor<3x4x5x4xf32>
}
