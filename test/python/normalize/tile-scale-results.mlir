// RUN: tile-opt %s --tile-scale-results | FileCheck-22 %s
// RUN: tile-opt %s --tile-scale-results=rounded | FileCheck-22 %s --check-prefix=ROUNDED

// The product reads the exponentials as they are; its result, which is smaller, is scaled.

// CHECK-LABEL: @main
// CHECK: %[[X:.*]] = linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<64x64xf32>, tensor<64xf32>)
// CHECK: math.exp
// CHECK: %[[Z:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[X]], %{{.*}} : tensor<64x64xf32>, tensor<64x8xf32>)
// CHECK: arith.addf
// CHECK: %[[Y:.*]] = linalg.generic {{.*}}ins(%[[Z]], %{{.*}} : tensor<64x8xf32>, tensor<64xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK: return %[[Y]]
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#x = affine_map<(i, n, j) -> (i, j)>
#v = affine_map<(i, n, j) -> (j, n)>
#y = affine_map<(i, n, j) -> (i, n)>
func.func @main(%s: tensor<64x64xf32>, %f: tensor<64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// What is not known to be small stays: a sum might overflow that did not before.

// CHECK-LABEL: @unbounded
// CHECK: math.tanh
// CHECK: arith.mulf
// CHECK-NEXT: linalg.yield
// CHECK: "reduction"
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
#ij2 = affine_map<(i, j) -> (i, j)>
#i2 = affine_map<(i, j) -> (i)>
#x2 = affine_map<(i, n, j) -> (i, j)>
#v2 = affine_map<(i, n, j) -> (j, n)>
#y2 = affine_map<(i, n, j) -> (i, n)>
func.func @unbounded(%s: tensor<64x64xf32>, %f: tensor<64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij2, #i2], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#ij2, #i2, #ij2], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.tanh %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#ij2, #i2, #ij2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.generic {indexing_maps = [#x2, #v2, #y2], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// Sizes that are known at run time only count as many.

// CHECK-LABEL: @run_time
// CHECK: math.exp
// CHECK: %[[Z:.*]] = linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x?xf32>, tensor<?x8xf32>)
// CHECK: %[[PLACE:.*]] = tensor.empty(%{{.*}}) : tensor<?x8xf32>
// CHECK: linalg.generic {{.*}}ins(%[[Z]], %{{.*}} : tensor<?x8xf32>, tensor<?xf32>) outs(%[[PLACE]]
func.func @run_time(%s: tensor<?x?xf32>, %f: tensor<?xf32>, %v: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty(%n) : tensor<?xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<?x?xf32>) outs(%g : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %h = tensor.empty(%n) : tensor<?x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<?x?xf32>, tensor<?x8xf32>) outs(%k : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Exponentials that are rounded before the product, as f16 models do: on request they are rounded first, then scaled.

// CHECK-LABEL: @rounded
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: arith.truncf
// CHECK: "reduction"
// ROUNDED-LABEL: @rounded
// ROUNDED: %[[E:.*]] = linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<64x64xf32>, tensor<64xf32>)
// ROUNDED: math.exp
// ROUNDED: %[[R:.*]] = linalg.generic {{.*}}ins(%[[E]] : tensor<64x64xf32>)
// ROUNDED: arith.truncf
// ROUNDED: %[[Z:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[R]], %{{.*}} : tensor<64x64xf16>, tensor<64x8xf16>)
// ROUNDED: linalg.generic {{.*}}ins(%[[Z]], %{{.*}} : tensor<64x8xf32>, tensor<64xf32>)
// ROUNDED: arith.mulf
func.func @rounded(%s: tensor<64x64xf32>, %f: tensor<64xf32>, %v: tensor<64x8xf16>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %n = tensor.empty() : tensor<64x64xf16>
  %c = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x64xf32>) outs(%n : tensor<64x64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x64xf16>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%c, %v : tensor<64x64xf16>, tensor<64x8xf16>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %q = arith.mulf %aw, %bw : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// Zeros in the place of what is no number: where the sum's reciprocal is not finite, the result is zero instead.

// CHECK-LABEL: @guarded
// CHECK: %[[F:[0-9]+]] = linalg.generic {{.*}}iterator_types = ["parallel"]}{{.*}}tensor<64xf32>
// CHECK: arith.divf
// CHECK-NOT: arith.cmpf une
// CHECK: %[[Z:.*]] = linalg.generic {{.*}}"reduction"]}
// CHECK: linalg.generic {{.*}}ins(%[[Z]], %[[F]] : tensor<64x8xf32>, tensor<64xf32>)
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[ELEMENT:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[SCALED:.*]] = arith.mulf
// CHECK: %[[BAD:.*]] = arith.cmpf uge, %[[ELEMENT]], %{{.*}} : f32
// CHECK: arith.select %[[BAD]], %{{.*}}, %[[SCALED]] : f32

// What scales is not the reciprocal of the sum of what is scaled: the guard stays.

// CHECK-LABEL: @guarded_otherwise
// CHECK: arith.cmpf une
// CHECK: arith.select
// CHECK: "reduction"
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @guarded(%s: tensor<64x64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %l = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%l : tensor<64xf32>) outs(%r : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %one, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %c = tensor.empty() : tensor<64x64xi1>
  %n = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x64xf32>) outs(%c : tensor<64x64xi1>) {
  ^bb0(%a: f32, %o: i1):
    %t = arith.cmpf une, %a, %a : f32
    linalg.yield %t : i1
  } -> tensor<64x64xi1>
  %w = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %p : tensor<64x64xi1>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: i1, %b: f32, %o: f32):
    %t = arith.select %a, %zero, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}
func.func @guarded_otherwise(%s: tensor<64x64xf32>, %f: tensor<64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %c = tensor.empty() : tensor<64x64xi1>
  %n = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x64xf32>) outs(%c : tensor<64x64xi1>) {
  ^bb0(%a: f32, %o: i1):
    %t = arith.cmpf une, %a, %a : f32
    linalg.yield %t : i1
  } -> tensor<64x64xi1>
  %w = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %p : tensor<64x64xi1>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: i1, %b: f32, %o: f32):
    %t = arith.select %a, %zero, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}
