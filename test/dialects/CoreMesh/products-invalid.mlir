// RUN: tile-opt %s -split-input-file -verify-diagnostics

#t = #coremesh.layout<grid(3, 3), [y, x]>
func.func @gemm_c1(%a: tensor<4x6xf32, #t>, %b: tensor<5x7xf32, #t>) {
  // expected-error@+1 {{cannot make 'tensor<4x7xf32>' of 'tensor<4x6xf32>' and 'tensor<5x7xf32>'}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #t>, tensor<5x7xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
func.func @gemm_c1_types(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{multiplies 'f32' by 'f32' to 'f16': operands have one type, and the result}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #t>, tensor<6x7xf32, #t> to tensor<4x7xf16, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#v = #coremesh.layout<grid(3, 3), [y]>
func.func @gemm_c1_rank(%a: tensor<4xf32, #v>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{multiplies matrices, not 'tensor<4xf32}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4xf32, #v>, tensor<6x7xf32, #t> to tensor<4x7xf16, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#u = #coremesh.layout<grid(3, 4), [y, x]>
func.func @gemm_c2(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #u>) {
  // expected-error@+1 {{has its right operand on 3 x 4 cores, another operand on 3 x 3}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #t>, tensor<6x7xf32, #u> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#u = #coremesh.layout<grid(3, 3), [x, y]>
func.func @gemm_c2_axes(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #u>) {
  // expected-error@+1 {{needs its right operand as [y, x], in equal blocks in their places}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #t>, tensor<6x7xf32, #u> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#u = #coremesh.layout<grid(3, 3), [y rotate 1, x]>
func.func @gemm_c2_moved(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{needs its result as [y, x], in equal blocks in their places}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #t>, tensor<6x7xf32, #t> to tensor<4x7xf32, #u>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
func.func @gemm_c3(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{counts cores along the ring by meshgemm}}
  %0 = coremesh.gemm %a, %b by meshgemm : tensor<4x6xf32, #t>, tensor<6x7xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y ring, x ring]>
func.func @gemm_c3_linear(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{counts cores as they stand by cannon}}
  %0 = coremesh.gemm %a, %b by cannon : tensor<4x6xf32, #t>, tensor<6x7xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#s = #coremesh.layout<grid(3, 3), [y, x skew]>
func.func @gemm_c4(%a: tensor<4x6xf32, #s>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{can have no skew by summa}}
  %0 = coremesh.gemm %a, %b by summa : tensor<4x6xf32, #s>, tensor<6x7xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y, x]>
#s = #coremesh.layout<grid(3, 3), [y, x skew]>
func.func @gemm_c4_kept(%a: tensor<4x6xf32, #s>, %b: tensor<6x7xf32, #s>) {
  // expected-error@+1 {{can have only its summed dimension skewed by cannon}}
  %0 = coremesh.gemm %a, %b by cannon : tensor<4x6xf32, #s>, tensor<6x7xf32, #s> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y ring, x ring]>
func.func @gemm_t_c1(%a: tensor<4x6xf32, #t>, %b: tensor<6x7xf32, #t>) {
  // expected-error@+1 {{cannot make 'tensor<4x7xf32>' of 'tensor<4x6xf32>' and 'tensor<6x7xf32>'}}
  %0 = coremesh.gemm_t %a, %b : tensor<4x6xf32, #t>, tensor<6x7xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#t = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#s = #coremesh.layout<grid(3, 3), [y ring, x ring skew]>
func.func @gemm_t_c2(%a: tensor<4x6xf32, #s>, %b: tensor<7x6xf32, #t>) {
  // expected-error@+1 {{counts cores along the ring, without skew}}
  %0 = coremesh.gemm_t %a, %b : tensor<4x6xf32, #s>, tensor<7x6xf32, #t> to tensor<4x7xf32, #t>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
#x = #coremesh.layout<grid(3, 3), [y]>
#y = #coremesh.layout<grid(3, 3), [x]>
func.func @gemv_c1(%v: tensor<5xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{cannot make 'tensor<7xf32>' of 'tensor<5xf32>' and 'tensor<6x7xf32>'}}
  %0 = coremesh.gemv %v, %a by chain : tensor<5xf32, #x>, tensor<6x7xf32, #a> to tensor<7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
#x = #coremesh.layout<grid(3, 3), [*, *, y]>
#y = #coremesh.layout<grid(3, 3), [*, *, x]>
func.func @gemv_c1_rank(%v: tensor<2x5x6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{multiplies a vector, or several as rows, not 'tensor<2x5x6xf32, }}
  %0 = coremesh.gemv %v, %a by chain : tensor<2x5x6xf32, #x>, tensor<6x7xf32, #a> to tensor<2x5x7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
#x = #coremesh.layout<grid(3, 3), [x, y]>
#y = #coremesh.layout<grid(3, 3), [*, x]>
func.func @gemv_c2_rows(%v: tensor<5x6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{needs its vector as [*, y], in equal blocks in their places}}
  %0 = coremesh.gemv %v, %a by chain : tensor<5x6xf32, #x>, tensor<6x7xf32, #a> to tensor<5x7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [x, y]>
#x = #coremesh.layout<grid(3, 3), [y]>
#y = #coremesh.layout<grid(3, 3), [x]>
func.func @gemv_c2(%v: tensor<6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{needs its vector as [x], in equal blocks in their places}}
  %0 = coremesh.gemv %v, %a by chain : tensor<6xf32, #x>, tensor<6x7xf32, #a> to tensor<7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#x = #coremesh.layout<grid(3, 3), [y ring]>
#y = #coremesh.layout<grid(3, 3), [x]>
func.func @gemv_c2_order(%v: tensor<6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{in another order than those of its vector or result}}
  %0 = coremesh.gemv %v, %a by chain : tensor<6xf32, #x>, tensor<6x7xf32, #a> to tensor<7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [x, *]>
#x = #coremesh.layout<grid(3, 3), [y]>
#y = #coremesh.layout<grid(3, 3), [x]>
func.func @gemv_c2_whole(%v: tensor<6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{needs a matrix that both axes split}}
  %0 = coremesh.gemv %v, %a by chain : tensor<6xf32, #x>, tensor<6x7xf32, #a> to tensor<7xf32, #y>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
#x = #coremesh.layout<grid(3, 3), [y]>
#y = #coremesh.layout<grid(3, 3), [x]>
func.func @gemv_c3(%v: tensor<6xf32, #x>, %a: tensor<6x7xf32, #a>) {
  // expected-error@+1 {{has levels, but ring has none: only k_tree has}}
  %0 = coremesh.gemv %v, %a by ring k 2 : tensor<6xf32, #x>, tensor<6x7xf32, #a> to tensor<7xf32, #y>
  return
}

// -----

#c = #coremesh.layout<grid(3, 3), [y, x]>
#r = #coremesh.layout<grid(3, 3), [x]>
func.func @kv_append_c1(%c: tensor<12x6xf32, #c>, %r: tensor<5xf32, #r>, %n: index) {
  // expected-error@+1 {{cannot append 'tensor<5xf32>' to 'tensor<12x6xf32>'}}
  %0 = coremesh.kv_append %r to %c[%n] by concat : tensor<5xf32, #r>, tensor<12x6xf32, #c>
  return
}

// -----

#c = #coremesh.layout<grid(3, 3), [y, x]>
#r = #coremesh.layout<grid(3, 3), [x]>
func.func @kv_append_c2(%c: tensor<12x6xf32, #c>, %r: tensor<6xf32, #r>, %n: index) {
  // expected-error@+1 {{by round_robin needs tokens split along y (cyclic), not}}
  %0 = coremesh.kv_append %r to %c[%n] by round_robin : tensor<6xf32, #r>, tensor<12x6xf32, #c>
  return
}

// -----

#c = #coremesh.layout<grid(3, 3), [y balanced, x]>
#r = #coremesh.layout<grid(3, 3), [*]>
func.func @kv_append_c3(%c: tensor<12x6xf32, #c>, %r: tensor<6xf32, #r>, %n: index) {
  // expected-error@+1 {{needs a row that lies as the cache's dimensions behind the first}}
  %0 = coremesh.kv_append %r to %c[%n] by shift : tensor<6xf32, #r>, tensor<12x6xf32, #c>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
#b = #coremesh.layout<grid(3, 4), [y, x]>
func.func @local_c1(%a: tensor<6x9xf32, #a>) {
  // expected-error@+1 {{has operands and results on several grids}}
  %0 = coremesh.local (%x = %a) : (tensor<6x9xf32, #a>) -> tensor<6x9xf32, #b> {
    coremesh.yield %x : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
func.func @local_c2(%a: tensor<6x9xf32, #a>) {
  // expected-error@+1 {{yields ('tensor<2x3xf32>'), needs the blocks of its results ('tensor<2x4xf32>')}}
  %0 = coremesh.local (%x = %a) : (tensor<6x9xf32, #a>) -> tensor<6x10xf32, #a> {
    coremesh.yield %x : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y, x]>
func.func @local_c2_arguments(%a: tensor<6x9xf32, #a>) {
  // expected-error@+1 {{has block arguments ('tensor<3x3xf32>'), needs the blocks of its operands ('tensor<2x3xf32>')}}
  %0 = "coremesh.local"(%a) ({
  ^bb0(%x: tensor<3x3xf32>):
    coremesh.yield %x : tensor<3x3xf32>
  }) : (tensor<6x9xf32, #a>) -> tensor<6x9xf32, #a>
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y balanced, x]>
func.func @local_c3(%a: tensor<6x9xf32, #a>) {
  // expected-error@+1 {{cannot take a balanced tensor: which part a core has depends on the run}}
  %0 = coremesh.local (%x = %a) : (tensor<6x9xf32, #a>) -> tensor<6x9xf32, #a> {
    coremesh.yield %x : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
func.func @block_gemm_c1(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #a>) {
  // expected-error@+1 {{cannot make 'tensor<7x9xf32>' of the rows of 'tensor<6x9xf32>'}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #a>) -> tensor<7x9xf32, #a> {
    coremesh.yield %s : tensor<3x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#t = #coremesh.layout<grid(3, 3), [x ring, y ring]>
func.func @block_gemm_c1_axes(%a: tensor<6x9xf32, #t>, %w: tensor<9x9xi8, #a>) {
  // expected-error@+1 {{needs its left operand and its result as [y, x]}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #t>, tensor<9x9xi8, #a>) -> tensor<6x9xf32, #a> {
    coremesh.yield %s : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 4), [y ring, x ring]>
func.func @block_gemm_c2(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #a>) {
  // expected-error@+1 {{needs all tensors on one square grid, not on 3 x 4 and 3 x 4 cores}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #a>) -> tensor<6x9xf32, #a> {
    coremesh.yield %s : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#t = #coremesh.layout<grid(3, 3), [y, x]>
func.func @block_gemm_c2_rings(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #t>) {
  // expected-error@+1 {{needs equal blocks in their places, along rings}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #t>) -> tensor<6x9xf32, #a> {
    coremesh.yield %s : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#t = #coremesh.layout<grid(3, 3), [*, x ring]>
func.func @block_gemm_c3(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #t>) {
  // expected-error@+1 {{needs an operand behind the first that y splits}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #t>) -> tensor<6x9xf32, #a> {
    coremesh.yield %s : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#t = #coremesh.layout<grid(3, 3), [y ring, x ring skew]>
func.func @block_gemm_c4(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #t>) {
  // expected-error@+1 {{can have only its summed dimension skewed}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #t>) -> tensor<6x9xf32, #a> {
    coremesh.yield %s : tensor<2x3xf32>
  }
  return
}

// -----

#a = #coremesh.layout<grid(3, 3), [y ring, x ring]>
func.func @block_gemm_c5(%a: tensor<6x9xf32, #a>, %w: tensor<9x9xi8, #a>) {
  // expected-error@+1 {{yields ('tensor<3x3xi8>'), needs the blocks of its results ('tensor<2x3xf32>')}}
  %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
      : (tensor<6x9xf32, #a>, tensor<9x9xi8, #a>) -> tensor<6x9xf32, #a> {
    coremesh.yield %c : tensor<3x3xi8>
  }
  return
}
