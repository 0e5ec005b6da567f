//===- TileShapeOps.td - moving elements in registers ------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_SHAPE_OPS
#define TILEWRIGHT_TILE_SHAPE_OPS

include "dialects/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SplatOp : Tile_Op<"splat", [
    Pure, TypesMatchWith<"the scalar has the tile's element type", "result",
                         "scalar", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "a scalar at all positions";
  let description = [{
    - `splat_c1`: the scalar has the tile's element type.

    Example:

    ```mlir
    func.func @f(%f: f32) -> !tile.tile<8x32xf32> {
      %t = tile.splat %f : f32 -> !tile.tile<8x32xf32>
      return %t : !tile.tile<8x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_AnyScalar:$scalar);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $scalar attr-dict `:` type($scalar) `->` qualified(type($result))
  }];
  let hasFolder = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "the position along a dimension";
  let description = [{
    - `iota_c1`: `dim` is a dimension of the tile.
    - `iota_c2`: elements are integers or `index`.

    Example:

    ```mlir
    func.func @f() -> !tile.tile<8x32xindex> {
      %t = tile.iota dim 1 : !tile.tile<8x32xindex>
      return %t : !tile.tile<8x32xindex>
    }
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats elements along dimensions of size 1";
  let description = [{
    NumPy's rule: shapes are aligned at the right, a size of 1 is repeated, new
    leading dimensions are too.

    - `broadcast_c1`: element types are equal.
    - `broadcast_c2`: the source's shape is compatible with the result's.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<32xf32>) -> !tile.tile<8x32xf32> {
      %r = tile.broadcast %t : !tile.tile<32xf32> -> !tile.tile<8x32xf32>
      return %r : !tile.tile<8x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "dimensions in another order";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the source.

    - `transpose_c1`: `permutation` is one of the source's dimensions.
    - `transpose_c2`: the result has the permuted shape and the same elements.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x32xf32>) -> !tile.tile<32x8xf32> {
      %r = tile.transpose %t [1, 0] : !tile.tile<8x32xf32> -> !tile.tile<32x8xf32>
      return %r : !tile.tile<32x8xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_TileType:$result);
  let builders = [
    // Infers the result's type; a layout does not survive.
    OpBuilder<(ins "::mlir::Value":$source,
                   "::llvm::ArrayRef<int64_t>":$permutation)>,
  ];
  let assemblyFormat = [{
    $source $permutation attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "the same elements in row-major order, of another shape";
  let description = [{
    - `reshape_c1`: element types and numbers of elements are equal.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x32xf32>) -> !tile.tile<256xf32> {
      %r = tile.reshape %t : !tile.tile<8x32xf32> -> !tile.tile<256xf32>
      return %r : !tile.tile<256xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_ExtractOp : Tile_Op<"extract", [Pure]> {
  let summary = "a slice of a tile, or one element";
  let description = [{
    The slice has the result's shape and starts at `offsets`. A scalar result is
    the element there.

    - `extract_c1`: there is an offset per dimension of the source.
    - `extract_c2`: the result has the source's element type, and its rank
      unless it is a scalar.
    - `extract_c3`: the slice lies inside the source.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x32xf32>) -> (!tile.tile<8x16xf32>, f32) {
      %r = tile.extract %t [0, 16] : !tile.tile<8x32xf32> -> !tile.tile<8x16xf32>
      %s = tile.extract %t [7, 31] : !tile.tile<8x32xf32> -> f32
      return %r, %s : !tile.tile<8x16xf32>, f32
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyTypeOf<[Tile_TileType, Tile_AnyScalar]>:$result);
  let assemblyFormat = [{
    $source $offsets attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Tile_InsertOp : Tile_Op<"insert", [Pure, AllTypesMatch<["dest", "result"]>]> {
  let summary = "a tile with a slice replaced";
  let description = [{
    - `insert_c1`: there is an offset per dimension of the destination.
    - `insert_c2`: source and destination have the same rank and element type.
    - `insert_c3`: the slice lies inside the destination.

    Example:

    ```mlir
    func.func @f(%s: !tile.tile<8x16xf32>, %t: !tile.tile<8x32xf32>) -> !tile.tile<8x32xf32> {
      %r = tile.insert %s into %t [0, 16] : !tile.tile<8x16xf32> into !tile.tile<8x32xf32>
      return %r : !tile.tile<8x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source, Tile_TileType:$dest,
                       DenseI64ArrayAttr:$offsets);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $source `into` $dest $offsets attr-dict `:` qualified(type($source)) `into` qualified(type($dest))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_SHAPE_OPS
