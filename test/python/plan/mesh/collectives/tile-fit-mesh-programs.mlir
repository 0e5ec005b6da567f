// RUN: not tile-opt %s --split-input-file --tile-expand-collectives --tile-fit-mesh-programs 2> %t \
// RUN:   | FileCheck-22 %s
// RUN: FileCheck-22 %s --check-prefix=SAID < %t
// RUN: not tile-opt %s --split-input-file --tile-expand-collectives --tile-fit-mesh-programs=machine=dojo \
// RUN:   2> /dev/null | FileCheck-22 %s --check-prefix=HEADERS

#here = #coremesh.layout<grid(3, 3), [y ring, x ring]>
#next = #coremesh.layout<grid(3, 3), [y ring, x ring rotate 1]>

// Buffers lie behind the code; three flows meet at a core, and a core listens on the color of its place.
// CHECK-LABEL: func.func @shift
// CHECK: coremesh.buffer @x : tensor<2x3xf32> address 5120
// CHECK: coremesh.buffer @y : tensor<2x3xf32> address 5144
// CHECK: coremesh.route @x_shift along x ring from (p + 1) mod 3 colors [0, 1, 2] by
// SAID: remark: shift on wse2
// SAID: L  'x_shift' along x: 2 hops, 1 stages
// SAID: M  48 of 44032 bytes at the fullest core
// SAID: R  paths per core: 3 along x, 0 along y; 3 of 21 colors, 1 switch positions
// SAID: deadlock: accept

// Packets with headers need no colors.
// HEADERS: coremesh.buffer @x : tensor<2x3xf32> address
// HEADERS: coremesh.route @x_shift along x ring from (p + 1) mod 3{{$}}
func.func @shift(%a: tensor<6x9xf32, #here>) -> tensor<6x9xf32, #next> {
  %0 = coremesh.shift %a along x by 1 : tensor<6x9xf32, #here> to tensor<6x9xf32, #next>
  return %0 : tensor<6x9xf32, #next>
}

// -----

// An error stands at the instruction: the second send in the loop, whose slot a receive still fills.
func.func @race(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %r = coremesh.program "around" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
    coremesh.buffer @A : tensor<2x3xf32> slots 2
    coremesh.route @left along x ring from (p + 1) mod 3
    coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
    coremesh.loop 3 {
      %s = coremesh.send @A[i mod 2] on @left
      // SAID: mlir:[[@LINE+1]]:12: error: Race: core (y=0, x=0) writes slot 0 of buffer 'A' while Send on 'left'
      %t = coremesh.recv @A[i mod 2] from @left
      coremesh.wait round %s, %t
    }
    %out = coremesh.collect @A[1] block(y, x) ring : tensor<4x9xf32>
    coremesh.yield %out : tensor<4x9xf32>
  }
  return %r : tensor<4x9xf32>
}

// -----

#rows = #coremesh.layout<grid(2, 1), [y, *]>
#turned = #coremesh.layout<grid(2, 1), [y rotate 1, *]>

// SAID: mlir:[[@LINE+4]]:{{[0-9]+}}: error: Memory: core (y=0, x=0) and 1 others like it of program 'shift' needs
// SAID-SAME: bytes beside 5120 bytes of code, and a core of machine 'wse2' has 49152
// SAID: 40000 bytes  'x'
func.func @large(%a: tensor<20x1000xf32, #rows>) -> tensor<20x1000xf32, #turned> {
  %0 = coremesh.shift %a along y by 1 : tensor<20x1000xf32, #rows> to tensor<20x1000xf32, #turned>
  return %0 : tensor<20x1000xf32, #turned>
}
