// RUN: tile-opt %s --tile-apply-online -split-input-file -verify-diagnostics

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @another_function(%x: tensor<16x4096xf32>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x4096xf32>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 512>}
          ins(%x1 : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    %s = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>, %m1 = %m : tensor<16xf32>) -> (tensor<16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{depends on a reduction that runs in blocks other than by exp(x - maximum)}}
      %r = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 512>}
          ins(%x1, %m1 : tensor<16x4096xf32>, tensor<16xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %d = arith.divf %a, %b : f32
        %t = arith.addf %o, %d : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    tile.yield %s : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
func.func @needed_whole(%x: tensor<16x4096xf32>) -> tensor<16x4096xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x4096xf32>) -> (tensor<16x4096xf32>) {
    // expected-error @+1 {{makes a tensor in blocks that is needed whole}}
    %m = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>) -> (tensor<16x4096xf32>) {
      %e = tensor.empty() : tensor<16x4096xf32>
      %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
          tile.online = array<i64: 1, 512>}
          ins(%x1 : tensor<16x4096xf32>) outs(%e : tensor<16x4096xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<16x4096xf32>
      tile.yield %r : tensor<16x4096xf32>
    }
    tile.yield %m : tensor<16x4096xf32>
  }
  return %y : tensor<16x4096xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @no_loop(%x: tensor<16x4096xf32>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x4096xf32>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{needs a tile.online, a loop and the size of its blocks}}
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 2, 512>}
          ins(%x1 : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
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

// -----

// Of two dimensions of the maxima, the second one is summed over.

#bij = affine_map<(b, i, j) -> (b, i, j)>
#bi = affine_map<(b, i, j) -> (b, i)>
#b = affine_map<(b, i, j) -> (b)>
func.func @different_maxima(%x: tensor<2x16x4096xf32>) -> tensor<2xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<2x16x4096xf32>) -> (tensor<2xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<2x16x4096xf32>) -> (tensor<2x16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<2x16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x16xf32>) -> tensor<2x16xf32>
      %r = linalg.generic {indexing_maps = [#bij, #bi], iterator_types = ["parallel", "parallel", "reduction"],
          tile.online = array<i64: 2, 512>}
          ins(%x1 : tensor<2x16x4096xf32>) outs(%f : tensor<2x16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<2x16xf32>
      tile.yield %r : tensor<2x16xf32>
    }
    %s = tile.group "register" (%x1 = %x0 : tensor<2x16x4096xf32>, %m1 = %m : tensor<2x16xf32>) -> (tensor<2xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
      // expected-error @+1 {{sums over rows that have different maxima}}
      %r = linalg.generic {indexing_maps = [#bij, #bi, #b], iterator_types = ["parallel", "reduction", "reduction"],
          tile.online = array<i64: 2, 512>}
          ins(%x1, %m1 : tensor<2x16x4096xf32>, tensor<2x16xf32>) outs(%f : tensor<2xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %d = arith.subf %a, %b : f32
        %p = math.exp %d : f32
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<2xf32>
      tile.yield %r : tensor<2xf32>
    }
    tile.yield %s : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}

// -----

// Units of 48 steps lie across blocks of 128.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#u = affine_map<(i, j) -> (i, j floordiv 48)>
func.func @units_across_blocks(%x: tensor<16x512xf32>, %flags: tensor<16x11xi8>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x512xf32>, %g0 = %flags : tensor<16x11xi8>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x512xf32>, %g1 = %g0 : tensor<16x11xi8>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %h = tensor.empty() : tensor<16x512xf32>
      // expected-error @+1 {{accesses a tensor by another function of the loop}}
      %n = linalg.generic {indexing_maps = [#ij, #u, #ij], iterator_types = ["parallel", "parallel"],
          tile.online = array<i64: 1, 128>, tile.skip = 1 : i64}
          ins(%x1, %g1 : tensor<16x512xf32>, tensor<16x11xi8>) outs(%h : tensor<16x512xf32>) {
      ^bb0(%a: f32, %b: i8, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<16x512xf32>
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 128>, tile.rtile = #tile.rtile<l2 = [16, 512], register = [1, 64]>}
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
