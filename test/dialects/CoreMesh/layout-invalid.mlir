// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{a split has a rotation and sizes of 0 or more, and a block of 1 or more}}
func.func private @split_c1() attributes {a = #coremesh.split<y rotate -1>}

// -----

// expected-error@+1 {{a split has a rotation and sizes of 0 or more, and a block of 1 or more}}
func.func private @split_c1_block() attributes {a = #coremesh.split<y block 0>}

// -----

// expected-error@+1 {{an uneven, cyclic or balanced split has neither skew, rotation nor block}}
func.func private @split_c2() attributes {a = #coremesh.split<y cyclic skew>}

// -----

// expected-error@+1 {{an uneven, cyclic or balanced split has neither skew, rotation nor block}}
func.func private @split_c2_uneven() attributes {a = #coremesh.split<y rotate 1 uneven [1, 2]>}

// -----

// expected-error@+1 {{a grid has one core at least, not 0 x 3}}
func.func private @layout_c1(tensor<4xf32, #coremesh.layout<grid(0, 3), [x]>>)

// -----

// expected-error@+1 {{a grid has sides of 2147483647 cores at most, not 4294967296 x 4294967297}}
func.func private @layout_c1_long(tensor<8x8xf32, #coremesh.layout<grid(4294967296, 4294967297), [y, x skew block 8]>>)

// -----

// expected-error@+1 {{the axis x splits 2 dimensions: it can split one}}
func.func private @layout_c1_twice(tensor<4x4xf32, #coremesh.layout<grid(2, 3), [x, x]>>)

// -----

// expected-error@+1 {{the tensor cannot lie at y = 2: positions are 0 to 1, of an axis that splits no dimension}}
func.func private @layout_c2(tensor<4xf32, #coremesh.layout<grid(2, 3), [x], at y = 2>>)

// -----

// expected-error@+1 {{the tensor cannot lie at x = 1}}
func.func private @layout_c2_split(tensor<4xf32, #coremesh.layout<grid(2, 3), [x], at x = 1>>)

// -----

// expected-error@+1 {{a layout of 1 dimensions is one of tensors with as many, of static shape}}
func.func private @layout_c3(tensor<4x4xf32, #coremesh.layout<grid(2, 3), [x]>>)

// -----

// expected-error@+1 {{a layout of 1 dimensions is one of tensors with as many, of static shape}}
func.func private @layout_c3_dynamic(tensor<?xf32, #coremesh.layout<grid(2, 3), [x]>>)

// -----

// expected-error@+1 {{3 blocks of 2 do not hold 7 elements}}
func.func private @layout_c3_block(tensor<7xf32, #coremesh.layout<grid(2, 3), [x block 2]>>)

// -----

// expected-error@+1 {{a dimension of 7 elements on 3 cores cannot have 3 blocks of 6 together}}
func.func private @layout_c3_uneven(tensor<7xf32, #coremesh.layout<grid(2, 3), [x uneven [3, 1, 2]]>>)

// -----

// expected-error@+1 {{a skewed block of 8 cannot be cut in 3 equal parts}}
func.func private @layout_c3_skew(tensor<40xf32, #coremesh.layout<grid(3, 5), [x skew block 8]>>)

// -----

#large = #coremesh.layout<grid(2, 3), [y uneven [9223372036854775807, 9223372036854775807]]>
// expected-error@+1 {{have 2 blocks of 18446744073709551614 together}}
func.func private @layout_c3_large(tensor<8xf32, #large>)

// -----

// expected-error@+1 {{expected the sizes of blocks once}}
func.func private @sizes_twice() attributes {a = #coremesh.split<y block 3 block 5>}

// -----

// expected-error@+1 {{expected the sizes of blocks once}}
func.func private @no_sizes() attributes {a = #coremesh.split<y uneven []>}
