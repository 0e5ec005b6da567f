// RUN: tile-opt %s -split-input-file -verify-diagnostics

#l = #coremesh.layout<grid(2, 3), [y, x]>
func.func @distribute_c1(%a: tensor<4x6xf32>) {
  // expected-error@+1 {{changes 'tensor<4x6xf32>' to 'tensor<4x6xf16>': shape and element type stay}}
  %0 = coremesh.distribute %a : tensor<4x6xf32> to tensor<4x6xf16, #l>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
func.func @distribute_c1_encoded(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor without encoding outside}}
  %0 = coremesh.distribute %a : tensor<4x6xf32, #l> to tensor<4x6xf32, #l>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
func.func @assemble_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{changes 'tensor<4x6xf32>' to 'tensor<6x4xf32>': shape and element type stay}}
  %0 = coremesh.assemble %a : tensor<4x6xf32, #l> to tensor<6x4xf32>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(3, 2), [y, x]>
func.func @relayout_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{goes from 2 x 3 to 3 x 2 cores: between grids there is coremesh.reshape_grid}}
  %0 = coremesh.relayout %a : tensor<4x6xf32, #l> to tensor<4x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [x, y]>
func.func @reshape_grid_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{goes from 2 x 3 to 2 x 3 cores: on one grid there is coremesh.relayout}}
  %0 = coremesh.reshape_grid %a : tensor<4x6xf32, #l> to tensor<4x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
func.func @shift_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor that the axis x splits in equal blocks}}
  %0 = coremesh.shift %a along x by 1 : tensor<4x6xf32, #l> to tensor<4x6xf32, #l>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x uneven [1, 2, 3]]>
func.func @shift_c1_uneven(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor that the axis x splits in equal blocks}}
  %0 = coremesh.shift %a along x by 1 : tensor<4x6xf32, #l> to tensor<4x6xf32, #l>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor with dimension 1 split in equal blocks in their places}}
  %0 = coremesh.halo %a dim 1 from 0 step 1 of 3 fill 0.0 : f32 : tensor<4x6xf32, #l> to tensor<6x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c1_no_dimension(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor with dimension 2 split}}
  %0 = coremesh.halo %a dim 2 from 0 step 1 of 3 fill 0.0 : f32 : tensor<4x6xf32, #l> to tensor<6x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y rotate 1, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c1_rotated(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{needs a tensor with dimension 0 split in equal blocks in their places}}
  %0 = coremesh.halo %a dim 0 from 0 step 1 of 3 fill 0.0 : f32 : tensor<4x6xf32, #l> to tensor<6x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c2(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{has parts of 3 elements, one every 0: both numbers are positive}}
  %0 = coremesh.halo %a dim 0 from 0 step 0 of 3 fill 0.0 : f32 : tensor<4x6xf32, #l> to tensor<6x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c2_type(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{with a number of another type, 'i32'}}
  %0 = coremesh.halo %a dim 0 from 0 step 1 of 3 fill 0 : i32 : tensor<4x6xf32, #l> to tensor<6x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y, *]>
func.func @halo_c3(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{must have a result of type 'tensor<6x6xf32}}
  %0 = coremesh.halo %a dim 0 from 0 step 1 of 3 fill 0.0 : f32 : tensor<4x6xf32, #l> to tensor<8x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x rotate 2]>
#m = #coremesh.layout<grid(2, 3), [y, x rotate 1]>
func.func @shift_c2(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{must have a result of type 'tensor<4x6xf32, #coremesh.layout<grid(2, 3), [y, x]>>'}}
  %0 = coremesh.shift %a along x by 1 : tensor<4x6xf32, #l> to tensor<4x6xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y]>
func.func @multicast_c1(%a: tensor<4xf32, #l>) {
  // expected-error@+1 {{needs a tensor at one position of the axis x}}
  %0 = coremesh.multicast %a along x : tensor<4xf32, #l> to tensor<4xf32, #l>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y], at x = 1>
#m = #coremesh.layout<grid(2, 3), [y], at x = 2>
func.func @multicast_c2(%a: tensor<4xf32, #l>) {
  // expected-error@+1 {{must have a result of type 'tensor<4xf32, #coremesh.layout<grid(2, 3), [y]>>'}}
  %0 = coremesh.multicast %a along x : tensor<4xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, *]>
#m = #coremesh.layout<grid(2, 3), [y], at x = 2>
func.func @reduce_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{cannot reduce dimension 1}}
  %0 = coremesh.reduce add %a dim 1 by chain : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y]>
func.func @reduce_c2(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{must have a result at one position of the axis x}}
  %0 = coremesh.reduce add %a dim 1 by chain : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y], at x = 2>
func.func @reduce_c3(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{has no root with a ring: use coremesh.allreduce}}
  %0 = coremesh.reduce add %a dim 1 by ring : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y], at x = 2>
func.func @reduce_c3_levels(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{has levels, but star has none: only k_tree has}}
  %0 = coremesh.reduce add %a dim 1 by star k 2 : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y]>
func.func @allreduce_c1(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{cannot reduce dimension 2}}
  %0 = coremesh.allreduce add %a dim 2 by ring : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y]>
func.func @allreduce_c2(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{must have a result of type 'tensor<6xf32, #coremesh.layout<grid(2, 3), [x]>>'}}
  %0 = coremesh.allreduce max %a dim 0 by ring : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y]>
func.func @allreduce_c3(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{has 3 levels: it needs 2 positive numbers of groups}}
  %0 = coremesh.allreduce add %a dim 1 by k_tree k 3 groups [2] : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}

// -----

#l = #coremesh.layout<grid(2, 3), [y, x]>
#m = #coremesh.layout<grid(2, 3), [y]>
func.func @allreduce_c3_none(%a: tensor<4x6xf32, #l>) {
  // expected-error@+1 {{has 0 levels: it needs 1 or more}}
  %0 = coremesh.allreduce add %a dim 1 by k_tree k 0 : tensor<4x6xf32, #l> to tensor<4xf32, #m>
  return
}
