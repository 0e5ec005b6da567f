// RUN: tile-opt %s --tile-count-meetings | FileCheck-22 %s

// Once in front of the loops, 3 * (2 + 1) times in them, and once for a loop whose trips are not known.
// CHECK: gpu.func @met({{.*}}) kernel attributes {meetings = 11 : i64, tile.waits}
// Barriers of a block are none; tasks that wait for each other (stream-K) do not meet.
// CHECK: gpu.func @waits({{.*}}) kernel attributes {tile.waits}
gpu.module @device {
  gpu.func @met(%counter: i64, %one: i32, %trips: index) kernel attributes {tile.waits} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    llvm.inline_asm has_side_effects asm_dialect = att
      "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %counter, %one : (i64, i32) -> ()
    scf.for %i = %c0 to %c6 step %c2 {
      scf.for %j = %c0 to %c2 step %c1 {
        llvm.inline_asm has_side_effects asm_dialect = att
          "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %counter, %one : (i64, i32) -> ()
      }
      gpu.barrier
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %counter, %one : (i64, i32) -> ()
    }
    scf.for %i = %c0 to %trips step %c1 {
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %counter, %one : (i64, i32) -> ()
    }
    gpu.return
  }
  gpu.func @waits(%counter: i64) kernel attributes {tile.waits} {
    gpu.barrier
    gpu.return
  }
  // All blocks meet once. Then one team does five times and another one six times, beside each other; all do in a loop
  // of two, behind the second one's two: 1 + max(5, 6) + 2 * (1 + 2).
  // CHECK: gpu.func @teams({{.*}}) kernel attributes {meetings = 13 : i64, tile.waits}
  gpu.func @teams(%all: !llvm.ptr, %one: i32) kernel attributes {tile.waits} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %a = llvm.getelementptr %all[32] : (!llvm.ptr) -> !llvm.ptr, i32
    %b = llvm.getelementptr %all[64] : (!llvm.ptr) -> !llvm.ptr, i32
    llvm.inline_asm has_side_effects asm_dialect = att
      "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %all, %one : (!llvm.ptr, i32) -> ()
    scf.for %i = %c0 to %c5 step %c1 {
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %a, %one : (!llvm.ptr, i32) -> ()
    }
    scf.for %i = %c0 to %c6 step %c1 {
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %b, %one : (!llvm.ptr, i32) -> ()
    }
    scf.for %i = %c0 to %c2 step %c1 {
      scf.for %j = %c0 to %c2 step %c1 {
        llvm.inline_asm has_side_effects asm_dialect = att
          "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %b, %one : (!llvm.ptr, i32) -> ()
      }
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %a, %one : (!llvm.ptr, i32) -> ()
      llvm.inline_asm has_side_effects asm_dialect = att
        "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %all, %one : (!llvm.ptr, i32) -> ()
    }
    gpu.return
  }
}
