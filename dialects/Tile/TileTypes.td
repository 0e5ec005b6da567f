//===- TileTypes.td - types of the tile dialect ------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_TYPES
#define TILEWRIGHT_TILE_TYPES

include "dialects/Tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/BuiltinTypes.td"

def Tile_TileType
    : TypeDef<Tile_Dialect, "Tile", [ShapedTypeInterface, ValueSemantics]> {
  let mnemonic = "tile";
  let summary = "a block of values in registers";
  let description = [{
    An SSA value: static shape (of any rank, 0 included), element type, optional
    register layout. Elementwise `arith` and `math` ops, comparisons and
    `arith.constant dense<...>` work on it; `arith.select` and `arith` casts
    refuse, hence `tile.select` and `tile.convert`.

    A tile of rank 2 whose layout cuts both dimensions (`inner = [0, 1]`) is
    held in blocks of that size, the registers of a matrix unit: it is loaded,
    multiplied by `tile.mma`, and converted to a tile that is not, nothing else.

    - `tile_type_c1`: sizes are positive.
    - `tile_type_c2`: elements are integers, floats or `index`.
    On a GPU the layout is a `#tile.distributed` (the tile lies in the registers of a
    block's threads) or `#tile.level<"shared">`: the tile is not in registers,
    it stays in the shared memory that it was loaded from until its user, a
    product, reads it there.

    - `tile_type_c3`: a `#tile.layout` names dimensions of the tile only.
    - `tile_type_c4`: a `#tile.distributed` has the tile's rank and covers its sizes.

    Example:

    ```mlir
    func.func private @f(!tile.tile<8x32xf32>, !tile.tile<f16>,
                         !tile.tile<16x16xf16, #tile.layout<perm = [1, 0]>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType,
                        OptionalParameter<"::mlir::Attribute">:$layout);
  let builders = [
    TypeBuilderWithInferredContext<
        (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
             CArg<"::mlir::Attribute", "{}">:$layout), [{
      return $_get(elementType.getContext(), shape, elementType, layout);
    }]>,
  ];
  let extraClassDeclaration = [{
    bool hasRank() const { return true; }
    ::mlir::ShapedType
    cloneWith(std::optional<::llvm::ArrayRef<int64_t>> shape,
              ::mlir::Type elementType) const;
    /// How many rows alternate in its layout; 0 where none do.
    int64_t getInterleave() const;
    /// Rows and columns of the blocks that it is held in; empty where its
    /// layout does not cut both dimensions.
    ::llvm::ArrayRef<int64_t> getBlocks() const;
    /// Where its elements lie in the registers of a block; null if not said.
    DistributedAttr getDistributed() const;
    /// Whether it stays in the shared memory that it comes from.
    bool isInShared() const;
    /// Whether `type` may be the element type of a tile.
    static bool isValidElementType(::mlir::Type type);
  }];
  let skipDefaultBuilders = 1;
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

def Tile_TokenType : TypeDef<Tile_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "the completion of an asynchronous movement";
  let description = [{
    Made by `tile.async`, consumed by `tile.await`. Loops may carry it, so that
    a pipeline of N stages carries N tokens.

    Example:

    ```mlir
    func.func private @f(!tile.token)
    ```
  }];
}

def Tile_AnyScalar : Type<
    CPred<"::tilewright::tile::TileType::isValidElementType($_self)">,
    "integer, float or index">;

// A tile whose elements satisfy `pred`.
class Tile_TileOf<string pred, string summary>
    : Type<And<[Tile_TileType.predicate,
                CPred<"::llvm::cast<::tilewright::tile::TileType>($_self)"
                      ".getElementType()." # pred>]>, summary,
           "::tilewright::tile::TileType">;

def Tile_BoolTile : Tile_TileOf<"isInteger(1)", "tile of i1">;
def Tile_IntegerOrIndexTile
    : Tile_TileOf<"isIntOrIndex()", "tile of integers or index">;

#endif // TILEWRIGHT_TILE_TYPES
