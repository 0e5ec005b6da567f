//===- SparseTileAttributes.td - formats and encodings -----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_ATTRIBUTES
#define TILEWRIGHT_SPARSE_TILE_ATTRIBUTES

include "dialects/SparseTile/SparseTilePatterns.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/TensorEncoding.td"

def SparseTile_FormatAttr : AttrDef<SparseTile_Dialect, "Format"> {
  let mnemonic = "format";
  let summary = "the numbers that stand for elements: codes, scales, zero points";
  let description = [{
    An element is `(code - zero point) * scale`; without scales, an `i32` that is
    the difference. `storage` is the type of codes: an integer of 2, 4 or 8 bits
    (`unsigned` or not), or a float of 8 bits, which has no zero point. Among the
    parts a number of fewer bits has a byte: kernels pack as they read. `group`
    is the block of elements that share a scale (and a zero point): a number per
    dimension, `?` for the whole of it; without it the tensor has one scale.
    `[1, ?]` is a scale per row, `[1, 32]` one per 32 elements of a row.

    - `format_c1`: `storage` is `i2`, `i4`, `i8`, `f8E4M3FN` or `f8E5M2`.
    - `format_c2`: `scales` is a float type; there are none for integers alone.
    - `format_c3`: a float has neither `unsigned` nor `zero_points`;
      `zero_points` is an integer or float type.
    - `format_c4`: `group` has a positive number or `?` for each dimension.

    Example:

    ```mlir
    func.func private @f(
        tensor<4x8xf32, #sparse_tile.tesa<dense : format<i8, unsigned, scales = f32, zero_points = i8>>>,
        tensor<64x96xf16, #sparse_tile.tesa<dense : format<i4, scales = f16, group = [32, 1]>>>,
        tensor<64x96xf16, #sparse_tile.tesa<dense : format<f8E4M3FN, scales = f32>>>,
        tensor<4x8xi32, #sparse_tile.tesa<dense : format<i8, zero_points = i8, group = [1, ?]>>>)
    ```
  }];
  let parameters = (ins "::mlir::Type":$storage, "bool":$isUnsigned,
      OptionalParameter<"::mlir::Type">:$scales,
      OptionalParameter<"::mlir::Type">:$zeroPoints,
      OptionalArrayRefParameter<"int64_t">:$group);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The type that a code or zero point of `type` has among the parts: a byte
    /// holds a shorter one.
    static ::mlir::Type getHeldType(::mlir::Type type);
    /// Sizes of the tensor of scales of a tensor of `shape`.
    ::llvm::SmallVector<int64_t>
    getScaleShape(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

def SparseTile_TesaAttr : AttrDef<SparseTile_Dialect, "Tesa", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<OpAsmAttrInterface, ["getAlias"]>]> {
  let mnemonic = "tesa";
  let summary = "tensor with sparsity attribute: regions, a pattern and format each";
  let description = [{
    The encoding of a tensor (SparTA, OSDI 2022, section 3). The tensor is the sum
    of its regions, in each of which only the elements of a pattern differ from
    zero: one region for most tensors, several for a cover of its non-zeros by
    patterns that hardware likes and a remainder. Without a format a region's
    values are of the tensor's element type.

    - `tesa_c1`: there is a region.
    - `tesa_c2`: each pattern and format fits the shape; the element type of a
      region with a format is a float, or `i32` where the format has no scales.

    Example:

    ```mlir
    func.func private @cover(tensor<64x64xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>, mask>>)
    ```
  }];
  let parameters = (ins
      ArrayRefParameter<"::mlir::Attribute", "pattern of each region">:$patterns,
      ArrayRefParameter<"::mlir::Attribute", "its format, or null">:$formats);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumRegions() const { return getPatterns().size(); }
    PatternInterface getPattern(int64_t region) const;
    /// Null where the region's values are elements as they are.
    FormatAttr getFormat(int64_t region) const;
    /// Types of all parts of a tensor of this type, region after region.
    static ::llvm::SmallVector<::mlir::Type>
    getParts(::mlir::RankedTensorType type);
  }];
}

#endif // TILEWRIGHT_SPARSE_TILE_ATTRIBUTES
