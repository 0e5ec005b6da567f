// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @at_c1(%x: !fractal.array<[4, ragged] of tensor<8xf32>>, %i: index) {
  // expected-error@+1 {{result must fit '!fractal.array<[?] of tensor<8xf32>>', but is}}
  %r = fractal.at %x[%i] : !fractal.array<[4, ragged] of tensor<8xf32>> -> !fractal.array<[5, 5] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{needs one offset and one size}}
  %r = fractal.slice %x [0, 1] [4] [1] : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c1_operand(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{expected 1 dynamic offset values}}
  %r = "fractal.slice"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>,
      static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 4>, stride = 1 : i64}>
          : (!fractal.array<[8] of tensor<8xf32>>) -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c2(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{has a stride of 0: fractal.repeat gives one element several times}}
  %r = fractal.slice %x [0] [4] [0] : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[4] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c3(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{reads element 8 of '!fractal.array<[8] of tensor<8xf32>>': elements are counted from 0}}
  %r = fractal.slice %x [6] [3] [1] : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[3] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c3_offset(%x: !fractal.array<[?] of tensor<8xf32>>, %i: index) {
  // expected-error@+1 {{reads element -1 of}}
  %r = fractal.slice %x [-1] [%i] [1] : !fractal.array<[?] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c3_reversed(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{reads element -1 of}}
  %r = fractal.slice %x [1] [3] [-1] : !fractal.array<[?] of tensor<8xf32>> -> !fractal.array<[3] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c3_size(%x: !fractal.array<[8] of tensor<8xf32>>, %i: index) {
  // expected-error@+1 {{has a size of -1: it must be 0 or more}}
  %r = fractal.slice %x [%i] [-1] [1] : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @slice_c4(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4] of tensor<8xf32>>', but is}}
  %r = fractal.slice %x [0] [4] [1] : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[5] of tensor<8xf32>>
  return
}

// -----

func.func @reverse_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[8] of tensor<8xf32>>', but is}}
  %r = fractal.reverse %x : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[5] of tensor<8xf32>>
  return
}

// -----

func.func @shift_c1(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{needs either 'fill' or 'wrap', which say what stands where the list ends}}
  %r = fractal.shift %x by 1 : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @shift_c1_both(%x: !fractal.array<[8] of tensor<8xf32>>, %y: tensor<8xf32>) {
  // expected-error@+1 {{needs either 'fill' or 'wrap'}}
  %r = fractal.shift %x by 1 fill %y wrap : !fractal.array<[8] of tensor<8xf32>>, tensor<8xf32>
      -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @shift_c2(%x: !fractal.array<[8] of tensor<8xf32>>, %y: tensor<f32>) {
  // expected-error@+1 {{fill must fit 'tensor<8xf32>', but is 'tensor<f32>'}}
  %r = fractal.shift %x by 1 fill %y : !fractal.array<[8] of tensor<8xf32>>, tensor<f32>
      -> !fractal.array<[8] of tensor<8xf32>>
  return
}

// -----

func.func @shift_c3(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[8] of tensor<8xf32>>'}}
  %r = fractal.shift %x by 1 wrap : !fractal.array<[8] of tensor<8xf32>> -> !fractal.array<[7] of tensor<8xf32>>
  return
}

// -----

func.func @window_c1(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{size, stride and dilation must be 1 or more}}
  %r = fractal.window %x size 0 stride 1 dilation 1 padding [0, 0] : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, ?] of tensor<8xf32>>
  return
}

// -----

func.func @window_c1_stride(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{size, stride and dilation must be 1 or more}}
  %r = fractal.window %x size 1 stride 0 dilation 1 padding [0, 0] : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, ?] of tensor<8xf32>>
  return
}

// -----

func.func @window_c1_dilation(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{size, stride and dilation must be 1 or more}}
  %r = fractal.window %x size 1 stride 1 dilation 0 padding [0, 0] : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, ?] of tensor<8xf32>>
  return
}

// -----

func.func @window_c2(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{padding must be two numbers that are not negative}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [1] wrap : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c2_negative(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{padding must be two numbers that are not negative}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [1, -1] wrap : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c3(%x: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{is padded: it needs 'fill' or 'wrap', which say what stands there}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [0, 1] : !fractal.array<[?] of tensor<8xf32>>
      -> !fractal.array<[?, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c3_both(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<8xf32>) {
  // expected-error@+1 {{cannot have both 'fill' and 'wrap'}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [0, 1] fill %y wrap
      : !fractal.array<[?] of tensor<8xf32>>, tensor<8xf32> -> !fractal.array<[?, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c4(%x: !fractal.array<[?] of tensor<8xf32>>, %y: tensor<f32>) {
  // expected-error@+1 {{fill must fit 'tensor<8xf32>', but is 'tensor<f32>'}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [0, 1] fill %y
      : !fractal.array<[?] of tensor<8xf32>>, tensor<f32> -> !fractal.array<[?, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c5(%x: !fractal.array<[8] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4, 3] of tensor<8xf32>>', but is}}
  %r = fractal.window %x size 3 stride 2 dilation 1 padding [1, 0] wrap : !fractal.array<[8] of tensor<8xf32>>
      -> !fractal.array<[5, 3] of tensor<8xf32>>
  return
}

// -----

func.func @window_c5_ragged(%x: !fractal.array<[4, ragged] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[2, 3, ragged] of tensor<8xf32>>'}}
  %r = fractal.window %x size 3 stride 1 dilation 1 padding [0, 0] : !fractal.array<[4, ragged] of tensor<8xf32>>
      -> !fractal.array<[2, 4, ragged] of tensor<8xf32>>
  return
}

// -----

func.func @repeat_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs either an operand or 'times', which say how often the element stands there}}
  %r = fractal.repeat %x : tensor<8xf32> -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @repeat_c1_both(%x: tensor<8xf32>, %i: index) {
  // expected-error@+1 {{needs either an operand or 'times'}}
  %r = fractal.repeat %x, %i times 4 : tensor<8xf32> -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @repeat_c1_negative(%x: tensor<8xf32>) {
  // expected-error@+1 {{gives an element -2 times: it must be 0 or more}}
  %r = fractal.repeat %x times -2 : tensor<8xf32> -> !fractal.array<[?] of tensor<8xf32>>
  return
}

// -----

func.func @repeat_c2(%x: !fractal.array<[2] of tensor<8xf32>>) {
  // expected-error@+1 {{result must fit '!fractal.array<[4, 2] of tensor<8xf32>>', but is}}
  %r = fractal.repeat %x times 4 : !fractal.array<[2] of tensor<8xf32>> -> !fractal.array<[5, 2] of tensor<8xf32>>
  return
}

// -----

func.func @read_c1(%xs: !fractal.array<[2] of tensor<8xf32>>) {
  // expected-error@+1 {{has a map that does not fit}}
  %r = fractal.read %xs at affine_map<(d0, d1) -> (d1, d0)>
      : !fractal.array<[2] of tensor<8xf32>> -> !fractal.array<[5, 2] of tensor<8xf32>>
  return
}

// -----

func.func @read_c2(%xs: !fractal.array<[?] of tensor<8xf32>>) {
  // expected-error@+1 {{needs known lengths of what it reads, not zero, and of its result}}
  %r = fractal.read %xs at affine_map<(d0) -> (d0)>
      : !fractal.array<[?] of tensor<8xf32>> -> !fractal.array<[5] of tensor<8xf32>>
  return
}

// -----

func.func @read_c3(%xs: !fractal.array<[2, 4] of tensor<8xf32>>) {
  // expected-error@+1 {{result}}
  %r = fractal.read %xs at affine_map<(d0, d1) -> (d1, d0)>
      : !fractal.array<[2, 4] of tensor<8xf32>> -> !fractal.array<[5, 2] of tensor<4xf32>>
  return
}
