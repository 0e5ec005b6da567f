// RUN: tile-opt %s --tile-set-target=target=host-generic-avx512 --tile-group-experts --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s

// Lists of tokens, a count, and a branch: grouped products, added up in order; or all that was there.
// CHECK: tile.kernel @add_up_experts
// CHECK: tile.kernel @product_of_experts
// CHECK: arith.mulf {{.*}} : !tile.tile<8x
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @live_micro_tiles
// CHECK: tile.launch @list_micro_tiles
// CHECK: %[[FEW:.*]] = arith.cmpi ule
// CHECK: linalg.pack
// CHECK: scf.if %[[FEW]]
// CHECK: tile.launch @route_tokens
// CHECK: tile.launch @gather_tokens
// CHECK: tile.launch @product_of_experts
// CHECK: tile.launch @list_rows_of_tokens
// CHECK: tile.launch @add_up_experts
// CHECK: else
// CHECK-COUNT-3: linalg.generic
// CHECK: scf.yield
#x = affine_map<(e, t, f, d) -> (t, d)>
#w = affine_map<(e, t, f, d) -> (e, d, f)>
#h = affine_map<(e, t, f, d) -> (e, t, f)>
#i = affine_map<(e, t, f) -> (e, t, f)>
#g = affine_map<(e, t, f) -> (t, e)>
#r = affine_map<(t, f, e) -> (e, t, f)>
#o = affine_map<(t, f, e) -> (t, f)>
ml_program.global private @w(#ml_program.extern<tensor<8x16x24xf32>>) : tensor<8x16x24xf32>
func.func @main(%x: tensor<32x16xf32>, %gate: tensor<32x8xf32>) -> tensor<32x24xf32> {
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<8x16x24xf32>
  %p = tensor.empty() : tensor<8x32x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%p : tensor<8x32x24xf32>) -> tensor<8x32x24xf32>
  %h = linalg.generic {indexing_maps = [#x, #w, #h], iterator_types = ["parallel", "parallel", "parallel",
      "reduction"]} ins(%x, %w : tensor<32x16xf32>, tensor<8x16x24xf32>) outs(%f : tensor<8x32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x32x24xf32>
  %y = linalg.generic {indexing_maps = [#i, #g, #i], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h, %gate : tensor<8x32x24xf32>, tensor<32x8xf32>) outs(%p : tensor<8x32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x32x24xf32>
  %q = tensor.empty() : tensor<32x24xf32>
  %n = linalg.fill ins(%zero : f32) outs(%q : tensor<32x24xf32>) -> tensor<32x24xf32>
  %z = linalg.generic {indexing_maps = [#r, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y : tensor<8x32x24xf32>) outs(%n : tensor<32x24xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x24xf32>
  return %z : tensor<32x24xf32>
}

// -----

// The sum begins with an argument: rows are added to it.
// CHECK: tile.kernel @add_up_experts(%{{.*}}, %[[C:[a-z0-9]+]]: memref<4x24xf32>)
// CHECK: tile.load %[[C]]
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[START:[a-z0-9]+]]: tensor<4x24xf32>)
// CHECK: tile.launch @add_up_experts {{.*}} outs(%[[START]] :
#x = affine_map<(e, t, f, d) -> (t, d)>
#w = affine_map<(e, t, f, d) -> (e, d, f)>
#h = affine_map<(e, t, f, d) -> (e, t, f)>
#i = affine_map<(e, t, f) -> (e, t, f)>
#g = affine_map<(e, t, f) -> (t, e)>
#r = affine_map<(t, f, e) -> (e, t, f)>
#o = affine_map<(t, f, e) -> (t, f)>
ml_program.global private @w(#ml_program.extern<tensor<8x16x24xf32>>) : tensor<8x16x24xf32>
func.func @main(%x: tensor<4x16xf32>, %gate: tensor<4x8xf32>, %start: tensor<4x24xf32>) -> tensor<4x24xf32> {
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<8x16x24xf32>
  %p = tensor.empty() : tensor<8x4x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%p : tensor<8x4x24xf32>) -> tensor<8x4x24xf32>
  %h = linalg.generic {indexing_maps = [#x, #w, #h], iterator_types = ["parallel", "parallel", "parallel",
      "reduction"]} ins(%x, %w : tensor<4x16xf32>, tensor<8x16x24xf32>) outs(%f : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x4x24xf32>
  %y = linalg.generic {indexing_maps = [#i, #g, #i], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h, %gate : tensor<8x4x24xf32>, tensor<4x8xf32>) outs(%p : tensor<8x4x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x4x24xf32>
  %z = linalg.generic {indexing_maps = [#r, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y : tensor<8x4x24xf32>) outs(%start : tensor<4x24xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x24xf32>
  return %z : tensor<4x24xf32>
}

// -----

// A maximum over experts is changed by the zeros of those that are not asked.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tile.launch
// CHECK: return
#x = affine_map<(e, t, f, d) -> (t, d)>
#w = affine_map<(e, t, f, d) -> (e, d, f)>
#h = affine_map<(e, t, f, d) -> (e, t, f)>
#i = affine_map<(e, t, f) -> (e, t, f)>
#g = affine_map<(e, t, f) -> (t, e)>
#r = affine_map<(t, f, e) -> (e, t, f)>
#o = affine_map<(t, f, e) -> (t, f)>
ml_program.global private @w(#ml_program.extern<tensor<8x16x24xf32>>) : tensor<8x16x24xf32>
func.func @main(%x: tensor<32x16xf32>, %gate: tensor<32x8xf32>) -> tensor<32x24xf32> {
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<8x16x24xf32>
  %p = tensor.empty() : tensor<8x32x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%p : tensor<8x32x24xf32>) -> tensor<8x32x24xf32>
  %h = linalg.generic {indexing_maps = [#x, #w, #h], iterator_types = ["parallel", "parallel", "parallel",
      "reduction"]} ins(%x, %w : tensor<32x16xf32>, tensor<8x16x24xf32>) outs(%f : tensor<8x32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x32x24xf32>
  %y = linalg.generic {indexing_maps = [#i, #g, #i], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h, %gate : tensor<8x32x24xf32>, tensor<32x8xf32>) outs(%p : tensor<8x32x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x32x24xf32>
  %q = tensor.empty() : tensor<32x24xf32>
  %n = linalg.fill ins(%zero : f32) outs(%q : tensor<32x24xf32>) -> tensor<32x24xf32>
  %z = linalg.generic {indexing_maps = [#r, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y : tensor<8x32x24xf32>) outs(%n : tensor<32x24xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.maximumf %c, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x24xf32>
  return %z : tensor<32x24xf32>
}
