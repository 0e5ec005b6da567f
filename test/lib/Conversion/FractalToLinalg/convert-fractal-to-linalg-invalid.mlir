// RUN: tile-opt %s --convert-fractal-to-linalg --split-input-file --verify-diagnostics

// expected-error@+1 {{is a ragged list}}
func.func @ragged(%xs: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  return
}

// -----

func.func @filter(%xs: !fractal.array<[8] of tensor<f32>>, %least: tensor<f32>) -> !fractal.array<[?] of tensor<f32>> {
  %r = fractal.filter (%x = %xs) : (!fractal.array<[8] of tensor<f32>>) -> !fractal.array<[?] of tensor<f32>> {
    %0 = arith.cmpf ogt, %x, %least : tensor<f32>
    fractal.yield %0 : tensor<i1>
  }
  // expected-error@+1 {{gives a list whose length only a run knows}}
  return %r : !fractal.array<[?] of tensor<f32>>
}

// -----

func.func @unbounded(%xs: !fractal.array<[?] of tensor<8xf32>>, %o: tensor<5xi64>) {
  // expected-error@+1 {{makes lists of which no length is known, not even the largest}}
  %r = fractal.from_ragged %xs, %o : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @state(%xs: !fractal.array<[8] of tensor<f32>>, %o: tensor<5xi64>) {
  %r = fractal.from_ragged %xs, %o : !fractal.array<[8] of tensor<f32>>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of tensor<f32>>
  %c0 = arith.constant 0 : index
  %s = fractal.at %r[%c0] : !fractal.array<[4, ragged] of tensor<f32>> -> !fractal.array<[?] of tensor<f32>>
  // expected-error@+1 {{has a state that is a list whose length a step changes}}
  %t = fractal.fold left (%a = %s) over (%x = %r)
      : (!fractal.array<[?] of tensor<f32>>, !fractal.array<[4, ragged] of tensor<f32>>)
      -> !fractal.array<[?] of tensor<f32>> {
    fractal.yield %x : !fractal.array<[?] of tensor<f32>>
  }
  return
}

// -----

func.func @split(%xs: !fractal.array<[8] of tensor<f32>>, %o: tensor<5xi64>) {
  %r = fractal.from_ragged %xs, %o : !fractal.array<[8] of tensor<f32>>, tensor<5xi64>
      -> !fractal.array<[4, ragged] of tensor<f32>>
  %c0 = arith.constant 0 : index
  %s = fractal.at %r[%c0] : !fractal.array<[4, ragged] of tensor<f32>> -> !fractal.array<[?] of tensor<f32>>
  // expected-error@+1 {{reads a list whose length only a run knows}}
  %t = fractal.split %s into 2 : !fractal.array<[?] of tensor<f32>> -> !fractal.array<[2, ?] of tensor<f32>>
  return
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

// -----

!list = !fractal.array<[2, ragged] of tensor<8xf32>>

func.func @scatter(%x: !fractal.array<[2, 3] of tensor<8xf32>>, %y: !fractal.array<[2, 4] of tensor<8xf32>>,
                   %at: tensor<2xi64>) {
  %xs = fractal.cast %x : !fractal.array<[2, 3] of tensor<8xf32>> -> !list
  %ys = fractal.cast %y : !fractal.array<[2, 4] of tensor<8xf32>> -> !list
  // expected-error@+1 {{unsupported: 'fractal.scatter' writes lists of another length than those that they replace}}
  %r = fractal.scatter %xs into %ys[%at] : !list, !list, tensor<2xi64> -> !list
  return
}

// -----

!x = tensor<8xf32>

func.func @step(%ys: !fractal.array<[?] of !x>, %xs: !fractal.array<[5] of !x>, %zero: !x) -> !x {
  %some = fractal.filter (%x = %xs) : (!fractal.array<[5] of !x>) -> !fractal.array<[?] of !x> {
    %e = tensor.extract_slice %x[0] [1] [1] : !x to tensor<f32>
    %z = arith.constant dense<0.0> : tensor<f32>
    %v = arith.cmpf ogt, %e, %z : tensor<f32>
    fractal.yield %v : tensor<i1>
  }
  // expected-error @+1 {{makes lists of which no length is known}}
  %m = fractal.map (%x = %ys, %y = %some)
      : (!fractal.array<[?] of !x>, !fractal.array<[?] of !x>) -> !fractal.array<[?] of !x> {
    %0 = arith.addf %x, %y : !x
    fractal.yield %0 : !x
  }
  %r = fractal.reduce (%a, %b = %m) init (%zero) : (!fractal.array<[?] of !x>, !x) -> !x {
    %0 = arith.addf %a, %b : !x
    fractal.yield %0 : !x
  }
  return %r : !x
}
