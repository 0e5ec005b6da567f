// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @scan_c1(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{has no state: it needs at least one}}
  fractal.scan left () over (%x = %xs) : (!fractal.array<[?] of tensor<8xf32>>) -> () {
    fractal.yield
  }
  return
}

// -----

func.func @scan_c1_arrays(%z: tensor<8xf32>) {
  // expected-error@+1 {{reads no array: it needs at least one}}
  %r = fractal.scan left (%s = %z) over () : (tensor<8xf32>) -> !fractal.array<[?] of tensor<8xf32>> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c1_lengths(%z: tensor<8xf32>, %xs: !fractal.array<[4] of tensor<8xf32>>,
    %ys: !fractal.array<[5] of tensor<8xf32>>) {
  // expected-error@+1 {{reads lists of 4 and 5 elements in step}}
  %r = fractal.scan left (%s = %z) over (%x = %xs, %y = %ys)
      : (tensor<8xf32>, !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[5] of tensor<8xf32>>)
          -> !fractal.array<[?] of tensor<8xf32>> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c2(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{block argument 1 has type 'tensor<4xf32>', needs 'tensor<8xf32>': the states, then an}}
  %r = "fractal.scan"(%z, %xs) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%s: tensor<8xf32>, %x: tensor<4xf32>):
    fractal.yield %s : tensor<8xf32>
  }) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @scan_c3(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<f32>) {
  // expected-error@+1 {{the yielded values must have the types of the inits: number 0 is of type 'tensor<f32>'}}
  %r = fractal.scan left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>)
      -> !fractal.array<[?] of tensor<8xf32>> {
    fractal.yield %y : tensor<f32>
  }
  return
}

// -----

func.func @scan_c3_number(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{the yielded values are 2 values, its inits 1}}
  %r = fractal.scan left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>)
      -> !fractal.array<[?] of tensor<8xf32>> {
    fractal.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  }
  return
}

// -----

func.func @fold_c1(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{has no state: it needs at least one}}
  fractal.fold left () over (%x = %xs) : (!fractal.array<[?] of tensor<8xf32>>) -> () {
    fractal.yield
  }
  return
}

// -----

func.func @fold_c1_arrays(%z: tensor<8xf32>) {
  // expected-error@+1 {{reads no array: it needs at least one}}
  %r = fractal.fold left (%s = %z) over () : (tensor<8xf32>) -> tensor<8xf32> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @fold_c1_lengths(%z: tensor<8xf32>, %xs: !fractal.array<[4] of tensor<8xf32>>,
    %ys: !fractal.array<[5] of tensor<8xf32>>) {
  // expected-error@+1 {{reads lists of 4 and 5 elements in step}}
  %r = fractal.fold left (%s = %z) over (%x = %xs, %y = %ys)
      : (tensor<8xf32>, !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[5] of tensor<8xf32>>) -> tensor<8xf32> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @fold_c2(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{block argument 1 has type 'tensor<4xf32>', needs 'tensor<8xf32>': the states, then an}}
  %r = "fractal.fold"(%z, %xs) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%s: tensor<8xf32>, %x: tensor<4xf32>):
    fractal.yield %s : tensor<8xf32>
  }) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>) -> tensor<8xf32>
  return
}

// -----

func.func @fold_c3(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<f32>) {
  // expected-error@+1 {{the yielded values must have the types of the inits: number 0 is of type 'tensor<f32>'}}
  %r = fractal.fold left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>)
      -> tensor<8xf32> {
    fractal.yield %y : tensor<f32>
  }
  return
}

// -----

func.func @fold_c3_number(%z: tensor<8xf32>, %xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{the yielded values are 2 values, its inits 1}}
  %r = fractal.fold left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>)
      -> tensor<8xf32> {
    fractal.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  }
  return
}

// -----

func.func @scan_c4(%z: tensor<8xf32>, %xs: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4] of tensor<8xf32>>', but is}}
  %r = fractal.scan left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[4] of tensor<8xf32>>)
      -> !fractal.array<[3] of tensor<8xf32>> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @fold_c4(%z: tensor<8xf32>, %xs: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{the results must have the types of the inits: number 0 is of type 'tensor<f32>'}}
  %r = fractal.fold left (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[4] of tensor<8xf32>>)
      -> tensor<f32> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @no_direction(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<8xf32>) {
  // expected-error@+1 {{expected 'left' or 'right'}}
  %r = fractal.fold up (%s = %z) over (%x = %xs) : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>)
      -> tensor<8xf32> {
    fractal.yield %s : tensor<8xf32>
  }
  return
}
