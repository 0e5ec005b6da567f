// RUN: tile-opt %s -tile-sanitize -split-input-file | FileCheck-22 %s

// Functions with a body are marked, and keep what they say.
// CHECK: llvm.func @other()
// CHECK-NOT: sanitize_address
// CHECK: llvm.func @tw_main() attributes {passthrough = ["sanitize_address"]}
// CHECK: llvm.func @kernel() attributes {passthrough = ["cold", "sanitize_address"]}
module attributes {tile.options = {sanitize = "address"}} {
  llvm.func @other()
  llvm.func @tw_main() {
    llvm.return
  }
  llvm.func @kernel() attributes {passthrough = ["cold"]} {
    llvm.return
  }
}

// -----

// CHECK: llvm.func @tw_main() {
llvm.func @tw_main() {
  llvm.return
}
