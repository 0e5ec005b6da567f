// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @interleave_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{makes 0 groups: it must be 1 or more}}
  %r = fractal.interleave %x by 0 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[0, 0] of tensor<8xf32>>
  return
}

// -----

func.func @interleave_c2(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[2, 4] of tensor<8xf32>>', but is}}
  %r = fractal.interleave %x by 2 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[2, 3] of tensor<8xf32>>
  return
}

// -----

func.func @interleave_c2_uneven(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[3, ragged] of tensor<8xf32>>', but is}}
  %r = fractal.interleave %x by 3 : !fractal.array<[8] of tensor<8xf32>>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @deinterleave_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{merges two levels, but '!fractal.array<[8] of tensor<8xf32>>' has one only}}
  %r = fractal.deinterleave %x : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @deinterleave_c2(%x: !fractal.array<[2, 4] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[8] of tensor<8xf32>>', but is}}
  %r = fractal.deinterleave %x : !fractal.array<[2, 4] of tensor<8xf32>> -> !fractal.array<[7] of tensor<8xf32>>
  return
}

// -----

func.func @flatten_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{merges two levels, but '!fractal.array<[8] of tensor<8xf32>>' has one only}}
  %r = fractal.flatten %x : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @flatten_c2(%x: !fractal.array<[2, 4] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[8] of tensor<8xf32>>', but is}}
  %r = fractal.flatten %x : !fractal.array<[2, 4] of tensor<8xf32>> -> !fractal.array<[7] of tensor<8xf32>>
  return
}

// -----

func.func @split_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{cannot cut 8 elements into 3 lists of equal length}}
  %r = fractal.split %x into 3 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[3, ?] of tensor<8xf32>>
  return
}

// -----

func.func @split_c1_positive(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{makes 0 lists: it must be 1 or more}}
  %r = fractal.split %x into 0 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[0, ?] of tensor<8xf32>>
  return
}

// -----

func.func @split_c2(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[2, 4] of tensor<8xf32>>', but is}}
  %r = fractal.split %x into 2 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[4, 2] of tensor<8xf32>>
  return
}

// -----

func.func @product_c1(%x: !fractal.array<[2] of tensor<8xf32>>, %y: !fractal.array<[3] of tensor<8xf32>>) {
  // expected-error@+1 {{second result must fit '!fractal.array<[2, 3] of tensor<8xf32>>', but is}}
  %r:2 = fractal.product %x, %y : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>
      -> !fractal.array<[2, 3] of tensor<8xf32>>, !fractal.array<[3, 2] of tensor<8xf32>>
  return
}

// -----

func.func @product_c1_first(%x: !fractal.array<[2] of tensor<8xf32>>, %y: !fractal.array<[3] of tensor<8xf32>>) {
  // expected-error@+1 {{first result must fit '!fractal.array<[2, 3] of tensor<8xf32>>'}}
  %r:2 = fractal.product %x, %y : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>
      -> !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[2, 3] of tensor<8xf32>>
  return
}

// -----

func.func @join_c1() {
  // expected-error@+1 {{joins no array: it needs at least one}}
  %r = "fractal.join"() : () -> !fractal.array<[0] of tensor<8xf32>>
  return
}

// -----

func.func @join_c2(%x: !fractal.array<[2] of tensor<8xf32>>, %y: !fractal.array<[3] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[5] of tensor<8xf32>>', but is}}
  %r = fractal.join %x, %y : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>
      -> !fractal.array<[6] of tensor<8xf32>>
  return
}

// -----

func.func @join_c3(%x: !fractal.array<[2] of tensor<8xf32>>, %y: !fractal.array<[3, 2] of tensor<8xf32>>) {
  // expected-error@+1 {{operand must fit '!fractal.array<[?] of tensor<8xf32>>', but is}}
  %r = fractal.join %x, %y : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[3, 2] of tensor<8xf32>>
      -> !fractal.array<[5] of tensor<8xf32>>
  return
}

// -----

func.func @join_c3_lengths(%x: !fractal.array<[2, 4] of tensor<8xf32>>, %y: !fractal.array<[3, 2] of tensor<8xf32>>) {
  // expected-error@+1 {{operand must fit '!fractal.array<[?, 4] of tensor<8xf32>>', but is}}
  %r = fractal.join %x, %y : !fractal.array<[2, 4] of tensor<8xf32>>, !fractal.array<[3, 2] of tensor<8xf32>>
      -> !fractal.array<[5, ?] of tensor<8xf32>>
  return
}

// -----

func.func @gather_c1(%x: !fractal.array<[8] of tensor<8xf32>>, %y: tensor<3xi32>) {
  // expected-error@+1 {{result must fit '!fractal.array<[3] of tensor<8xf32>>', but is}}
  %r = fractal.gather %x[%y] : !fractal.array<[8] of tensor<8xf32>>, tensor<3xi32>
      -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @gather_indices(%x: !fractal.array<[8] of tensor<8xf32>>, %y: tensor<3xi8>) {
  // expected-error@+1 {{must be 1D tensor of 32-bit signless integer or 64-bit signless integer values}}
  %r = fractal.gather %x[%y] : !fractal.array<[8] of tensor<8xf32>>, tensor<3xi8>
      -> !fractal.array<[3] of tensor<8xf32>>
  return
}

// -----

func.func @scatter_c1(%x: !fractal.array<[2] of tensor<8xf32>>, %d: !fractal.array<[8] of tensor<8xf32>>,
                      %y: tensor<3xi32>) {
  // expected-error@+1 {{source must fit '!fractal.array<[3] of tensor<8xf32>>', but is}}
  %r = fractal.scatter %x into %d[%y] : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[8] of tensor<8xf32>>,
      tensor<3xi32> -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @scatter_c1_leaf(%x: !fractal.array<[3] of tensor<4xf32>>, %d: !fractal.array<[8] of tensor<8xf32>>,
                           %y: tensor<3xi32>) {
  // expected-error@+1 {{source must fit '!fractal.array<[3] of tensor<8xf32>>', but is}}
  %r = fractal.scatter %x into %d[%y] : !fractal.array<[3] of tensor<4xf32>>, !fractal.array<[8] of tensor<8xf32>>,
      tensor<3xi32> -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @scatter_c2(%x: !fractal.array<[3] of tensor<8xf32>>, %d: !fractal.array<[8] of tensor<8xf32>>,
                      %y: tensor<3xi32>) {
  // expected-error@+1 {{result must fit '!fractal.array<[8] of tensor<8xf32>>', but is}}
  %r = fractal.scatter %x into %d[%y] : !fractal.array<[3] of tensor<8xf32>>, !fractal.array<[8] of tensor<8xf32>>,
      tensor<3xi32> -> !fractal.array<[3] of tensor<8xf32>>
  return
}
