//===- SparseTilePatterns.td - which elements are kept -----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_PATTERNS
#define TILEWRIGHT_SPARSE_TILE_PATTERNS

include "dialects/SparseTile/SparseTileDialect.td"
include "dialects/SparseTile/SparseTileInterfaces.td"

class SparseTile_Pattern<string name, string attrMnemonic>
    : AttrDef<SparseTile_Dialect, name, [
        DeclareAttrInterfaceMethods<SparseTile_PatternInterface>]> {
  let mnemonic = attrMnemonic;
}

def SparseTile_DenseAttr : SparseTile_Pattern<"Dense", "dense"> {
  let summary = "every element may differ from zero";
  let description = [{
    Parts: the tensor itself. It is the pattern of tensors of which a number
    format alone is known.

    Example:

    ```mlir
    func.func private @f(tensor<4x8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32>>>)
    ```
  }];
}

def SparseTile_NMAttr : SparseTile_Pattern<"NM", "nm"> {
  let summary = "N of M neighbours along an axis are kept";
  let description = [{
    Along `axis` the tensor is cut in windows of `m` units; of each, `n` are
    kept. `unit` is the block of elements that is kept or not: all ones (the
    default) is element-wise N:M, `[1, 32]` along axis 0 vector-wise (32 columns
    share an index), `[4, 4]` block-wise (nmSPARSE, MLSys 2023). The last window
    may be ragged: what it lacks counts as zero.

    Parts: the values, with `n` units for each window along the axis and whole
    units along the others; and per unit its position in its window, in
    ascending order, of type `i8` (`i16` where `m` is above 128). A window that
    has fewer than `n` units different from zero keeps the first zero ones, so
    that each has exactly `n`.

    - `nm_c1`: `0 < n <= m`, and `m` is at most 32768.
    - `nm_c2`: `axis` is a dimension of the tensor.
    - `nm_c3`: `unit` has a positive number for each dimension.

    Example:

    ```mlir
    func.func private @element(tensor<64x48xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>)
    func.func private @vector(tensor<64x96xf32, #sparse_tile.tesa<nm<8 : 32, axis = 0, unit = [1, 32]>>>)
    ```
  }];
  let parameters = (ins "int64_t":$n, "int64_t":$m, "int64_t":$axis,
      OptionalArrayRefParameter<"int64_t", "elements kept as one">:$unit);
  let assemblyFormat = [{
    `<` $n `:` $m `,` `axis` `=` $axis (`,` `unit` `=` `[` $unit^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements of a unit along dimension `dim`.
    int64_t getUnitSize(int64_t dim) const {
      return getUnit().empty() ? 1 : getUnit()[dim];
    }
  }];
}

def SparseTile_BlockAttr : SparseTile_Pattern<"Block", "block"> {
  let summary = "some blocks of a matrix are kept";
  let description = [{
    Parts as those of `scipy.sparse.bsr_array`: `data`, [blocks, rows, columns of
    a block]; `indices`, the column of each block in units of blocks, ascending
    within a row; `indptr`, for each row of blocks where its own start. Ragged
    blocks at the border hold zeros behind it.

    - `block_c1`: `shape` is two positive numbers.
    - `block_c2`: the tensor is a matrix.

    Example:

    ```mlir
    func.func private @f(tensor<768x3072xf32, #sparse_tile.tesa<block<[32, 32]>>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape);
  let assemblyFormat = "`<` `[` $shape `]` `>`";
  let genVerifyDecl = 1;
}

def SparseTile_MaskAttr : SparseTile_Pattern<"Mask", "mask"> {
  let summary = "any elements of a matrix are kept";
  let description = [{
    Unstructured sparsity, known at compile time. Parts as those of
    `scipy.sparse.csr_array`: `data`, `indices` (columns, ascending within a row)
    and `indptr`.

    - `mask_c1`: the tensor is a matrix.

    Example:

    ```mlir
    func.func private @f(tensor<768x3072xf32, #sparse_tile.tesa<mask>>)
    ```
  }];
}

def SparseTile_DynamicAttr : SparseTile_Pattern<"Dynamic", "dynamic"> {
  let summary = "which blocks differ from zero is known at run time";
  let description = [{
    `unit` is the granularity in which zeros come. The tensor is held as it is;
    `sparse_tile.index` finds its live micro-tiles (PIT, SOSP 2023).

    - `dynamic_c1`: `unit` has a positive number for each dimension.

    Example:

    ```mlir
    func.func private @f(tensor<?x4096xf32, #sparse_tile.tesa<dynamic<[1, 64]>>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$unit);
  let assemblyFormat = "`<` `[` $unit `]` `>`";
}

#endif // TILEWRIGHT_SPARSE_TILE_PATTERNS
