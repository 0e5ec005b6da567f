// RUN: tile-opt %s --tile-stage-stores --split-input-file --verify-diagnostics | FileCheck-22 %s

#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tile.distributed<register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0]],
    lane = [[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]], warp = [[2, 0], [32, 0]]>

// A warp's boxes are its 16 rows by 128 bytes; the change of layout before the store goes. TMA's bounds are those of
// the argument, which the store's are known to be.

// CHECK-LABEL: gpu.func @staged
// CHECK-SAME: (%[[Y:.*]]: memref<200x136xf16>, %{{.*}}: index, %[[T:.*]]: !tile.tile<64x128xf16, {{.*}}>,
// CHECK-SAME: {{^}} %{{.*}}: !llvm.ptr)
// CHECK-SAME: {arg = 0 : i64, box = [16, 64], fill = "zero", kind = "tensor_map", swizzle = 128 : i64}
// CHECK-NOT: tile.convert
// CHECK: tile.store %[[T]], %[[Y]]{{.*}} valid{{.*}} {tile.box = {map = 3 : i64, slots = 2 : i64}}
gpu.module @kernels {
  gpu.func @staged(%y: memref<200x136xf16>, %i: index, %t: !tile.tile<64x128xf16, #sums>) kernel
      attributes {tile.staged = 2 : i64, tile.threads = 128 : i64, tile.params = [
        {kind = "pointer", arg = 0 : i64}, {kind = "scalar", arg = 1 : i64}, {kind = "scalar", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %c136 = arith.constant 136 : index
    %c200 = arith.constant 200 : index
    %left = arith.subi %c200, %i : index
    %u = tile.convert %t : !tile.tile<64x128xf16, #sums> -> !tile.tile<64x128xf16, #rows>
    tile.store %u, %y[%i, %c0] valid (%left, %c136) : !tile.tile<64x128xf16, #rows>, memref<200x136xf16>
    gpu.return
  }
}

// -----

#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// What TMA cannot store, threads do, with a remark.

// CHECK-LABEL: gpu.func @others
// CHECK-NOT: map =
gpu.module @kernels {
  gpu.func @others(%x: memref<64x64xf32>, %y: memref<64x60xbf16>, %z: memref<64x64xf32>, %n: index,
                   %t: !tile.tile<64x64xf32, #sums>, %h: !tile.tile<64x64xbf16, #sums>) kernel
      attributes {tile.staged = 2 : i64, tile.threads = 128 : i64, tile.params = [
        {kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "pointer", arg = 2 : i64},
        {kind = "scalar", arg = 3 : i64}, {kind = "scalar", arg = 4 : i64}, {kind = "scalar", arg = 5 : i64}]} {
    %c0 = arith.constant 0 : index
    // expected-remark@+1 {{thread, not by TMA, since it has bounds that are not known to be the end of its memory}}
    tile.store %t, %x[%c0, %c0] valid (%n, %n) : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    // expected-remark@+1 {{by TMA, since it has a source whose rows are not known to start at multiples of 16 bytes}}
    tile.store %h, %y[%c0, %c0] : !tile.tile<64x64xbf16, #sums>, memref<64x60xbf16>
    %old = tile.load %z[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32, #sums>
    %new = arith.addf %old, %t : !tile.tile<64x64xf32, #sums>
    // expected-remark @below {{is done by each thread, not by TMA, since it goes to memory that the kernel reads, too}}
    tile.store %new, %z[%c0, %c0] : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    // expected-remark @below {{is done by each thread, not by TMA, since it has rows that are none of memory}}
    tile.store %t, %x[%c0, %c0] dims [1, 0] : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    gpu.return
  }
}

// -----

#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Two arguments that may be one memory: what is read before may be stored in the background, what is touched later not.

// CHECK-LABEL: gpu.func @in_place
// CHECK: tile.store {{.*}} {tile.box = {map =
// CHECK-LABEL: gpu.func @read_later
// CHECK-NOT: map =
gpu.module @kernels {
  gpu.func @in_place(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %t: !tile.tile<64x64xf32, #sums>) kernel
      attributes {tile.staged = 2 : i64, tile.threads = 128 : i64, tile.same_memory = [array<i64: 0, 1>],
          tile.params = [
        {kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "scalar", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %old = tile.load %x[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32, #sums>
    %new = arith.addf %old, %t : !tile.tile<64x64xf32, #sums>
    tile.store %new, %y[%c0, %c0] : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    gpu.return
  }
  gpu.func @read_later(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<64x64xf32>,
      %t: !tile.tile<64x64xf32, #sums>) kernel
      attributes {tile.staged = 2 : i64, tile.threads = 128 : i64,
          tile.may_overlap = [array<i64: 0, 1>, array<i64: 0, 2>], tile.params = [
        {kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "pointer", arg = 2 : i64},
            {kind = "scalar", arg = 3 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    // expected-remark@+1 {{by TMA, since it may go to memory that the kernel touches later, through another argument}}
    tile.store %t, %y[%c0, %c0] : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    scf.for %i = %c0 to %c4 step %c1 {
      %old = tile.load %x[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32, #sums>
      // expected-remark@+1 {{TMA, since it may go to memory that the kernel touches later, through another argument}}
      tile.store %old, %z[%c0, %c0] : !tile.tile<64x64xf32, #sums>, memref<64x64xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
    // expected-error-re@+1 {{tile.staged = 3 : i64: it counts the boxes of a warp that wait {{.*}}, a power of two}}
  gpu.func @count() kernel attributes {tile.staged = 3 : i64, tile.threads = 128 : i64, tile.params = []} {
    gpu.return
  }
}
