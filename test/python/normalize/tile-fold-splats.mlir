// RUN: tile-opt %s --tile-fold-splats | FileCheck-22 %s

// A turned constant of ones, one of bits, a repeated number, and constants that are copied as they are.

#turned = affine_map<(i, j) -> (j, i)>
#same = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
// CHECK-LABEL: @fills
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f16
// CHECK: linalg.fill ins(%[[ONE]] : f16) outs(%{{.*}} : tensor<4x8xf16>)
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: linalg.fill ins(%[[TRUE]] : i1) outs(%{{.*}} : tensor<4x8xi1>)
// CHECK: %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK: linalg.fill ins(%[[SEVEN]] : i32) outs(%{{.*}} : tensor<4x8xi32>)
// CHECK-NOT: linalg.generic
func.func @fills() -> (tensor<4x8xf16>, tensor<4x8xi1>, tensor<4x8xi32>) {
  %ones = arith.constant dense<1.0> : tensor<8x4xf16>
  %bits = arith.constant dense<true> : tensor<4x8xi1>
  %number = arith.constant dense<7> : tensor<i32>
  %d = tensor.empty() : tensor<4x8xf16>
  %e = tensor.empty() : tensor<4x8xi1>
  %f = tensor.empty() : tensor<4x8xi32>
  %x = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%ones : tensor<8x4xf16>) outs(%d : tensor<4x8xf16>) {
  ^bb0(%a: f16, %o: f16):
    linalg.yield %a : f16
  } -> tensor<4x8xf16>
  %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%bits : tensor<4x8xi1>) outs(%e : tensor<4x8xi1>) {
  ^bb0(%a: i1, %o: i1):
    linalg.yield %a : i1
  } -> tensor<4x8xi1>
  %z = linalg.generic {indexing_maps = [#none, #same], iterator_types = ["parallel", "parallel"]}
      ins(%number : tensor<i32>) outs(%f : tensor<4x8xi32>) {
  ^bb0(%a: i32, %o: i32):
    linalg.yield %a : i32
  } -> tensor<4x8xi32>
  return %x, %y, %z : tensor<4x8xf16>, tensor<4x8xi1>, tensor<4x8xi32>
}

// Several numbers, and something that is done with one.

// CHECK-LABEL: @stay
// CHECK-NOT: linalg.fill
// CHECK-COUNT-2: linalg.generic
func.func @stay() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %several = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %ones = arith.constant dense<1.0> : tensor<2x2xf32>
  %d = tensor.empty() : tensor<2x2xf32>
  %x = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%several : tensor<2x2xf32>) outs(%d : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2xf32>
  %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%ones : tensor<2x2xf32>) outs(%d : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<2x2xf32>
  return %x, %y : tensor<2x2xf32>, tensor<2x2xf32>
}

// A number of these types is no constant.

// CHECK-LABEL: @no_numbers
// CHECK-NOT: linalg.fill
// CHECK-COUNT-2: linalg.generic
func.func @no_numbers() -> (tensor<2x3xui8>, tensor<2x3xcomplex<f32>>) {
  %bytes = arith.constant dense<200> : tensor<3xui8>
  %d = tensor.empty() : tensor<2x3xui8>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #same], iterator_types = ["parallel", "parallel"]}
      ins(%bytes : tensor<3xui8>) outs(%d : tensor<2x3xui8>) {
  ^bb0(%a: ui8, %o: ui8):
    linalg.yield %a : ui8
  } -> tensor<2x3xui8>
  %pairs = arith.constant dense<(1.0, 2.0)> : tensor<3xcomplex<f32>>
  %e = tensor.empty() : tensor<2x3xcomplex<f32>>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #same], iterator_types = ["parallel", "parallel"]}
      ins(%pairs : tensor<3xcomplex<f32>>) outs(%e : tensor<2x3xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    linalg.yield %a : complex<f32>
  } -> tensor<2x3xcomplex<f32>>
  return %x, %y : tensor<2x3xui8>, tensor<2x3xcomplex<f32>>
}

// Elements that are read of what is filled are its number.

#first = affine_map<(i) -> (0)>
#each = affine_map<(i) -> (i)>
// CHECK-LABEL: @read
// CHECK-SAME: (%{{.*}}: index, %{{.*}}: tensor<9x?xf32>)
// CHECK: %[[NINE:.*]] = arith.constant 9 : i64
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract
// CHECK: arith.index_cast %[[NINE]] : i64 to index
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @read(%n: index, %x: tensor<9x?xf32>) -> tensor<9x?xi64> {
  %lengths = arith.constant dense<9> : tensor<1xi64>
  %d = tensor.empty(%n) : tensor<?xi64>
  %all = linalg.generic {indexing_maps = [#first, #each], iterator_types = ["parallel"]}
      ins(%lengths : tensor<1xi64>) outs(%d : tensor<?xi64>) {
  ^bb0(%a: i64, %o: i64):
    linalg.yield %a : i64
  } -> tensor<?xi64>
  %e = tensor.empty(%n) : tensor<9x?xi64>
  %y = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<9x?xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %length = tensor.extract %all[%j] : tensor<?xi64>
    %last = arith.index_cast %length : i64 to index
    %left = arith.subi %last, %i : index
    %number = arith.index_cast %left : index to i64
    linalg.yield %number : i64
  } -> tensor<9x?xi64>
  return %y : tensor<9x?xi64>
}

// What is gathered from a constant of one number is that number, wherever it lies.

#some = affine_map<(i) -> (i)>
// CHECK-LABEL: @gathered
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract
// CHECK: linalg.yield %cst{{.*}} : f32
func.func @gathered(%at: tensor<3xi32>) -> tensor<3xf32> {
  %table = arith.constant dense<0.5> : tensor<16xf32>
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [#some, #some], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i32, %o: f32):
    %i = arith.index_cast %a : i32 to index
    %v = tensor.extract %table[%i] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
