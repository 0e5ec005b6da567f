// RUN: tile-opt %s -split-input-file -verify-diagnostics

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c1(%children: tensor<7x0xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{needs a known number of children, one or more, as the second size of 'tensor<7x0xi32>'}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x0xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node () {
    fractal.yield %xs : !list
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c1_unknown(%children: tensor<7x?xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{needs a known number of children}}
  %r = "fractal.recurse"(%children, %levels, %roots, %xs) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  ^bb0(%x: !leaf):
    fractal.yield %x : !leaf
  }, {
  ^bb0(%l: !leaf, %m: !leaf):
    fractal.yield %l : !leaf
  }) : (tensor<7x?xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c2(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{its leaf region has a block argument 0 of type 'tensor<f32>', needs 'tensor<1x8xf32>': an}}
  %r = "fractal.recurse"(%children, %levels, %roots, %xs) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  ^bb0(%x: tensor<f32>):
    fractal.yield %x : tensor<f32>
  }, {
  ^bb0(%l: !leaf, %m: !leaf):
    fractal.yield %l : !leaf
  }) : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c2_number(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{its leaf region has 2 block arguments, needs 1}}
  %r = "fractal.recurse"(%children, %levels, %roots, %xs) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  ^bb0(%x: !leaf, %y: !leaf):
    fractal.yield %x : !leaf
  }, {
  ^bb0(%l: !leaf, %m: !leaf):
    fractal.yield %l : !leaf
  }) : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c3(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{has a result of 2 elements, but 1 roots}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[2] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c3_none(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{has no result: it needs at least one state}}
  fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> ()
  leaf (%x) {
    fractal.yield 
  } node () {
    fractal.yield 
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c4(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{its node region has 1 block arguments, needs 2: the states of each child, then an element}}
  %r = "fractal.recurse"(%children, %levels, %roots, %xs) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  ^bb0(%x: !leaf):
    fractal.yield %x : !leaf
  }, {
  ^bb0(%l: !leaf):
    fractal.yield %l : !leaf
  }) : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c4_type(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{its node region has a block argument 1 of type 'tensor<f32>', needs 'tensor<1x8xf32>'}}
  %r = "fractal.recurse"(%children, %levels, %roots, %xs) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  ^bb0(%x: !leaf):
    fractal.yield %x : !leaf
  }, {
  ^bb0(%l: !leaf, %m: tensor<f32>):
    fractal.yield %l : !leaf
  }) : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c5(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list,
    %z: tensor<f32>) {
  // expected-error@+1 {{its node region yields ('tensor<f32>'), but the states, elements of the results, are}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %z : tensor<f32>
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c5_leaf(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{its leaf region yields ()}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield 
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c5_end(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{both of its regions end with fractal.yield}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list) -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    llvm.unreachable
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c6(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{has 7 rows of children, but an array of 4 elements in `nodes`}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes(%xs)
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m, %y) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @recurse_c7(%children: tensor<7x2xi32>, %levels: tensor<1xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{has 1 entries in `levels`, needs two: where the leaves begin, and where they end}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<1xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @arguments(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+6 {{this region takes 2 arguments, not 1}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @element(%children: tensor<7x2xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+6 {{needs an operand of type !fractal.array}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !leaf
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

func.func @rank(%children: tensor<7xi32>, %levels: tensor<4xi32>, %roots: tensor<1xi32>, %xs: !list) {
  // expected-error@+1 {{the children of all nodes are a tensor of rank 2}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7xi32>, tensor<4xi32>, tensor<1xi32>, !list)
      -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}
