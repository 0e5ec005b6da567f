// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!list = !fractal.array<[?] of tensor<1x8xf32>>
!four = !fractal.array<[4] of tensor<1x8xf32>>

// CHECK-LABEL: func.func private @types
// CHECK-SAME: !fractal.array<[4, ?, ragged] of tensor<1x512xf32>>, !fractal.array<[0] of tensor<f16>>
// CHECK-SAME: !fractal.array<[?, ragged, ragged] of tensor<4x4xf32, "encoded">>
func.func private @types(!fractal.array<[4, ?, ragged] of tensor<1x512xf32>>, !fractal.array<[0] of tensor<f16>>,
                         !fractal.array<[?, ragged, ragged] of tensor<4x4xf32, "encoded">>)

// A recurrence in each list; the inner region reads a weight from above.
// CHECK-LABEL: func.func @closures
// CHECK: %[[R:.*]] = fractal.map (%[[X:.*]] = %{{.*}}) : (!fractal.array<[4, ragged] of tensor<1x8xf32>>)
// CHECK-SAME: -> !fractal.array<[4, ragged] of tensor<1x8xf32>> attributes {note = "outer"} {
// CHECK: %[[S:.*]] = fractal.scan left (%[[H:.*]] = %{{.*}}) over (%[[E:.*]] = %[[X]])
// CHECK-SAME: : (tensor<1x8xf32>, !fractal.array<[?] of tensor<1x8xf32>>) -> !fractal.array<[?] of tensor<1x8xf32>> {
// CHECK: arith.mulf %[[H]], %[[W:.*]] :
// CHECK: fractal.yield %{{.*}} : tensor<1x8xf32>
// CHECK: fractal.yield %[[S]] : !fractal.array<[?] of tensor<1x8xf32>>
func.func @closures(%xss: !fractal.array<[4, ragged] of tensor<1x8xf32>>, %w: !leaf, %h0: !leaf)
    -> !fractal.array<[4, ragged] of tensor<1x8xf32>> {
  %r = fractal.map (%xs = %xss) : (!fractal.array<[4, ragged] of tensor<1x8xf32>>)
      -> (!fractal.array<[4, ragged] of tensor<1x8xf32>>) attributes {note = "outer"} {
    %hs = fractal.scan left (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !list {
      %0 = arith.mulf %h, %w : !leaf
      %1 = arith.addf %0, %x : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !fractal.array<[4, ragged] of tensor<1x8xf32>>
}

// Several states, arrays and results; states that are lists.
// CHECK-LABEL: func.func @several
// CHECK: fractal.fold right (%s = %[[Z:[a-z0-9]+]], %s_{{[0-9]}} = %[[ZS:[a-z0-9]+]])
// CHECK-SAME: {{^}} over (%x = %[[XS:[a-z0-9]+]], %x_{{[0-9]}} = %[[YS:[a-z0-9]+]])
// CHECK-SAME: : (tensor<1x8xf32>, !fractal.array<[4] of tensor<1x8xf32>>, !fractal.array<[?] of tensor<1x8xf32>>,
// CHECK-SAME: !fractal.array<[?] of tensor<1x8xf32>>)
// CHECK-SAME: -> (tensor<1x8xf32>, !fractal.array<[4] of tensor<1x8xf32>>) {
// CHECK: fractal.reduce (%[[L0:[a-z]+]], %[[R0:[a-z]+]] = %[[XS]], %[[L1:[a-z_0-9]+]], %[[R1:[a-z_0-9]+]] = %[[YS]])
// CHECK-SAME: {{^}} init (%[[Z]], %[[Z]])
// CHECK-SAME: : (!fractal.array<[?] of tensor<1x8xf32>>, !fractal.array<[?] of tensor<1x8xf32>>, tensor<1x8xf32>,
// CHECK-SAME: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
// CHECK: arith.addf %[[L0]], %[[R0]]
// CHECK: arith.mulf %[[L1]], %[[R1]]
// CHECK: fractal.map (%x = %[[ZS]], %x_{{[0-9]}} = %[[XS]]) :
// CHECK-SAME: -> (!fractal.array<[4] of tensor<1x8xf32>>, !fractal.array<[4] of tensor<1x8xf32>>) {
// CHECK: fractal.map (%{{.*}} = %{{.*}}) : (!fractal.array<[4] of tensor<1x8xf32>>) -> () {
// CHECK-NEXT: fractal.yield{{$}}
// CHECK: fractal.map
// CHECK-NEXT: fractal.yield{{$}}
func.func @several(%xs: !list, %ys: !list, %zs: !four, %z: !leaf) {
  %a:2 = fractal.fold right (%s = %z, %t = %zs) over (%x = %xs, %y = %ys)
      : (!leaf, !four, !list, !list) -> (!leaf, !four) {
    fractal.yield %y, %t : !leaf, !four
  }
  %b:2 = fractal.reduce (%l, %r = %xs, %m, %s = %ys) init (%z, %z)
      : (!list, !list, !leaf, !leaf) -> (!leaf, !leaf) {
    %0 = arith.addf %l, %r : !leaf
    %1 = arith.mulf %m, %s : !leaf
    fractal.yield %0, %1 : !leaf, !leaf
  }
  %c:2 = fractal.map (%x = %zs, %y = %xs) : (!four, !list) -> (!four, !four) {
    fractal.yield %y, %x : !leaf, !leaf
  }
  fractal.map (%x = %zs) : (!four) -> () {
    fractal.yield
  }
  fractal.map (%x = %zs) : (!four) -> () {
  }
  return
}

// Names of block arguments that the source does not give.
// CHECK-LABEL: func.func @names
// CHECK: fractal.scan right (%s = %{{.*}}) over (%x = %{{.*}})
// CHECK: fractal.reduce (%a, %b = %{{.*}}) init
// CHECK: fractal.filter (%x = %{{.*}}) : (!fractal.array<[?] of tensor<i1>>) -> !fractal.array<[?] of tensor<i1>> {
func.func @names(%xs: !list, %z: !leaf, %fs: !fractal.array<[?] of tensor<i1>>) {
  %0 = fractal.scan right (%p = %z) over (%q = %xs) : (!leaf, !list) -> !list {
    fractal.yield %q : !leaf
  }
  %1 = fractal.reduce (%p, %q = %xs) init (%z) : (!list, !leaf) -> !leaf {
    fractal.yield %q : !leaf
  }
  %2 = fractal.filter (%p = %fs) : (!fractal.array<[?] of tensor<i1>>) -> !fractal.array<[?] of tensor<i1>> {
    fractal.yield %p : tensor<i1>
  }
  return
}

// CHECK-LABEL: func.func @access
// CHECK: fractal.at %{{.*}}[%{{.*}}] : !fractal.array<[4] of tensor<1x8xf32>> -> tensor<1x8xf32>
// CHECK: fractal.slice %{{.*}} [%{{.*}}] [%{{.*}}] [-2] : !fractal.array<[?]
// CHECK: fractal.slice %{{.*}} [3] [4] [-1] : !fractal.array<[4]
// CHECK: fractal.reverse %{{.*}} : !fractal.array<[4] of tensor<1x8xf32>> -> !fractal.array<[4] of tensor<1x8xf32>>
// CHECK: fractal.shift %{{.*}} by -1 fill %{{.*}} : !fractal.array<[?] of tensor<1x8xf32>>, tensor<1x8xf32> -> !fractal
// CHECK: fractal.shift %{{.*}} by 3 wrap : !fractal.array<[?] of tensor<1x8xf32>> -> !fractal
// CHECK: fractal.window %{{.*}} size 2 stride 2 dilation 1 padding [0, 0] : {{.*}} -> !fractal.array<[2, 2]
// CHECK: fractal.window %{{.*}} size 3 stride 1 dilation 2 padding [2, 2] wrap : {{.*}} -> !fractal.array<[4, 3]
// CHECK: fractal.window %{{.*}} padding [2, 0] fill %{{.*}} : {{.*}} -> !fractal.array<[?, 3]
// CHECK: fractal.window %{{.*}} size 9 stride 1 dilation 1 padding [0, 0] : {{.*}} -> !fractal.array<[0, 9]
// CHECK: fractal.repeat %{{.*}}, %{{.*}} : !fractal.array<[4] {{.*}} -> !fractal.array<[?, 4] of
// CHECK: fractal.repeat %{{.*}} times 0 : tensor<1x8xf32> -> !fractal.array<[0] of
func.func @access(%xs: !list, %zs: !four, %z: !leaf, %i: index) {
  %0 = fractal.at %zs[%i] : !four -> !leaf
  %1 = fractal.slice %xs [%i] [%i] [-2] : !list -> !list
  %2 = fractal.slice %zs [3] [4] [-1] : !four -> !four
  %3 = fractal.reverse %zs : !four -> !four
  %4 = fractal.shift %xs by -1 fill %z : !list, !leaf -> !list
  %5 = fractal.shift %xs by 3 wrap : !list -> !list
  %6 = fractal.window %zs size 2 stride 2 dilation 1 padding [0, 0]
      : !four -> !fractal.array<[2, 2] of tensor<1x8xf32>>
  %7 = fractal.window %zs size 3 stride 1 dilation 2 padding [2, 2] wrap
      : !four -> !fractal.array<[4, 3] of tensor<1x8xf32>>
  %8 = fractal.window %xs size 3 stride 1 dilation 1 padding [2, 0] fill %z
      : !list, !leaf -> !fractal.array<[?, 3] of tensor<1x8xf32>>
  %9 = fractal.window %zs size 9 stride 1 dilation 1 padding [0, 0]
      : !four -> !fractal.array<[0, 9] of tensor<1x8xf32>>
  %10 = fractal.repeat %zs, %i : !four -> !fractal.array<[?, 4] of tensor<1x8xf32>>
  %11 = fractal.repeat %z times 0 : !leaf -> !fractal.array<[0] of tensor<1x8xf32>>
  return
}

// CHECK-LABEL: func.func @regroup
// CHECK: fractal.interleave %{{.*}} by 3 : !fractal.array<[4] of tensor<1x8xf32>> -> !fractal.array<[3, ragged]
// CHECK: fractal.interleave %{{.*}} by 8 : !fractal.array<[4] of tensor<1x8xf32>> -> !fractal.array<[4, 1]
// CHECK: fractal.deinterleave %{{.*}} : !fractal.array<[3, ragged] of tensor<1x8xf32>> -> !fractal.array<[4] of
// CHECK: fractal.flatten %{{.*}} : !fractal.array<[4, 1] of tensor<1x8xf32>> -> !fractal.array<[4] of
// CHECK: fractal.split %{{.*}} into 2 : !fractal.array<[?] of tensor<1x8xf32>> -> !fractal.array<[2, ?] of
// CHECK: fractal.product %{{.*}}, %{{.*}} : !fractal.array<[4] {{.*}} -> !fractal.array<[4, ?] {{.*}}<[4, ?]
// CHECK: fractal.join %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> !fractal.array<[?] of
// CHECK: fractal.join %{{.*}}, %{{.*}} : {{.*}} -> !fractal.array<[7, ragged] of
// CHECK: fractal.gather %{{.*}}[%{{.*}}] : !fractal.array<[4] of tensor<1x8xf32>>, tensor<5xi64> -> !fractal.array<[5]
// CHECK: fractal.scatter %{{.*}} into %{{.*}}[%{{.*}}] : !fractal.array<[5] of {{.*}}>>, !fractal.array<[4] of
func.func @regroup(%xs: !list, %zs: !four, %i: tensor<5xi64>) {
  %0 = fractal.interleave %zs by 3 : !four -> !fractal.array<[3, ragged] of tensor<1x8xf32>>
  %1 = fractal.interleave %zs by 8 : !four -> !fractal.array<[4, 1] of tensor<1x8xf32>>
  %2 = fractal.deinterleave %0 : !fractal.array<[3, ragged] of tensor<1x8xf32>> -> !four
  %3 = fractal.flatten %1 : !fractal.array<[4, 1] of tensor<1x8xf32>> -> !four
  %4 = fractal.split %xs into 2 : !list -> !fractal.array<[2, ?] of tensor<1x8xf32>>
  %5:2 = fractal.product %zs, %xs
      : !four, !list -> !fractal.array<[4, ?] of tensor<1x8xf32>>, !fractal.array<[4, ?] of tensor<1x8xf32>>
  %6 = fractal.join %zs, %xs, %zs : !four, !list, !four -> !list
  %7 = fractal.join %0, %1 : !fractal.array<[3, ragged] of tensor<1x8xf32>>, !fractal.array<[4, 1] of tensor<1x8xf32>>
      -> !fractal.array<[7, ragged] of tensor<1x8xf32>>
  %8 = fractal.gather %zs[%i] : !four, tensor<5xi64> -> !fractal.array<[5] of tensor<1x8xf32>>
  %9 = fractal.scatter %8 into %zs[%i]
      : !fractal.array<[5] of tensor<1x8xf32>>, !four, tensor<5xi64> -> !fractal.array<[4] of tensor<1x8xf32>>
  return
}

// CHECK-LABEL: func.func @storage
// CHECK: fractal.from_tensor %{{.*}} : tensor<2x?x1x8xf32> -> !fractal.array<[2, 4] of tensor<1x8xf32>>
// CHECK: fractal.to_tensor %{{.*}} : !fractal.array<[2, 4] of tensor<1x8xf32>> -> tensor<?x4x1x8xf32>
// CHECK: fractal.from_ragged %{{.*}}, %{{.*}} : !fractal.array<[4] {{.*}}, tensor<3xi64> -> !fractal.array<[2, ragged]
// CHECK: %{{.*}}, %{{.*}}:2 = fractal.to_ragged %{{.*}} : !fractal.array<[?, 2, ragged] of tensor<1x8xf32>>
// CHECK-SAME: -> !fractal.array<[?] of tensor<1x8xf32>>, tensor<?xi64>, tensor<?xi64>
// CHECK: fractal.length %{{.*}} : !fractal.array<[4] of tensor<1x8xf32>>
// CHECK: fractal.cast %{{.*}} : !fractal.array<[4] of tensor<1x8xf32>> -> !fractal.array<[?] of tensor<1x8xf32>>
func.func @storage(%t: tensor<2x?x1x8xf32>, %zs: !four, %o: tensor<3xi64>,
                   %r: !fractal.array<[?, 2, ragged] of tensor<1x8xf32>>) {
  %0 = fractal.from_tensor %t : tensor<2x?x1x8xf32> -> !fractal.array<[2, 4] of tensor<1x8xf32>>
  %1 = fractal.to_tensor %0 : !fractal.array<[2, 4] of tensor<1x8xf32>> -> tensor<?x4x1x8xf32>
  %2 = fractal.from_ragged %zs, %o : !four, tensor<3xi64> -> !fractal.array<[2, ragged] of tensor<1x8xf32>>
  %3:3 = fractal.to_ragged %r
      : !fractal.array<[?, 2, ragged] of tensor<1x8xf32>> -> !list, tensor<?xi64>, tensor<?xi64>
  %4 = fractal.length %zs : !four
  %5 = fractal.cast %zs : !four -> !list
  return
}
