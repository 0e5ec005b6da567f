// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s

// Tiles keep their sizes; loads and stores have bounds along the ragged rows, lanes and depth. The product is one of
// tiles, of f16 as memory has it.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: grid(%[[I:[a-z0-9]+]], %[[J:[a-z0-9]+]]) attributes {tile.raster = 8 : i64, tile.warps = 8 : i64}
// CHECK: scf.for %[[K:.*]] = %c0 to %c40 step %c16
// CHECK-DAG: %[[ROW:.*]] = affine.apply #{{.*}}()[%[[I]]]
// CHECK-DAG: %[[M:.*]] = affine.apply #{{.*}}()[%[[I]]]
// CHECK-DAG: %[[D:.*]] = affine.apply #{{.*}}(%[[K]])
// CHECK: tile.load %{{.*}}[%[[ROW]], %[[K]]] valid(%[[M]], %[[D]]) : memref<100x40xf16>, !tile.tile<64x16xf16>
// CHECK: tile.load %{{.*}}[%{{.*}}, %[[K]]] dims [1, 0] valid(%[[D]], %{{.*}})
// CHECK-SAME: {{^}} : memref<30x40xf16>, !tile.tile<16x16xf16>
// CHECK: tile.mma {{.*}} : !tile.tile<64x16xf16>, !tile.tile<16x16xf16>, !tile.tile<64x16xf32>
// CHECK: {tile.stages = 3 : i64}
// CHECK: arith.negf
// CHECK: tile.store %{{.*}} valid(%{{.*}}, %{{.*}}) : !tile.tile<64x16xf32>, memref<100x30xf32>
// CHECK: tile.launch @product grid(%c2, %c2)
func.func @main(%x: tensor<100x40xf16>, %w: tensor<30x40xf16>) -> tensor<100x30xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<100x40xf16>, %w0 = %w : tensor<30x40xf16>) -> (tensor<100x30xf32>)
      attributes {tile.kernel = "product"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<100x40xf16>, %w1 = %w0 : tensor<30x40xf16>) -> (tensor<100x30xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<100x30xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<100x30xf32>) -> tensor<100x30xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.padded, tile.stages = 3 : i64, tile.warps = 8 : i64, tile.raster = 8 : i64,
          tile.rtile = #tile.rtile<mma = [1, 1, 16], shared = [64, 16, 40], register = [64, 16, 16], order = [0, 1, 2]>}
          ins(%x1, %w1 : tensor<100x40xf16>, tensor<30x40xf16>) outs(%f : tensor<100x30xf32>) {
      ^bb0(%q: f16, %s: f16, %o: f32):
        %qw = arith.extf %q : f16 to f32
        %sw = arith.extf %s : f16 to f32
        %m = arith.mulf %qw, %sw : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<100x30xf32>
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%p : tensor<100x30xf32>) outs(%e : tensor<100x30xf32>) {
      ^bb0(%q: f32, %o: f32):
        %t = arith.negf %q : f32
        linalg.yield %t : f32
      } -> tensor<100x30xf32>
      tile.yield %n : tensor<100x30xf32>
    }
    tile.yield %r : tensor<100x30xf32>
  }
  return %y : tensor<100x30xf32>
}

// -----

// A maximum sees its neutral element behind the end of a row.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// CHECK-LABEL: tile.kernel @group
// CHECK: %[[A:.*]] = tile.load %{{.*}} valid(%c4, %c50) : memref<8x50xf32>, !tile.tile<4x64xf32>
// CHECK: %[[RAMP:.*]] = tile.iota dim 0 : !tile.tile<64xi32>
// CHECK: %[[ROW:.*]] = tile.reshape %[[RAMP]]
// CHECK: %[[MASK:.*]] = arith.cmpi slt, %[[ROW]]
// CHECK: %[[WIDE:.*]] = tile.broadcast %[[MASK]]
// CHECK: %[[TERM:.*]] = tile.select %[[WIDE]], %[[A]], %{{.*}} : !tile.tile<4x64xi1>, !tile.tile<4x64xf32>
// CHECK: tile.reduce max %[[TERM]]
func.func @rows(%x: tensor<8x50xf32>) -> tensor<8xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<8x50xf32>) -> (tensor<8xf32>) {
    %r = tile.group "register" (%x1 = %x0 : tensor<8x50xf32>) -> (tensor<8xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<8xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"], tile.padded,
          tile.rtile = #tile.rtile<shared = [4, 50], register = [4, 64], order = [0, 1]>}
          ins(%x1 : tensor<8x50xf32>) outs(%f : tensor<8xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      tile.yield %m : tensor<8xf32>
    }
    tile.yield %r : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// -----

// A run-time number of rows: all tasks have the same tile, the last one fewer rows.

#ij = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: tile.kernel @open
// CHECK: %[[N:.*]] = memref.dim
// CHECK: %[[REST:.*]] = affine.apply #{{.*}}()[%{{.*}}, %[[N]]]
// CHECK: tile.load %{{.*}} valid(%[[REST]], %c32) : memref<?x32xf32>, !tile.tile<8x32xf32>
func.func @dynamic(%x: tensor<?x32xf32>, %n: index) -> tensor<?x32xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<?x32xf32>, %n0 = %n : index) -> (tensor<?x32xf32>)
      attributes {tile.kernel = "open"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<?x32xf32>, %n1 = %n0 : index) -> (tensor<?x32xf32>) {
      %e = tensor.empty(%n1) : tensor<?x32xf32>
      %g = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"], tile.padded,
          tile.rtile = #tile.rtile<shared = [8, 32], register = [8, 32], order = [0, 1]>}
          ins(%x1 : tensor<?x32xf32>) outs(%e : tensor<?x32xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<?x32xf32>
      tile.yield %g : tensor<?x32xf32>
    }
    tile.yield %r : tensor<?x32xf32>
  }
  return %y : tensor<?x32xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>

func.func @mixed(%x: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<8x32xf32>) -> (tensor<8x32xf32>) {
    %a = tile.group "register" (%x1 = %x0 : tensor<8x32xf32>) -> (tensor<8x32xf32>) {
      %e = tensor.empty() : tensor<8x32xf32>
      // expected-error@+1 {{is padded (tile.padded) or not, other than the last register group of its task}}
      %g = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"], tile.padded,
          tile.rtile = #tile.rtile<shared = [8, 32], register = [8, 32], order = [0, 1]>}
          ins(%x1 : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
      ^bb0(%p: f32, %o: f32):
        %t = arith.negf %p : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      tile.yield %g : tensor<8x32xf32>
    }
    %b = tile.group "register" (%x1 = %a : tensor<8x32xf32>) -> (tensor<8x32xf32>) {
      %e = tensor.empty() : tensor<8x32xf32>
      %g = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
          tile.rtile = #tile.rtile<shared = [8, 32], register = [1, 32], order = [0, 1]>}
          ins(%x1 : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
      ^bb0(%p: f32, %o: f32):
        %t = arith.negf %p : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      tile.yield %g : tensor<8x32xf32>
    }
    tile.yield %b : tensor<8x32xf32>
  }
  return %y : tensor<8x32xf32>
}

// -----

// Two tasks along the rows are a cluster of the kernel.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @pairs
// CHECK-SAME: grid(%{{.*}}, %{{.*}}) cluster [2, 1] attributes {tile.warps = 8 : i64}
func.func @main(%x: tensor<100x40xf16>, %w: tensor<30x40xf16>) -> tensor<100x30xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<100x40xf16>, %w0 = %w : tensor<30x40xf16>) -> (tensor<100x30xf32>)
      attributes {tile.kernel = "pairs"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<100x40xf16>, %w1 = %w0 : tensor<30x40xf16>) -> (tensor<100x30xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<100x30xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<100x30xf32>) -> tensor<100x30xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.padded, tile.warps = 8 : i64, tile.cluster = array<i64: 2, 1, 1>,
          tile.rtile = #tile.rtile<mma = [1, 1, 16], shared = [64, 16, 40], register = [64, 16, 16], order = [0, 1, 2]>}
          ins(%x1, %w1 : tensor<100x40xf16>, tensor<30x40xf16>) outs(%f : tensor<100x30xf32>) {
      ^bb0(%q: f16, %s: f16, %o: f32):
        %qw = arith.extf %q : f16 to f32
        %sw = arith.extf %s : f16 to f32
        %m = arith.mulf %qw, %sw : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<100x30xf32>
      tile.yield %p : tensor<100x30xf32>
    }
    tile.yield %r : tensor<100x30xf32>
  }
  return %y : tensor<100x30xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<150x40xf16>, %w: tensor<30x40xf16>) -> tensor<150x30xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<150x40xf16>, %w0 = %w : tensor<30x40xf16>) -> (tensor<150x30xf32>)
      attributes {tile.kernel = "odd"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<150x40xf16>, %w1 = %w0 : tensor<30x40xf16>) -> (tensor<150x30xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<150x30xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<150x30xf32>) -> tensor<150x30xf32>
  // expected-error-re@+1 {{has tile.cluster = array<i64: 2, 1, 1>, but {{.*}} d0 is 3: it must be a multiple of the}}
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.padded, tile.warps = 8 : i64, tile.cluster = array<i64: 2, 1, 1>,
          tile.rtile = #tile.rtile<mma = [1, 1, 16], shared = [64, 16, 40], register = [64, 16, 16], order = [0, 1, 2]>}
          ins(%x1, %w1 : tensor<150x40xf16>, tensor<30x40xf16>) outs(%f : tensor<150x30xf32>) {
      ^bb0(%q: f16, %s: f16, %o: f32):
        %qw = arith.extf %q : f16 to f32
        %sw = arith.extf %s : f16 to f32
        %m = arith.mulf %qw, %sw : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<150x30xf32>
      tile.yield %p : tensor<150x30xf32>
    }
    tile.yield %r : tensor<150x30xf32>
  }
  return %y : tensor<150x30xf32>
}

// -----

// Rows that a run counts: the grid is rounded up to whole clusters.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @counted
// CHECK-SAME: grid(%{{.*}}, %{{.*}}) cluster [2, 1]
// CHECK-SAME: {{^}} attributes {{{.*}}tile.rounded = array<i64: 2, 1>, tile.warps = 8 : i64}
// CHECK: scf.for
// CHECK: %[[REST:.*]] = affine.apply #{{.*}}()[%{{[a-z0-9]+}}, %
// CHECK: tile.load %{{.*}} valid(%[[REST]],
// CHECK: tile.store %{{.*}} valid(
func.func @main(%x: tensor<?x40xf16>, %w: tensor<30x40xf16>, %n: index) -> tensor<?x30xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<?x40xf16>, %w0 = %w : tensor<30x40xf16>, %n0 = %n : index)
      -> (tensor<?x30xf32>) attributes {tile.kernel = "counted"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<?x40xf16>, %w1 = %w0 : tensor<30x40xf16>, %n1 = %n0 : index)
        -> (tensor<?x30xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%n1) : tensor<?x30xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x30xf32>) -> tensor<?x30xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.padded, tile.warps = 8 : i64, tile.cluster = array<i64: 2, 1, 1>,
          tile.rtile = #tile.rtile<mma = [1, 1, 16], shared = [64, 16, 40], register = [64, 16, 16], order = [0, 1, 2]>}
          ins(%x1, %w1 : tensor<?x40xf16>, tensor<30x40xf16>) outs(%f : tensor<?x30xf32>) {
      ^bb0(%q: f16, %s: f16, %o: f32):
        %qw = arith.extf %q : f16 to f32
        %sw = arith.extf %s : f16 to f32
        %m = arith.mulf %qw, %sw : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<?x30xf32>
      tile.yield %p : tensor<?x30xf32>
    }
    tile.yield %r : tensor<?x30xf32>
  }
  return %y : tensor<?x30xf32>
}

// -----

// An operand that the body makes of bytes and a scale, rounded, is multiplied as narrow as it is; decisions go along.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#s = affine_map<(m, n, k) -> (n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @packed
// CHECK: %[[X:.*]] = tile.load {{.*}} : memref<16x64xf16>, !tile.tile<16x32xf16>
// CHECK: %[[W:.*]] = tile.load {{.*}} : memref<32x64xi8>, !tile.tile<32x32xi8>
// CHECK: %[[U:.*]] = tile.convert %[[W]] : !tile.tile<32x32xi8> -> !tile.tile<32x32xf16>
// CHECK: %[[V:.*]] = arith.mulf %[[U]], %{{.*}} : !tile.tile<32x32xf16>
// CHECK: tile.mma %[[X]], %[[V]], %{{.*}} {tile.packed, tile.unit = "mma"}
// CHECK-SAME: {{^}} : !tile.tile<16x32xf16>, !tile.tile<32x32xf16>, !tile.tile<16x32xf32>
func.func @packed(%x: tensor<16x64xf16>, %w: tensor<32x64xi8>, %v: tensor<32xf16>) -> tensor<16x32xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<16x64xf16>, %w0 = %w : tensor<32x64xi8>, %v0 = %v : tensor<32xf16>)
      -> (tensor<16x32xf32>) attributes {tile.kernel = "packed"} {
    %r = tile.group "register" (%x1 = %x0 : tensor<16x64xf16>, %w1 = %w0 : tensor<32x64xi8>, %v1 = %v0 : tensor<32xf16>)
        -> (tensor<16x32xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #s, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.packed, tile.padded, tile.unit = "mma", tile.warps = 2 : i64,
          tile.rtile = #tile.rtile<mma = [1, 1, 32], shared = [16, 32, 64], register = [16, 32, 32], order = [0, 1, 2]>}
          ins(%x1, %w1, %v1 : tensor<16x64xf16>, tensor<32x64xi8>, tensor<32xf16>) outs(%f : tensor<16x32xf32>) {
      ^bb0(%q: f16, %i: i8, %s: f16, %o: f32):
        %u = arith.sitofp %i : i8 to f16
        %n = arith.mulf %u, %s : f16
        %qw = arith.extf %q : f16 to f32
        %nw = arith.extf %n : f16 to f32
        %m = arith.mulf %qw, %nw : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<16x32xf32>
      tile.yield %p : tensor<16x32xf32>
    }
    tile.yield %r : tensor<16x32xf32>
  }
  return %y : tensor<16x32xf32>
}
