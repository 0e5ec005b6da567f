// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-DAG: #[[$MESH:.*]] = #coremesh.layout<grid(3, 5), [y ring, x ring]>
// CHECK-DAG: #[[$SKEW:.*]] = #coremesh.layout<grid(3, 5), [y ring, x ring skew block 9]>
// CHECK-DAG: #[[$UP:.*]] = #coremesh.layout<grid(3, 5), [y ring rotate 2, x ring]>
// CHECK-DAG: #[[$CACHE:.*]] = #coremesh.layout<grid(3, 5), [y uneven [2, 2, 9], x]>
// CHECK-DAG: #[[$AT:.*]] = #coremesh.layout<grid(3, 5), [*], at y = 2, at x = 0>
// CHECK-DAG: #[[$PARTS:.*]] = #coremesh.layout<grid(3, 5), [x, *], at y = 1>
#mesh = #coremesh.layout<grid(3, 5), [y ring, x ring]>
#skew = #coremesh.layout<grid(3, 5), [y ring, x ring skew block 9]>
#up = #coremesh.layout<grid(3, 5), [y ring rotate 2, x ring]>
#cache = #coremesh.layout<grid(3, 5), [y uneven [2, 2, 9], x]>
#row = #coremesh.layout<grid(3, 5), [x]>
#at = #coremesh.layout<grid(3, 5), [*], at x = 0, at y = 2>
#parts = #coremesh.layout<grid(3, 5), [x, *], at y = 1>
#one = #coremesh.layout<grid(3, 5), [*], at y = 1, at x = 4>
#column = #coremesh.layout<grid(3, 5), [*], at x = 4>

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<7x43xbf16, #skew>, %b: tensor<43x11xbf16, #mesh>) -> tensor<7x11xf32, #mesh> {
  // CHECK: coremesh.gemm %{{.*}}, %{{.*}} by meshgemm :
  // CHECK-SAME: tensor<7x43xbf16, #[[$SKEW]]>, tensor<43x11xbf16, #[[$MESH]]> to tensor<7x11xf32, #[[$MESH]]>
  %0 = coremesh.gemm %a, %b by meshgemm
      : tensor<7x43xbf16, #skew>, tensor<43x11xbf16, #mesh> to tensor<7x11xf32, #mesh>
  return %0 : tensor<7x11xf32, #mesh>
}

// CHECK-LABEL: func.func @moves
func.func @moves(%a: tensor<7x11xi8, #mesh>, %p: tensor<5x4xi32, #parts>) -> tensor<4xi32, #column> {
  // CHECK: coremesh.shift %{{.*}} along y by -1 : tensor<7x11xi8, #[[$MESH]]> to tensor<7x11xi8, #[[$UP]]>
  %0 = coremesh.shift %a along y by -1 : tensor<7x11xi8, #mesh> to tensor<7x11xi8, #up>
  // CHECK: coremesh.reduce add %{{.*}} dim 0 by k_tree k 3 groups [3, 2] : tensor<5x4xi32, #[[$PARTS]]>
  %1 = coremesh.reduce add %p dim 0 by k_tree k 3 groups [3, 2] : tensor<5x4xi32, #parts> to tensor<4xi32, #one>
  // CHECK: coremesh.multicast %{{.*}} along y
  %2 = coremesh.multicast %1 along y : tensor<4xi32, #one> to tensor<4xi32, #column>
  return %2 : tensor<4xi32, #column>
}

// CHECK-LABEL: func.func @combined
func.func @combined(%p: tensor<5x4xi8, #parts>) -> tensor<4xi8, #one> {
  // CHECK: coremesh.reduce umax %{{.*}} dim 0 by chain
  %0 = coremesh.reduce umax %p dim 0 by chain : tensor<5x4xi8, #parts> to tensor<4xi8, #one>
  // CHECK: coremesh.reduce umin
  %1 = coremesh.reduce umin %p dim 0 by chain : tensor<5x4xi8, #parts> to tensor<4xi8, #one>
  // CHECK: coremesh.reduce min
  %2 = coremesh.reduce min %p dim 0 by chain : tensor<5x4xi8, #parts> to tensor<4xi8, #one>
  // CHECK: coremesh.reduce mul
  %3 = coremesh.reduce mul %p dim 0 by chain : tensor<5x4xi8, #parts> to tensor<4xi8, #one>
  return %0 : tensor<4xi8, #one>
}

// CHECK-LABEL: func.func @cache
func.func @cache(%c: tensor<13x10xf16, #cache>, %r: tensor<10xf16, #row>, %n: index) -> tensor<13x10xf16, #cache> {
  // CHECK: coremesh.kv_append %{{.*}} to %{{.*}}[%{{.*}}] by concat :
  // CHECK-SAME: tensor<10xf16, #{{.*}}>, tensor<13x10xf16, #[[$CACHE]]>
  %0 = coremesh.kv_append %r to %c[%n] by concat : tensor<10xf16, #row>, tensor<13x10xf16, #cache>
  // CHECK: coremesh.local (%{{.*}} = %{{.*}}) : (tensor<13x10xf16, #[[$CACHE]]>) -> tensor<13x10xf16, #[[$CACHE]]> {
  // CHECK-NEXT: tensor<9x2xf16>
  %1 = coremesh.local (%x = %0) : (tensor<13x10xf16, #cache>) -> tensor<13x10xf16, #cache> {
    %2 = math.exp %x : tensor<9x2xf16>
    coremesh.yield %2 : tensor<9x2xf16>
  }
  return %1 : tensor<13x10xf16, #cache>
}

// CHECK: func.func private @corner(tensor<4xf32, #[[$AT]]>)
func.func private @corner(tensor<4xf32, #at>)

#rows = #coremesh.layout<grid(4, 3), [*, y ring block 5]>
#bordered = #coremesh.layout<grid(4, 3), [*, y ring]>
// CHECK-LABEL: func.func @borders
func.func @borders(%a: tensor<7x11xf16, #rows>) -> tensor<7x28xf16, #bordered> {
  // CHECK: coremesh.halo %{{.*}} dim 1 from -2 step 3 of 7 fill 0xFC00 : f16
  %0 = coremesh.halo %a dim 1 from -2 step 3 of 7 fill 0xFC00 : f16
      : tensor<7x11xf16, #rows> to tensor<7x28xf16, #bordered>
  return %0 : tensor<7x28xf16, #bordered>
}

#tile = #coremesh.layout<grid(4, 4), [y ring, x ring]>
#aligned = #coremesh.layout<grid(4, 4), [y ring skew, x ring]>
#scales = #coremesh.layout<grid(4, 4), [x ring]>
// CHECK-LABEL: func.func @blocks
func.func @blocks(%a: tensor<13x24xf32, #tile>, %w: tensor<24x17xi8, #aligned>, %g: tensor<17xf32, #scales>)
    -> tensor<13x17xf32, #tile> {
  // CHECK: coremesh.block_gemm (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) sums %[[SUM:.*]] :
  // CHECK-SAME: (tensor<13x24xf32, #{{.*}}>, tensor<24x17xi8, #{{.*}}>, tensor<17xf32, #{{.*}}>) ->
  %0 = coremesh.block_gemm (%x = %a, %c = %w, %s = %g) sums %t
      : (tensor<13x24xf32, #tile>, tensor<24x17xi8, #aligned>, tensor<17xf32, #scales>) -> tensor<13x17xf32, #tile> {
    // CHECK-NEXT: coremesh.yield %[[SUM]] : tensor<4x5xf32>
    coremesh.yield %t : tensor<4x5xf32>
  }
  return %0 : tensor<13x17xf32, #tile>
}
