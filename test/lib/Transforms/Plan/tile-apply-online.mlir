// RUN: tile-opt %s --tile-apply-online | FileCheck %s
// RUN: tile-opt %s --tile-apply-online --tile-groups-to-kernels | FileCheck %s --check-prefix=KERNEL

// The maximum and the sum that is relative to it, in one pass over the row. A row in one block needs no loop after it.

// CHECK-LABEL: @log_of_sums
// CHECK: %[[M0:.*]] = tile.group "register" ()
// CHECK:   arith.constant -3.40282347E+38 : f32
// CHECK: %[[S0:.*]] = tile.group "register" ()
// CHECK:   arith.constant 0.000000e+00 : f32
// CHECK: %[[R:.*]]:2 = scf.for %[[J:.*]] = %c0 to %c4096 step %c512 iter_args(%[[M:.*]] = %[[M0]], %[[S:.*]] = %[[S0]])
// CHECK:   %[[X:.*]] = tensor.extract_slice %{{.*}}[0, %[[J]]] [16, 512] [1, 1]
// CHECK:   %[[N:.*]]:2 = tile.group "register" (%[[A:.*]] = %[[X]] : {{.*}}, %[[B:.*]] = %[[M]] : {{.*}})
// CHECK:     linalg.generic {{.*}} ins(%[[A]] : {{.*}}) outs(%[[B]] :
// CHECK:       arith.maximumf
// CHECK:     linalg.generic
// CHECK:       arith.subf
// CHECK:       math.exp
// CHECK:   %[[T:.*]] = tile.group "register" ({{.*}} = %[[N]]#1 :
// CHECK-SAME: = %[[S]] : {{.*}}, {{.*}} = %[[N]]#0 : {{.*}})
// CHECK:     arith.mulf
// CHECK:     math.exp
// CHECK:     arith.addf
// CHECK:   scf.yield %[[N]]#1, %[[T]]
// CHECK: tile.yield %[[R]]#1

// KERNEL: tile.kernel @group(%[[X:.*]]: memref<16x4096xf32>, %[[Y:.*]]: memref<16xf32>)
// KERNEL: scf.for
// KERNEL:   tile.load %[[X]]
// KERNEL:   arith.maximumf
// KERNEL:   math.exp
// KERNEL:   tile.load %[[X]]
// KERNEL:   math.exp
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @log_of_sums(%x: tensor<16x4096xf32>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x4096xf32>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 512>, tile.rtile = #tile.rtile<l2 = [1, 4096], register = [1, 64]>}
          ins(%x1 : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    %s = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>, %m1 = %m : tensor<16xf32>) -> (tensor<16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %h = tensor.empty() : tensor<16x4096xf32>
      %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"],
          tile.online = array<i64: 1, 512>}
          ins(%x1, %m1 : tensor<16x4096xf32>, tensor<16xf32>) outs(%h : tensor<16x4096xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %d = arith.subf %a, %b : f32
        %t = math.exp %d : f32
        linalg.yield %t : f32
      } -> tensor<16x4096xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 512>, tile.rtile = #tile.rtile<l2 = [1, 4096], register = [1, 32]>}
          ins(%p : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.addf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    tile.yield %s : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}

// What is left behind whole blocks has register tiles of the third number along the loop; blocks have those of the
// plan.

// CHECK-LABEL: @tail
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c512
// CHECK:   register = [1, 64]
// CHECK:   scf.yield
// CHECK: tensor.extract_slice %{{.*}}[0, 1024] [16, 16] [1, 1]
// CHECK: linalg.generic {{.*}}register = [1, 16]
func.func @tail(%x: tensor<16x1040xf32>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x1040xf32>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x1040xf32>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %h = tensor.empty() : tensor<16x1040xf32>
      %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
          tile.online = array<i64: 1, 512, 16>}
          ins(%x1 : tensor<16x1040xf32>) outs(%h : tensor<16x1040xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<16x1040xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 512, 16>, tile.rtile = #tile.rtile<l2 = [1, 1040], register = [1, 64]>}
          ins(%p : tensor<16x1040xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    tile.yield %m : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}

// A row whose length a run brings: whole blocks, of which all but the last one are, then what is left, a block at most.
// The body counts the loop, from where a block begins.

// CHECK-LABEL: @open
// CHECK: %[[N:.*]] = tensor.dim %[[X0:.*]], %{{.*}} : tensor<16x?xf32>
// CHECK: %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[LAST]], %{{.*}} : index
// CHECK: %[[COUNT:.*]] = arith.divui %[[LEAST]], %{{.*}} : index
// CHECK: %[[WHOLE:.*]] = arith.muli %[[COUNT]], %{{.*}} : index
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[WHOLE]] : index
// CHECK: %[[R:.*]] = scf.for %[[J:.*]] = %{{.*}} to %[[WHOLE]] step %{{.*}}
// CHECK:   tensor.extract_slice %[[X0]][0, %[[J]]] [16, 512] [1, 1]
// CHECK:   tile.group "register" ({{.*}}, %[[AT:[a-z0-9]+]] = %[[J]] : index)
// CHECK:     %[[I:.*]] = linalg.index 1
// CHECK:     arith.addi %[[I]], %[[AT]] : index
// CHECK: tensor.extract_slice %[[X0]][0, %[[WHOLE]]] [16, %[[LEFT]]] [1, 1] : tensor<16x?xf32> to tensor<16x?xf32>
// CHECK: linalg.generic {{.*}}tile.bounds = array<i64: -1, 512>

// KERNEL: tile.kernel @group_{{[0-9]+}}(%[[X:.*]]: memref<16x?xf32>, %{{.*}}: memref<16xf32>)
// KERNEL: memref.dim %[[X]]
// KERNEL: scf.for
// KERNEL:   tile.load %[[X]]
// KERNEL: tile.load %[[X]]{{.*}} valid
func.func @open(%x: tensor<16x?xf32>) -> tensor<16xf32> {
  %y = tile.group "shared" (%x0 = %x : tensor<16x?xf32>) -> (tensor<16xf32>) {
    %s = tile.group "register" (%x1 = %x0 : tensor<16x?xf32>) -> (tensor<16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"], tile.padded,
          tile.online = array<i64: 1, 512>, tile.rtile = #tile.rtile<shared = [1, ?], register = [1, 512]>}
          ins(%x1 : tensor<16x?xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %j = linalg.index 1 : index
        %i = arith.index_cast %j : index to i32
        %w = arith.sitofp %i : i32 to f32
        %p = arith.mulf %a, %w : f32
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %r : tensor<16xf32>
    }
    tile.yield %s : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}
