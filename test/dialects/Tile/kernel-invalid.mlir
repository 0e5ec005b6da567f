// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{argument 0 must be a memref, integer, float or index, got 'tensor<4xf32>'}}
tile.kernel @kernel_c1(%x: tensor<4xf32>) {
}

// -----

// expected-error@+1 {{has no results: it writes to its arguments}}
"tile.kernel"() <{sym_name = "kernel_c1_results", function_type = () -> f32, grid_rank = 0 : i64}> ({
  "tile.return"() : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{entry block must have 1 arguments and 1 coordinates, got 1}}
"tile.kernel"() <{sym_name = "kernel_c2", function_type = (f32) -> (), grid_rank = 1 : i64}> ({
^bb0(%x: f32):
  "tile.return"() : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{entry block argument 1 must have type 'index', got 'i32'}}
"tile.kernel"() <{sym_name = "kernel_c2_type", function_type = (f32) -> (), grid_rank = 1 : i64}> ({
^bb0(%x: f32, %i: i32):
  "tile.return"() : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{cluster needs a positive size for each of the 2 coordinates}}
tile.kernel @kernel_c3() grid(%i, %j) cluster [2] {
}

// -----

tile.kernel @kernel_c4() {
  // expected-error@+1 {{uses a tensor inside a tile.kernel, which holds tiles, memrefs and scalars only}}
  %0 = tensor.empty() : tensor<4xf32>
}

// -----

func.func @launch_c1() {
  // expected-error@+1 {{@launch_c1 is no tile.kernel or tile.program here}}
  tile.launch @launch_c1
  return
}

// -----

tile.kernel @k() grid(%i) {
}
func.func @launch_c2() {
  // expected-error@+1 {{gives 0 grid bounds, @k has 1 coordinates}}
  tile.launch @k
  return
}

// -----

tile.kernel @k(%x: memref<4xf32>) {
}
func.func @launch_c3() {
  // expected-error@+1 {{gives 0 operands, @k has 1 arguments}}
  tile.launch @k
  return
}

// -----

// expected-note@+1 {{the kernel}}
tile.kernel @k(%x: memref<4xf32>) {
}
func.func @launch_c4(%x: tensor<8xf32>) {
  // expected-error@+1 {{operand 0 of type 'tensor<8xf32>' does not fit argument 0 of @k of type 'memref<4xf32>'}}
  tile.launch @k ins(%x : tensor<8xf32>)
  return
}

// -----

// expected-note@+1 {{the kernel}}
tile.kernel @k(%x: memref<4x8xf32>) {
}
func.func @launch_c4_layout(%x: memref<4x8xf32, strided<[?, 1]>>) {
  // expected-error@+1 {{does not fit argument 0}}
  tile.launch @k outs(%x : memref<4x8xf32, strided<[?, 1]>>)
  return
}

// -----

// Rows of a dense matrix lie a row apart, which the size of the row says: not as far as another matrix may have them.
// expected-note@+1 {{the kernel}}
tile.kernel @k(%x: memref<2x?xf32>) {
}
func.func @launch_c4_rows(%x: memref<2x?xf32, strided<[?, 1]>>) {
  // expected-error@+1 {{does not fit argument 0}}
  tile.launch @k outs(%x : memref<2x?xf32, strided<[?, 1]>>)
  return
}

// -----

// expected-note@+1 {{the kernel}}
tile.kernel @k(%x: memref<4xf32>) {
}
func.func @launch_c4_dynamic(%x: memref<?xf32>) {
  // expected-error@+1 {{does not fit argument 0}}
  tile.launch @k outs(%x : memref<?xf32>)
  return
}

// -----

// expected-note@+1 {{the kernel}}
tile.kernel @k(%x: memref<4xf32, #tile.level<"shared">>) {
}
func.func @launch_c4_level(%x: memref<4xf32>) {
  // expected-error@+1 {{does not fit argument 0}}
  tile.launch @k outs(%x : memref<4xf32>)
  return
}

// -----

tile.kernel @k(%x: f32) {
}
func.func @launch_c5(%x: f32) {
  // expected-error@+1 {{outs must be tensors or memrefs, got 'f32'}}
  tile.launch @k outs(%x : f32)
  return
}

// -----

tile.kernel @k(%x: memref<4xf32>) {
}
func.func @launch_c5_results(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  tile.launch @k outs(%x : tensor<4xf32>)
  return
}

// -----

tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
}
func.func @launch_c6(%x: tensor<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{mixes tensors and memrefs}}
  tile.launch @k ins(%x : tensor<4xf32>) outs(%y : memref<4xf32>)
  return
}

// -----

func.func @return_parent() {
  // expected-error@+1 {{expects parent op to be one of 'tile.kernel, tile.program'}}
  tile.return
}

// -----

tile.kernel @k() {
}
tile.kernel @kernel_c5() grid(%i) {
  // expected-error@+1 {{stands in @kernel_c5, a kernel with coordinates: each of its tasks would launch @k}}
  tile.launch @k
}

// -----

tile.kernel @k() {
}
tile.kernel @outer() {
  tile.launch @k
}
tile.kernel @kernel_c5_nested() {
  // expected-error@+1 {{stands in a kernel, and @outer is no kernel, or launches others itself}}
  tile.launch @outer
}
