// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @map_c1() {
  // expected-error@+1 {{reads no array: it needs at least one}}
  "fractal.map"() ({
    fractal.yield
  }) : () -> ()
  return
}

// -----

func.func @map_c1_lengths(%xs: !fractal.array<[4] of tensor<8xf32>>, %ys: !fractal.array<[5] of tensor<8xf32>>) {
  // expected-error@+1 {{reads lists of 4 and 5 elements in step}}
  fractal.map (%x = %xs, %y = %ys) : (!fractal.array<[4] of tensor<8xf32>>, !fractal.array<[5] of tensor<8xf32>>)
      -> () {
    fractal.yield
  }
  return
}

// -----

func.func @map_c2(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{block argument 0 has type 'tensor<4xf32>', needs 'tensor<8xf32>': an element of each array}}
  "fractal.map"(%xs) ({
  ^bb0(%x: tensor<4xf32>):
    fractal.yield
  }) : (!fractal.array<[?] of tensor<8xf32>>) -> ()
  return
}

// -----

func.func @map_c2_number(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{has 0 block arguments, needs 1: an element of each array}}
  "fractal.map"(%xs) ({
    fractal.yield
  }) : (!fractal.array<[?] of tensor<8xf32>>) -> ()
  return
}

// -----

func.func @map_c3(%xs: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4] of tensor<8xf32>>', but is}}
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[5] of tensor<8xf32>> {
    fractal.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @map_c3_number(%xs: !fractal.array<[4] of tensor<8xf32>>) {
  // expected-error@+1 {{has 1 results, its body makes lists of 0 values}}
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<8xf32>> {
    fractal.yield
  }
  return
}

// -----

func.func @map_c3_leaf(%xs: !fractal.array<[4] of tensor<8xf32>>, %y: tensor<f32>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4] of tensor<f32>>'}}
  %r = fractal.map (%x = %xs) : (!fractal.array<[4] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<8xf32>> {
    fractal.yield %y : tensor<f32>
  }
  return
}

// -----

func.func @reduce_c1(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<8xf32>) {
  // expected-error@+1 {{needs one init per array: there are 1 arrays and 2 inits}}
  %r = fractal.reduce (%a, %b = %xs) init (%z, %z)
      : (!fractal.array<[?] of tensor<8xf32>>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    fractal.yield %a : tensor<8xf32>
  }
  return
}

// -----

func.func @reduce_c1_arrays() {
  // expected-error@+1 {{reads no array: it needs at least one}}
  fractal.reduce () init () : () -> () {
    fractal.yield
  }
  return
}

// -----

func.func @reduce_c1_lengths(%xs: !fractal.array<[4] of tensor<8xf32>>, %ys: !fractal.array<[5] of tensor<8xf32>>,
    %z: tensor<8xf32>) {
  // expected-error@+1 {{reads lists of 4 and 5 elements in step}}
  %r:2 = fractal.reduce (%a, %b = %xs, %c, %d = %ys) init (%z, %z)
      : (!fractal.array<[4] of tensor<8xf32>>, !fractal.array<[5] of tensor<8xf32>>, tensor<8xf32>, tensor<8xf32>)
          -> (tensor<8xf32>, tensor<8xf32>) {
    fractal.yield %a, %b : tensor<8xf32>, tensor<8xf32>
  }
  return
}

// -----

func.func @reduce_c2(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<f32>) {
  // expected-error@+1 {{combines elements of type 'tensor<8xf32>': an init of type 'tensor<f32>' is none}}
  %r = fractal.reduce (%a, %b = %xs) init (%z) : (!fractal.array<[?] of tensor<8xf32>>, tensor<f32>) -> tensor<f32> {
    fractal.yield %z : tensor<f32>
  }
  return
}

// -----

func.func @reduce_c3(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<8xf32>) {
  // expected-error@+1 {{has 1 block arguments, needs 2: all lefts, then all rights}}
  %r = "fractal.reduce"(%xs, %z) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<8xf32>):
    fractal.yield %a : tensor<8xf32>
  }) : (!fractal.array<[?] of tensor<8xf32>>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c4(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<8xf32>, %y: tensor<f32>) {
  // expected-error@+1 {{the yielded values must have the types of the inits}}
  %r = fractal.reduce (%a, %b = %xs) init (%z) : (!fractal.array<[?] of tensor<8xf32>>, tensor<8xf32>)
      -> tensor<8xf32> {
    fractal.yield %y : tensor<f32>
  }
  return
}

// -----

func.func @reduce_c5(%xs: !fractal.array<[?] of tensor<8xf32>>, %z: tensor<8xf32>) {
  // expected-error@+1 {{the results must have the types of the inits}}
  %r = fractal.reduce (%a, %b = %xs) init (%z) : (!fractal.array<[?] of tensor<8xf32>>, tensor<8xf32>)
      -> tensor<f32> {
    fractal.yield %a : tensor<8xf32>
  }
  return
}

// -----

func.func @filter_c1(%xs: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<i1>) {
  // expected-error@+1 {{block argument 0 has type 'tensor<4xf32>', needs 'tensor<8xf32>': an element of the array}}
  %r = "fractal.filter"(%xs) ({
  ^bb0(%x: tensor<4xf32>):
    fractal.yield %y : tensor<i1>
  }) : (!fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @filter_c2(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{must yield one value of type 'tensor<i1>', which says whether to keep the element}}
  %r = fractal.filter (%x = %xs) : (!fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>> {
    fractal.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @filter_c3(%xs: !fractal.array<[8] of tensor<8xf32>>, %y: tensor<i1>) {
  // expected-error@+1 {{keeps a number of elements that only a run knows: write '?' as the first length of}}
  %r = fractal.filter (%x = %xs) : (!fractal.array<[8] of tensor<8xf32>>) -> !fractal.array<[8] of tensor<8xf32>> {
    fractal.yield %y : tensor<i1>
  }
  return
}

// -----

func.func @filter_c3_levels(%xs: !fractal.array<[8, 4] of tensor<8xf32>>, %y: tensor<i1>) {
  // expected-error@+1 {{result must fit '!fractal.array<[?, 4] of tensor<8xf32>>'}}
  %r = fractal.filter (%x = %xs) : (!fractal.array<[8, 4] of tensor<8xf32>>)
      -> !fractal.array<[?, 5] of tensor<8xf32>> {
    fractal.yield %y : tensor<i1>
  }
  return
}

// -----

func.func @no_array(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs an operand of type !fractal.array}}
  fractal.map (%a = %x) : (tensor<8xf32>) -> () {
    fractal.yield
  }
  return
}

// -----

func.func @no_yield(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+2 {{expects regions to end with 'fractal.yield'}}
  // expected-note@+1 {{the absence of terminator implies 'fractal.yield'}}
  fractal.map (%x = %xs) : (!fractal.array<[?] of tensor<8xf32>>) -> () {
    llvm.unreachable
  }
  return
}
