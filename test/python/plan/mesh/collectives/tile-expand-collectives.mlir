// RUN: tile-opt %s --split-input-file --tile-expand-collectives | FileCheck-22 %s
// RUN: tile-opt %s --split-input-file --tile-expand-collectives | tile-opt --split-input-file | FileCheck-22 %s

#tile = #coremesh.layout<grid(4, 4), [y ring, x ring]>
#weight = #coremesh.layout<grid(4, 4), [y ring skew, x ring]>

// The weight is aligned by the host, the other operand in two rounds; then come three rounds of both and a product.
// CHECK-LABEL: func.func @meshgemm
// CHECK-NOT: coremesh.gemm
// CHECK: %[[R:.*]] = coremesh.program "meshgemm" grid(4, 4) (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) :
// CHECK-SAME: -> tensor<13x17xf32, #[[TILE:.*]]>
// CHECK: coremesh.buffer @A : tensor<4x6xf16> slots 2
// CHECK: coremesh.buffer @B : tensor<6x5xf16> slots 2
// CHECK: coremesh.buffer @C : tensor<4x5xf32>
// CHECK: coremesh.route @x_backward along x ring from (p + 1) mod 4
// CHECK: coremesh.route @x_forward along x ring from (p - 1) mod 4
// CHECK: coremesh.place %[[A]] in @A block(y, x) ring
// CHECK: coremesh.place %[[B]] in @B block((y + x) mod 4, x) ring
// CHECK: coremesh.loop 2 {
// CHECK: coremesh.send @A[i mod 2] on @x_backward where ring (
// CHECK: coremesh.wait round
// CHECK: coremesh.loop 3 {
// CHECK-COUNT-2: coremesh.send
// CHECK: coremesh.compute "matmul"
// CHECK: linalg.generic
// CHECK: coremesh.wait round
// CHECK: coremesh.compute "matmul"
// CHECK: %[[C:.*]] = coremesh.collect @C block(y, x) ring : tensor<13x17xf32, #[[TILE]]>
// CHECK: return %[[R]] : tensor<13x17xf32, #[[TILE]]>
func.func @meshgemm(%x: tensor<13x24xf16, #tile>, %w: tensor<24x17xf16, #weight>) -> tensor<13x17xf32, #tile> {
  %0 = coremesh.gemm %x, %w by meshgemm
      : tensor<13x24xf16, #tile>, tensor<24x17xf16, #weight> to tensor<13x17xf32, #tile>
  return %0 : tensor<13x17xf32, #tile>
}

// -----

#tile = #coremesh.layout<grid(3, 5), [y, x]>

// The algorithm is a decision that can be edited: with `summa`, roots multicast.
// CHECK-LABEL: func.func @summa
// CHECK: coremesh.program "summa"
// CHECK: coremesh.route @x_root2 along x from (i + 1) floordiv 3
// CHECK: coremesh.loop 14
func.func @summa(%x: tensor<6x15xi32, #tile>, %w: tensor<15x10xi32, #tile>) -> tensor<6x10xi32, #tile> {
  %0 = coremesh.gemm %x, %w by summa
      : tensor<6x15xi32, #tile>, tensor<15x10xi32, #tile> to tensor<6x10xi32, #tile>
  return %0 : tensor<6x10xi32, #tile>
}

// -----

#tile = #coremesh.layout<grid(3, 3), [y ring, x ring]>

// CHECK-LABEL: func.func @transposed
// CHECK: coremesh.program "gemm_t"
// CHECK: coremesh.relay @partial[i mod 2] from @x_right to @x_right combine add where ring (
func.func @transposed(%q: tensor<12x20xf16, #tile>, %k: tensor<9x20xf16, #tile>) -> tensor<12x9xf32, #tile> {
  %0 = coremesh.gemm_t %q, %k : tensor<12x20xf16, #tile>, tensor<9x20xf16, #tile> to tensor<12x9xf32, #tile>
  return %0 : tensor<12x9xf32, #tile>
}

// -----

#x = #coremesh.layout<grid(4, 6), [y]>
#a = #coremesh.layout<grid(4, 6), [y, x]>
#y = #coremesh.layout<grid(4, 6), [x]>

// CHECK-LABEL: func.func @gemv
// CHECK: coremesh.program "meshgemv"
// CHECK: coremesh.compute "vecmat"
// CHECK: coremesh.send @sum1 on @y_broadcast
// CHECK: coremesh.wait collective
func.func @gemv(%v: tensor<16xf16, #x>, %w: tensor<16x18xf16, #a>) -> tensor<18xf32, #y> {
  %0 = coremesh.gemv %v, %w by k_tree k 2 groups [2]
      : tensor<16xf16, #x>, tensor<16x18xf16, #a> to tensor<18xf32, #y>
  return %0 : tensor<18xf32, #y>
}

// -----

#x = #coremesh.layout<grid(4, 6), [*, y]>
#a = #coremesh.layout<grid(4, 6), [y, x]>
#y = #coremesh.layout<grid(4, 6), [*, x]>

// Several vectors are one program: a core multiplies its part of all, and one reduction adds up.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-1: coremesh.program "meshgemv"
// CHECK: coremesh.buffer @sum1 : tensor<5x3xf32>
// CHECK: coremesh.compute "vecmat" (%{{.*}} = @x : tensor<5x4xf16>
// CHECK-COUNT-1: coremesh.wait collective
func.func @rows(%v: tensor<5x16xf16, #x>, %w: tensor<16x18xf16, #a>) -> tensor<5x18xf32, #y> {
  %0 = coremesh.gemv %v, %w by chain : tensor<5x16xf16, #x>, tensor<16x18xf16, #a> to tensor<5x18xf32, #y>
  return %0 : tensor<5x18xf32, #y>
}

// -----

#parts = #coremesh.layout<grid(4, 6), [y, x]>
#root = #coremesh.layout<grid(4, 6), [y], at x = 5>
#all = #coremesh.layout<grid(4, 6), [y]>

// Each core combines its own numbers first; a chain ends in the first core, which hands the result to the sixth.
// CHECK-LABEL: func.func @sums
// CHECK: coremesh.program "reduce"
// CHECK: coremesh.compute "combine"
// CHECK: coremesh.relay @y from @x_left to @x_left
// CHECK: coremesh.send @y on @x_to_root where (x == 0)
// CHECK: coremesh.recv @y from @x_to_root where (x == 5)
// CHECK: coremesh.program "multicast"
// CHECK: coremesh.send @x on @x_broadcast where (x == 5)
func.func @sums(%p: tensor<8x6xf32, #parts>) -> tensor<8xf32, #all> {
  %0 = coremesh.reduce add %p dim 1 by chain : tensor<8x6xf32, #parts> to tensor<8xf32, #root>
  %1 = coremesh.multicast %0 along x : tensor<8xf32, #root> to tensor<8xf32, #all>
  return %1 : tensor<8xf32, #all>
}

// -----

#here = #coremesh.layout<grid(4, 4), [y ring, x ring]>
#next = #coremesh.layout<grid(4, 4), [y ring, x ring rotate 1]>

// CHECK-LABEL: func.func @shift
// CHECK: coremesh.route @x_shift along x ring from (p + 1) mod 4
// CHECK: coremesh.collect @y block(y, (x + 1) mod 4) ring
func.func @shift(%a: tensor<8x12xf32, #here>) -> tensor<8x12xf32, #next> {
  %0 = coremesh.shift %a along x by 1 : tensor<8x12xf32, #here> to tensor<8x12xf32, #next>
  return %0 : tensor<8x12xf32, #next>
}

// -----

#large = #coremesh.layout<grid(6, 6), [y, x]>
#small = #coremesh.layout<grid(4, 4), [y, x]>

// CHECK-LABEL: func.func @smaller_grid
// CHECK: coremesh.program "reshape_grid" grid(6, 6)
func.func @smaller_grid(%a: tensor<12x24xf16, #large>) -> tensor<12x24xf16, #small> {
  %0 = coremesh.reshape_grid %a : tensor<12x24xf16, #large> to tensor<12x24xf16, #small>
  return %0 : tensor<12x24xf16, #small>
}

// -----

#plain = #coremesh.layout<grid(3, 3), [y, x]>
#turned = #coremesh.layout<grid(3, 3), [x, y]>

// Axes are exchanged in three steps, each along one axis, hop by hop both ways: no panel is ever in one core.
// CHECK-LABEL: func.func @exchanged
// CHECK: coremesh.program "relayout"
// CHECK: coremesh.buffer @x : tensor<2x3xf32>
// CHECK: coremesh.route @x_up along x from p - 1
// CHECK: coremesh.route @x_down along x from p + 1
// CHECK: coremesh.place %{{.*}} in @x block(y, x)
// CHECK-COUNT-3: coremesh.loop 2 {
// CHECK: coremesh.collect @y3 block(x, y)
func.func @exchanged(%a: tensor<6x9xf32, #plain>) -> tensor<6x9xf32, #turned> {
  %0 = coremesh.relayout %a : tensor<6x9xf32, #plain> to tensor<6x9xf32, #turned>
  return %0 : tensor<6x9xf32, #turned>
}

// -----

#cache = #coremesh.layout<grid(4, 3), [y balanced, x]>
#row = #coremesh.layout<grid(4, 3), [x]>

// Ten tokens: rows have 3, 3, 2, 2; the third takes one from the last, which takes the new one.
// CHECK-LABEL: func.func @append
// CHECK: coremesh.program "kv_shift"
// CHECK: coremesh.send @cache[(y * 2 + 2) mod 4] on @y_up where (y >= 3)
// CHECK: coremesh.recv @cache[(y * 2) mod 4] from @y_up where (y >= 2, y <= 2)
// CHECK: coremesh.compute "as_row" (%{{.*}} = @row : tensor<4xf16>) to (@cache[2]) where (y == 3)
func.func @append(%c: tensor<16x12xf16, #cache>, %r: tensor<12xf16, #row>) -> tensor<16x12xf16, #cache> {
  %n = arith.constant 10 : index
  %0 = coremesh.kv_append %r to %c[%n] by shift : tensor<12xf16, #row>, tensor<16x12xf16, #cache>
  return %0 : tensor<16x12xf16, #cache>
}
