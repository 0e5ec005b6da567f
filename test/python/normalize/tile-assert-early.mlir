// RUN: tile-opt %s --tile-assert-early | FileCheck-22 %s

#id = affine_map<(d0) -> (d0)>

// The assertion and its arithmetic stand before what it guards, behind what makes its operands.
// CHECK-LABEL: func.func @main
// CHECK: tensor.extract
// CHECK-NEXT: arith.addi
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: cf.assert %{{.*}}, "first"
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: cf.assert %{{.*}}, "second"
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.generic
// CHECK: arith.divsi
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: cf.assert %{{.*}}, "third"
func.func @main(%t: tensor<index>, %d: index) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = tensor.extract %t[] : tensor<index>
  %n = arith.addi %v, %c1 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %f = arith.constant 1.0 : f32
    linalg.yield %f : f32
  } -> tensor<?xf32>
  %a = arith.cmpi eq, %n, %c4 : index
  cf.assert %a, "first"
  %b = arith.cmpi ne, %n, %d : index
  cf.assert %b, "second"
  // Divisions may trap where an assertion was to prevent it: they stay.
  %q = arith.divsi %n, %d : index
  %c = arith.cmpi eq, %q, %c1 : index
  cf.assert %c, "third"
  return %y : tensor<?xf32>
}
