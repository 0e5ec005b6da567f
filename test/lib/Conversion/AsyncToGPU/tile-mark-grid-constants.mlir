// RUN: tile-opt %s --tile-mark-grid-constants | FileCheck-22 %s

// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr<1>,
// CHECK-SAME: {{^}} %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, llvm.noundef,
// CHECK-SAME: {{^}} nvvm.grid_constant})
// CHECK-SAME: nvvm.minctasm = 1 : i32
llvm.func @k(%x: !llvm.ptr<1>, %map: !llvm.ptr) attributes {nvvm.kernel, tile.specialized,
    tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "tensor_map", arg = 0 : i64}]} {
  llvm.return
}

// CHECK: llvm.func @plain(%{{.*}}: !llvm.ptr<1>) attributes {tile.params = [{arg = 0 : i64, kind = "pointer"}]}
llvm.func @plain(%x: !llvm.ptr<1>) attributes {tile.params = [{kind = "pointer", arg = 0 : i64}]} {
  llvm.return
}

// CHECK: llvm.func @several(%{{.*}}: !llvm.ptr<1>) attributes {nvvm.minctasm = 3 : i32
llvm.func @several(%x: !llvm.ptr<1>) attributes {tile.occupancy = 3 : i64,
    tile.params = [{kind = "pointer", arg = 0 : i64}]} {
  llvm.return
}
