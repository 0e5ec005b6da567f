// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{argument 0 must be a memref, integer, float or index, got 'tensor<4xf32>'}}
tile.program @program_c1(%x: tensor<4xf32>) units 1 {
}

// -----

// expected-error@+1 {{needs at least one unit}}
tile.program @program_c2() units 0 {
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @program_c3(%x: memref<8xf32>) units 2 {
  %c = arith.constant 0 : index
  %v = arith.constant 0.0 : f32
  // expected-error@+1 {{which holds tile.place, tile.signal, tile.wait and operations without memory effects only}}
  memref.store %v, %x[%c] : memref<8xf32>
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @program_c4(%x: memref<8xf32>) units 2 {
  tile.signal 0 on 0
  // expected-error@+1 {{waits forever: the signals that can arrive before it are too few}}
  tile.wait 0 count 2 on 1
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @program_c4_cycle(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{waits forever}}
  tile.wait 0 count 1 on 0
  tile.signal 1 on 0
  tile.wait 1 count 1 on 1
  tile.signal 0 on 1
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c1(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{@place_c1 is no tile.kernel here}}
  tile.place @place_c1 tasks [0, 1] of [1] on 0
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c1_rank(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{gives 2 grid bounds, @k has 1 coordinates}}
  tile.place @k tasks [0, 4] of [2, 4] on 0 (%x : memref<8xf32>)
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c2(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{are not of the types of @k's arguments}}
  tile.place @k tasks [0, 4] of [8] on 0
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c3(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{tasks must be a range [b, e] with 0 <= b <= e <= 8}}
  tile.place @k tasks [0, 9] of [8] on 0 (%x : memref<8xf32>)
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c3_bound(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{grid bound -1 is negative}}
  tile.place @k tasks [0, 0] of [-1] on 0 (%x : memref<8xf32>)
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @place_c4(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{unit 2 is none of the program's 2 units}}
  tile.place @k tasks [0, 4] of [8] on 2 (%x : memref<8xf32>)
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @signal_c1(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{unit 2 is none of the program's 2 units}}
  tile.signal 0 on 2
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @signal_c2(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{event is negative}}
  tile.signal -1 on 0
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @wait_c1(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{unit -1 is none of the program's 2 units}}
  tile.wait 0 count 1 on -1
}

// -----

tile.kernel @k(%x: memref<8xf32>) grid(%i) {
}
tile.program @wait_c2(%x: memref<8xf32>) units 2 {
  // expected-error@+1 {{needs an event that is not negative and a positive count}}
  tile.wait 0 count 0 on 0
}
