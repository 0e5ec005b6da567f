// DEFINE: %{nested} = func.func(cse,test-mark{label=b scale=2 names=x,y},test-make-exp)
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py --test-mark="label=a max-rows=3 fast sizes=1,2" \
// RUN:   | FileCheck-22 %s --check-prefix=FLAG
// RUN: tile-opt %s --load-python=%S/Inputs/user_passes.py \
// RUN:   --pass-pipeline="builtin.module(canonicalize,%{nested},tile-count-ops)" | FileCheck-22 %s --check-prefix=MIXED
// RUN: not tile-opt %s --test-mark 2>&1 | FileCheck-22 %s --check-prefix=UNKNOWN
// RUN: not tile-opt %s --load-python %S/Inputs/missing.py 2>&1 | FileCheck-22 %s --check-prefix=MISSING
// RUN: not tile-opt %s --load-python 2>&1 | FileCheck-22 %s --check-prefix=NOVALUE
// RUN: not tile-opt %s --load-python %S/Inputs/user_passes.py --test-mark="max-rows=many" 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=BADVALUE

// An anchored pass nests itself when it is given as a flag.
// FLAG: func.func @f{{.*}}test.mark = "a 3 0.5 True 1x2"

// MIXED: module attributes {tile.op_count = {
// MIXED-SAME: arith.addf = 1 : i64
// MIXED-SAME: math.exp = 1 : i64
// MIXED: func.func @f{{.*}}test.mark = "b 8 2.0 False 4x8 x+y"
// MIXED: %[[SUM:.*]] = arith.addf
// MIXED: %[[EXP:.*]] = math.exp %[[SUM]]
// MIXED: return %[[EXP]]

// UNKNOWN: test-mark
// MISSING: tile-opt: error: cannot load passes from '{{.*}}missing.py': no such file
// NOVALUE: tile-opt: error: --load-python needs a value
// BADVALUE: max-rows
func.func @f(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = arith.addf %x, %x : f32
  return %0 : f32
}
