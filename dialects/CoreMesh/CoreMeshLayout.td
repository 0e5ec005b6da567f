//===- CoreMeshLayout.td - where a tensor lies -------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_LAYOUT
#define TILEWRIGHT_CORE_MESH_LAYOUT

include "dialects/CoreMesh/CoreMeshDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/TensorEncoding.td"

def CoreMesh_Deal : CoreMesh_Enum<"Deal", "which core has which part", [
    I32EnumAttrCase<"block", 0>, I32EnumAttrCase<"cyclic", 1>,
    I32EnumAttrCase<"balanced", 2>]>;

def CoreMesh_SplitAttr : AttrDef<CoreMesh_Dialect, "Split"> {
  let mnemonic = "split";
  let summary = "how one dimension of a tensor lies along an axis of the grid";
  let description = [{
    Position p along the axis, counted as cores stand or along the folded ring
    (`ring`), has block p of N. A block has `block` elements, by default the size
    divided by N and rounded up; the last ones are padded. `uneven [3, 3, 1]` are
    the sizes of all N blocks, of which none is padded.

    `rotate r`: position p has block (p + r) mod N. `skew`: the blocks of a grid of
    H x W cores are finer, L = lcm(H, W) of them, so that both axes can count
    them: position p of the axis and q of the other one have the L / N blocks from
    p * L / N + q * L / M on, M the length of the other axis, all modulo L. On a
    square grid that is block (p + q) mod N: where Cannon's algorithm begins.

    `cyclic`: element i lies at position i mod N. `balanced`: of elements that
    become more while a program runs (`coremesh.kv_append`), each position has a
    like number, the oldest the first ones; counts differ by one at most.

    - `split_c1`: `rotate` and sizes are not negative, `block` is positive.
    - `split_c2`: `uneven`, `cyclic` and `balanced` have neither `skew`, `rotate` nor
      `block`.

    Example:

    ```mlir
    func.func private @f() attributes {a = #coremesh.split<y>, b = #coremesh.split<x ring skew block 5>,
        c = #coremesh.split<x rotate 2>, d = #coremesh.split<y uneven [3, 3, 1]>, e = #coremesh.split<y cyclic>}
    ```
  }];
  let parameters = (ins "::tilewright::coremesh::Axis":$axis,
      "::tilewright::coremesh::Order":$order, "bool":$skewed, "int64_t":$rotate,
      "::tilewright::coremesh::Deal":$deal,
      ArrayRefParameter<"int64_t", "none, a block's, or all blocks' sizes">:$blocks);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isUneven() const { return getBlocks().size() > 1; }
    bool isRing() const { return getOrder() == Order::ring; }
    bool isPlain() const {
      return !getSkewed() && getRotate() == 0 && getDeal() == Deal::block;
    }
  }];
}

def CoreMesh_LayoutAttr : AttrDef<CoreMesh_Dialect, "Layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<OpAsmAttrInterface, ["getAlias"]>]> {
  let mnemonic = "layout";
  let summary = "which core of a grid has which part of a tensor";
  let description = [{
    The encoding of a tensor: a grid of H x W cores, and for each dimension of the
    tensor how it is split along an axis (`#coremesh.split`), or `*` where it is
    not. An axis that splits no dimension replicates: each position along it has a
    copy. `at x = 2` says instead that position 2 alone has the tensor. A layout
    changes no values, only where they lie.

    - `layout_c1`: the grid has a core, and at most 2^31 - 1 along each side; an
      axis splits one dimension at most.
    - `layout_c2`: an `at` is a position on its axis, which splits nothing.
    - `layout_c3`: the tensor has a static shape and as many dimensions as the
      layout; its blocks hold it: N blocks of `block` elements at least as many,
      those of `uneven`, which are N, together exactly as many as the dimension;
      a skewed `block` is L / N times a number.

    Example:

    ```mlir
    func.func private @f(tensor<8x12xf32, #coremesh.layout<grid(4, 3), [y ring, x ring skew]>>,
                         tensor<13x12xf32, #coremesh.layout<grid(4, 3), [*, x block 5]>>,
                         tensor<12xf32, #coremesh.layout<grid(4, 3), [x], at y = 2>>,
                         tensor<7x5xf16, #coremesh.layout<grid(3, 3), [y uneven [3, 3, 1], x]>>)
    ```
  }];
  let parameters = (ins "int64_t":$height, "int64_t":$width,
      ArrayRefParameter<"::mlir::Attribute", "#coremesh.split, or unit">:$splits,
      "int64_t":$atY, "int64_t":$atX);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getLength(Axis axis) const {
      return axis == Axis::y ? getHeight() : getWidth();
    }
    /// The only position along an axis that has the tensor; -1: all have.
    int64_t getAt(Axis axis) const {
      return axis == Axis::y ? getAtY() : getAtX();
    }
    bool hasGridOf(LayoutAttr other) const {
      return getHeight() == other.getHeight() && getWidth() == other.getWidth();
    }
    /// Null where the dimension is whole.
    SplitAttr getSplit(int64_t dim) const {
      return ::llvm::dyn_cast<SplitAttr>(getSplits()[dim]);
    }
    /// The dimension that an axis splits; -1 where it splits none.
    int64_t getDim(Axis axis) const;
    /// What one core holds of a tensor of this shape, padding included.
    ::llvm::SmallVector<int64_t>
    getBlockShape(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

// A tensor that lies on a grid.
def CoreMesh_LaidOut : Type<
    CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
          "::llvm::isa_and_present<::tilewright::coremesh::LayoutAttr>("
          "::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">,
    "tensor with a #coremesh.layout", "::mlir::RankedTensorType">;

#endif // TILEWRIGHT_CORE_MESH_LAYOUT
