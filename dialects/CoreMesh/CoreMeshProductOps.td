//===- CoreMeshProductOps.td - what a grid computes --------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_PRODUCT_OPS
#define TILEWRIGHT_CORE_MESH_PRODUCT_OPS

include "dialects/CoreMesh/CoreMeshCollectiveOps.td"

def CoreMesh_Gemm : CoreMesh_Enum<"Gemm", "how a grid multiplies", [
    I32EnumAttrCase<"meshgemm", 0>, I32EnumAttrCase<"cannon", 1>,
    I32EnumAttrCase<"summa", 2>, I32EnumAttrCase<"allgather", 3>]>;

def CoreMesh_GemmOp : CoreMesh_CollectiveOp<"gemm"> {
  let summary = "a product of matrices";
  let description = [{
    C = A B on a grid. `meshgemm` is WaferLLM's (OSDI 2025, section 5): blocks go
    around folded rings; `cannon` around rings whose ends meet over the whole
    line; `summa` sends panels to all; `allgather` gathers rows and columns first.
    Rounds need as many blocks of the summed dimension as lcm(H, W).

    - `gemm_c1`: A is [m, k], B [k, n], C [m, n]; A and B have one element type, and
      C that of the accumulator: the same, or one of more bits.
    - `gemm_c2`: grids are equal; A is split [y, x], B [y, x], C [y, x]; blocks are
      equal and in their places, not rotated, `cyclic` or `uneven`.
    - `gemm_c3`: `meshgemm` counts all of them along the ring, the others none.
    - `gemm_c4`: with `meshgemm` and `cannon` the summed dimension of A and B may be
      skewed, and no other; it is aligned at run time where it is not.

    Example:

    ```mlir
    #a = #coremesh.layout<grid(4, 4), [y ring, x ring]>
    #b = #coremesh.layout<grid(4, 4), [y ring skew, x ring]>
    func.func @f(%x: tensor<13x24xf16, #a>, %w: tensor<24x17xf16, #b>) -> tensor<13x17xf32, #a> {
      %0 = coremesh.gemm %x, %w by meshgemm
          : tensor<13x24xf16, #a>, tensor<24x17xf16, #b> to tensor<13x17xf32, #a>
      return %0 : tensor<13x17xf32, #a>
    }
    ```
  }];
  let arguments = (ins CoreMesh_LaidOut:$left, CoreMesh_LaidOut:$right, CoreMesh_Gemm:$algorithm);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $left `,` $right `by` $algorithm attr-dict `:` type($left) `,` type($right) `to` type($result)
  }];
}

def CoreMesh_GemmTOp : CoreMesh_CollectiveOp<"gemm_t"> {
  let summary = "a product with a transposed matrix";
  let description = [{
    C = A B^T without moving B over the diagonal (WaferLLM's dist-GEMM-T, OSDI
    2025): B goes around the ring of each column, partial products are summed
    along each row into a root that moves with the rounds.

    - `gemm_t_c1`: A is [m, k], B [n, k], C [m, n]; element types as of `gemm`.
    - `gemm_t_c2`: grids are equal; A, B and C are split [y, x] along rings; blocks
      are equal and in their places.

    Example: scores of attention.

    ```mlir
    #tile = #coremesh.layout<grid(3, 5), [y ring, x ring]>
    func.func @f(%q: tensor<12x20xf16, #tile>, %k: tensor<9x20xf16, #tile>) -> tensor<12x9xf32, #tile> {
      %0 = coremesh.gemm_t %q, %k : tensor<12x20xf16, #tile>, tensor<9x20xf16, #tile> to tensor<12x9xf32, #tile>
      return %0 : tensor<12x9xf32, #tile>
    }
    ```
  }];
  let arguments = (ins CoreMesh_LaidOut:$left, CoreMesh_LaidOut:$right);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $left `,` $right attr-dict `:` type($left) `,` type($right) `to` type($result)
  }];
}

def CoreMesh_GemvOp : CoreMesh_CollectiveOp<"gemv"> {
  let summary = "a product of a vector, or of a few, and a matrix";
  let description = [{
    y = x A: each core multiplies its part of the vector, which is replicated
    along the other axis, with its block; partial results are reduced along the
    axis of the summed dimension, for all (WaferLLM's MeshGEMV, OSDI 2025, section
    6). The result is split along the other axis: products alternate between the
    axes, and nothing is transposed. Several vectors are the rows of a matrix: each
    core multiplies its part of all, and one reduction adds up all partial results.

    - `gemv_c1`: x is [k] or [m, k], A [k, n], y [n] or [m, n]; element types as of
      `gemm`.
    - `gemv_c2`: grids are equal; A is split along both axes; k of x along the axis
      of k, n of y along that of n, both replicated along the other one, counted in the
      order in which A counts that axis; blocks are equal and in their places.
    - `gemv_c3`: `k` and `groups` are as of `allreduce`.

    Example:

    ```mlir
    #x = #coremesh.layout<grid(4, 6), [y]>
    #a = #coremesh.layout<grid(4, 6), [y, x]>
    #y = #coremesh.layout<grid(4, 6), [x]>
    func.func @f(%v: tensor<16xf16, #x>, %w: tensor<16x18xf16, #a>) -> tensor<18xf16, #y> {
      %0 = coremesh.gemv %v, %w by k_tree k 2 groups [2]
          : tensor<16xf16, #x>, tensor<16x18xf16, #a> to tensor<18xf16, #y>
      return %0 : tensor<18xf16, #y>
    }
    ```
  }];
  let arguments = !con((ins CoreMesh_LaidOut:$left, CoreMesh_LaidOut:$right), CoreMesh_Reduction);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $left `,` $right `by` $algorithm `` custom<Levels>($k, $groups) attr-dict `:`
    type($left) `,` type($right) `to` type($result)
  }];
}

def CoreMesh_Policy : CoreMesh_Enum<"Policy", "where a cache grows", [
    I32EnumAttrCase<"concat", 0>, I32EnumAttrCase<"shift", 1>,
    I32EnumAttrCase<"round_robin", 2>]>;

def CoreMesh_KvAppendOp : CoreMesh_CollectiveOp<"kv_append", [
    AllTypesMatch<["cache", "result"]>]> {
  let summary = "one more token in a cache";
  let description = [{
    Row `length` of the cache becomes `row`; `length` is the number of tokens that
    it holds before, and less than its rows. `concat` appends where the token has
    its place: on the last row of cores, once a prompt has filled the others
    (`uneven`); `shift` balances: each row of cores hands
    its oldest token up as soon as counts differ by more than one (WaferLLM, OSDI
    2025, section 4.3); `round_robin` gives token i to row i mod H.

    - `kv_append_c1`: the cache is [tokens, ...]; `row` has the dimensions behind.
    - `kv_append_c2`: tokens are split along y: in blocks for `concat`, `balanced` for
      `shift`, `cyclic` for `round_robin`.
    - `kv_append_c3`: `row` is split as the cache's other dimensions are, on the same
      grid.

    Example:

    ```mlir
    #cache = #coremesh.layout<grid(4, 6), [y balanced, x]>
    #row = #coremesh.layout<grid(4, 6), [x]>
    func.func @f(%c: tensor<64x24xf16, #cache>, %r: tensor<24xf16, #row>, %n: index) -> tensor<64x24xf16, #cache> {
      %0 = coremesh.kv_append %r to %c[%n] by shift : tensor<24xf16, #row>, tensor<64x24xf16, #cache>
      return %0 : tensor<64x24xf16, #cache>
    }
    ```
  }];
  let arguments = (ins CoreMesh_LaidOut:$row, CoreMesh_LaidOut:$cache, Index:$length,
                       CoreMesh_Policy:$policy);
  let results = (outs CoreMesh_LaidOut:$result);
  let assemblyFormat = [{
    $row `to` $cache `[` $length `]` `by` $policy attr-dict `:` type($row) `,` type($cache)
  }];
}

def CoreMesh_BlockGemmOp : CoreMesh_Op<"block_gemm", [
    RecursiveMemoryEffects, SingleBlock, IsolatedFromAbove]> {
  let summary = "a product of matrices, of which a body multiplies blocks";
  let description = [{
    MeshGEMM (WaferLLM, OSDI 2025, section 5) with a right operand in any form, as
    numbers without zeros beside their rows, or codes beside scales: these tensors
    take its place. The left operand goes around the ring of each row; of the
    others, those that y splits around the ring of each column, together; the rest
    stays. In each round, the body adds to a core's block of the result, which is
    zeros at first, what the blocks make that have met there.

    - `block_gemm_c1`: the left operand is [m, k], the result [m, n]; both are split
      [y, x].
    - `block_gemm_c2`: operands and the result lie on one square grid, in equal blocks
      in their places, along rings.
    - `block_gemm_c3`: y splits at least one operand behind the first.
    - `block_gemm_c4`: the left operand may be skewed along x, others along y: they
      are aligned at run time where they are not.
    - `block_gemm_c5`: block arguments are a core's blocks of the operands, then of the
      result, tensors without layout; the body yields the latter.

    Example: decoded by each core, once per round.

    ```mlir
    #a = #coremesh.layout<grid(4, 4), [y ring, x ring]>
    #w = #coremesh.layout<grid(4, 4), [y ring skew, x ring]>
    func.func @f(%a: tensor<13x24xf32, #a>, %w: tensor<24x17xi8, #w>) -> tensor<13x17xf32, #a> {
      %0 = coremesh.block_gemm (%x = %a, %c = %w) sums %s
          : (tensor<13x24xf32, #a>, tensor<24x17xi8, #w>) -> tensor<13x17xf32, #a> {
        %d = arith.sitofp %c : tensor<6x5xi8> to tensor<6x5xf32>
        %1 = linalg.matmul ins(%x, %d : tensor<4x6xf32>, tensor<6x5xf32>)
            outs(%s : tensor<4x5xf32>) -> tensor<4x5xf32>
        coremesh.yield %1 : tensor<4x5xf32>
      }
      return %0 : tensor<13x17xf32, #a>
    }
    ```
  }];
  let arguments = (ins Variadic<CoreMesh_LaidOut>:$inputs);
  let results = (outs CoreMesh_LaidOut:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def CoreMesh_LocalOp : CoreMesh_Op<"local", [
    RecursiveMemoryEffects, SingleBlock, IsolatedFromAbove]> {
  let summary = "what each core computes on its blocks alone";
  let description = [{
    The body gets a core's blocks of the operands, padding included, and yields
    its blocks of the results. Padding is zeros on the way in, and cut off on the
    way out. Where results are replicated all copies must be equal.

    - `local_c1`: operands and results lie on one grid.
    - `local_c2`: block arguments and yielded values are the blocks that a core has
      of the operands and results: tensors without layout.
    - `local_c3`: nothing is `balanced`: which part a core has would depend on a run.

    Example: a residual, and no communication.

    ```mlir
    #tile = #coremesh.layout<grid(3, 2), [y, x]>
    func.func @f(%a: tensor<7x8xf32, #tile>, %b: tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
      %0 = coremesh.local (%x = %a, %y = %b)
          : (tensor<7x8xf32, #tile>, tensor<7x8xf32, #tile>) -> tensor<7x8xf32, #tile> {
        %1 = arith.addf %x, %y : tensor<3x4xf32>
        coremesh.yield %1 : tensor<3x4xf32>
      }
      return %0 : tensor<7x8xf32, #tile>
    }
    ```
  }];
  let arguments = (ins Variadic<CoreMesh_LaidOut>:$inputs);
  let results = (outs Variadic<CoreMesh_LaidOut>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

#endif // TILEWRIGHT_CORE_MESH_PRODUCT_OPS
