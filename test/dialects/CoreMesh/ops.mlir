// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -canonicalize -cse | FileCheck-22 %s --check-prefix=SAFE

// CHECK-LABEL: func.func @everything
// CHECK: %[[R:.*]]:2 = coremesh.program "everything" grid(2, 5) (%[[IN:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) :
// CHECK-SAME: (tensor<6x11xf16>, tensor<4xf32>) -> (tensor<6x11xf16>, tensor<4xf32>) attributes {origin = "test"} {
func.func @everything(%a: tensor<6x11xf16>, %b: tensor<4xf32>) -> (tensor<6x11xf16>, tensor<4xf32>) {
  %r:2 = coremesh.program "everything" grid(2, 5) (%in = %a, %v = %b)
      : (tensor<6x11xf16>, tensor<4xf32>) -> (tensor<6x11xf16>, tensor<4xf32>) attributes {origin = "test"} {
    // CHECK: coremesh.buffer @A : tensor<3x3xf16> slots 2 address 64
    coremesh.buffer @A : tensor<3x3xf16> slots 2 address 64
    // CHECK: coremesh.buffer @V : tensor<2xf32>{{$}}
    coremesh.buffer @V : tensor<2xf32> slots 1
    // CHECK: coremesh.route @ring along x ring from (p + 1) mod 5 colors [9, 10, 11] by p mod 3
    coremesh.route @ring along x ring from (p + 1) mod 5 colors [9, 10, 11] by p mod 3
    // CHECK: coremesh.route @down along y from p - 1{{$}}
    coremesh.route @down along y from p - 1
    // CHECK: coremesh.route @root along x from (q + i) mod 5{{$}}
    coremesh.route @root along x linear from (i + q) mod 5
    // CHECK: coremesh.place %[[IN]] in @A[x mod 2] block(y, x) ring : tensor<6x11xf16>
    coremesh.place %in in @A[x mod 2] block(y, x) ring : tensor<6x11xf16>
    // CHECK: coremesh.place %{{.*}} in @V block(y floordiv 2 + 1) : tensor<4xf32>
    coremesh.place %v in @V[0] block(y floordiv 2 + 1) : tensor<4xf32>
    // CHECK: coremesh.loop 5 {
    coremesh.loop 5 {
      // CHECK: %[[S:.*]] = coremesh.send @A[i mod 2] on @ring where ring (x >= 1, y == 0)
      %s = coremesh.send @A[i mod 2] on @ring where ring (x - 1 >= 0, y == 0)
      // CHECK: %[[T:.*]] = coremesh.recv @A[(i + 1) mod 2] from @ring where ring
      %t = coremesh.recv @A[(i + 1) mod 2] from @ring where ring
      // CHECK: coremesh.loop 3 {
      coremesh.loop 3 {
        // CHECK: coremesh.recv @V[j floordiv 3] from @down combine max where (y == 1, x <= 3, i - j >= 0)
        %u = coremesh.recv @V[j floordiv 3] from @down combine max where (y == 1, x <= 3, i >= j)
        // CHECK: coremesh.wait %{{.*}}
        coremesh.wait %u
      }
      // CHECK: coremesh.wait round %[[S]], %[[T]]
      coremesh.wait round %s, %t
      // CHECK: coremesh.compute "both" (%{{.*}} = @A[i mod 2] : tensor<3x3xf16>, %{{.*}} = @V : tensor<2xf32>)
      // CHECK-SAME: to (@V, @A[i mod 2]) where (x == 0) attributes {mark} {
      coremesh.compute "both" (%x = @A[i mod 2] : tensor<3x3xf16>, %y = @V : tensor<2xf32>)
          to (@V, @A[i mod 2]) where (x == 0) attributes {mark} {
        %0 = math.exp %y : tensor<2xf32>
        coremesh.yield %0, %x : tensor<2xf32>, tensor<3x3xf16>
      }
    }
    // CHECK: coremesh.compute "zero" () to (@V) {
    coremesh.compute "zero" () to (@V) {
      %0 = arith.constant dense<0.0> : tensor<2xf32>
      coremesh.yield %0 : tensor<2xf32>
    }
    // CHECK: coremesh.relay @V from @down to @root combine max where (x == 2)
    %w = coremesh.relay @V from @down to @root combine max where (x == 2)
    // CHECK: coremesh.wait collective
    coremesh.wait collective %w
    // CHECK: %[[X:.*]] = coremesh.collect @A[1] block(y, x) ring : tensor<6x11xf16>
    %x = coremesh.collect @A[1] block(y, x) ring : tensor<6x11xf16>
    // CHECK: coremesh.collect @V block(y), @V block(x floordiv 4) : tensor<4xf32>
    %z = coremesh.collect @V block(y), @V[0] block(x floordiv 4) : tensor<4xf32>
    // CHECK: coremesh.yield %[[X]], %{{.*}} : tensor<6x11xf16>, tensor<4xf32>
    coremesh.yield %x, %z : tensor<6x11xf16>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<6x11xf16>, tensor<4xf32>
}

// Instructions keep their number and order; a program without a use is gone.
// SAFE-LABEL: func.func @twice
// SAFE-COUNT-1: coremesh.program "used"
// SAFE: coremesh.send
// SAFE-NEXT: coremesh.send
// SAFE-NEXT: coremesh.wait
// SAFE-NOT: coremesh.program
func.func @twice(%a: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %r = coremesh.program "used" grid(1, 1) (%in = %a) : (tensor<4x4xi32>) -> tensor<4x4xi32> {
    coremesh.buffer @A : tensor<4x4xi32>
    coremesh.route @r along x from p
    coremesh.place %in in @A block(y, x) : tensor<4x4xi32>
    %s = coremesh.send @A on @r
    %t = coremesh.send @A on @r
    coremesh.wait %s, %t
    %x = coremesh.collect @A block(y, x) : tensor<4x4xi32>
    coremesh.yield %x : tensor<4x4xi32>
  }
  %u = coremesh.program "unused" grid(1, 1) (%in = %a) : (tensor<4x4xi32>) -> tensor<4x4xi32> {
    coremesh.buffer @A : tensor<4x4xi32>
    coremesh.place %in in @A block(y, x) : tensor<4x4xi32>
    %x = coremesh.collect @A block(y, x) : tensor<4x4xi32>
    coremesh.yield %x : tensor<4x4xi32>
  }
  return %r : tensor<4x4xi32>
}
