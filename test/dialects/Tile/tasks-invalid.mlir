// RUN: tile-opt %s --split-input-file --verify-diagnostics

tile.kernel @semaphores_c1() grid(%i) {
  %c0 = arith.constant 0 : index
  %some = arith.cmpi ugt, %i, %c0 : index
  scf.if %some {
    // expected-error@+1 {{stands outside of a tile.kernel, or in a loop or branch of one}}
    %s = tile.semaphores : memref<8xi32>
  }
  tile.return
}

// -----

func.func @semaphore_post_c1(%s: memref<8xi32>, %i: index) {
  // expected-error@+1 {{stands outside of a tile.kernel}}
  tile.semaphore_post %s[%i] : memref<8xi32>
  return
}

// -----

func.func @semaphore_take_c1(%s: memref<8xi32>, %i: index) {
  // expected-error@+1 {{stands outside of a tile.kernel}}
  tile.semaphore_take %s[%i] count 1 : memref<8xi32>
  return
}

// -----

tile.kernel @semaphore_take_c2() grid(%i) {
  %s = tile.semaphores : memref<8xi32>
  // expected-error@+1 {{has count 0, which must be positive}}
  tile.semaphore_take %s[%i] count 0 : memref<8xi32>
  tile.return
}
