// RUN: tile-opt %s -split-input-file -verify-diagnostics

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
func.func @pack_c1(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{must agree in shape and element type}}
  %p = sparse_tile.pack %x : tensor<8x8xf32> to tensor<8x4xf32, #nm>
  return
}

// -----

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0>, mask>
func.func @pack_c2(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{packs a tensor without an encoding into one region without a format}}
  %p = sparse_tile.pack %x : tensor<8x8xf32> to tensor<8x8xf32, #nm>
  return
}

// -----

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
func.func @pack_c2_twice(%x: tensor<8x8xf32, #nm>) {
  // expected-error@+1 {{packs a tensor without an encoding}}
  %p = sparse_tile.pack %x : tensor<8x8xf32, #nm> to tensor<8x8xf32, #nm>
  return
}

// -----

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
func.func @unpack_c1(%p: tensor<8x8xf32, #nm>) {
  // expected-error@+1 {{must agree in shape and element type}}
  %x = sparse_tile.unpack %p : tensor<8x8xf32, #nm> to tensor<8x8xf16>
  return
}

// -----

func.func @unpack_c2(%p: tensor<8x8xf32>) {
  // expected-error@+1 {{unpacks an encoded tensor into one without an encoding}}
  %x = sparse_tile.unpack %p : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

#coded = #sparse_tile.tesa<dense : format<i8, scales = f32>>
func.func @unpack_c2_format(%p: tensor<8x8xf32, #coded>) {
  // expected-error@+1 {{meets a format: sparse_tile.dequantize goes before}}
  %x = sparse_tile.unpack %p : tensor<8x8xf32, #coded> to tensor<8x8xf32>
  return
}

// -----

func.func @parts_c1(%p: tensor<8x8xf32>) {
  // expected-error@+1 {{needs an encoded tensor, not 'tensor<8x8xf32>'}}
  %v = sparse_tile.parts %p : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
func.func @parts_c2(%p: tensor<6x8xf32, #nm>) {
  // expected-error@+1 {{are 'tensor<4x8xf32>', 'tensor<4x8xi8>'}}
  %v, %i = sparse_tile.parts %p : tensor<6x8xf32, #nm> to tensor<3x8xf32>, tensor<3x8xi8>
  return
}

// -----

func.func @assemble_c1(%v: tensor<8x8xf32>) {
  // expected-error@+1 {{needs an encoded tensor}}
  %p = sparse_tile.assemble %v : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

#coded = #sparse_tile.tesa<block<[4, 4]> : format<i8, scales = f16, zero_points = i8, group = [4, ?]>>
func.func @assemble_c2(%v: tensor<?x4x4xi8>) {
  // expected-error@+1 {{are 'tensor<?x4x4xi8>', 'tensor<?xi32>', 'tensor<4xi32>', 'tensor<3x1xf16>', 'tensor<3x1xi8>'}}
  %p = sparse_tile.assemble %v : tensor<?x4x4xi8> to tensor<10x8xf32, #coded>
  return
}

// -----

#coded = #sparse_tile.tesa<dense : format<i8, scales = f32>>
func.func @quantize_c1(%x: tensor<8xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{must agree in shape and element type}}
  %q = sparse_tile.quantize %x scales %s : tensor<8xf32>, tensor<1xf32> to tensor<4xf32, #coded>
  return
}

// -----

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0> : format<i8, scales = f32>>
func.func @quantize_c2(%x: tensor<8xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{differ in their pattern}}
  %q = sparse_tile.quantize %x scales %s : tensor<8xf32>, tensor<1xf32> to tensor<8xf32, #nm>
  return
}

// -----

func.func @quantize_c2_none(%x: tensor<8xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{needs an encoding of one region with a format}}
  %q = sparse_tile.quantize %x scales %s : tensor<8xf32>, tensor<1xf32> to tensor<8xf32>
  return
}

// -----

#coded = #sparse_tile.tesa<dense : format<i8, scales = f32, group = [4]>>
func.func @quantize_c3(%x: tensor<9xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{scales must be 'tensor<3xf32>', not 'tensor<2xf32>'}}
  %q = sparse_tile.quantize %x scales %s : tensor<9xf32>, tensor<2xf32> to tensor<9xf32, #coded>
  return
}

// -----

#coded = #sparse_tile.tesa<dense : format<i8, scales = f32, zero_points = i8>>
func.func @quantize_c3_zero_points(%x: tensor<9xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{has zero points exactly where its format has them}}
  %q = sparse_tile.quantize %x scales %s : tensor<9xf32>, tensor<1xf32> to tensor<9xf32, #coded>
  return
}

// -----

#integers = #sparse_tile.tesa<dense : format<i8>>
func.func @quantize_c3_scales(%x: tensor<9xi32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{needs a format with scales}}
  %q = sparse_tile.quantize %x scales %s : tensor<9xi32>, tensor<1xf32> to tensor<9xi32, #integers>
  return
}

// -----

func.func @decode_c1(%c: i16, %s: f32) {
  // expected-error@+1 {{a code is an i8, or a float of 8 bits without a zero point}}
  %x = sparse_tile.decode %c scale %s : f32 : i16 to f32
  return
}

// -----

func.func @decode_c1_float(%c: f8E4M3FN, %z: i8) {
  // expected-error@+1 {{a code is an i8, or a float of 8 bits without a zero point}}
  %x = sparse_tile.decode %c zero_point %z : i8 : f8E4M3FN to f32
  return
}

// -----

func.func @decode_c2(%c: i8, %s: f32) {
  // expected-error@+1 {{the result is a float, or an i32 of integers without a scale, not 'i32'}}
  %x = sparse_tile.decode %c scale %s : f32 : i8 to i32
  return
}

// -----

#coded = #sparse_tile.tesa<dense : format<i8, scales = f32>>
func.func @dequantize_c1(%q: tensor<8xf32, #coded>) {
  // expected-error@+1 {{must agree in shape and element type}}
  %x = sparse_tile.dequantize %q : tensor<8xf32, #coded> to tensor<4xf32>
  return
}

// -----

#coded = #sparse_tile.tesa<mask : format<i8, scales = f32>>
func.func @dequantize_c2(%q: tensor<8x8xf32, #coded>) {
  // expected-error@+1 {{differ in their pattern}}
  %x = sparse_tile.dequantize %q : tensor<8x8xf32, #coded> to tensor<8x8xf32>
  return
}

// -----

func.func @index_c1(%x: tensor<64x96xf32>) {
  // expected-error@+1 {{unit has a positive number for each of the 2 dimensions}}
  %l, %c = sparse_tile.index %x unit [16] axis 1 : tensor<64x96xf32> to tensor<4x96xi32>, tensor<4x1xi32>
  return
}

// -----

func.func @index_c1_axis(%x: tensor<64x96xf32>) {
  // expected-error@+1 {{axis 2 is none of the tensor's 2 dimensions}}
  %l, %c = sparse_tile.index %x unit [16, 1] axis 2 : tensor<64x96xf32> to tensor<4x96xi32>, tensor<4x1xi32>
  return
}

// -----

func.func @index_c2(%x: tensor<65x96xf32>) {
  // expected-error@+1 {{gives 'tensor<5x96xi32>' and 'tensor<5x1xi32>'}}
  %l, %c = sparse_tile.index %x unit [16, 1] axis 1 : tensor<65x96xf32> to tensor<4x96xi32>, tensor<4x1xi32>
  return
}

// -----

func.func @gather_c1(%x: tensor<64x8xf32>, %i: tensor<?xi64>) {
  // expected-error@+1 {{indices are a list of i32, not 'tensor<?xi64>'}}
  %y = sparse_tile.gather %x[%i] axis 0 : tensor<64x8xf32>, tensor<?xi64> to tensor<?x8xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<64x8xf32>, %i: tensor<5xi32>) {
  // expected-error@+1 {{the result must be 'tensor<5x8xf32>', not 'tensor<6x8xf32>'}}
  %y = sparse_tile.gather %x[%i] axis 0 : tensor<64x8xf32>, tensor<5xi32> to tensor<6x8xf32>
  return
}

// -----

func.func @scatter_c1(%y: tensor<5x8xf32>, %i: tensor<5xi32>, %init: tensor<64x8xf32>) {
  // expected-error@+1 {{axis -1 is none of the tensor's 2 dimensions}}
  %x = sparse_tile.scatter %y into %init[%i] axis -1 : tensor<5x8xf32>, tensor<5xi32>, tensor<64x8xf32>
  return
}

// -----

func.func @scatter_c2(%y: tensor<5x8xf16>, %i: tensor<5xi32>, %init: tensor<64x8xf32>) {
  // expected-error@+1 {{the source must be 'tensor<5x8xf32>', not 'tensor<5x8xf16>'}}
  %x = sparse_tile.scatter %y into %init[%i] axis 0 : tensor<5x8xf16>, tensor<5xi32>, tensor<64x8xf32>
  return
}

// -----

#mask = #sparse_tile.tesa<mask>
func.func @matmul_c1(%a: tensor<4x6xf32>, %b: tensor<8x4xf32, #mask>, %c: tensor<4x4xf32>) {
  // expected-error@+1 {{a, b and c must be MxK, KxN and MxN}}
  %d = sparse_tile.matmul %a, %b, %c : tensor<4x6xf32>, tensor<8x4xf32, #mask>, tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c2(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) {
  // expected-error@+1 {{for dense matrices there is linalg.matmul}}
  %d = sparse_tile.matmul %a, %b, %c : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x4xf32>
  return
}

// -----

#mask = #sparse_tile.tesa<mask>
func.func @matmul_c3(%a: tensor<4x8xf32>, %b: tensor<8x4xf32, #mask>, %c: tensor<4x4xf16>) {
  // expected-error@+1 {{elements are floats of at most the width of c's, not 'f32' with 'f16'}}
  %d = sparse_tile.matmul %a, %b, %c : tensor<4x8xf32>, tensor<8x4xf32, #mask>, tensor<4x4xf16>
  return
}
