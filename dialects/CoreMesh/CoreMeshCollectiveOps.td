//===- CoreMeshCollectiveOps.td - values that move ---------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_COLLECTIVE_OPS
#define TILEWRIGHT_CORE_MESH_COLLECTIVE_OPS

include "dialects/CoreMesh/CoreMeshInstructionOps.td"
include "dialects/CoreMesh/CoreMeshLayout.td"

def CoreMesh_Algorithm : CoreMesh_Enum<"Algorithm", "how a line of cores reduces", [
    I32EnumAttrCase<"chain", 0>, I32EnumAttrCase<"star", 1>,
    I32EnumAttrCase<"tree", 2>, I32EnumAttrCase<"two_phase", 3>,
    I32EnumAttrCase<"k_tree", 4>, I32EnumAttrCase<"ring", 5>]>;

// The algorithm of a reduction along a line, as arguments of an op.
defvar CoreMesh_Reduction = (ins
    DefaultValuedAttr<CoreMesh_Algorithm, "Algorithm::k_tree">:$algorithm,
    OptionalAttr<I64Attr>:$k, OptionalAttr<DenseI64ArrayAttr>:$groups);

class CoreMesh_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : CoreMesh_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

// The same values, elsewhere.
class CoreMesh_MovingOp<string mnemonic> : CoreMesh_CollectiveOp<mnemonic> {
  let arguments = (ins CoreMesh_LaidOut:$source);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
}

def CoreMesh_DistributeOp : CoreMesh_CollectiveOp<"distribute"> {
  let summary = "a tensor from outside onto the grid";
  let description = [{
    - `distribute_c1`: the source has no layout; shapes and element types are equal.

    Example: see `coremesh.relayout`
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
}

def CoreMesh_AssembleOp : CoreMesh_CollectiveOp<"assemble"> {
  let summary = "a tensor from the grid to outside";
  let description = [{
    - `assemble_c1`: the result has no layout; shapes and element types are equal.

    Example: see `coremesh.relayout`
  }];
  let arguments = (ins CoreMesh_LaidOut:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
}

def CoreMesh_RelayoutOp : CoreMesh_MovingOp<"relayout"> {
  let summary = "another layout on the same grid";
  let description = [{
    - `relayout_c1`: shapes, element types and grids are equal.

    Example: a transposition of cores, not of the tensor.

    ```mlir
    #rows = #coremesh.layout<grid(4, 4), [y, x]>
    #columns = #coremesh.layout<grid(4, 4), [x, y]>
    func.func @f(%a: tensor<8x12xf32>) -> tensor<8x12xf32> {
      %0 = coremesh.distribute %a : tensor<8x12xf32> to tensor<8x12xf32, #rows>
      %1 = coremesh.relayout %0 : tensor<8x12xf32, #rows> to tensor<8x12xf32, #columns>
      %2 = coremesh.assemble %1 : tensor<8x12xf32, #columns> to tensor<8x12xf32>
      return %2 : tensor<8x12xf32>
    }
    ```
  }];
}

def CoreMesh_ReshapeGridOp : CoreMesh_MovingOp<"reshape_grid"> {
  let summary = "the same tensor on a grid of another size";
  let description = [{
    Between prefill and decode, which run on grids of different sizes (WaferLLM,
    OSDI 2025, section 4.4).

    - `reshape_grid_c1`: shapes and element types are equal, grids are not.

    Example:

    ```mlir
    #large = #coremesh.layout<grid(6, 6), [y ring, x ring]>
    #small = #coremesh.layout<grid(4, 4), [y, x]>
    func.func @f(%a: tensor<12x24xf16, #large>) -> tensor<12x24xf16, #small> {
      %0 = coremesh.reshape_grid %a : tensor<12x24xf16, #large> to tensor<12x24xf16, #small>
      return %0 : tensor<12x24xf16, #small>
    }
    ```
  }];
}

def CoreMesh_ShiftOp : CoreMesh_CollectiveOp<"shift"> {
  let summary = "each block some positions on";
  let description = [{
    Each core sends its block to the one `by` positions before it along the axis,
    counted as the layout does and around its end. The tensor stays what it is:
    the layout of the result says that its blocks have moved.

    - `shift_c1`: the axis splits a dimension in equal blocks, `block` of each.
    - `shift_c2`: the result is the source with `rotate` changed by `by`, modulo the
      length of the axis.

    Example: one round of compute-shift.

    ```mlir
    #here = #coremesh.layout<grid(4, 4), [y ring, x ring]>
    #next = #coremesh.layout<grid(4, 4), [y ring, x ring rotate 1]>
    func.func @f(%a: tensor<8x12xf32, #here>) -> tensor<8x12xf32, #next> {
      %0 = coremesh.shift %a along x by 1 : tensor<8x12xf32, #here> to tensor<8x12xf32, #next>
      return %0 : tensor<8x12xf32, #next>
    }
    ```
  }];
  let arguments = (ins CoreMesh_LaidOut:$source, CoreMesh_Axis:$axis, I64Attr:$by);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $source `along` $axis `by` $by attr-dict `:` type($source) `to` type($result)
  }];
}

def CoreMesh_HaloOp : CoreMesh_CollectiveOp<"halo"> {
  let summary = "each block with what lies beside it";
  let description = [{
    Along one dimension, which an axis of N positions splits, position p gets the
    `size` elements from `p * step + from` on; what lies outside of the tensor is
    `fill`. These parts overlap, so that they are a tensor of N * `size` elements:
    what is in part p is in place `p * size` and behind. Convolutions and pooling
    (and other stencils) then need no other core: of `b` rows of a result with
    stride s, kernel k, dilation d and padding l, `from` is -l, `step` b * s and
    `size` (b - 1) * s + (k - 1) * d + 1.

    - `halo_c1`: an axis splits the dimension, which is one of the tensor, in equal
      blocks, not rotated or skewed.
    - `halo_c2`: `step` and `size` are positive; `fill` is of the element type.
    - `halo_c3`: the result is the source with N * `size` elements in that dimension,
      in blocks of `size`.

    Example: rows of an image, for windows of 3 with a border of zeros.

    ```mlir
    #rows = #coremesh.layout<grid(4, 4), [y ring, x ring]>
    func.func @f(%a: tensor<8x12xf32, #rows>) -> tensor<16x12xf32, #rows> {
      %0 = coremesh.halo %a dim 0 from -1 step 2 of 4 fill 0.0 : f32
          : tensor<8x12xf32, #rows> to tensor<16x12xf32, #rows>
      return %0 : tensor<16x12xf32, #rows>
    }
    ```
  }];
  let arguments = (ins CoreMesh_LaidOut:$source, I64Attr:$dim, I64Attr:$from, I64Attr:$step,
                       I64Attr:$size, TypedAttrInterface:$fill);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $source `dim` $dim `from` $from `step` $step `of` $size `fill` $fill attr-dict `:`
    type($source) `to` type($result)
  }];
}

def CoreMesh_MulticastOp : CoreMesh_CollectiveOp<"multicast"> {
  let summary = "from one position along an axis to all";
  let description = [{
    - `multicast_c1`: the source lies at one position of the axis.
    - `multicast_c2`: the result is the source without this `at`.

    Example: see `coremesh.reduce`
  }];
  let arguments = (ins CoreMesh_LaidOut:$source, CoreMesh_Axis:$axis);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = "$source `along` $axis attr-dict `:` type($source) `to` type($result)";
}

// Reduces a dimension that an axis splits.
class CoreMesh_ReducingOp<string mnemonic> : CoreMesh_CollectiveOp<mnemonic> {
  let arguments = !con((ins CoreMesh_Combine:$combine, CoreMesh_LaidOut:$source,
                            I64Attr:$dim), CoreMesh_Reduction);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $combine $source `dim` $dim `by` $algorithm `` custom<Levels>($k, $groups) attr-dict `:`
    type($source) `to` type($result)
  }];
}

def CoreMesh_ReduceOp : CoreMesh_ReducingOp<"reduce"> {
  let summary = "a dimension that an axis splits, combined at one position";
  let description = [{
    Along the axis each core has some of the numbers that are combined, as one
    dimension of the tensor. The algorithms are those of Luczynski et al. (HPDC
    2024) and of WaferLLM (OSDI 2025, section 6): a `k_tree` has `k` levels, by
    default two; each but the last makes so many `groups` of what is left.

    - `reduce_c1`: the axis splits the dimension, which is one of the tensor.
    - `reduce_c2`: the result is the source without the dimension, at one position
      of the axis.
    - `reduce_c3`: `k` and `groups` are of a `k_tree`; `k` is positive, and there are
      `k` - 1 numbers of groups, each positive. `ring` has no root.

    Example: sums of rows at the last column, then everywhere.

    ```mlir
    #parts = #coremesh.layout<grid(4, 6), [y, x]>
    #root = #coremesh.layout<grid(4, 6), [y], at x = 5>
    #all = #coremesh.layout<grid(4, 6), [y]>
    func.func @f(%p: tensor<8x6xf32, #parts>) -> tensor<8xf32, #all> {
      %0 = coremesh.reduce add %p dim 1 by chain : tensor<8x6xf32, #parts> to tensor<8xf32, #root>
      %1 = coremesh.multicast %0 along x : tensor<8xf32, #root> to tensor<8xf32, #all>
      return %1 : tensor<8xf32, #all>
    }
    ```
  }];
}

def CoreMesh_AllreduceOp : CoreMesh_ReducingOp<"allreduce"> {
  let summary = "a dimension that an axis splits, combined for all";
  let description = [{
    As `reduce`; each position of the axis has the result.

    - `allreduce_c1`: the axis splits the dimension, which is one of the tensor.
    - `allreduce_c2`: the result is the source without the dimension, replicated
      along the axis.
    - `allreduce_c3`: `k` and `groups` are of a `k_tree`; `k` is positive, and there
      are `k` - 1 numbers of groups, each positive.

    Example:

    ```mlir
    #parts = #coremesh.layout<grid(4, 6), [y, x]>
    #all = #coremesh.layout<grid(4, 6), [x]>
    func.func @f(%p: tensor<4x18xf32, #parts>) -> tensor<18xf32, #all> {
      %0 = coremesh.allreduce max %p dim 0 by k_tree k 2 groups [2] : tensor<4x18xf32, #parts> to tensor<18xf32, #all>
      return %0 : tensor<18xf32, #all>
    }
    ```
  }];
}

#endif // TILEWRIGHT_CORE_MESH_COLLECTIVE_OPS
