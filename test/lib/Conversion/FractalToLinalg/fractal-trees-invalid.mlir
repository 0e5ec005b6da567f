// RUN: tile-opt %s --convert-fractal-to-linalg --split-input-file --verify-diagnostics

!leaf = tensor<1x8xf32>

func.func @nodes(%xs: !fractal.array<[4] of !leaf>, %children: tensor<?x2xi32>, %levels: tensor<4xi32>,
    %roots: tensor<1xi32>) {
  // expected-error@+1 {{needs a known number of nodes, at least one}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<?x2xi32>, tensor<4xi32>, tensor<1xi32>, !fractal.array<[4] of !leaf>) -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>

func.func @leaves(%xs: !fractal.array<[?] of !leaf>, %children: tensor<7x2xi32>, %levels: tensor<4xi32>,
    %roots: tensor<1xi32>) {
  // expected-error@+1 {{needs arrays of known lengths, not zero}}
  %r = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !fractal.array<[?] of !leaf>) -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    fractal.yield %x : !leaf
  } node (%l, %m) {
    fractal.yield %l : !leaf
  }
  return
}

// -----

!leaf = tensor<1x8xf32>

func.func @lists(%xs: !fractal.array<[?] of !leaf>, %children: tensor<7x2xi32>, %levels: tensor<4xi32>,
    %roots: tensor<1xi32>) {
  // expected-error@+1 {{has a state of unknown lengths}}
  %r = fractal.recurse %children, %levels, %roots leaves() nodes()
      : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>) -> !fractal.array<[1, ?] of !leaf>
  leaf () {
    fractal.yield %xs : !fractal.array<[?] of !leaf>
  } node (%l, %m) {
    fractal.yield %l : !fractal.array<[?] of !leaf>
  }
  return
}

// -----

!leaf = tensor<1x8xf32>

func.func @trees_of_a_map(%xs: !fractal.array<[4] of !leaf>, %children: tensor<7x2xi32>, %levels: tensor<4xi32>,
    %all: !fractal.array<[5] of tensor<1xi32>>) -> !fractal.array<[5, 1] of !leaf> {
  %r = fractal.map (%roots = %all) : (!fractal.array<[5] of tensor<1xi32>>) -> !fractal.array<[5, 1] of !leaf> {
    // expected-error@+1 {{has trees that differ between elements of a list around it}}
    %s = fractal.recurse %children, %levels, %roots leaves(%xs) nodes()
        : (tensor<7x2xi32>, tensor<4xi32>, tensor<1xi32>, !fractal.array<[4] of !leaf>)
        -> !fractal.array<[1] of !leaf>
    leaf (%x) {
      fractal.yield %x : !leaf
    } node (%l, %m) {
      fractal.yield %l : !leaf
    }
    fractal.yield %s : !fractal.array<[1] of !leaf>
  }
  return %r : !fractal.array<[5, 1] of !leaf>
}

