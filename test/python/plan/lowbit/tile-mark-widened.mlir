// RUN: tile-opt %s --tile-mark-widened | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: tile-opt %s --tile-mark-widened="matrix=bf16,i8 dots=i8" | FileCheck %s --check-prefixes=CHECK,UNIT
// RUN: tile-opt %s --tile-mark-widened="dots=bf16,i8" | FileCheck %s --check-prefixes=CHECK,DOTS
// RUN: tile-opt %s --tile-mark-widened="matrix=bf16" --tile-widen-operands="keep=bf16" \
// RUN:   | FileCheck %s --check-prefix=WIDEN

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
ml_program.global private @w(#ml_program.extern<tensor<64x32xbf16>>) : tensor<64x32xbf16>
ml_program.global private @v(#ml_program.extern<tensor<40x32xbf16>>) : tensor<40x32xbf16>
ml_program.global private @b(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>

// Whole blocks: only a machine without instructions widens.

// CHECK-LABEL: @fits
// NONE: tile.widened = "bf16 in f32: this machine has no instruction that multiplies bf16 faster"
// UNIT-NOT: tile.widened
// DOTS-NOT: tile.widened
func.func @fits(%x: tensor<32x64xbf16>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xbf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<32x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// What a matrix unit refuses, vectors may take; where nothing does, the operands are widened once.

// CHECK-LABEL: @depth
// UNIT: tile.widened = "bf16 in f32: its sums of 40 are no multiple of the matrix unit's 32"
// DOTS-NOT: tile.widened
// WIDEN-LABEL: @depth
// WIDEN: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<32x40xf32>, tensor<40x32xf32>)
func.func @depth(%x: tensor<32x40xbf16>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %w = ml_program.global_load_const @v : tensor<40x32xbf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x40xbf16>, tensor<40x32xbf16>) outs(%f : tensor<32x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// CHECK-LABEL: @one_row
// UNIT: tile.widened = "bf16 in f32: it has one row, and a matrix unit takes several"
func.func @one_row(%x: tensor<1x64xbf16>, %f: tensor<1x32xf32>) -> tensor<1x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xbf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<1x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}

// CHECK-LABEL: @rows_of_the_run
// UNIT: tile.widened = "bf16 in f32: its number of rows is known at run time only"
// DOTS-NOT: tile.widened
func.func @rows_of_the_run(%x: tensor<?x64xbf16>, %f: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %w = ml_program.global_load_const @w : tensor<64x32xbf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<?x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK-LABEL: @two_of_the_run
// UNIT: tile.widened = "bf16 in f32: both operands come with the run,
// UNIT-SAME: {{^}} and 32 rows are too few to lay one of them out anew"
// DOTS: tile.widened = "bf16 in f32: both operands come with the run
func.func @two_of_the_run(%x: tensor<32x64xbf16>, %w: tensor<64x32xbf16>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<32x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// Bytes that were dequantized, and of which tile-int8-matmul made no product of bytes: rows have a scale that differs
// along the sum.

// CHECK-LABEL: @dequantized
// NONE: tile.widened = "bytes in f32: this machine has no instruction that multiplies bytes faster"
// UNIT: tile.widened = "bytes in f32: a scale or zero point differs within its sums, or between what is moved together"
#along = affine_map<(i, j) -> (j)>
func.func @dequantized(%x: tensor<32x64xi8>, %s: tensor<64xf32>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %w = ml_program.global_load_const @b : tensor<64x32xi8>
  %ex = tensor.empty() : tensor<32x64xf32>
  %ew = tensor.empty() : tensor<64x32xf32>
  %xf = linalg.generic {indexing_maps = [#id, #along, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<32x64xi8>, tensor<64xf32>) outs(%ex : tensor<32x64xf32>) {
  ^bb0(%q: i8, %z: f32, %o: f32):
    %d = sparse_tile.decode unsigned %q scale %z : f32 : i8 to f32
    linalg.yield %d : f32
  } -> tensor<32x64xf32>
  %wf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x32xi8>) outs(%ew : tensor<64x32xf32>) {
  ^bb0(%q: i8, %o: f32):
    %u = arith.sitofp %q : i8 to f32
    linalg.yield %u : f32
  } -> tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%xf, %wf : tensor<32x64xf32>, tensor<64x32xf32>) outs(%f : tensor<32x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}
