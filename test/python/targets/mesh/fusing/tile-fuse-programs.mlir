// RUN: tile-opt %s --tile-fuse-programs --split-input-file | FileCheck-22 %s

// CHECK-LABEL: func.func @f
// CHECK: %[[R:.*]] = coremesh.program "local" grid(3, 2)
// CHECK: coremesh.compute "double" (%{{.*}} = @in0 : tensor<3x4xf32>) to (@out0)
// CHECK: coremesh.compute "local" (%{{.*}} = @out0 : tensor<3x4xf32>) to (@out1)
// CHECK: coremesh.collect @out1 block(y, x)
// CHECK-NOT: coremesh.program
// CHECK: return %[[R]]
#tile = #coremesh.layout<grid(3, 2), [y, x]>
#map = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
  %0 = coremesh.program "local" grid(3, 2) (%in = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "double" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %1 = arith.addf %x, %x : tensor<3x4xf32>
      coremesh.yield %1 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  %2 = coremesh.program "local" grid(3, 2) (%in = %0) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %e = tensor.empty() : tensor<3x4xf32>
      %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
      ^bb0(%u: f32, %v: f32):
        %4 = arith.negf %u : f32
        linalg.yield %4 : f32
      } -> tensor<3x4xf32>
      coremesh.yield %3 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  return %2 : tensor<7x8xf32, #tile>
}

// -----

// What another op reads, too, is made for all of them.
// CHECK-LABEL: func.func @read_twice
// CHECK-COUNT-2: coremesh.program
#tile = #coremesh.layout<grid(3, 2), [y, x]>
#map = affine_map<(i, j) -> (i, j)>
func.func @read_twice(%a: tensor<7x8xf32, #tile>) -> (tensor<7x8xf32, #tile>, tensor<7x8xf32, #tile>) {
  %0 = coremesh.program "local" grid(3, 2) (%in = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "double" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %1 = arith.addf %x, %x : tensor<3x4xf32>
      coremesh.yield %1 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  %2 = coremesh.program "local" grid(3, 2) (%in = %0) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %e = tensor.empty() : tensor<3x4xf32>
      %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
      ^bb0(%u: f32, %v: f32):
        %4 = arith.negf %u : f32
        linalg.yield %4 : f32
      } -> tensor<3x4xf32>
      coremesh.yield %3 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  return %2, %0 : tensor<7x8xf32, #tile>, tensor<7x8xf32, #tile>
}

// -----

// Elements that go elsewhere in a block could be those that pad it.
// CHECK-LABEL: func.func @reversed
// CHECK-COUNT-2: coremesh.program
#tile = #coremesh.layout<grid(3, 2), [y, x]>
#map = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (0, j)>
func.func @reversed(%a: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
  %0 = coremesh.program "local" grid(3, 2) (%in = %a) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "double" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %1 = arith.addf %x, %x : tensor<3x4xf32>
      coremesh.yield %1 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  %2 = coremesh.program "local" grid(3, 2) (%in = %0) : (tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
    coremesh.buffer @in0 : tensor<3x4xf32>
    coremesh.buffer @out0 : tensor<3x4xf32>
    coremesh.place %in in @in0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.compute "local" (%x = @in0 : tensor<3x4xf32>) to (@out0) {
      %e = tensor.empty() : tensor<3x4xf32>
      %3 = linalg.generic {indexing_maps = [#first, #map], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
      ^bb0(%u: f32, %v: f32):
        %4 = arith.negf %u : f32
        linalg.yield %4 : f32
      } -> tensor<3x4xf32>
      coremesh.yield %3 : tensor<3x4xf32>
    }
    %out = coremesh.collect @out0 block(y, x) : tensor<7x8xf32, #tile>
    coremesh.yield %out : tensor<7x8xf32, #tile>
  }
  return %2 : tensor<7x8xf32, #tile>
}
