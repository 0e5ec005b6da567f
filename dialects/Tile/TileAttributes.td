//===- TileAttributes.td - attributes of the tile dialect --*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_ATTRIBUTES
#define TILEWRIGHT_TILE_ATTRIBUTES

include "dialects/Tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

def Tile_LevelAttr : Tile_Attr<"Level", "level"> {
  let summary = "a level of the memory hierarchy, by name";
  let description = [{
    The memory space of a memref. Levels are named by the device description:
    `register`, `l1`, `l2`, `shared`, `sram`, `memory`, ...

    - `level_c1`: the name is not empty.

    Example:

    ```mlir
    func.func private @stage(memref<4x64xf32, #tile.level<"shared">>)
    ```
  }];
  let parameters = (ins StringRefParameter<"name of the level">:$name);
  let assemblyFormat = "`<` $name `>`";
}

def Tile_RTileAttr : Tile_Attr<"RTile", "rtile"> {
  let summary = "tile sizes of an operation's loops, per memory level";
  let description = [{
    One list of sizes per memory level; each has an entry per loop of the
    operation, parallel and reduction loops alike, in the order of the
    iteration space. `order` is the traversal order (outermost first, loop
    numbers). Levels are printed in alphabetical order.

    - `rtile_c1`: a level's name occurs once and has sizes.
    - `rtile_c2`: all levels have the same number of sizes.
    - `rtile_c3`: sizes are positive, or `?`: the whole of a loop, whatever it is.
    - `rtile_c4`: `order` is a permutation of the loops.

    Example:

    ```mlir
    func.func private @f() attributes {
      rtile = #tile.rtile<l2 = [128, 32, 384], register = [8, 32, 1], order = [1, 0, 2]>
    }
    ```
  }];
  let parameters = (ins
      "::mlir::DictionaryAttr":$sizes,
      OptionalArrayRefParameter<"int64_t", "traversal order">:$order);
  let extraClassDeclaration = [{
    /// Sizes of the loops at `level`, none where the level is not mentioned.
    std::optional<::llvm::ArrayRef<int64_t>>
    getSizes(::llvm::StringRef level) const;
    /// Number of loops; 0 where no level is mentioned.
    int64_t getNumLoops() const;
  }];
  let hasCustomAssemblyFormat = 1;
}

def Tile_LayoutAttr : Tile_Attr<"Layout", "layout"> {
  let summary = "how the elements of a tile or buffer are ordered and stored";
  let description = [{
    `perm`, `inner` and `tiles` mean what `outer_dims_perm`, `inner_dims_pos`
    and `inner_tiles` mean in `linalg.pack`: dimension `inner[i]` is cut in
    blocks of `tiles[i]`, which become trailing dimensions; the outer ones are
    permuted by `perm`. `swizzle` is the byte span within which 16-byte chunks
    are exchanged by an exclusive or with the row, `interleave` the number of
    rows whose elements alternate, `storage` the element type in memory. What
    is absent is the identity.

    - `layout_c1`: `perm` is a permutation.
    - `layout_c2`: `inner` and `tiles` have the same length.
    - `layout_c3`: positions in `inner` are distinct, not negative, and below
      the length of `perm` where that is given.
    - `layout_c4`: `tiles` are positive.
    - `layout_c5`: `swizzle` is 32, 64 or 128; `interleave` is at least 2.
    - `layout_c6`: `storage` is an integer or float type.

    Example:

    ```mlir
    func.func private @f() attributes {
      layouts = [#tile.layout<>,
                      #tile.layout<perm = [1, 0], inner = [1], tiles = [32]>,
                      #tile.layout<swizzle = 128, storage = f16>]
    }
    ```
  }];
  let parameters = (ins
      OptionalArrayRefParameter<"int64_t", "order of the outer dimensions">:$perm,
      OptionalArrayRefParameter<"int64_t", "dimensions cut in blocks">:$inner,
      OptionalArrayRefParameter<"int64_t", "block sizes">:$tiles,
      DefaultValuedParameter<"int64_t", "0", "bytes, 0 = none">:$swizzle,
      DefaultValuedParameter<"int64_t", "0", "rows, 0 = none">:$interleave,
      OptionalParameter<"::mlir::Type", "element type in memory">:$storage);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$perm,
                     CArg<"::llvm::ArrayRef<int64_t>", "{}">:$inner,
                     CArg<"::llvm::ArrayRef<int64_t>", "{}">:$tiles), [{
      return $_get($_ctxt, perm, inner, tiles, 0, 0, ::mlir::Type());
    }]>,
  ];
  let extraClassDeclaration = [{
    /// Whether the layout changes nothing.
    bool isIdentity() const;
  }];
  let hasCustomAssemblyFormat = 1;
}

def Tile_DistributedAttr : Tile_Attr<"Distributed", "distributed"> {
  let summary = "which register of which thread holds an element of a tile";
  let description = [{
    The third parameter of a tile's type where the threads of a GPU share the
    tile. There is a vector per bit of the register's number, of the lane and of
    the warp: a coordinate per dimension. The register `r` of lane `l` in warp
    `w` holds the element at the exclusive or of the vectors whose bits are set.
    These are the *distributed layouts* of "Linear Layouts" (Zhou et al.,
    arXiv 2505.23819): blocked layouts, fragments of matrix units, and slices of
    them.

    A zero vector of a lane or warp bit says that threads which differ in that
    bit hold the same elements. Coordinates past the tile's sizes are padding:
    registers that hold anything.

    - `distributed_c1`: all vectors have as many entries as the tile has dimensions.
    - `distributed_c2`: a vector is zero or has one entry, a power of two.
    - `distributed_c3`: no vector occurs twice, and those of registers are not zero.
    - `distributed_c4`: a dimension's entries are 1, 2, 4, ... without a gap.
    - `distributed_c5`: there are 5 vectors for the lane and at most 5 for the warp.

    Example, the accumulator of one `mma.sync.m16n8k16`:

    ```mlir
    func.func private @f(!tile.tile<16x8xf32, #tile.distributed<
      register = [[0, 1], [8, 0]],
      lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>)
    ```
  }];
  // A vector is stored as `64 * dimension + log2(entry)`, a zero one as -1.
  let parameters = (ins "int64_t":$rank,
      OptionalArrayRefParameter<"int64_t", "vectors of the register's bits">:$registers,
      OptionalArrayRefParameter<"int64_t", "vectors of the lane's bits">:$lanes,
      OptionalArrayRefParameter<"int64_t", "vectors of the warp's bits">:$warps);
  let extraClassDeclaration = [{
    /// Sizes of a dimension, padding included: powers of two.
    ::llvm::SmallVector<int64_t> getSizes() const;
  }];
  let hasCustomAssemblyFormat = 1;
}

def Tile_DeviceAttr : Tile_Attr<"Device", "device"> {
  let summary = "description of a machine";
  let description = [{
    What the deciding passes know of a machine, as a dictionary: `levels` (an
    array of dictionaries, nearest level first: bytes, addressable or cache,
    bandwidth, latency, transaction, banks), `units` (count, peak per element
    type, matrix shapes), limits. It is read from a TOML file and can be
    written back.

    - `device_c1`: `name` is a non-empty string.
    - `device_c2`: `levels`, where given, is an array of dictionaries, each with
      a string `name` of its own.
    - `device_c3`: `units`, where given, is a dictionary.

    Example:

    ```mlir
    module attributes {
      tile.device = #tile.device<name = "host",
        levels = [{name = "register", bytes = 2048}, {name = "l1", bytes = 49152} ],
        units = {cores = 2}>
    } {}
    ```
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$entries);
  let extraClassDeclaration = [{
    ::llvm::StringRef getName() const;
    /// The entry under `key`, null where there is none.
    ::mlir::Attribute getEntry(::llvm::StringRef key) const;
    /// The description of a level, null where the device has no such level.
    ::mlir::DictionaryAttr getLevel(::llvm::StringRef level) const;
  }];
  let hasCustomAssemblyFormat = 1;
}

#endif // TILEWRIGHT_TILE_ATTRIBUTES
