// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @program_c1() {
  // expected-error@+1 {{has a grid of 0 x 3 cores: it needs one core at least}}
  coremesh.program "p" grid(0, 3) () : () -> () {
    coremesh.yield
  }
  return
}

// -----

func.func @program_c2(%a: tensor<4xf32>) {
  // expected-error@+1 {{has block arguments of types ('tensor<5xf32>'), needs those of its operands ('tensor<4xf32>')}}
  "coremesh.program"(%a) <{name = "p", height = 1 : i64, width = 1 : i64}> ({
  ^bb0(%in: tensor<5xf32>):
    coremesh.yield
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @program_c3(%a: tensor<4xf32>) {
  coremesh.program "p" grid(1, 1) (%in = %a) : (tensor<4xf32>) -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.loop 2 {
    }
    // expected-error@+1 {{stands behind an instruction: inputs are placed before the program runs}}
    coremesh.place %in in @A block(0) : tensor<4xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @program_c3_collect() {
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4xf32> {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{stands before an instruction: outputs are collected after the program has run}}
    %out = coremesh.collect @A block(0) : tensor<4xf32>
    coremesh.loop 2 {
    }
    coremesh.yield %out : tensor<4xf32>
  }
  return
}

// -----

func.func @program_c4() {
  // expected-error@+1 {{must end in coremesh.yield of ('tensor<4xf32>'), but ends in coremesh.yield of ()}}
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4xf32> {
    coremesh.yield
  }
  return
}

// -----

func.func @program_c5(%a: tensor<?xf32>) {
  // expected-error@+1 {{takes and returns tensors of static shape, not 'tensor<?xf32>'}}
  coremesh.program "p" grid(1, 1) (%in = %a) : (tensor<?xf32>) -> () {
    coremesh.yield
  }
  return
}

// -----

func.func @program_c6(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{needs 2 different names as input_names, not ["A", "A"]}}
  coremesh.program "p" grid(1, 1) (%x = %a, %y = %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
      attributes {input_names = ["A", "A"]} {
    coremesh.yield
  }
  return
}

// -----

func.func @program_c6_kind() {
  // expected-error@+1 {{needs 0 different names as output_names, not 3}}
  coremesh.program "p" grid(1, 1) () : () -> () attributes {output_names = 3} {
    coremesh.yield
  }
  return
}

// -----

func.func @buffer_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{cannot hold 'tensor<4x0xf32>': a tile has a static shape, no size of 0}}
    coremesh.buffer @A : tensor<4x0xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @buffer_c1_bits() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{elements of whole bytes}}
    coremesh.buffer @A : tensor<4xi4>
    coremesh.yield
  }
  return
}

// -----

func.func @buffer_c2() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{has 0 slots: it needs one at least}}
    coremesh.buffer @A : tensor<4xf32> slots 0
    coremesh.yield
  }
  return
}

// -----

func.func @buffer_c2_address() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{has the address -4: it must not be negative}}
    coremesh.buffer @A : tensor<4xf32> address -4
    coremesh.yield
  }
  return
}

// -----

func.func @route_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{needs one expression of p, q and loops as its source}}
    "coremesh.route"() <{sym_name = "r", axis = 0 : i32, source = affine_map<(p) -> (p, p)>}> : () -> ()
    coremesh.yield
  }
  return
}

// -----

func.func @route_c1_division() {
  coremesh.program "p" grid(1, 4) () : () -> () {
    // expected-error@+1 {{divides by what is no positive number}}
    coremesh.route @r along x from p mod 0
    coremesh.yield
  }
  return
}

// -----

func.func @route_c2() {
  coremesh.program "p" grid(1, 4) () : () -> () {
    // expected-error@+1 {{has the color 3 twice}}
    coremesh.route @r along x from p - 1 colors [3, 3] by 0
    coremesh.yield
  }
  return
}

// -----

func.func @route_c2_none() {
  coremesh.program "p" grid(1, 4) () : () -> () {
    // expected-error@+1 {{needs one expression of p and q that chooses among its colors}}
    coremesh.route @r along x from p - 1 colors [3] by i
    coremesh.yield
  }
  return
}

// -----

func.func @route_c2_number() {
  coremesh.program "p" grid(2, 4) () : () -> () {
    // expected-error@+1 {{chooses color number 3 of 3 colors}}
    coremesh.route @r along x from p - 1 colors [3, 4, 5] by p
    coremesh.yield
  }
  return
}

// -----

// Along a column p counts rows.
func.func @route_c2_column() {
  coremesh.program "p" grid(4, 2) () : () -> () {
    // expected-error@+1 {{chooses color number 3 of 3 colors}}
    coremesh.route @r along y from p - 1 colors [3, 4, 5] by p
    coremesh.yield
  }
  return
}

// -----

func.func @place_c1(%a: tensor<4xf32>) {
  coremesh.program "p" grid(1, 1) (%in = %a) : (tensor<4xf32>) -> () {
    coremesh.route @A along x from p
    // expected-error@+1 {{uses @A, but the program has no such buffer}}
    coremesh.place %in in @A block(0) : tensor<4xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @place_c2(%a: tensor<4xf32>) {
  coremesh.program "p" grid(1, 3) (%in = %a) : (tensor<4xf32>) -> () {
    coremesh.buffer @A : tensor<4xf32> slots 2
    // expected-error@+1 {{takes slot 2 of @A where y = 0, x = 2, but there are 2, counted from 0}}
    coremesh.place %in in @A[x] block(0) : tensor<4xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @place_c3(%a: tensor<4xf16>) {
  coremesh.program "p" grid(1, 3) (%in = %a) : (tensor<4xf16>) -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{cannot cut 'tensor<4xf16>' into tiles 'tensor<4xf32>'}}
    coremesh.place %in in @A block(0) : tensor<4xf16>
    coremesh.yield
  }
  return
}

// -----

func.func @place_c3_rank(%a: tensor<4x4xf32>) {
  coremesh.program "p" grid(1, 3) (%in = %a) : (tensor<4x4xf32>) -> () {
    coremesh.buffer @A : tensor<4x4xf32>
    // expected-error@+1 {{needs an expression of y and x for its slot, and one for each of 2 dimensions}}
    coremesh.place %in in @A block(0) : tensor<4x4xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @place_c4(%a: tensor<4xf32>) {
  coremesh.program "p" grid(1, 3) (%in = %a) : (tensor<4xf32>) -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{takes a negative block where y = 0, x = 0}}
    coremesh.place %in in @A block(x - 1) : tensor<4xf32>
    coremesh.yield
  }
  return
}

// -----

func.func @collect_c1() {
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4xf32> {
    // expected-error@+1 {{uses @A, but the program has no such buffer}}
    %out = coremesh.collect @A block(0) : tensor<4xf32>
    coremesh.yield %out : tensor<4xf32>
  }
  return
}

// -----

func.func @collect_c2() {
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4xf32> {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{takes slot -1 of @A}}
    %out = coremesh.collect @A[-1] block(0) : tensor<4xf32>
    coremesh.yield %out : tensor<4xf32>
  }
  return
}

// -----

func.func @collect_c3() {
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4x4xf32> {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{cannot cut 'tensor<4x4xf32>' into tiles 'tensor<4xf32>'}}
    %out = coremesh.collect @A block(0) : tensor<4x4xf32>
    coremesh.yield %out : tensor<4x4xf32>
  }
  return
}

// -----

func.func @collect_c4() {
  %0 = coremesh.program "p" grid(2, 3) () : () -> tensor<13x4xf32> {
    coremesh.buffer @A : tensor<4x4xf32>
    // expected-error@+1 {{finds 3 of 4 blocks of 'tensor<13x4xf32>' on the cores}}
    %out = coremesh.collect @A block(x, 0) : tensor<13x4xf32>
    coremesh.yield %out : tensor<13x4xf32>
  }
  return
}

// -----

func.func @collect_c1_none() {
  %0 = coremesh.program "p" grid(2, 3) () : () -> tensor<4x4xf32> {
    // expected-error@+1 {{needs a slot at least, and one block for each}}
    %out = "coremesh.collect"() <{buffers = [], indices = [], blocks = []}> : () -> tensor<4x4xf32>
    coremesh.yield %out : tensor<4x4xf32>
  }
  return
}

// -----

func.func @collect_c3_types() {
  %0 = coremesh.program "p" grid(1, 1) () : () -> tensor<4x4xf32> {
    coremesh.buffer @A : tensor<2x4xf32>
    coremesh.buffer @B : tensor<1x4xf32>
    // expected-error@+1 {{collects tiles 'tensor<2x4xf32>' and 'tensor<1x4xf32>': they must have one type}}
    %out = coremesh.collect @A block(0, 0), @B block(1, 0) : tensor<4x4xf32>
    coremesh.yield %out : tensor<4x4xf32>
  }
  return
}

// -----

func.func @collect_c4_several() {
  %0 = coremesh.program "p" grid(1, 2) () : () -> tensor<8x4xf32> {
    coremesh.buffer @A : tensor<2x4xf32> slots 2
    // expected-error@+1 {{finds 3 of 4 blocks of 'tensor<8x4xf32>' on the cores}}
    %out = coremesh.collect @A block(x, 0), @A[1] block(x + 1, 0) : tensor<8x4xf32>
    coremesh.yield %out : tensor<8x4xf32>
  }
  return
}
