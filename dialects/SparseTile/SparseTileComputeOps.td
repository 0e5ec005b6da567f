//===- SparseTileComputeOps.td - computing with encoded tensors -*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_COMPUTE_OPS
#define TILEWRIGHT_SPARSE_TILE_COMPUTE_OPS

include "dialects/SparseTile/SparseTileAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SparseTile_MatmulOp : SparseTile_Op<"matmul", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "product of matrices of which one is encoded";
  let description = [{
    `result = a @ b + c`, summed in the type of `c`. Only what the encodings keep
    is multiplied: infinities and NaN of the one operand do not meet zeros that
    the other does not hold.

    - `matmul_c1`: `a` is MxK, `b` KxN, `c` MxN.
    - `matmul_c2`: `a` or `b` has an encoding, `c` has none.
    `kernel` names the family of kernels that is to compute it
    (`python/tilewright/plan/sparse/forms`); without it the first that can does.

    - `matmul_c3`: elements are floats of at most the width of `c`'s.

    Example:

    ```mlir
    func.func @f(%a: tensor<16x64xf32>, %b: tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>,
        %c: tensor<16x96xf32>) -> tensor<16x96xf32> {
      %d = sparse_tile.matmul %a, %b, %c
          : tensor<16x64xf32>, tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>, tensor<16x96xf32>
      return %d : tensor<16x96xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$c,
                       OptionalAttr<StrAttr>:$kernel);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_SPARSE_TILE_COMPUTE_OPS
