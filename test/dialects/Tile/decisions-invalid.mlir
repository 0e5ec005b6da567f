// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{has an attribute tile.nst, which is not known; did you mean tile.nest?}}
func.func private @unknown() attributes {tile.nst = 0 : i64}

// -----

func.func @integer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{attribute tile.nest must be an i64, got "first"}}
  %y = linalg.copy {tile.nest = "first"} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@+1 {{tile.rtile does not belong on func.func; it stands on: linalg operations, tensor operations}}
func.func private @misplaced() attributes {tile.rtile = #tile.rtile<l2 = [1]>}

// -----

// expected-error@+1 {{tile.params must be an array of dictionaries with a string kind, got [{arg = 0 : i64}]}}
tile.kernel @parameters() attributes {tile.params = [{arg = 0 : i64}]} {
  tile.return
}

// -----

// expected-error@+1 {{attribute tile.arena does not belong on result; it stands on: arguments of functions}}
func.func private @result() -> (memref<8xi8> {tile.arena})

// -----

// expected-error@+1 {{has an attribute tile.nome, which is not known; did you mean tile.name?}}
func.func private @argument(memref<8xi8> {tile.nome = "x"})

// -----

tile.kernel @lists(%m: memref<4xf32>, %i: index) {
  %t = tile.load %m[%i] : memref<4xf32>, !tile.tile<4xf32>
  // expected-error@+1 {{attribute tile.box must be a dictionary with the i64 map and slots}}
  tile.store %t, %m[%i] {tile.box = {map = 1 : i64}} : !tile.tile<4xf32>, memref<4xf32>
  tile.return
}

// -----

// expected-error@+1 {{attribute tile.same_memory must be an array of array<i64: ...>}}
tile.kernel @pairs() attributes {tile.same_memory = [0, 1]} {
  tile.return
}
