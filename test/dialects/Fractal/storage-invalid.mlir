// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @from_tensor_c1(%x: tensor<4x2x8xf32>) {
  // expected-error@+1 {{goes with a tensor like 'tensor<4x3x8xf32>', not 'tensor<4x2x8xf32>'}}
  %r = fractal.from_tensor %x : tensor<4x2x8xf32> -> !fractal.array<[4, 3] of tensor<8xf32>>
  return
}

// -----

func.func @from_tensor_c1_type(%x: tensor<4x8xf16>) {
  // expected-error@+1 {{goes with a tensor like 'tensor<4x8xf32>', not 'tensor<4x8xf16>'}}
  %r = fractal.from_tensor %x : tensor<4x8xf16> -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @from_tensor_c1_encoding(%x: tensor<4x8xf32, "e">) {
  // expected-error@+1 {{takes tensors without an encoding}}
  %r = fractal.from_tensor %x : tensor<4x8xf32, "e"> -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @from_tensor_c2(%x: tensor<4x2x8xf32>) {
  // expected-error@+1 {{cannot hold lists of different lengths in a tensor, as '!fractal.array<[4, ragged]}}
  %r = fractal.from_tensor %x : tensor<4x2x8xf32> -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @to_tensor_c1(%x: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{goes with a tensor like 'tensor<4x8xf32>', not 'tensor<4x1x8xf32>'}}
  %r = fractal.to_tensor %x : !fractal.array<[4] of tensor<8xf32>> -> tensor<4x1x8xf32>
  return
}

// -----

func.func @to_tensor_c2(%x: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  // expected-error@+1 {{cannot hold lists of different lengths in a tensor}}
  %r = fractal.to_tensor %x : !fractal.array<[4, ragged] of tensor<8xf32>> -> tensor<4x?x8xf32>
  return
}

// -----

func.func @from_ragged_c1(%x: !fractal.array<[?, 2] of tensor<8xf32>>, %y: tensor<?xi64>) {
  // expected-error@+1 {{needs leaves 'tensor<8xf32>' in one level, not '!fractal.array<[?, 2] of tensor<8xf32>>'}}
  %r = fractal.from_ragged %x, %y : !fractal.array<[?, 2] of tensor<8xf32>>, tensor<?xi64>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_c2(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<?xi64>) {
  // expected-error@+1 {{which has 2 inner levels, needs a list of offsets for each, and one at least: there are 1}}
  %r = fractal.from_ragged %x, %y : !fractal.array<[?] of tensor<8xf32>>, tensor<?xi64>
      -> !fractal.array<[4, ragged, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_c2_flat(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<?xi64>) {
  // expected-error@+1 {{which has 0 inner levels, needs a list of offsets for each, and one at least: there are 1}}
  %r = fractal.from_ragged %x, %y : !fractal.array<[?] of tensor<8xf32>>, tensor<?xi64>
      -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_c3(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<4xi64>) {
  // expected-error@+1 {{of 4 lists needs 5 first offsets, not 4}}
  %r = fractal.from_ragged %x, %y : !fractal.array<[?] of tensor<8xf32>>, tensor<4xi64>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_c4(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<5xi64>) {
  // expected-error@+1 {{has most = [2, 3]: for each of the 1 inner levels it says how long a list is at most}}
  %r = fractal.from_ragged %x, %y most [2, 3] : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_c4_negative(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<5xi64>) {
  // expected-error@+1 {{has most = [-1]: for each}}
  %r = fractal.from_ragged %x, %y most [-1] : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @from_ragged_offsets(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<5xi32>) {
  // expected-error@+1 {{must be variadic of 1D tensor of 64-bit signless integer values}}
  %r = fractal.from_ragged %x, %y : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi32>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @to_ragged_c1(%x: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  // expected-error@+1 {{needs leaves 'tensor<8xf32>' in one level, not '!fractal.array<[?] of tensor<f32>>'}}
  %r:2 = fractal.to_ragged %x : !fractal.array<[4, ragged] of tensor<8xf32>>
      -> !fractal.array<[?] of tensor<f32>>, tensor<?xi64>
  return
}

// -----

func.func @to_ragged_c2(%x: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  // expected-error@+1 {{which has 1 inner levels, needs a list of offsets for each, and one at least: there are 2}}
  %r:3 = fractal.to_ragged %x : !fractal.array<[4, ragged] of tensor<8xf32>>
      -> !fractal.array<[?] of tensor<8xf32>>, tensor<?xi64>, tensor<?xi64>
  return
}

// -----

func.func @to_ragged_c3(%x: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  // expected-error@+1 {{of 4 lists needs 5 first offsets, not 4}}
  %r:2 = fractal.to_ragged %x : !fractal.array<[4, ragged] of tensor<8xf32>>
      -> !fractal.array<[?] of tensor<8xf32>>, tensor<4xi64>
  return
}

// -----

func.func @cast_c1(%x: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4] of tensor<8xf32>>', but is}}
  %r = fractal.cast %x : !fractal.array<[4] of tensor<8xf32>> -> !fractal.array<[5] of tensor<8xf32>>
  return
}
