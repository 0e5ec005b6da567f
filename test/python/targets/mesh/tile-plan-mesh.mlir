// RUN: tile-opt %s --tile-set-target=target=mesh:toy8x8 --tile-plan-mesh 2>&1 | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=mesh:toy8x8 --tile-plan-mesh=side=4 | FileCheck-22 %s --check-prefix=SIDE
// RUN: not tile-opt %s --tile-plan-mesh 2>&1 | FileCheck-22 %s --check-prefix=NONE
// RUN: not tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-plan-mesh 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=CPU

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>
#three = affine_map<(i, j, k) -> (i, j, k)>
#one = affine_map<(i) -> (i)>

// NONE: error: a pass for meshes needs to know the device
// CPU: error: 'x86-64-v3' is no mesh of cores but a cpu

// Layouts go from the product to what reads it; what no collective does has a reason.
// CHECK: remark: meshgemm: {{.*}} cycles simulated
// CHECK: remark: gemm_t: {{.*}} cycles simulated; meshgemm
// CHECK: remark: interpreted outside of the grid: it combines otherwise than by one of add, max
// CHECK-LABEL: func.func @main
// CHECK-SAME: attributes {coremesh.side = 8 : i64}
// SIDE: coremesh.side = 4 : i64
// CHECK: attrs = {coremesh.algorithm = "meshgemm", coremesh.loops = ["y", "x", ""]}
// CHECK: attrs = {coremesh.loops = ["y", "x"]}
// CHECK: attrs = {coremesh.algorithm = "gemm_t", coremesh.loops = ["y", "x", ""]}
// CHECK: attrs = {coremesh.loops = ["y", "x"]}
// CHECK: attrs = {coremesh.outside = "it combines otherwise than by one of add, max, min, umax, umin, mul"}
func.func @main(%a: tensor<40x24xf32>, %w: tensor<24x17xf32>, %v: tensor<29x17xf32>, %b: tensor<17xf32>)
    -> (tensor<40xf32>, tensor<40xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c = tensor.empty() : tensor<40x17xf32>
  %c0 = linalg.fill ins(%zero : f32) outs(%c : tensor<40x17xf32>) -> tensor<40x17xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<40x24xf32>, tensor<24x17xf32>) outs(%c0 : tensor<40x17xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %sum, %p : f32
    linalg.yield %q : f32
  } -> tensor<40x17xf32>
  %1 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<40x17xf32>, tensor<17xf32>) outs(%c : tensor<40x17xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %p = arith.addf %x, %y : f32
    linalg.yield %p : f32
  } -> tensor<40x17xf32>
  %d = tensor.empty() : tensor<40x29xf32>
  %d0 = linalg.fill ins(%zero : f32) outs(%d : tensor<40x29xf32>) -> tensor<40x29xf32>
  %2 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%1, %v : tensor<40x17xf32>, tensor<29x17xf32>) outs(%d0 : tensor<40x29xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %p, %sum : f32
    linalg.yield %q : f32
  } -> tensor<40x29xf32>
  %e = tensor.empty() : tensor<40xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %3 = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["parallel", "reduction"]}
      ins(%2 : tensor<40x29xf32>) outs(%e0 : tensor<40xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %p = arith.addf %sum, %x : f32
    linalg.yield %p : f32
  } -> tensor<40xf32>
  %e1 = linalg.fill ins(%one : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %4 = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["parallel", "reduction"]}
      ins(%2 : tensor<40x29xf32>) outs(%e1 : tensor<40xf32>) {
  ^bb0(%x: f32, %product: f32):
    %p = arith.subf %product, %x : f32
    linalg.yield %p : f32
  } -> tensor<40xf32>
  return %3, %4 : tensor<40xf32>, tensor<40xf32>
}

// A table lies whole along what is picked, as its reader lies along the rest; few integers are made by each core, and
// those that the host alone reads by none.
// CHECK-LABEL: func.func @picked
// CHECK: attrs = {coremesh.loops = ["y", "x"]}
// CHECK: attrs = {coremesh.loops = [""]}
// CHECK: attrs = {coremesh.loops = ["y", "x"]}
// CHECK: attrs = {coremesh.outside = "the host alone reads these numbers"}
func.func @picked(%t: tensor<7x16xf32>, %at: tensor<3xi32>, %which: index) -> (tensor<3x16xf32>, i32) {
  %c = tensor.empty() : tensor<7x16xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<7x16xf32>) outs(%c : tensor<7x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %p = arith.negf %x : f32
    linalg.yield %p : f32
  } -> tensor<7x16xf32>
  %e = tensor.empty() : tensor<3xi32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %out: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %p = arith.addi %x, %n : i32
    linalg.yield %p : i32
  } -> tensor<3xi32>
  %d = tensor.empty() : tensor<3x16xf32>
  %2 = linalg.generic {indexing_maps = [#column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<3xi32>) outs(%d : tensor<3x16xf32>) {
  ^bb0(%x: i32, %out: f32):
    %i = arith.index_cast %x : i32 to index
    %j = linalg.index 1 : index
    %p = tensor.extract %0[%i, %j] : tensor<7x16xf32>
    linalg.yield %p : f32
  } -> tensor<3x16xf32>
  %3 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %out: i32):
    %p = arith.addi %x, %x : i32
    linalg.yield %p : i32
  } -> tensor<3xi32>
  %4 = tensor.extract %3[%which] : tensor<3xi32>
  return %2, %4 : tensor<3x16xf32>, i32
}

// A few numbers of which the host alone reads some that are known: it computes these.
// CHECK-LABEL: func.func @numbers
// CHECK-SAME: (%[[AT:.*]]: tensor<3xi32>)
// CHECK-NOT: linalg.generic
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[AT]][%
// CHECK: arith.addi %[[NUMBER]], %[[NUMBER]] : i32
func.func @numbers(%at: tensor<3xi32>) -> i32 {
  %two = arith.constant 2 : index
  %e = tensor.empty() : tensor<3xi32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %out: i32):
    %p = arith.addi %x, %x : i32
    linalg.yield %p : i32
  } -> tensor<3xi32>
  %1 = tensor.extract %0[%two] : tensor<3xi32>
  return %1 : i32
}

// Few elements along the loops that lie as the table does would be too much for a core: others are split.
// CHECK-LABEL: func.func @large
// CHECK: coremesh.loops = ["y", "", "x"]
func.func @large(%t: tensor<64x256x2xf32>, %at: tensor<64x64x2xi64>) -> tensor<64x64x2xf32> {
  %c = tensor.empty() : tensor<64x64x2xf32>
  %0 = linalg.generic {indexing_maps = [#three, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%at : tensor<64x64x2xi64>) outs(%c : tensor<64x64x2xf32>) {
  ^bb0(%n: i64, %out: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 0 : index
    %k = linalg.index 2 : index
    %p = tensor.extract %t[%j, %i, %k] : tensor<64x256x2xf32>
    linalg.yield %p : f32
  } -> tensor<64x64x2xf32>
  return %0 : tensor<64x64x2xf32>
}

// Rows of a loop that writes single elements do not meet: an axis splits their index, not that of what is added up.
// CHECK-LABEL: func.func @added_up
// CHECK: } {coremesh.algorithm = "elements", coremesh.loops = ["y", ""]}
func.func @added_up(%t: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %0 = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %t) -> tensor<16x4xf32> {
    %j = arith.remsi %k, %c4 : index
    %i = arith.divsi %k, %c4 : index
    %m = arith.maxsi %j, %c1 : index
    %n = arith.subi %m, %c1 : index
    %a = tensor.extract %s[%i, %n] : tensor<16x4xf32>
    %b = tensor.extract %s[%i, %j] : tensor<16x4xf32>
    %p = arith.addf %a, %b : f32
    %q = tensor.insert %p into %s[%i, %j] : tensor<16x4xf32>
    scf.yield %q : tensor<16x4xf32>
  }
  return %0 : tensor<16x4xf32>
}

// What is read at computed places is picked by the body.
// CHECK-LABEL: func.func @turned_round
// CHECK: ins(%{{.*}} : tensor<16x4xf32>) outs(%{{.*}} : tensor<16x4xf32>) attrs = {coremesh.loops = ["y", "x"]}
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<16x4xf32>
func.func @turned_round(%t: tensor<16x4xf32>, %u: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %e = tensor.empty() : tensor<16x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, -j + 3)>, #all, #all],
      iterator_types = ["parallel", "parallel"]} ins(%t, %u : tensor<16x4xf32>, tensor<16x4xf32>)
      outs(%e : tensor<16x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %p = arith.addf %x, %y : f32
    linalg.yield %p : f32
  } -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
