// RUN: tile-opt %s --tile-plan-loops="units=4" --split-input-file --verify-diagnostics | FileCheck-22 %s

tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {tile.warps = 8 : i64} {
  tile.return
}
tile.kernel @flag(%x: memref<64xf32>, %y: memref<i1>) attributes {tile.threads = 32 : i64} {
  tile.return
}

// As many blocks as a GPU surely holds, one of 256 threads on each of four multiprocessors; the launch before the loop,
// which carries two buffers, is part of the kernel.
// CHECK-LABEL: func.func @steps
// CHECK: tile.launch @k grid(%{{.*}}) ins(%{{.*}}) outs(%{{.*}}) {tile.blocks = 4 : i64}
// CHECK: scf.for
// CHECK-NEXT: tile.launch @k
// CHECK-NOT: tile.blocks
// CHECK: } {tile.blocks = 4 : i64}
func.func @steps(%x: memref<64xf32>, %h: memref<64xf32>, %n: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%h : memref<64xf32>)
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  return
}

// A loop that ends by a number of the device, and a branch in it, of which a buffer serves all iterations.
// CHECK-LABEL: func.func @until
// CHECK: scf.while
// CHECK: scf.if
// CHECK: } attributes {tile.blocks = 2 : i64}
// CHECK: memref.copy {{.*}} {tile.blocks = 2 : i64}
func.func @until(%x: memref<64xf32>, %y: memref<64xf32>, %go: memref<i1>) {
  %c2 = arith.constant 2 : index
  scf.while : () -> () {
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more)
  } do {
    %odd = memref.load %go[] : memref<i1>
    %z = scf.if %odd -> (memref<64xf32>) {
      %e = memref.alloc() : memref<64xf32>
      tile.launch @k grid(%c2) ins(%x : memref<64xf32>) outs(%e : memref<64xf32>)
      scf.yield %e : memref<64xf32>
    } else {
      scf.yield %x : memref<64xf32>
    }
    memref.copy %z, %x : memref<64xf32> to memref<64xf32>
    tile.launch @flag ins(%x : memref<64xf32>) outs(%go : memref<i1>)
    scf.yield
  }
  memref.copy %x, %y : memref<64xf32> to memref<64xf32>
  return
}

// -----

tile.kernel @long(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {tile.prediction = {ns = 90000 : i64}} {
  tile.return
}
tile.kernel @cluster(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) cluster [2] {
  tile.return
}
tile.kernel @waits(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  %s = tile.semaphores : memref<2xi32>
  tile.return
}
tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  tile.return
}

// CHECK-LABEL: func.func @host
// CHECK-NOT: tile.blocks
func.func @host(%x: memref<64xf32>, %y: memref<64xf32>, %odd: i1) -> memref<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-remark@+1 {{one by one: kernel long takes 90 us, beside which a launch is short}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @long grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  // expected-remark@+1 {{kernel cluster has clusters of blocks}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @cluster grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  // expected-remark@+1 {{tasks of kernel waits wait for each other}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @waits grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  // expected-remark@+1 {{a buffer in it is another one in each iteration, or its size is known only there}}
  %r = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %x) -> (memref<64xf32>) {
    %e = memref.alloc() : memref<64xf32>
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%e : memref<64xf32>)
    scf.yield %e : memref<64xf32>
  }
  // expected-remark@+1 {{'func.call' in it is work of the host}}
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
    func.call @f() : () -> ()
  }
  // expected-remark@+1 {{a branch stays with the host, which launches its kernels one by one: the host uses}}
  %s = scf.if %odd -> (memref<64xf32>) {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
    scf.yield %y : memref<64xf32>
  } else {
    scf.yield %x : memref<64xf32>
  }
  return %s : memref<64xf32>
}
func.func private @f()

// -----

tile.kernel @whole(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i)
    attributes {tile.prediction = {ns = 90000 : i64, occupancy = 1 : i64}, tile.warps = 8 : i64} {
  tile.return
}
tile.kernel @many(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i)
    attributes {tile.prediction = {ns = 90000 : i64, occupancy = 8 : i64}, tile.warps = 8 : i64} {
  tile.return
}
tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {tile.threads = 32 : i64} {
  tile.return
}

// What takes long is part of the kernel where all blocks that it would have are held.
// CHECK-LABEL: func.func @long
// CHECK: tile.launch @whole {{.*}} {tile.blocks = 4 : i64}
// CHECK: } {tile.blocks = 4 : i64}
func.func @long(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.launch @whole grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  scf.for %t = %c0 to %c64 step %c1 {
    tile.launch @k grid(%c1) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  return
}
// CHECK-LABEL: func.func @missing
// CHECK-NOT: tile.blocks
func.func @missing(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // expected-remark@+1 {{takes 90 us, and up to 630 us more with the 4 blocks that are surely held, of 32 that it has}}
  scf.for %t = %c0 to %c64 step %c1 {
    tile.launch @many grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  return
}

// Launches of which none writes what another one touches run at once, up to that which reads what one of them wrote.
// CHECK-LABEL: func.func @beside
// CHECK: } {tile.blocks = 7 : i64}
func.func @beside(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    tile.launch @k grid(%c3) ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
    tile.launch @k grid(%c4) ins(%x : memref<64xf32>) outs(%b : memref<64xf32>)
    %view = memref.cast %b : memref<64xf32> to memref<64xf32, strided<[1]>>
    tile.launch @k grid(%c4) ins(%view : memref<64xf32, strided<[1]>>) outs(%y : memref<64xf32>)
  }
  return
}

// -----

tile.kernel @narrow(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i)
    attributes {tile.prediction = {ns = 90000 : i64, occupancy = 2 : i64}, tile.warps = 4 : i64} {
  tile.return
}
tile.kernel @wide(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {tile.threads = 256 : i64} {
  tile.return
}

// Two blocks of 128 threads are held on a multiprocessor, and one of 256, which all have in one kernel: what takes long
// is launched by the host, beside a loop that is such a kernel.
// CHECK-LABEL: func.func @apart
// CHECK: tile.launch @narrow
// CHECK-NOT: tile.blocks
// CHECK: scf.for
// CHECK: } {tile.blocks = 4 : i64}
func.func @apart(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // expected-remark@+1 {{a launch of its own, beside a kernel that runs others: kernel narrow takes 90 us}}
  tile.launch @narrow grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  scf.for %t = %c0 to %c64 step %c1 {
    tile.launch @wide grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  return
}
// CHECK-LABEL: func.func @together
// CHECK-NOT: tile.blocks
func.func @together(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // expected-remark@+1 {{takes 90 us, and up to 90 us more with the 4 blocks that are surely held, of 8 that it has}}
  scf.for %t = %c0 to %c64 step %c1 {
    tile.launch @narrow grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
    tile.launch @wide grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  return
}
// Alone, as many are held as it wants.
// CHECK-LABEL: func.func @alone
// CHECK: } {tile.blocks = 8 : i64}
func.func @alone(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %c64 step %c1 {
    tile.launch @narrow grid(%c64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  }
  return
}

// -----

tile.kernel @warps(%x: memref<64xf32>) grid(%i) attributes {tile.specialized, tile.threads = 128 : i64} {
  tile.return
}
tile.kernel @others(%x: memref<64xf32>) grid(%i) attributes {tile.threads = 128 : i64} {
  tile.return
}

// Warps that only load are threads, too: of four multiprocessors each surely holds one such block, or two without them.
// CHECK-LABEL: func.func @rings
// CHECK: } {tile.blocks = 4 : i64}
// CHECK: } {tile.blocks = 8 : i64}
func.func @rings(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c400 = arith.constant 400 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @warps grid(%c400) outs(%x : memref<64xf32>)
  }
  call @host() : () -> ()
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @others grid(%c400) outs(%x : memref<64xf32>)
  }
  return
}
func.func private @host()

// -----

tile.kernel @means(%x: memref<64xf32>, %y: memref<i1>) grid(%i)
    attributes {tile.prediction = {ns = 28000 : i64, occupancy = 16 : i64}, tile.warps = 8 : i64} {
  tile.return
}
tile.kernel @slow(%x: memref<64xf32>, %y: memref<i1>) grid(%i)
    attributes {tile.prediction = {ns = 60000 : i64, occupancy = 16 : i64}, tile.warps = 8 : i64} {
  tile.return
}
tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) attributes {tile.warps = 8 : i64} {
  tile.return
}

// As a launch of the host, what reads the result of one branch and decides about the next would take both out of the
// kernel: the host would launch and read two numbers. That takes longer than what is lost with too few blocks.
// CHECK-LABEL: func.func @gates
// CHECK: memref.load {{.*}}tile.blocks = 4
// CHECK: scf.if
// CHECK: } {tile.blocks = 4 : i64}
// CHECK: tile.launch @means {{.*}}tile.blocks = 4
// CHECK: scf.if
// CHECK: } {tile.blocks = 4 : i64}
func.func @gates(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %keep: memref<i1>) {
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %first = memref.load %keep[] : memref<i1>
  %a = scf.if %first -> (memref<64xf32>) {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
    scf.yield %y : memref<64xf32>
  } else {
    scf.yield %x : memref<64xf32>
  }
  // expected-remark@+1 {{part of a kernel that runs others: kernel means takes 28 us, and up to 14 us more}}
  tile.launch @means grid(%c6) ins(%a : memref<64xf32>) outs(%keep : memref<i1>)
  %second = memref.load %keep[] : memref<i1>
  scf.if %second {
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%z : memref<64xf32>)
  }
  return
}
// CHECK-LABEL: func.func @slow_gates
// CHECK-NOT: tile.blocks
func.func @slow_gates(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %keep: memref<i1>) {
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %first = memref.load %keep[] : memref<i1>
  // expected-remark@+1 {{the host uses what it gives}}
  %a = scf.if %first -> (memref<64xf32>) {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
    scf.yield %y : memref<64xf32>
  } else {
    scf.yield %x : memref<64xf32>
  }
  tile.launch @slow grid(%c6) ins(%a : memref<64xf32>) outs(%keep : memref<i1>)
  %second = memref.load %keep[] : memref<i1>
  // expected-remark@+1 {{a buffer that it uses is one of several, by what the host decides}}
  scf.if %second {
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%z : memref<64xf32>)
  }
  return
}
