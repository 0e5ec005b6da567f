// RUN: tile-opt %s -split-input-file -verify-diagnostics

tile.kernel @alloc_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{needs static sizes and no layout}}
  %a = tile.alloc : memref<?xf32>
}

// -----

tile.kernel @alloc_c1_layout(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{needs static sizes and no layout}}
  %a = tile.alloc : memref<4xf32, strided<[2]>>
}

// -----

tile.kernel @alloc_c2(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{alignment must be a positive power of two, got 48}}
  %a = tile.alloc {alignment = 48} : memref<4xf32>
}

// -----

tile.kernel @alloc_c3(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{memory space must be a #tile.level, got 3}}
  %a = tile.alloc : memref<4xf32, 3>
}

// -----

tile.kernel @load_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{gives 1 offsets for a memref of rank 2}}
  %a = tile.load %m[%i] : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{gives 1 offsets for a memref of rank 2}}
  tile.store %t, %m[%i] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c2(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{a tile of rank 3 needs dims to lie in a memref of rank 2}}
  %a = tile.load %m[%i, %j] : memref<8x16xf32>, !tile.tile<1x2x4xf32>
}

// -----

tile.kernel @store_c2(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<1x2x4xf32>
  // expected-error@+1 {{a tile of rank 3 needs dims to lie in a memref of rank 2}}
  tile.store %t, %m[%i, %j] : !tile.tile<1x2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c2_count(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{dims has 1 entries for a tile of rank 2}}
  %a = tile.load %m[%i, %j] dims [1] : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c2_count(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{dims has 1 entries for a tile of rank 2}}
  tile.store %t, %m[%i, %j] dims [1] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c2_range(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{dims names 2, which is out of range or given twice}}
  %a = tile.load %m[%i, %j] dims [0, 2] : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c2_range(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{dims names 2, which is out of range or given twice}}
  tile.store %t, %m[%i, %j] dims [0, 2] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c2_twice(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{dims names 1, which is out of range or given twice}}
  %a = tile.load %m[%i, %j] dims [1, 1] : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c2_twice(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{dims names 1, which is out of range or given twice}}
  tile.store %t, %m[%i, %j] dims [1, 1] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c3(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{steps has 1 entries for a tile of rank 2}}
  %a = tile.load %m[%i, %j] steps [1] : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c3(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{steps has 1 entries for a tile of rank 2}}
  tile.store %t, %m[%i, %j] steps [1] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @store_c3_zero(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{a step of 0 writes several elements to one place}}
  tile.store %t, %m[%i, %j] steps [0, 1] : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c4(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{memref and tile must have the same element type, got 'f32' and 'f16'}}
  %a = tile.load %m[%i, %j] : memref<8x16xf32>, !tile.tile<2x4xf16>
}

// -----

tile.kernel @store_c4(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf16>
  // expected-error@+1 {{memref and tile must have the same element type, got 'f32' and 'f16'}}
  tile.store %t, %m[%i, %j] : !tile.tile<2x4xf16>, memref<8x16xf32>
}

// -----

tile.kernel @load_c5(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{needs indices and along together}}
  %a = "tile.load"(%m, %i, %j) <{along = 0 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 0, 0>}>
      : (memref<8x16xf32>, index, index) -> !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c5(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{needs indices and along together}}
  "tile.store"(%t, %m, %i, %j) <{along = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>}>
      : (!tile.tile<2x4xf32>, memref<8x16xf32>, index, index) -> ()
}

// -----

tile.kernel @load_c5_range(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %idx = tile.iota dim 0 : !tile.tile<4xi32>
  // expected-error@+1 {{along names dimension 2 of a tile of rank 2}}
  %a = tile.load %m[%i, %j] indices %idx along 2 : memref<8x16xf32>, !tile.tile<2x4xf32> (indices !tile.tile<4xi32>)
}

// -----

tile.kernel @store_c5_range(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %idx = tile.iota dim 0 : !tile.tile<4xi32>
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{along names dimension 2 of a tile of rank 2}}
  tile.store %t, %m[%i, %j] indices %idx along 2 : !tile.tile<2x4xf32>, memref<8x16xf32> (indices !tile.tile<4xi32>)
}

// -----

tile.kernel @load_c5_size(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %idx = tile.iota dim 0 : !tile.tile<4xi32>
  // expected-error@+1 {{indices must be a tile of rank 1 and size 2, got '!tile.tile<4xi32>'}}
  %a = tile.load %m[%i, %j] indices %idx along 0 : memref<8x16xf32>, !tile.tile<2x4xf32> (indices !tile.tile<4xi32>)
}

// -----

tile.kernel @store_c5_size(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %idx = tile.iota dim 0 : !tile.tile<4xi32>
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{indices must be a tile of rank 1 and size 2, got '!tile.tile<4xi32>'}}
  tile.store %t, %m[%i, %j] indices %idx along 0 : !tile.tile<2x4xf32>, memref<8x16xf32> (indices !tile.tile<4xi32>)
}

// -----

tile.kernel @load_c6(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{valid has 1 bounds for a tile of rank 2}}
  %a = tile.load %m[%i, %j] valid (%x) : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @store_c6(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{valid has 1 bounds for a tile of rank 2}}
  tile.store %t, %m[%i, %j] valid (%x) : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @load_c7(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %p = arith.constant 0.0 : f32
  // expected-error@+1 {{pad is read nowhere without valid}}
  %a = tile.load %m[%i, %j] pad %p : memref<8x16xf32>, !tile.tile<2x4xf32>
}

// -----

tile.kernel @load_c8(%m: memref<8x16x4xi8>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{takes a tile of rank 2 and dims, and neither steps, indices nor valid}}
  %a = tile.load %m[%i, %j, %x] : memref<8x16x4xi8>, !tile.tile<4x4xi8, #tile.layout<interleave = 4>>
}

// -----

tile.kernel @load_c8_memref(%m: memref<8x16x2xi8>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{in groups of 4 needs a memref whose last dimension has that size}}
  %a = tile.load %m[%i, %j, %x] dims [0, 1] : memref<8x16x2xi8>, !tile.tile<4x4xi8, #tile.layout<interleave = 4>>
}

// -----

tile.kernel @store_c7(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{reduce must be add, max or min, got mul}}
  tile.store %t, %m[%i, %j] reduce mul : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @store_c7_atomic(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = arith.constant dense<0.0> : !tile.tile<2x4xf32>
  // expected-error@+1 {{atomic goes with reduce only}}
  tile.store %t, %m[%i, %j] atomic : !tile.tile<2x4xf32>, memref<8x16xf32>
}

// -----

tile.kernel @copy_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %b = tile.alloc : memref<8x8xf32>
  // expected-error@+1 {{needs buffers of one shape and element type}}
  tile.copy %m to %b : memref<8x16xf32>, memref<8x8xf32>
}

// -----

tile.kernel @copy_c1_type(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %b = tile.alloc : memref<8x16xf16>
  // expected-error@+1 {{needs buffers of one shape and element type}}
  tile.copy %m to %b : memref<8x16xf32>, memref<8x16xf16>
}

// -----

tile.kernel @copy_c2(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %a = tile.alloc : memref<8x16xf32>
  // expected-error@+1 {{at gives 1 coordinates, the kernel around it has 2}}
  tile.copy %m to %a at (%i) : memref<8x16xf32>, memref<8x16xf32>
}

// -----

tile.kernel @copy_c3(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %a = tile.alloc : memref<8x16xf32>
  // expected-error@+1 {{to another task needs a destination made by tile.alloc, which every task has its own of}}
  tile.copy %a to %m at (%i, %j) : memref<8x16xf32>, memref<8x16xf32>
}

// -----

tile.kernel @copy_c1_fill(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %b = tile.alloc : memref<8x8xf32>
  // expected-error@+1 {{needs buffers of one shape and element type}}
  tile.copy %m to %b fill : memref<8x16xf32>, memref<8x8xf32>
}

// -----

tile.kernel @copy_c4(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %a = tile.alloc : memref<8x16xf32>
  // expected-error@+1 {{fills a buffer of its own task only, but has at}}
  tile.copy %m to %a at (%i, %j) fill : memref<8x16xf32>, memref<8x16xf32>
}

// -----

tile.kernel @async_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  %t = tile.async {
    // expected-error@+1 {{stands in a tile.async, which holds tile.copy and operations without memory effects only}}
    tile.barrier
  }
}

// -----

tile.kernel @async_c1_empty(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{holds no tile.copy}}
  %t = tile.async {
  }
}

// -----

tile.kernel @await_c1(%m: memref<8x16xf32>, %x: index) grid(%i, %j) {
  // expected-error@+1 {{needs at least one token}}
  "tile.await"() : () -> ()
}

// -----

func.func @barrier_c1() {
  // expected-error@+1 {{stands outside of a tile.kernel}}
  tile.barrier
  return
}

// -----

tile.kernel @load_c9_where(%m: memref<8x16xf32>, %i: index) {
  // expected-error@+1 {{bounded names dimension 2, which its buffer of rank 2 does not have}}
  %a = tile.load %m[%i, %i] bounded [2] : memref<8x16xf32>, !tile.tile<4x4xf32>
  tile.return
}

// -----

tile.kernel @load_c9_pad(%m: memref<8x16xf32>, %i: index) {
  %one = arith.constant 1.0 : f32
  // expected-error@+1 {{reads zeros outside of its buffer (bounded), so that it has neither indices nor a pad}}
  %a = tile.load %m[%i, %i] valid(%i, %i) pad %one bounded [0] : memref<8x16xf32>, !tile.tile<4x4xf32>
  tile.return
}

// -----

tile.kernel @copy_c5(%m: memref<8x16xf32>) {
  %s = tile.alloc : memref<8x16xf32, #tile.level<"shared">>
  // expected-error@+1 {{bounded names dimension 2, which its buffer of rank 2 does not have}}
  tile.copy %m to %s bounded [2] : memref<8x16xf32>, memref<8x16xf32, #tile.level<"shared">>
  tile.return
}

// -----

tile.kernel @bounded_store(%m: memref<8x16xf32>, %i: index) {
  %a = arith.constant dense<0.0> : !tile.tile<4x4xf32>
  // expected-error@+1 {{has an attribute tile.bounded, which is not known; did you mean tile.rounded?}}
  tile.store %a, %m[%i, %i] {tile.bounded = array<i64: 0>} : !tile.tile<4x4xf32>, memref<8x16xf32>
  tile.return
}
