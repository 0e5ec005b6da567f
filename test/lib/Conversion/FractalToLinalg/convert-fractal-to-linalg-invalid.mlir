// RUN: tile-opt %s --convert-fractal-to-linalg --split-input-file --verify-diagnostics

// expected-error@+1 {{is a ragged list}}
func.func @ragged(%xs: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  return
}

// -----

func.func @filter(%xs: !fractal.array<[8] of tensor<f32>>, %least: tensor<f32>) -> !fractal.array<[?] of tensor<f32>> {
  // expected-error@+1 {{how many elements it keeps is known at run time only}}
  %r = fractal.filter (%x = %xs) : (!fractal.array<[8] of tensor<f32>>) -> !fractal.array<[?] of tensor<f32>> {
    %0 = arith.cmpf ogt, %x, %least : tensor<f32>
    fractal.yield %0 : tensor<i1>
  }
  return %r : !fractal.array<[?] of tensor<f32>>
}

// -----

func.func @unequal(%xs: !fractal.array<[7] of tensor<8xf32>>) -> !fractal.array<[7] of tensor<8xf32>> {
  // expected-error@+1 {{cuts a list of 7 in 2 parts of unequal lengths}}
  %r = fractal.interleave %xs by 2
      : !fractal.array<[7] of tensor<8xf32>> -> !fractal.array<[2, ragged] of tensor<8xf32>>
  %s = fractal.deinterleave %r : !fractal.array<[2, ragged] of tensor<8xf32>> -> !fractal.array<[7] of tensor<8xf32>>
  return %s : !fractal.array<[7] of tensor<8xf32>>
}

// -----

func.func @leaf(%xs: !fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<10xf32>> {
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<10xf32>> {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{cannot be computed for all elements of a list at once}}
    %y = tensor.pad %x low[1] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<8xf32> to tensor<10xf32>
    fractal.yield %y : tensor<10xf32>
  }
  return %r : !fractal.array<[4] of tensor<10xf32>>
}

// -----

func.func @join(%xs: !fractal.array<[2, 3] of tensor<8xf32>>, %ys: !fractal.array<[2, 4] of tensor<8xf32>>) {
  // expected-error@+1 {{unsupported: 'fractal.join' joins lists of lists of different lengths}}
  %r = fractal.join %xs, %ys : !fractal.array<[2, 3] of tensor<8xf32>>, !fractal.array<[2, 4] of tensor<8xf32>>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}
