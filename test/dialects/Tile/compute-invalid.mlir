// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @mma_c1(%a: !tile.tile<1x4x4xf32>, %b: !tile.tile<4x4xf32>, %c: !tile.tile<4x4xf32>) {
  // expected-error@+1 {{takes tiles of rank 2, got '!tile.tile<1x4x4xf32>'}}
  %d = tile.mma %a, %b, %c : !tile.tile<1x4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>
  return
}

// -----

func.func @mma_c2(%a: !tile.tile<4x8xf32>, %b: !tile.tile<4x4xf32>, %c: !tile.tile<4x4xf32>) {
  // expected-error@+1 {{shapes do not match: a is '!tile.tile<4x8xf32>'}}
  %d = tile.mma %a, %b, %c : !tile.tile<4x8xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>
  return
}

// -----

func.func @mma_c2_sparse(%a: !tile.tile<4x3xf32>, %b: !tile.tile<8x4xf32>, %c: !tile.tile<4x4xf32>,
    %m: !tile.tile<4x3xi8>) {
  // expected-error@+1 {{shapes do not match}}
  %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
      : !tile.tile<4x3xf32>, !tile.tile<8x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x3xi8>
  return
}

// -----

func.func @mma_c3(%a: !tile.tile<4x4xf32>, %b: !tile.tile<4x4xf32>, %c: !tile.tile<4x4xf16>) {
  // expected-error@+1 {{multiplies floats into floats or integers into integers that are at least as wide}}
  %d = tile.mma %a, %b, %c : !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf16>
  return
}

// -----

func.func @mma_c3_mixed(%a: !tile.tile<4x4xi8>, %b: !tile.tile<4x4xi8>, %c: !tile.tile<4x4xf32>) {
  // expected-error@+1 {{multiplies floats into floats or integers into integers}}
  %d = tile.mma %a, %b, %c : !tile.tile<4x4xi8>, !tile.tile<4x4xi8>, !tile.tile<4x4xf32>
  return
}

// -----

func.func @mma_c5(%a: !tile.tile<4x4xf32>) {
  // expected-error@+1 {{a_unsigned and b_unsigned go with integers}}
  %d = tile.mma %a, %a, %a b_unsigned : !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>
  return
}

// -----

func.func @mma_c4(%a: !tile.tile<4x4xf32>, %m: !tile.tile<4x4xi8>) {
  // expected-error@+1 {{needs meta and sparsity together}}
  %d = "tile.mma"(%a, %a, %a, %m) : (!tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xi8>)
      -> !tile.tile<4x4xf32>
  return
}

// -----

func.func @mma_c4_sparsity(%a: !tile.tile<4x4xf32>, %b: !tile.tile<4x4xf32>, %c: !tile.tile<4x4xf32>,
    %m: !tile.tile<4x4xi8>) {
  // expected-error@+1 {{sparsity must be [n, m] with 0 < n < m}}
  %d = tile.mma %a, %b, %c meta %m sparsity [4, 4]
      : !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xi8>
  return
}

// -----

func.func @mma_c4_shape(%a: !tile.tile<4x4xf32>, %b: !tile.tile<8x4xf32>, %c: !tile.tile<4x4xf32>,
    %m: !tile.tile<4x8xi8>) {
  // expected-error@+1 {{meta must have the shape of a}}
  %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
      : !tile.tile<4x4xf32>, !tile.tile<8x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x8xi8>
  return
}

// -----

func.func @mma_c4_packed(%a: !tile.tile<4x16xf32>, %b: !tile.tile<32x4xf32>, %c: !tile.tile<4x4xf32>,
    %m: !tile.tile<4x2xi32>) {
  // expected-error@+1 {{or be of i16 with an element for eight neighbours of groups of 4}}
  %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
      : !tile.tile<4x16xf32>, !tile.tile<32x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x2xi32>
  return
}

// -----

func.func @reduce_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{dims must be distinct dimensions of '!tile.tile<4x8xf32>'}}
  %r = tile.reduce add %t dims [2] : !tile.tile<4x8xf32> -> !tile.tile<4x1xf32>
  return
}

// -----

func.func @reduce_c1_twice(%t: !tile.tile<4x8xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{dims must be distinct dimensions}}
  %r = tile.reduce add %t dims [1, 1] : !tile.tile<4x8xf32> -> !tile.tile<4x1xf32>
  return
}

// -----

func.func @reduce_c2(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{kind xor is not defined on 'f32'}}
  %r = tile.reduce xor %t dims [1] : !tile.tile<4x8xf32> -> !tile.tile<4x1xf32>
  return
}

// -----

func.func @reduce_c2_int(%t: !tile.tile<4xi32>) {
  // expected-error@+1 {{kind maxnum is not defined on 'i32'}}
  %r = tile.reduce maxnum %t dims [0] : !tile.tile<4xi32> -> !tile.tile<1xi32>
  return
}

// -----

func.func @reduce_c3(%t: !tile.tile<4x8xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{'!tile.tile<4x1xf32>' are incompatible with return type(s) of operation '!tile.tile<4xf32>'}}
  %r = tile.reduce add %t dims [1] : !tile.tile<4x8xf32> -> !tile.tile<4xf32>
  return
}

// -----

func.func @scan_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{dim 2 is no dimension of '!tile.tile<4x8xf32>'}}
  %r = tile.scan add %t dim 2 : !tile.tile<4x8xf32>
  return
}

// -----

func.func @scan_c2(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{kind umin is not defined on 'f32'}}
  %r = tile.scan umin %t dim 0 : !tile.tile<4x8xf32>
  return
}

// -----

func.func @select_c1(%t: !tile.tile<4x8xf32>, %c: !tile.tile<4xi1>) {
  // expected-error@+1 {{condition '!tile.tile<4xi1>' and values '!tile.tile<4x8xf32>' differ in shape}}
  %r = tile.select %c, %t, %t : !tile.tile<4xi1>, !tile.tile<4x8xf32>
  return
}

// -----

func.func @select_condition(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{operand #0 must be tile of i1, but got '!tile.tile<4x8xf32>'}}
  %r = tile.select %t, %t, %t : !tile.tile<4x8xf32>, !tile.tile<4x8xf32>
  return
}

// -----

func.func @convert_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{changes either element types or the layout}}
  %r = tile.convert %t : !tile.tile<4x8xf32> -> !tile.tile<8x4xf16>
  return
}

// -----

func.func @splat_c1(%f: f32) {
  // expected-error@+1 {{failed to verify that the scalar has the tile's element type}}
  %r = tile.splat %f : f32 -> !tile.tile<4xf16>
  return
}

// -----

func.func @iota_c1() {
  // expected-error@+1 {{dim 1 is no dimension of '!tile.tile<4xi32>'}}
  %r = tile.iota dim 1 : !tile.tile<4xi32>
  return
}

// -----

func.func @iota_c2() {
  // expected-error@+1 {{counts in integers or index, got '!tile.tile<4xf32>'}}
  %r = tile.iota dim 0 : !tile.tile<4xf32>
  return
}

// -----

func.func @broadcast_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{changes shapes only}}
  %r = tile.broadcast %t : !tile.tile<4x8xf32> -> !tile.tile<4x8xf16>
  return
}

// -----

func.func @broadcast_c2(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{cannot repeat '!tile.tile<4x8xf32>' to '!tile.tile<8x8xf32>'}}
  %r = tile.broadcast %t : !tile.tile<4x8xf32> -> !tile.tile<8x8xf32>
  return
}

// -----

func.func @broadcast_c2_rank(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{cannot repeat}}
  %r = tile.broadcast %t : !tile.tile<4x8xf32> -> !tile.tile<8xf32>
  return
}

// -----

func.func @transpose_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{needs a permutation of the dimensions of '!tile.tile<4x8xf32>'}}
  %r = tile.transpose %t [1, 1] : !tile.tile<4x8xf32> -> !tile.tile<8x8xf32>
  return
}

// -----

func.func @transpose_c2(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{result '!tile.tile<4x8xf32>' is no transposed '!tile.tile<4x8xf32>'}}
  %r = tile.transpose %t [1, 0] : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  return
}

// -----

func.func @reshape_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{needs equal elements and numbers of them}}
  %r = tile.reshape %t : !tile.tile<4x8xf32> -> !tile.tile<33xf32>
  return
}

// -----

func.func @extract_c1(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{gives 1 offsets for '!tile.tile<4x8xf32>'}}
  %r = tile.extract %t [0] : !tile.tile<4x8xf32> -> !tile.tile<4x1xf32>
  return
}

// -----

func.func @extract_c2(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{result '!tile.tile<4xf32>' is no slice or element of '!tile.tile<4x8xf32>'}}
  %r = tile.extract %t [0, 0] : !tile.tile<4x8xf32> -> !tile.tile<4xf32>
  return
}

// -----

func.func @extract_c2_scalar(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{result 'f16' is no slice or element of}}
  %r = tile.extract %t [0, 0] : !tile.tile<4x8xf32> -> f16
  return
}

// -----

func.func @extract_c3(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{slice [6, 10) of dimension 1 leaves [0, 8)}}
  %r = tile.extract %t [0, 6] : !tile.tile<4x8xf32> -> !tile.tile<4x4xf32>
  return
}

// -----

func.func @extract_c3_scalar(%t: !tile.tile<4x8xf32>) {
  // expected-error@+1 {{slice [8, 9) of dimension 1 leaves [0, 8)}}
  %r = tile.extract %t [0, 8] : !tile.tile<4x8xf32> -> f32
  return
}

// -----

func.func @insert_c1(%t: !tile.tile<4x8xf32>, %s: !tile.tile<2x8xf32>, %v: !tile.tile<8xf32>) {
  // expected-error@+1 {{gives 1 offsets for '!tile.tile<4x8xf32>'}}
  %r = tile.insert %s into %t [0] : !tile.tile<2x8xf32> into !tile.tile<4x8xf32>
  return
}

// -----

func.func @insert_c2(%t: !tile.tile<4x8xf32>, %s: !tile.tile<2x8xf32>, %v: !tile.tile<8xf32>) {
  // expected-error@+1 {{cannot put '!tile.tile<8xf32>' into '!tile.tile<4x8xf32>'}}
  %r = tile.insert %v into %t [0, 0] : !tile.tile<8xf32> into !tile.tile<4x8xf32>
  return
}

// -----

func.func @insert_c3(%t: !tile.tile<4x8xf32>, %s: !tile.tile<2x8xf32>, %v: !tile.tile<8xf32>) {
  // expected-error@+1 {{slice [3, 5) of dimension 0 leaves [0, 4)}}
  %r = tile.insert %s into %t [3, 0] : !tile.tile<2x8xf32> into !tile.tile<4x8xf32>
  return
}

// -----

func.func @unknown_kind(%t: !tile.tile<4x8xf32>) {
// expected-error@+1 {{'sum' is no kind of reduction: expected add, mul, max, min, maxnum, minnum, umax, umin, and, or}}
  %r = tile.reduce sum %t dims [1] : !tile.tile<4x8xf32> -> !tile.tile<4x1xf32>
  return
}

// -----

func.func @mma_c6(%a: !tile.tile<32x32xbf16, #tile.layout<inner = [0, 1], tiles = [16, 32]>>,
    %b: !tile.tile<32x32xbf16, #tile.layout<inner = [0, 1], tiles = [16, 16], interleave = 2>>,
    %c: !tile.tile<32x32xf32, #tile.layout<inner = [0, 1], tiles = [16, 16]>>) {
  // expected-error@+1 {{blocks do not match}}
  %d = tile.mma %a, %b, %c : !tile.tile<32x32xbf16, #tile.layout<inner = [0, 1], tiles = [16, 32]>>,
      !tile.tile<32x32xbf16, #tile.layout<inner = [0, 1], tiles = [16, 16], interleave = 2>>,
      !tile.tile<32x32xf32, #tile.layout<inner = [0, 1], tiles = [16, 16]>>
  return
}
