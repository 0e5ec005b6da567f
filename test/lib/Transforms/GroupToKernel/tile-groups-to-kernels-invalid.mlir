// RUN: tile-opt %s --tile-groups-to-kernels -split-input-file -verify-diagnostics

#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<64xf32>) -> (tensor<64xf32>) {
    // expected-error @below {{has no operation with a tile.rtile}}
    %r = tile.group "register" (%x2 = %x1 : tensor<64xf32>) -> (tensor<64xf32>) {
      %e = tensor.empty() : tensor<64xf32>
      %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
          ins(%x2 : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%p: f32, %o: f32):
        linalg.yield %p : f32
      } -> tensor<64xf32>
      tile.yield %a : tensor<64xf32>
    }
    tile.yield %r : tensor<64xf32>
  }
  return %y : tensor<64xf32>
}

// -----

// Tasks are independent: none may hold a part of a reduction.

func.func @main(%x: tensor<64xf32>) -> tensor<f32> {
  %y = tile.group "l2" (%x1 = %x : tensor<64xf32>) -> (tensor<f32>) {
    %r = tile.group "register" (%x2 = %x1 : tensor<64xf32>) -> (tensor<f32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<f32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
      // expected-error @below {{has a task tile of 16 along its reduction d0}}
      %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
          iterator_types = ["reduction"]}
          ins(%x2 : tensor<64xf32>) outs(%f : tensor<f32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [16], register = [16], order = [0]>} {
      ^bb0(%p: f32, %o: f32):
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      } -> tensor<f32>
      tile.yield %a : tensor<f32>
    }
    tile.yield %r : tensor<f32>
  }
  return %y : tensor<f32>
}

// -----

#id = affine_map<(i, j, k) -> (i, j, k)>
#ik = affine_map<(i, j, k) -> (i, k)>
func.func @main(%x: tensor<4x4x4xf32>) -> tensor<4x4xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<4x4x4xf32>) -> (tensor<4x4xf32>) {
    %r = tile.group "register" (%x2 = %x1 : tensor<4x4x4xf32>) -> (tensor<4x4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
      // expected-error @below {{has a register tile above 1 along its reduction d1 and two more loops}}
      %a = linalg.generic {indexing_maps = [#id, #ik], iterator_types = ["parallel", "reduction", "parallel"]}
          ins(%x2 : tensor<4x4x4xf32>) outs(%f : tensor<4x4xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [4, 4, 4], register = [4, 4, 4], order = [0, 1, 2]>} {
      ^bb0(%p: f32, %o: f32):
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<4x4xf32>
      tile.yield %a : tensor<4x4xf32>
    }
    tile.yield %r : tensor<4x4xf32>
  }
  return %y : tensor<4x4xf32>
}

// -----

// A task that starts inside a panel would read across its end.

func.func @main(%x: tensor<96xf32>) -> tensor<96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<96xf32>) -> (tensor<96xf32>) {
    %r = tile.group "register" (%x2 = %x1 : tensor<96xf32>) -> (tensor<3x32xf32>) {
      %e = tensor.empty() : tensor<3x32xf32>
      %a = linalg.generic {indexing_maps = [affine_map<(p, i) -> (p * 32 + i)>, affine_map<(p, i) -> (p, i)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x2 : tensor<96xf32>) outs(%e : tensor<3x32xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [1, 32], register = [1, 32], order = [0, 1]>} {
      ^bb0(%p: f32, %o: f32):
        linalg.yield %p : f32
      } -> tensor<3x32xf32>
      tile.yield %a : tensor<3x32xf32>
    }
    %n = tile.group "register" (%r1 = %r : tensor<3x32xf32>) -> (tensor<96xf32>) {
      %e = tensor.empty() : tensor<96xf32>
      // expected-error @below {{has a task that starts at s0 * 48 along d0, within a register tile of 32}}
      %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 32, i mod 32)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%r1 : tensor<3x32xf32>) outs(%e : tensor<96xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [48], register = [32], order = [0]>} {
      ^bb0(%p: f32, %o: f32):
        %m = arith.negf %p : f32
        linalg.yield %m : f32
      } -> tensor<96xf32>
      tile.yield %a : tensor<96xf32>
    }
    tile.yield %n : tensor<96xf32>
  }
  return %y : tensor<96xf32>
}

// -----

func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<?xf32>, %n1 = %n : index) -> (tensor<?xf32>) {
    %r = tile.group "register" (%x2 = %x1 : tensor<?xf32>, %n2 = %n1 : index) -> (tensor<?xf32>) {
      %e = tensor.empty(%n2) : tensor<?xf32>
      // expected-error @below {{has a tile.bounds that is not one number for each of its loops: array<i64: 1, 2>}}
      %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x2 : tensor<?xf32>) outs(%e : tensor<?xf32>)
          attrs = {tile.bounds = array<i64: 1, 2>, tile.rtile = #tile.rtile<l2 = [48], register = [16], order = [0]>} {
      ^bb0(%p: f32, %o: f32):
        %m = arith.negf %p : f32
        linalg.yield %m : f32
      } -> tensor<?xf32>
      tile.yield %a : tensor<?xf32>
    }
    tile.yield %r : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// -----

// Weights in panels of 32, and tasks of 48 columns.

func.func @main(%x: tensor<3x32xf32>) -> tensor<96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<3x32xf32>) -> (tensor<96xf32>) {
    %n = tile.group "register" (%x2 = %x1 : tensor<3x32xf32>) -> (tensor<96xf32>) {
      %e = tensor.empty() : tensor<96xf32>
  // expected-error-re@+1 {{has a task that starts at s0 * 48 along d0, {{.*}} cross the blocks of a packed operand}}
      %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 32, i mod 32)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x2 : tensor<3x32xf32>) outs(%e : tensor<96xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [48], register = [32], order = [0]>} {
      ^bb0(%p: f32, %o: f32):
        %m = arith.negf %p : f32
        linalg.yield %m : f32
      } -> tensor<96xf32>
      tile.yield %a : tensor<96xf32>
    }
    tile.yield %n : tensor<96xf32>
  }
  return %y : tensor<96xf32>
}

// -----

// An image along a dimension that is no sum of loops.

func.func @main(%x: tensor<9x8xf32>, %w: tensor<3x8xf32>) -> tensor<7xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<9x8xf32>, %w1 = %w : tensor<3x8xf32>) -> (tensor<7xf32>) {
    %n = tile.group "register" (%x2 = %x1 : tensor<9x8xf32>, %w2 = %w1 : tensor<3x8xf32>) -> (tensor<7xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<7xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  // expected-error@+1 {{has a tile.image that is not an operand, a dimension that it indexes by sums of loops, and}}
      %a = linalg.generic {indexing_maps = [affine_map<(i, k, c) -> (i + k, c)>, affine_map<(i, k, c) -> (k, c)>,
          affine_map<(i, k, c) -> (i)>],
          iterator_types = ["parallel", "reduction", "reduction"]}
          ins(%x2, %w2 : tensor<9x8xf32>, tensor<3x8xf32>) outs(%f : tensor<7xf32>)
          attrs = {tile.image = array<i64: 0, 2, 1, 8>,
              tile.rtile = #tile.rtile<l2 = [7, 3, 8], register = [1, 1, 8], order = [0, 1, 2]>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<7xf32>
      tile.yield %a : tensor<7xf32>
    }
    tile.yield %n : tensor<7xf32>
  }
  return %y : tensor<7xf32>
}

// -----

// An edited number names no input.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#u = affine_map<(i, j) -> (i, j floordiv 64)>
func.func @no_such_input(%x: tensor<16x512xf32>, %flags: tensor<16x8xi8>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x512xf32>, %g0 = %flags : tensor<16x8xi8>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x512xf32>, %g1 = %g0 : tensor<16x8xi8>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %h = tensor.empty() : tensor<16x512xf32>
      // expected-error @below {{has tile.skip = 2, but its inputs are numbered from 0 to 1}}
      %n = linalg.generic {indexing_maps = [#ij, #u, #ij], iterator_types = ["parallel", "parallel"],
          tile.skip = 2 : i64}
          ins(%x1, %g1 : tensor<16x512xf32>, tensor<16x8xi8>) outs(%h : tensor<16x512xf32>) {
      ^bb0(%a: f32, %b: i8, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<16x512xf32>
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.rtile = #tile.rtile<l2 = [16, 512], register = [1, 64]>}
          ins(%n : tensor<16x512xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    tile.yield %m : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}
