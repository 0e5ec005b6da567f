// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{nm must keep at least 1 of at most 32768 neighbours and no more than there are, not 5 of 4}}
func.func private @nm_c1(tensor<8x8xf32, #sparse_tile.tesa<nm<5 : 4, axis = 0>>>)

// -----

// expected-error@+1 {{not 0 of 4}}
func.func private @nm_c1_none(tensor<8x8xf32, #sparse_tile.tesa<nm<0 : 4, axis = 0>>>)

// -----

// expected-error@+1 {{axis 2 of nm is none of the tensor's 2 dimensions}}
func.func private @nm_c2(tensor<8x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 2>>>)

// -----

// expected-error@+1 {{unit [4] must have a positive number for each of the 2 dimensions}}
func.func private @nm_c3(tensor<8x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [4]>>>)

// -----

// expected-error@+1 {{unit [1, 0] must have a positive number}}
func.func private @nm_c3_zero(tensor<8x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [1, 0]>>>)

// -----

// expected-error@+1 {{a block has two positive sizes, not [32]}}
func.func private @block_c1(tensor<8x8xf32, #sparse_tile.tesa<block<[32]>>>)

// -----

// expected-error@+1 {{block is a pattern of matrices, not of tensors of rank 3}}
func.func private @block_c2(tensor<2x8x8xf32, #sparse_tile.tesa<block<[4, 4]>>>)

// -----

// expected-error@+1 {{mask is a pattern of matrices, not of tensors of rank 1}}
func.func private @mask_c1(tensor<8xf32, #sparse_tile.tesa<mask>>)

// -----

// expected-error@+1 {{unit [1, 64] must have a positive number for each of the 1 dimensions}}
func.func private @dynamic_c1(tensor<?xf32, #sparse_tile.tesa<dynamic<[1, 64]>>>)

// -----

// expected-error@+1 {{a format stores i2, i4, i8, f8E4M3FN or f8E5M2, not 'i3'}}
func.func private @format_c1(tensor<8xf32, #sparse_tile.tesa<dense : format<i3, scales = f32>>>)

// -----

// expected-error@+1 {{a format stores i2, i4, i8, f8E4M3FN or f8E5M2, not 'f16'}}
func.func private @format_c1_float(tensor<8xf32, #sparse_tile.tesa<dense : format<f16, scales = f32>>>)

// -----

// expected-error@+1 {{scales are floats, and of integers alone there may be none}}
func.func private @format_c2(tensor<8xf32, #sparse_tile.tesa<dense : format<i8, scales = i8>>>)

// -----

// expected-error@+1 {{scales are floats, and of integers alone there may be none}}
func.func private @format_c2_float(tensor<8xf32, #sparse_tile.tesa<dense : format<f8E5M2>>>)

// -----

// expected-error@+1 {{codes of type 'f8E4M3FN' are neither unsigned nor have zero points}}
func.func private @format_c3(tensor<8xf32, #sparse_tile.tesa<dense : format<f8E4M3FN, unsigned, scales = f32>>>)

// -----

// expected-error@+2 {{zero points are numbers, not 'index'}}
func.func private @format_c3_type(
    tensor<8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, zero_points = index>>>)

// -----

// expected-error@+1 {{a group has positive sizes or `?`, not 0}}
func.func private @format_c4(tensor<8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, group = [0]>>>)

// -----

// expected-error@+1 {{a group of 2 sizes on a tensor of rank 1}}
func.func private @format_c4_rank(tensor<8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, 4]>>>)

// -----

// expected-error@+1 {{an encoding has a region at least}}
func.func private @tesa_c1(tensor<8xf32, #sparse_tile.tesa<>>)

// -----

// expected-error@+1 {{a region has a pattern, not #sparse_tile.format<i8, scales = f32>}}
func.func private @tesa_c1_format(tensor<8xf32, #sparse_tile.tesa<format<i8, scales = f32>>>)

// -----

// expected-error@+1 {{#sparse_tile.mask is no format}}
func.func private @tesa_c1_pattern(tensor<8x8xf32, #sparse_tile.tesa<dense : mask>>)

// -----

// expected-error@+1 {{codes stand for floats, or without scales for i32, not for 'i32'}}
func.func private @tesa_c2(tensor<8xi32, #sparse_tile.tesa<dense : format<i8, scales = f32>>>)

// -----

// expected-error@+1 {{codes stand for floats, or without scales for i32, not for 'f32'}}
func.func private @tesa_c2_integers(tensor<8xf32, #sparse_tile.tesa<dense : format<i8>>>)

// -----

// expected-error@+1 {{a format has scales, zero_points and group, no steps}}
func.func private @format_entry(tensor<8xf32, #sparse_tile.tesa<dense : format<i8, steps = f32>>>)

// -----

// expected-error@+1 {{sparse_tile has no pattern or format 'diagonal'}}
func.func private @unknown_pattern(tensor<8x8xf32, #sparse_tile.tesa<diagonal>>)
