//===- SparseTileDynamicOps.td - sparsity found at run time -*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_DYNAMIC_OPS
#define TILEWRIGHT_SPARSE_TILE_DYNAMIC_OPS

include "dialects/SparseTile/SparseTileAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SparseTile_IndexOp : SparseTile_Op<"index", [Pure]> {
  let summary = "which micro-tiles differ from zero";
  let description = [{
    The tensor is cut in micro-tiles of the sizes `unit` (ragged ones at the
    border). Along `axis`, for each row of micro-tiles, the numbers of those that
    hold an element other than zero stand in `live`, ascending, and their count
    in `count`; what is behind them in `live` is -1. `axis` has size one in
    `count`. With `arrival_order` the order is that of the run, not ascending:
    faster on a GPU, and only where the sum over the axis may change its order
    (PIT, SOSP 2023, section 4).

    - `index_c1`: `unit` has a positive number for each dimension; `axis` is a
      dimension.
    - `index_c2`: `live` has a micro-tile's number for each micro-tile, `count`
      the same sizes with one along the axis; both are `i32`.

    Example:

    ```mlir
    func.func @f(%x: tensor<64x4096xf32>) -> (tensor<4x4096xi32>, tensor<4x1xi32>) {
      %live, %count = sparse_tile.index %x unit [16, 1] axis 1
          : tensor<64x4096xf32> to tensor<4x4096xi32>, tensor<4x1xi32>
      return %live, %count : tensor<4x4096xi32>, tensor<4x1xi32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, DenseI64ArrayAttr:$unit,
                       I64Attr:$axis, UnitAttr:$arrival_order);
  let results = (outs AnyRankedTensor:$live, AnyRankedTensor:$count);
  let assemblyFormat = [{
    $source `unit` $unit `axis` $axis (`arrival_order` $arrival_order^)? attr-dict `:`
    type($source) `to` type($live) `,` type($count)
  }];
  let hasVerifier = 1;
}

def SparseTile_GatherOp : SparseTile_Op<"gather", [Pure]> {
  let summary = "slices along an axis, side by side";
  let description = [{
    PIT's SRead. Slice `i` of the result along `axis` is slice `indices[i]` of the
    source; zeros where `indices[i]` is -1.

    - `gather_c1`: `axis` is a dimension; `indices` is a list of `i32`.
    - `gather_c2`: the result has the source's element type and sizes, but along
      the axis as many as there are indices.

    Example:

    ```mlir
    func.func @f(%x: tensor<4096x64xf32>, %live: tensor<?xi32>) -> tensor<?x64xf32> {
      %y = sparse_tile.gather %x[%live] axis 0 : tensor<4096x64xf32>, tensor<?xi32> to tensor<?x64xf32>
      return %y : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` `axis` $axis attr-dict `:`
    type($source) `,` type($indices) `to` type($result)
  }];
  let hasVerifier = 1;
}

def SparseTile_ScatterOp : SparseTile_Op<"scatter", [Pure, AllTypesMatch<["init", "result"]>]> {
  let summary = "slices put back to their places";
  let description = [{
    PIT's SWrite. The result is `init` with slice `indices[i]` along `axis`
    replaced by slice `i` of the source, or (with `accumulate`) increased by it;
    a slice whose index is -1 goes nowhere. Without `accumulate` no index occurs
    twice.

    - `scatter_c1`: `axis` is a dimension; `indices` is a list of `i32`.
    - `scatter_c2`: the source has the element type and sizes of `init`, but along
      the axis as many as there are indices; the result is of `init`'s type.

    Example:

    ```mlir
    func.func @f(%y: tensor<?x64xf32>, %live: tensor<?xi32>, %init: tensor<4096x64xf32>) -> tensor<4096x64xf32> {
      %x = sparse_tile.scatter %y into %init[%live] axis 0 accumulate
          : tensor<?x64xf32>, tensor<?xi32>, tensor<4096x64xf32>
      return %x : tensor<4096x64xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$init,
                       AnyRankedTensor:$indices, I64Attr:$axis, UnitAttr:$accumulate);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `into` $init `[` $indices `]` `axis` $axis (`accumulate` $accumulate^)? attr-dict `:`
    type($source) `,` type($indices) `,` type($init)
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_SPARSE_TILE_DYNAMIC_OPS
