// RUN: tile-opt %s --tile-apply-online | FileCheck %s
// RUN: tile-opt %s --tile-apply-online --tile-groups-to-kernels | FileCheck %s --check-prefix=KERNEL

// A block of an operand that has an element for 64 steps is as many elements; only the branch of the kernel reads them,
// one row of bytes after another.

// CHECK-LABEL: @skipped
// CHECK: scf.for %[[J:.*]] = %c0 to %c512 step %c128
// CHECK: %[[UNIT:.*]] = affine.apply #{{.*}}()[%[[J]]]
// CHECK: tensor.extract_slice %{{.*}}[0, %[[UNIT]]] [16, 2] [1, 1] : tensor<16x8xi8> to tensor<16x2xi8>
// KERNEL-LABEL: tile.kernel @group
// KERNEL-SAME: %[[FLAGS:[a-z0-9]+]]: memref<16x8xi8>
// KERNEL: scf.for %[[J:.*]] = %c0{{.*}} to %c512{{.*}} step %c128
// KERNEL: %[[AT:.*]] = affine.apply #{{.*}}()[%[[J]]]
// KERNEL: %[[ALL:.*]] = scf.for %{{.*}} iter_args(%[[SEEN:.*]] = %{{.*}}) -> (!tile.tile<2xi8>)
// KERNEL: tile.load %[[FLAGS]][%{{.*}}, %[[AT]]] dims [1] : memref<16x8xi8>, !tile.tile<2xi8>
// KERNEL: arith.ori %[[SEEN]]
// KERNEL: tile.reduce or %[[ALL]]
// KERNEL: %[[LIVE:.*]] = arith.cmpi ne
// KERNEL: scf.if %[[LIVE]]
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#u = affine_map<(i, j) -> (i, j floordiv 64)>
func.func @skipped(%x: tensor<16x512xf32>, %flags: tensor<16x8xi8>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<16x512xf32>, %g0 = %flags : tensor<16x8xi8>) -> (tensor<16xf32>) {
    %m = tile.group "register" (%x1 = %x0 : tensor<16x512xf32>, %g1 = %g0 : tensor<16x8xi8>) -> (tensor<16xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %h = tensor.empty() : tensor<16x512xf32>
      %n = linalg.generic {indexing_maps = [#ij, #u, #ij], iterator_types = ["parallel", "parallel"],
          tile.online = array<i64: 1, 128>, tile.skip = 1 : i64}
          ins(%x1, %g1 : tensor<16x512xf32>, tensor<16x8xi8>) outs(%h : tensor<16x512xf32>) {
      ^bb0(%a: f32, %b: i8, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<16x512xf32>
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.online = array<i64: 1, 128>, tile.rtile = #tile.rtile<l2 = [16, 512], register = [1, 64]>}
          ins(%n : tensor<16x512xf32>) outs(%f : tensor<16xf32>) {
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
