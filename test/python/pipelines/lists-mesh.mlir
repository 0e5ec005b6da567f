// A program of nested lists with a 2:4 sparse weight and one of bytes, by tile-opt and named phases to programs of the
// cores of a mesh. The state of the recurrence lies on the grid from step to step.
// RUN: tile-opt %S/Inputs/lists.mlir --tile-set-target=target=mesh:toy8x8 --tile-mesh-normalize -o %t.normal
// RUN: FileCheck %s --check-prefix=NORMAL < %t.normal
// RUN: tile-opt %t.normal --tile-mesh-plan -o %t.plan 2>&1 | FileCheck %s --check-prefix=TOLD
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan
// RUN: tile-opt %t.plan --tile-mesh-tile -o %t.tile 2>/dev/null
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: tile-opt %t.tile --tile-mesh-schedule --tile-mesh-lower 2>/dev/null | FileCheck %s --check-prefix=LOWER

// NORMAL-NOT: fractal.
// NORMAL: sparse_tile.pack
// NORMAL: sparse_tile.decode
// NORMAL: scf.for
// NORMAL: sparse_tile.matmul {{.*}} tensor<8x8xf32, #{{.*}}>, tensor<8x3xf32>, tensor<8x3xf32>

// Moving the state to the other axis would take longer than what fewer multiply-adds and bytes save.
// TOLD-COUNT-2: remark: the weight is held dense

// PLAN-NOT: sparse_tile.matmul
// PLAN: scf.for
// PLAN-COUNT-2: coremesh.algorithm = "{{meshgemm|gemm_t}}"
// PLAN: coremesh.carried = {{\[\[}}"y", "x", ""], ["", "y", "x", ""]]

// TILE: scf.for {{.*}} -> (tensor<3x8x1xf32, #{{.*}}>, tensor<5x3x8x1xf32, #{{.*}}>)
// TILE-NOT: coremesh.assemble
// TILE: coremesh.gemm
// TILE-NOT: coremesh.assemble
// TILE: coremesh.gemm
// TILE-NOT: coremesh.assemble
// TILE: scf.yield
// TILE: coremesh.assemble {{.*}} to tensor<5x3x8x1xf32>

// LOWER: scf.for
// LOWER: coremesh.program "local"
// LOWER: coremesh.program "{{meshgemm|gemm_t}}"
// LOWER: address
// LOWER: scf.yield
