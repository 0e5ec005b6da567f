// RUN: tile-opt %s --tile-set-target=target=cpu:znver5 --tile-skip-masked-blocks | FileCheck %s

// A byte per row and 64 steps says where a mask of the run leaves something, or masks all of a row: one more input of
// what masks.

#q = affine_map<(i, j, c) -> (i, c)>
#k = affine_map<(i, j, c) -> (j, c)>
#s = affine_map<(i, j, c) -> (i, j)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#p = affine_map<(i, c, j) -> (i, j)>
#v = affine_map<(i, c, j) -> (j, c)>
#y = affine_map<(i, c, j) -> (i, c)>

// A choice between scores and -inf. The last loop counts the steps of a unit.

// CHECK-LABEL: @chosen
// CHECK: %[[LEFT:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg3, %{{.*}} : tensor<512x512xi1>, tensor<64xi8>)
// CHECK-SAME: tensor<512x8xi8>) attrs = {tile.apart = 0 : i64}
// CHECK: ^bb0(%[[MASK:.*]]: i1, %{{.*}}: i8, %[[OUT:.*]]: i8):
// CHECK: %[[DEAD:.*]] = arith.select %[[MASK]], %false, %true : i1
// CHECK: %[[BYTE:.*]] = arith.extui %[[DEAD]] : i1 to i8
// CHECK: %[[LIVE:.*]] = arith.xori %[[BYTE]], %c1_i8 : i8
// CHECK: arith.ori %[[OUT]], %[[LIVE]] : i8
// CHECK: %[[SOME:.*]] = linalg.generic {{.*}}ins(%[[LEFT]] : tensor<512x8xi8>) outs(%{{.*}} : tensor<512xi8>)
// CHECK: %[[FLAGS:.*]] = linalg.generic {{.*}}ins(%[[SOME]], %[[LEFT]] : tensor<512xi8>, tensor<512x8xi8>)
// CHECK: ins(%{{.*}}, %{{.*}}, %[[FLAGS]] : tensor<512x512xi1>, tensor<512x512xf32>, tensor<512x8xi8>)
// CHECK-SAME: attrs = {tile.skip = 2 : i64}
func.func @chosen(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>, %mask: tensor<512x512xi1>)
    -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %n = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<512x512xi1>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %t = arith.select %a, %b, %low : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x128xf32>
  return %w : tensor<512x128xf32>
}

// A number of the mask is compared with a constant that stands outside of the body.

// CHECK-LABEL: @compared
// CHECK: arith.cmpi sgt, %{{.*}}, %c0_i32 : i32
// CHECK: attrs = {tile.skip = 2 : i64}
func.func @compared(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>, %mask: tensor<512xi32>)
    -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %n = linalg.generic {indexing_maps = [#j, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<512xi32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: i32, %b: f32, %c: f32):
    %n0 = arith.cmpi sgt, %a, %none : i32
    %t = arith.select %n0, %b, %low : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x128xf32>
  return %w : tensor<512x128xf32>
}

// What is added to all rows alike needs one row of flags.

// CHECK-LABEL: @added
// CHECK: arith.cmpf ole, %{{.*}}, %{{.*}} : f32
// CHECK: ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<512xf32>, tensor<512x512xf32>, tensor<8xi8>)
// CHECK-SAME: attrs = {tile.skip = 2 : i64}
func.func @added(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>, %mask: tensor<512xf32>)
    -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %n = linalg.generic {indexing_maps = [#j, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.addf %b, %a : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x128xf32>
  return %w : tensor<512x128xf32>
}

// A mask of rows masks whole rows only, which see all elements.

// CHECK-LABEL: @rows
// CHECK-NOT: tile.skip
func.func @rows(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>, %mask: tensor<512xi1>)
    -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %n = linalg.generic {indexing_maps = [#i, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<512xi1>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %t = arith.select %a, %b, %low : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x128xf32>
  return %w : tensor<512x128xf32>
}

// Constants are bounds of loops.

// CHECK-LABEL: @constant
// CHECK-NOT: tile.skip
func.func @constant(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>)
    -> tensor<512x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %mask = arith.constant dense<true> : tensor<512x512xi1>
  %e = tensor.empty() : tensor<512x512xf32>
  %r = tensor.empty() : tensor<512xf32>
  %o = tensor.empty() : tensor<512x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %n = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<512x512xi1>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %t = arith.select %a, %b, %low : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<512x128xf32>
  return %w : tensor<512x128xf32>
}

// Short rows run as a whole.

// CHECK-LABEL: @short
// CHECK-NOT: tile.skip
func.func @short(%q: tensor<256x128xf32>, %k: tensor<256x128xf32>, %v: tensor<256x128xf32>, %mask: tensor<256x256xi1>)
    -> tensor<256x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = tensor.empty() : tensor<256xf32>
  %o = tensor.empty() : tensor<256x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<256x128xf32>, tensor<256x128xf32>) outs(%f : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m0 = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m0 : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  %n = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %s : tensor<256x256xi1>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %t = arith.select %a, %b, %low : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<256xf32>) -> tensor<256xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<256x256xf32>) outs(%g : tensor<256xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.maximumf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%n, %m : tensor<256x256xf32>, tensor<256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<256x128xf32>) -> tensor<256x128xf32>
  %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<256x256xf32>, tensor<256x128xf32>) outs(%z : tensor<256x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %u = arith.mulf %a, %b : f32
    %t = arith.addf %c, %u : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  return %w : tensor<256x128xf32>
}
