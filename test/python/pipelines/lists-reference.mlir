// A program of nested lists with a 2:4 sparse weight and one of bytes, by the interpreter: as text, and behind each of
// the phases that its own ops are gone after.
// RUN: python -m tilewright.cli run %S/Inputs/lists.mlir --target reference > %t.text
// RUN: tile-opt %S/Inputs/lists.mlir --tile-set-target=target=cpu:x86-64-v3 --tile-cpu-normalize -o %t.normal.mlir
// RUN: python -m tilewright.cli run %t.normal.mlir --target reference > %t.normal
// RUN: cat %t.text %t.normal | FileCheck %s

// CHECK: output0: [5, 3, 8, 1] float32 [[FIRST:.*]]
// CHECK: output0: [5, 3, 8, 1] float32 [[FIRST]]
