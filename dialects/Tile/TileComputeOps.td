//===- TileComputeOps.td - computing with tiles ------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_COMPUTE_OPS
#define TILEWRIGHT_TILE_COMPUTE_OPS

include "dialects/Tile/TileEnums.td"
include "dialects/Tile/TileTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_MmaOp : Tile_Op<"mma", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "matrix product with accumulation";
  let description = [{
    `result = a @ b + c`, computed in the element type of `c`. With `meta` and
    `sparsity [n, m]`, `a` is condensed along its second dimension: of each `m`
    neighbours `n` are kept, and `meta` says which. Element `a[i, p]` then meets
    row `(p div n) * m + meta[i, p]` of `b`. Positions in groups of 4 may be
    packed, eight neighbours in an i16, the first in the lowest two bits, as
    matrix units take them; these want the positions of a group to ascend, each
    once. Integers are signed, those of `a`
    with `a_unsigned` and those of `b` with `b_unsigned` are not.

    - `mma_c1`: all tiles have rank 2.
    - `mma_c2`: `a` is MxK, `b` KxN and `c` MxN (with `meta`, `a` is Mx(K*n/m)).
    - `mma_c3`: `a` and `b` are floats of at most the width of `c`'s, or integers
      of at most its width.
    - `mma_c4`: `meta` and `sparsity` come together; `sparsity` is two numbers
      with `0 < n < m`; `meta` is a tile of integers with the shape of `a`, or
      packed: of `i16` and shape Mx(K*n/m/8), for `m` = 4.
    - `mma_c5`: `a_unsigned` and `b_unsigned` go with integers.
    - `mma_c6`: where one tile is held in blocks, all are: `a` in blocks of mxk,
      `b` of kxn, `c` of mxn.

    Example:

    ```mlir
    func.func @f(%a: !tile.tile<8x1xf32>, %b: !tile.tile<1x32xf32>, %c: !tile.tile<8x32xf32>) -> !tile.tile<8x32xf32> {
      %d = tile.mma %a, %b, %c : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
      return %d : !tile.tile<8x32xf32>
    }
    func.func @sparse(%a: !tile.tile<16x8xf16>, %m: !tile.tile<16x8xi8>, %b: !tile.tile<16x8xf16>,
        %c: !tile.tile<16x8xf32>) -> !tile.tile<16x8xf32> {
      %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
          : !tile.tile<16x8xf16>, !tile.tile<16x8xf16>, !tile.tile<16x8xf32>, !tile.tile<16x8xi8>
      return %d : !tile.tile<16x8xf32>
    }
    func.func @bytes(%a: !tile.tile<8x4xi8>, %b: !tile.tile<4x32xi8, #tile.layout<interleave = 4>>,
        %c: !tile.tile<8x32xi32>) -> !tile.tile<8x32xi32> {
      %d = tile.mma %a, %b, %c a_unsigned : !tile.tile<8x4xi8>, !tile.tile<4x32xi8, #tile.layout<interleave = 4>>,
          !tile.tile<8x32xi32>
      return %d : !tile.tile<8x32xi32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$a, Tile_TileType:$b, Tile_TileType:$c,
                       Optional<Tile_IntegerOrIndexTile>:$meta,
                       OptionalAttr<DenseI64ArrayAttr>:$sparsity,
                       UnitAttr:$a_unsigned, UnitAttr:$b_unsigned);
  let results = (outs Tile_TileType:$result);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$c,
                   CArg<"::mlir::Value", "{}">:$meta,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$sparsity)>,
    // A product of integers of which some are unsigned.
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$c,
                   "bool":$aUnsigned, "bool":$bUnsigned)>,
  ];
  let assemblyFormat = [{
    $a `,` $b `,` $c (`meta` $meta^ `sparsity` $sparsity)?
    (`a_unsigned` $a_unsigned^)? (`b_unsigned` $b_unsigned^)? attr-dict `:`
    qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($c)) (`,` qualified(type($meta))^)?
  }];
  let hasVerifier = 1;
}

def Tile_MmaWaitOp : Tile_Op<"mma_wait", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "a product, once it is complete";
  let description = [{
    Matrix units of some GPUs multiply in the background. A `tile.mma` with the
    attribute `tile.pending = n` does not wait for its product, but for all but the
    last `n` ones; its result may only be added to by further products, carried by
    loops, and given to this op, which waits. The value is the same.

    Example:

    ```mlir
    func.func @f(%a: !tile.tile<64x64xf16>, %b: !tile.tile<64x64xf16>, %c: !tile.tile<64x64xf32>)
        -> !tile.tile<64x64xf32> {
      %d = tile.mma %a, %b, %c {tile.pending = 1 : i64}
          : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
      %r = tile.mma_wait %d : !tile.tile<64x64xf32>
      return %r : !tile.tile<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "combines the elements along dimensions";
  let description = [{
    The reduced dimensions are kept with size 1. The order of combination is not
    specified; each back end has one that does not depend on the run.

    - `reduce_c1`: `dims` are distinct dimensions of the tile.
    - `reduce_c2`: the kind fits the element type (see `ReduceKind`).
    - `reduce_c3`: the result has the tile's shape with 1 in `dims`.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x64xf32>) -> !tile.tile<8x1xf32> {
      %r = tile.reduce add %t dims [1] : !tile.tile<8x64xf32> -> !tile.tile<8x1xf32>
      return %r : !tile.tile<8x1xf32>
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, Tile_TileType:$source,
                       DenseI64ArrayAttr:$dims);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    custom<Kind>($kind) $source `dims` $dims attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "running combination along a dimension";
  let description = [{
    Position `p` of the result combines positions `0..p` (with `exclusive`,
    `0..p-1`, and the neutral element at the start; with `reverse`, from the
    other end).

    - `scan_c1`: `dim` is a dimension of the tile.
    - `scan_c2`: the kind fits the element type (see `ReduceKind`).

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x64xf32>) -> !tile.tile<8x64xf32> {
      %a = tile.scan add %t dim 1 : !tile.tile<8x64xf32>
      %b = tile.scan max %a dim 0 exclusive reverse : !tile.tile<8x64xf32>
      return %b : !tile.tile<8x64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, Tile_TileType:$source,
                       I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    custom<Kind>($kind) $source `dim` $dim (`exclusive` $exclusive^)? (`reverse` $reverse^)?
    attr-dict `:` qualified(type($source))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_SelectOp : Tile_Op<"select", [
    Pure, AllTypesMatch<["true_value", "false_value", "result"]>]> {
  let summary = "one of two elements, at each position";
  let description = [{
    - `select_c1`: the condition has the shape of the values.

    Example:

    ```mlir
    func.func @relu(%t: !tile.tile<8x32xf32>) -> !tile.tile<8x32xf32> {
      %zero = arith.constant dense<0.0> : !tile.tile<8x32xf32>
      %c = arith.cmpf ogt, %t, %zero : !tile.tile<8x32xf32>
      %r = tile.select %c, %t, %zero : !tile.tile<8x32xi1>, !tile.tile<8x32xf32>
      return %r : !tile.tile<8x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_BoolTile:$condition, Tile_TileType:$true_value,
                       Tile_TileType:$false_value);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $condition `,` $true_value `,` $false_value attr-dict `:` qualified(type($condition))
    `,` qualified(type($result))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_ConvertOp : Tile_Op<"convert", [Pure]> {
  let summary = "elements of another type";
  let description = [{
    Between integers, floats and `index`. Floats are rounded to nearest even,
    to integers toward zero; a value that the target cannot hold gives an
    unspecified one. Integers are signed unless `unsigned` is given (sign or
    zero extension, `i1` true is 1 either way); narrowing drops high bits. To
    `i1`: whether the number differs from zero.

    - `convert_c1`: the shapes are equal, and the layouts are unless the element
      types are: a conversion to the same type moves a tile between registers.

    Example:

    ```mlir
    func.func @f(%t: !tile.tile<8x32xi8>) -> !tile.tile<8x32xf32> {
      %r = tile.convert %t unsigned : !tile.tile<8x32xi8> -> !tile.tile<8x32xf32>
      return %r : !tile.tile<8x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$source, UnitAttr:$is_unsigned);
  let results = (outs Tile_TileType:$result);
  let assemblyFormat = [{
    $source (`unsigned` $is_unsigned^)? attr-dict `:` qualified(type($source)) `->`
    qualified(type($result))
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_COMPUTE_OPS
