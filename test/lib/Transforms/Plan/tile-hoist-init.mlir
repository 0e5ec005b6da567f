// RUN: tile-opt %s --tile-hoist-init --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>

// CHECK: func.func private @init() -> (tensor<96x64xf32> {tile.global = "p_0"})
// CHECK: ml_program.global_load_const @w
// CHECK: linalg.generic
// CHECK: return
// CHECK: ml_program.global private @p_0({{.*}}) : tensor<96x64xf32>

// The transposition of a weight moves to compile time; a view of a weight stays, and so does what reads the input.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[P:.*]] = ml_program.global_load_const @p_0
// CHECK-DAG: %[[W:.*]] = ml_program.global_load_const @w
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]], %{{.*}} : tensor<96x64xf32>, tensor<96x64xf32>)
// CHECK-NOT: linalg.generic
// CHECK: tensor.expand_shape %[[W]]
func.func @main(%x: tensor<96x64xf32>) -> (tensor<96x64xf32>, tensor<8x8x96xf32>) {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %e = tensor.empty() : tensor<96x64xf32>
  %wt = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x96xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<96x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%wt, %x : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<96x64xf32>
  %v = tensor.expand_shape %w [[0, 1], [2]] output_shape [8, 8, 96] : tensor<64x96xf32> into tensor<8x8x96xf32>
  return %y, %v : tensor<96x64xf32>, tensor<8x8x96xf32>
}

// What constants alone determine is cheaper to make than to keep.
// CHECK-LABEL: func.func @padding
// CHECK: linalg.fill
func.func @padding(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %r = tensor.insert_slice %x into %f[1] [4] [1] : tensor<4xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// What two branches compute alike of a weight is stored once; another order of the same weight is another one.
// CHECK: func.func private @init()
// CHECK-SAME: (tensor<96x64xf32> {tile.global = "p_0"}, tensor<64x96xf32> {tile.global = "p_1"})
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: ml_program.global_load_const @p_0
// CHECK: else
// CHECK-DAG: ml_program.global_load_const @p_0
// CHECK-DAG: ml_program.global_load_const @p_1
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
func.func @main(%c: i1, %x: tensor<96x64xf32>, %z: tensor<64x96xf32>) -> tensor<96x64xf32> {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %y = scf.if %c -> (tensor<96x64xf32>) {
    %e = tensor.empty() : tensor<96x64xf32>
    %wt = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<64x96xf32>) outs(%e : tensor<96x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<96x64xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%wt, %x : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %r = arith.addf %a, %b : f32
      linalg.yield %r : f32
    } -> tensor<96x64xf32>
    scf.yield %s : tensor<96x64xf32>
  } else {
    %e = tensor.empty() : tensor<96x64xf32>
    %f = tensor.empty() : tensor<64x96xf32>
    %wt = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<64x96xf32>) outs(%e : tensor<96x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<96x64xf32>
    %wn = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<64x96xf32>) outs(%f : tensor<64x96xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<64x96xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #t, #t, #id],
        iterator_types = ["parallel", "parallel"]}
        ins(%wt, %x, %wn, %z : tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>, tensor<64x96xf32>)
        outs(%e : tensor<96x64xf32>) {
    ^bb0(%a: f32, %b: f32, %g: f32, %h: f32, %o: f32):
      %r = arith.addf %a, %b : f32
      %q = arith.addf %g, %h : f32
      %v = arith.mulf %r, %q : f32
      linalg.yield %v : f32
    } -> tensor<96x64xf32>
    scf.yield %s : tensor<96x64xf32>
  }
  return %y : tensor<96x64xf32>
}

// -----

// What differs in its body alone differs, and so does what is computed of it.
// CHECK: func.func private @init()
// CHECK-SAME: tile.global = "p_3"
// CHECK-NOT: tile.global = "p_4"
// CHECK-DAG: ml_program.global_load_const @p_2
// CHECK-DAG: ml_program.global_load_const @p_3
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
func.func @main(%x: tensor<64x96xf32>, %z: tensor<96x64xf32>) -> (tensor<64x96xf32>, tensor<96x64xf32>) {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %e = tensor.empty() : tensor<64x96xf32>
  %f = tensor.empty() : tensor<96x64xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<64x96xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.negf %p : f32
    linalg.yield %r : f32
  } -> tensor<64x96xf32>
  %at = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x96xf32>) outs(%f : tensor<96x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<96x64xf32>
  %bt = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<64x96xf32>) outs(%f : tensor<96x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<96x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %x : tensor<64x96xf32>, tensor<64x96xf32>, tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    %v = arith.mulf %r, %s : f32
    linalg.yield %v : f32
  } -> tensor<64x96xf32>
  %u = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at, %bt, %z : tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>) outs(%f : tensor<96x64xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    %v = arith.mulf %r, %s : f32
    linalg.yield %v : f32
  } -> tensor<96x64xf32>
  return %y, %u : tensor<64x96xf32>, tensor<96x64xf32>
}
