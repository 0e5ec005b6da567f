// RUN: tile-opt %s --tile-plan-host-work --split-input-file --verify-diagnostics | FileCheck-22 %s

tile.kernel @small(%x: memref<i64>, %y: memref<i64>) {
  %one = arith.constant 1 : i64
  %n = memref.load %x[] : memref<i64>
  %m = arith.addi %n, %one : i64
  memref.store %m, %y[] : memref<i64>
  tile.return
}
tile.kernel @ends(%x: memref<i64>, %y: memref<i1>) {
  %nine = arith.constant 9 : i64
  %n = memref.load %x[] : memref<i64>
  %less = arith.cmpi slt, %n, %nine : i64
  memref.store %less, %y[] : memref<i1>
  tile.return
}
tile.kernel @uses(%k: memref<i64>, %x: memref<4096xf32>) {
  tile.return
}
tile.kernel @makes(%x: memref<4096xf32>, %n: memref<i64>) {
  tile.return
}

// A counter and what asks whether it ends: nothing moves but for what the host gives in the end.
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @ends {{.*}} tile.level = "host"
// CHECK: tile.launch @small {{.*}} tile.level = "host"
func.func @main(%n: memref<i64> {tile.result = 0 : i64}, %go: memref<i1> {tile.result = 1 : i64}) {
  scf.while : () -> () {
    // expected-remark@+1 {{2 small launches are the host's work}}
    tile.launch @ends ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 3 : i64}
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more)
  } do {
    tile.launch @small ins(%n : memref<i64>) outs(%n : memref<i64>) {tile.host_operations = 3 : i64}
    scf.yield
  }
  return
}

// The device makes what decides, in a launch that is not small: the host waits once, whoever compares; a counter that
// the device needs in each iteration is less to launch than to give.
// CHECK-LABEL: func.func @made_by_the_device
// CHECK: tile.launch @ends {{.*}} tile.level = "host"
// CHECK: tile.launch @small
// CHECK-NOT: "host"
// CHECK: return
func.func @made_by_the_device(%x: memref<4096xf32>, %k: memref<i64>, %n: memref<i64>, %go: memref<i1>) {
  scf.while : () -> () {
    // expected-remark@+1 {{1 small launches are the host's work}}
    tile.launch @ends ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 3 : i64}
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more)
  } do {
    tile.launch @uses ins(%k : memref<i64>) outs(%x : memref<4096xf32>)
    tile.launch @makes outs(%x, %n : memref<4096xf32>, memref<i64>)
    tile.launch @small ins(%k : memref<i64>) outs(%k : memref<i64>) {tile.host_operations = 3 : i64}
    scf.yield
  }
  return
}

// More arithmetic than two launches take.
// CHECK-LABEL: func.func @long
// CHECK-NOT: "host"
// CHECK: return
func.func @long(%n: memref<i64>, %go: memref<i1>) {
  scf.while : () -> () {
    tile.launch @ends ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 300 : i64}
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more)
  } do {
    scf.yield
  }
  return
}

// The host reads nothing: a graph can record the launches.
// CHECK-LABEL: func.func @recordable
// CHECK-NOT: "host"
// CHECK: return
func.func @recordable(%n: memref<i64>) {
  tile.launch @small ins(%n : memref<i64>) outs(%n : memref<i64>) {tile.host_operations = 3 : i64}
  return
}

// -----

// No host program has this arithmetic.
tile.kernel @strange(%x: memref<i64>, %y: memref<i1>) {
  %c = arith.constant dense<1> : !tile.tile<1xi64>
  %d, %e = arith.mulsi_extended %c, %c : !tile.tile<1xi64>
  tile.return
}
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: "host"
// CHECK: return
func.func @unknown(%n: memref<i64>, %go: memref<i1>) {
  scf.while : () -> () {
    tile.launch @strange ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 3 : i64}
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more)
  } do {
    scf.yield
  }
  return
}

// -----

// A branch without another side is taken in half of the runs: its wait is half a wait, less than what the host takes.
tile.kernel @makes(%n: memref<i64>) {
  tile.return
}
// CHECK-LABEL: func.func @sometimes
// CHECK-NOT: tile.level
// CHECK: return
func.func @sometimes(%n: memref<i64>, %c: i1, %out: memref<i64>) {
  tile.launch @makes outs(%n : memref<i64>) {tile.host_operations = 14 : i64}
  scf.if %c {
    %v = memref.load %n[] : memref<i64>
    memref.store %v, %out[] : memref<i64>
  }
  return
}
