//===- TileMemoryOps.td - tiles and memory -----------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_MEMORY_OPS
#define TILEWRIGHT_TILE_MEMORY_OPS

include "dialects/Tile/TileAttributes.td"
include "dialects/Tile/TileEnums.td"
include "dialects/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_AllocOp : Tile_Op<"alloc"> {
  let summary = "a buffer at a memory level, for the duration of the task";
  let description = [{
    Each task has its own. A ring of pipeline slots is a leading dimension: slot
    `s` is a `memref.subview`. The contents are undefined at first.

    - `alloc_c1`: sizes are static and the layout is the identity.
    - `alloc_c2`: `alignment` is a positive power of two (bytes).
    - `alloc_c3`: the memory space is a `#tile.level` or absent.

    Example:

    ```mlir
    tile.kernel @k() {
      %panel = tile.alloc : memref<4x64xf32, #tile.level<"l1">>
      %ring = tile.alloc {alignment = 128 : i64} : memref<4x64x64xf16, #tile.level<"shared">>
      tile.return
    }
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$alignment);
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$result);
  let skipDefaultBuilders = 1;
  let builders = [
    // An alignment of 0 leaves the choice open.
    OpBuilder<(ins "::mlir::MemRefType":$type,
                   CArg<"int64_t", "0">:$alignment)>,
  ];
  let extraClassDeclaration = [{
    ::mlir::MemRefType getType() {
      return ::llvm::cast<::mlir::MemRefType>(getResult().getType());
    }
  }];
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [
    AttrSizedOperandSegments,
    OptionalTypesMatchWith<"pad has the tile's element type", "result", "pad",
                           "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "a tile from memory";
  let description = [{
    Element `(p0, p1, ...)` of the tile is read at the memref position whose
    entry in dimension `dims[t]` is `offset + p_t * steps[t]`, and `offset`
    alone in the other dimensions. `dims` defaults to the trailing dimensions,
    `steps` to ones. Instead, with `indices %idx along t`, the entry in dimension
    `dims[t]` is `offset + idx[p_t]`: a gather.

    Where the tile's layout is `#tile.layout<interleave = g>`, the last dimension
    of the memref, of size `g`, holds the rows that alternate: element `(p0, p1)`
    is at entry `offset + p0 div g` of dimension `dims[0]`, at `offset + p1` of
    `dims[1]`, which is the last but one, and at `p0 mod g` of the last one. Such
    tiles feed `tile.mma`: processors multiply pairs of bf16 or fours of bytes.

    `valid` has a bound per tile dimension: positions `p_t >= valid_t` are not
    accessed and read as `pad`, zero by default. A bound may exceed the size, or
    be zero or negative.

    `bounded` names dimensions of the memref along which the load may reach out
    of it, on both sides: places outside are not accessed and are zero.

    - `load_c1`: there is an offset per memref dimension.
    - `load_c2`: `dims` has a distinct memref dimension per tile dimension;
      without it, the tile's rank is at most the memref's.
    - `load_c3`: `steps` has an entry per tile dimension.
    - `load_c4`: memref and tile have the same element type.
    - `load_c5`: `indices` and `along` come together; `indices` is a tile of rank
      1 of integers or `index` whose size is the tile's size along `along`.
    - `load_c6`: `valid` has a bound per tile dimension.
    - `load_c7`: `pad` occurs with `valid` only.
    - `load_c8`: an interleaved tile has rank 2, names its `dims`, and has neither
      `steps`, `indices` nor `valid`; the memref's last dimension is of size `g`,
      `dims[1]` the one before it, and `dims[0]` another.
    - `load_c9`: `bounded` names dimensions of the memref, and occurs with neither
      `indices` nor `pad`.

    Example:

    ```mlir
    tile.kernel @k(%m: memref<128x384xf32>, %t: memref<1000x64xf16>, %w: memref<256x32x4xi8>, %n: index) grid(%i, %j) {
      %c0 = arith.constant 0 : index
      %inf = arith.constant 0xFF800000 : f32
      %a = tile.load %m[%i, %j] : memref<128x384xf32>, !tile.tile<8x1xf32>
      %b = tile.load %m[%i, %j] dims [1, 0] steps [2, 1] : memref<128x384xf32>, !tile.tile<4x8xf32>
      %r = tile.load %m[%i, %j] valid (%n, %n) pad %inf : memref<128x384xf32>, !tile.tile<8x32xf32>
      %o = tile.load %m[%i, %j] bounded [0] : memref<128x384xf32>, !tile.tile<8x32xf32>
      %idx = tile.iota dim 0 : !tile.tile<8xindex>
      %g = tile.load %t[%c0, %c0] indices %idx along 0
          : memref<1000x64xf16>, !tile.tile<8x64xf16> (indices !tile.tile<8xindex>)
      %p = tile.load %w[%i, %c0, %c0] dims [0, 1]
          : memref<256x32x4xi8>, !tile.tile<4x32xi8, #tile.layout<interleave = 4>>
      tile.return
    }
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Variadic<Index>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$dims,
                       OptionalAttr<DenseI64ArrayAttr>:$steps,
                       Optional<Tile_IntegerOrIndexTile>:$indices,
                       OptionalAttr<I64Attr>:$along,
                       Variadic<Index>:$valid,
                       Optional<Tile_AnyScalar>:$pad,
                       OptionalAttr<DenseI64ArrayAttr>:$bounded);
  let results = (outs Tile_TileType:$result);
  let skipDefaultBuilders = 1;
  let builders = [
    // Empty lists and null values mean the defaults; `along` counts with
    // `indices` only.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$memref,
                   "::mlir::ValueRange":$offsets,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$dims,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$steps,
                   CArg<"::mlir::Value", "{}">:$indices,
                   CArg<"int64_t", "0">:$along,
                   CArg<"::mlir::ValueRange", "{}">:$valid,
                   CArg<"::mlir::Value", "{}">:$pad)>,
  ];
  let assemblyFormat = [{
    $memref `[` $offsets `]` (`dims` $dims^)? (`steps` $steps^)?
    (`indices` $indices^ `along` $along)? (`valid` `(` $valid^ `)`)?
    (`pad` $pad^)? (`bounded` $bounded^)? attr-dict
    `:` type($memref) `,` qualified(type($result))
    (`(` `indices` qualified(type($indices))^ `)`)?
  }];
  let extraClassDeclaration = [{
    TileType getType() { return ::llvm::cast<TileType>(getResult().getType()); }
    TileType getTileType() { return getType(); }
    ::mlir::MemRefType getMemRefType() {
      return ::llvm::cast<::mlir::MemRefType>(getMemref().getType());
    }
    /// The memref dimension of each tile dimension, defaults filled in.
    ::llvm::SmallVector<int64_t> getTileDims();
    /// The step of each tile dimension, defaults filled in.
    ::llvm::SmallVector<int64_t> getTileSteps();
  }];
  let hasCanonicalizer = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a tile to memory";
  let description = [{
    Writes where `tile.load` with the same options reads; positions at or past
    `valid` are left alone. With `reduce`, memory becomes `memory op value`;
    with `atomic`, so that tasks may do it to the same place at once (in any
    order). With `indices` that repeat a position and no `reduce`, the last one
    wins.

    - `store_c1`: there is an offset per memref dimension.
    - `store_c2`: `dims` has a distinct memref dimension per tile dimension;
      without it, the tile's rank is at most the memref's.
    - `store_c3`: `steps` has a non-zero entry per tile dimension.
    - `store_c4`: memref and tile have the same element type.
    - `store_c5`: `indices` and `along` come together; `indices` is a tile of
      rank 1 of integers or `index` whose size is the tile's size along `along`.
    - `store_c6`: `valid` has a bound per tile dimension.
    - `store_c7`: `reduce` is add, max or min; `atomic` occurs with it only.

    Example:

    ```mlir
    tile.kernel @k(%m: memref<128x384xf32>, %n: index) grid(%i, %j) {
      %f = arith.constant 1.0 : f32
      %t = tile.splat %f : f32 -> !tile.tile<8x32xf32>
      %idx = tile.iota dim 0 : !tile.tile<8xi32>
      tile.store %t, %m[%i, %j] : !tile.tile<8x32xf32>, memref<128x384xf32>
      tile.store %t, %m[%i, %j] valid (%n, %n) : !tile.tile<8x32xf32>, memref<128x384xf32>
      tile.store %t, %m[%i, %j] indices %idx along 0 reduce add atomic
          : !tile.tile<8x32xf32>, memref<128x384xf32> (indices !tile.tile<8xi32>)
      tile.return
    }
    ```
  }];
  let arguments = (ins Tile_TileType:$tile, AnyMemRef:$memref,
                       Variadic<Index>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$dims,
                       OptionalAttr<DenseI64ArrayAttr>:$steps,
                       Optional<Tile_IntegerOrIndexTile>:$indices,
                       OptionalAttr<I64Attr>:$along,
                       Variadic<Index>:$valid,
                       OptionalAttr<Tile_ReduceKindAttr>:$reduce,
                       UnitAttr:$atomic);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Value":$memref,
                   "::mlir::ValueRange":$offsets,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$dims,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$steps,
                   CArg<"::mlir::Value", "{}">:$indices,
                   CArg<"int64_t", "0">:$along,
                   CArg<"::mlir::ValueRange", "{}">:$valid,
                   CArg<"std::optional<ReduceKind>", "{}">:$reduce,
                   CArg<"bool", "false">:$atomic)>,
  ];
  let assemblyFormat = [{
    $tile `,` $memref `[` $offsets `]` (`dims` $dims^)? (`steps` $steps^)?
    (`indices` $indices^ `along` $along)? (`valid` `(` $valid^ `)`)?
    (`reduce` custom<Kind>($reduce)^)? (`atomic` $atomic^)? attr-dict `:` qualified(type($tile)) `,`
    type($memref) (`(` `indices` qualified(type($indices))^ `)`)?
  }];
  let extraClassDeclaration = [{
    TileType getTileType() {
      return ::llvm::cast<TileType>(getTile().getType());
    }
    ::mlir::MemRefType getMemRefType() {
      return ::llvm::cast<::mlir::MemRefType>(getMemref().getType());
    }
    /// The memref dimension of each tile dimension, defaults filled in.
    ::llvm::SmallVector<int64_t> getTileDims();
    /// The step of each tile dimension, defaults filled in.
    ::llvm::SmallVector<int64_t> getTileSteps();
  }];
  let hasCanonicalizer = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_CopyOp : Tile_Op<"copy"> {
  let summary = "movement between buffers, of this task or another";
  let description = [{
    Copies `src` to `dst`; they do not overlap. With `at`, the destination is
    the buffer that `dst` stands for *in the task with these coordinates*: a
    neighbour core of a mesh, or another block of the same cluster. The writer
    and the reader meet at a `tile.barrier`.

    With `fill`, `src` may be smaller than `dst`: it is copied to the start of each
    dimension, and the rest of `dst` becomes zero.

    `bounded` names dimensions of the buffer that `src` is a view of (of `src`
    itself, where it is no view): the view may reach out of the buffer along
    them, on both sides. Places outside are not accessed and are zero.

    - `copy_c1`: shapes agree (sizes that are static in both; with `fill`, those
      of `src` are at most those of `dst`) and element types are equal.
    - `copy_c2`: `at` has a coordinate per grid dimension of the kernel around
      it.
    - `copy_c3`: with `at`, `dst` is made by `tile.alloc` of the kernel: it is
      its own in every task.
    - `copy_c4`: `fill` and `at` exclude each other.
    - `copy_c5`: `bounded` names dimensions of that buffer.

    Example:

    ```mlir
    tile.kernel @shift(%x: memref<8x64xf32>) grid(%i) {
      %mine = tile.alloc : memref<1x64xf32, #tile.level<"sram">>
      %next = tile.alloc : memref<1x64xf32, #tile.level<"sram">>
      %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
      tile.copy %row to %mine : memref<1x64xf32, strided<[64, 1], offset: ?>>, memref<1x64xf32, #tile.level<"sram">>
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %after = arith.addi %i, %c1 : index
      %right = arith.remui %after, %c8 : index
      tile.copy %mine to %next at (%right) : memref<1x64xf32, #tile.level<"sram">>,
          memref<1x64xf32, #tile.level<"sram">>
      tile.barrier
      tile.return
    }
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$src,
                       Arg<AnyMemRef, "", [MemWrite]>:$dst,
                       Variadic<Index>:$at, UnitAttr:$fill,
                       OptionalAttr<DenseI64ArrayAttr>:$bounded);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$src, "::mlir::Value":$dst,
                   CArg<"::mlir::ValueRange", "{}">:$at,
                   CArg<"bool", "false">:$fill)>,
  ];
  let assemblyFormat = [{
    $src `to` $dst (`at` `(` $at^ `)`)? (`fill` $fill^)? (`bounded` $bounded^)?
    attr-dict `:` type($src) `,` type($dst)
  }];
  let hasCanonicalizer = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tile_AsyncOp : Tile_Op<"async", [
    RecursiveMemoryEffects, SingleBlock, NoRegionArguments,
    SingleBlockImplicitTerminator<"::tilewright::tile::YieldOp">]> {
  let summary = "movement that goes on in the background";
  let description = [{
    Starts the copies in its body; they are complete once the token has been
    awaited. Until then neither sources may be written nor destinations be read
    or written, and the copies of several `tile.async` are in no order.

    - `async_c1`: the body holds `tile.copy` and operations without memory
      effects only, and at least one `tile.copy`.

    Example:

    ```mlir
    tile.kernel @k(%x: memref<64xf16>) {
      %slot = tile.alloc : memref<64xf16, #tile.level<"shared">>
      %token = tile.async {
        tile.copy %x to %slot : memref<64xf16>, memref<64xf16, #tile.level<"shared">>
      }
      tile.await %token
      tile.return
    }
    ```
  }];
  let results = (outs Tile_TokenType:$token);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the body's block, with its terminator.
    OpBuilder<(ins)>,
  ];
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_Op<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for movement in the background";
  let description = [{
    Returns when the copies behind all tokens are complete. A token may be
    awaited more than once.

    - `await_c1`: there is at least one token.

    Example:

    ```mlir
    tile.kernel @k(%x: memref<64xf16>) {
      %slot = tile.alloc : memref<2x64xf16, #tile.level<"shared">>
      %s0 = memref.subview %slot[0, 0] [1, 64] [1, 1] : memref<2x64xf16, #tile.level<"shared">>
          to memref<64xf16, strided<[1]>, #tile.level<"shared">>
      %s1 = memref.subview %slot[1, 0] [1, 64] [1, 1] : memref<2x64xf16, #tile.level<"shared">>
          to memref<64xf16, strided<[1], offset: 64>, #tile.level<"shared">>
      %t0 = tile.async {
        tile.copy %x to %s0 : memref<64xf16>, memref<64xf16, strided<[1]>, #tile.level<"shared">>
      }
      %t1 = tile.async {
        tile.copy %x to %s1 : memref<64xf16>, memref<64xf16, strided<[1], offset: 64>, #tile.level<"shared">>
      }
      tile.await %t0, %t1
      tile.return
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_TokenType>:$tokens);
  let assemblyFormat = "$tokens attr-dict";
  let hasVerifier = 1;
}

def Tile_BarrierOp : Tile_Op<"barrier", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "tasks wait for each other";
  let description = [{
    A task passes when all tasks of its cluster (of the grid, where the kernel
    has no `cluster`) have arrived; what they wrote before is then visible to
    all of them. All of these tasks meet the same barriers equally often.

    - `barrier_c1`: it stands in a `tile.kernel`.

    Example:

    ```mlir
    tile.kernel @k() grid(%i) {
      tile.barrier
      tile.return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_MEMORY_OPS
