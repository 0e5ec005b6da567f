//===- Passes.td - rewrites of phase `plan` ------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python passes (tilewright.plan) decide and leave attributes on the
// operations; the passes here carry the decisions out.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_PASSES
#define TILEWRIGHT_TRANSFORMS_PLAN_PASSES

include "mlir/Pass/PassBase.td"

def ApplyLayouts : Pass<"tile-apply-layouts"> {
  let summary = "Pack operands as `tile.layouts` says";
  let description = [{
    An operand that follows from weights is packed by `linalg.pack`, which
    `tile-hoist-init` moves to compile time. A run-time operand is copied by a
    register group of its own in the reader's task, or with `tile.pack_apart` in
    a task of its own (`tile.pack_rtiles` holds
    the copy's rtile); only a permutation is possible there.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
    func.func @main(%x: tensor<8x64xf32>) -> tensor<8x96xf32> {
      %w = ml_program.global_load_const @w : tensor<64x96xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x96xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x96xf32>) -> tensor<8x96xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [32]>]}
          ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32>) outs(%f : tensor<8x96xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      } -> tensor<8x96xf32>
      return %y : tensor<8x96xf32>
    }
    ```
    After:
    ```mlir
    #map1 = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
    ...
    %p = linalg.pack %w padding_value(%zero : f32)
        outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32]
        into %e : tensor<64x96xf32> -> tensor<3x64x32xf32>
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %p : tensor<8x64xf32>, tensor<3x64x32xf32>) outs(%f : tensor<8x96xf32>) {
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect",
                           "mlir::arith::ArithDialect"];
}

def FormEpilogues : Pass<"tile-form-epilogues", "::mlir::ModuleOp"> {
  let summary = "Compute what follows a kernel element by element in its tasks";
  let description = [{
    Operations with `tile.epilogue` that follow a launch, directly or after each other, are computed on the tiles
    that its kernel stores, before they are stored: the kernel becomes another one, which also takes what these
    operations read, and the launch stands where the last of them stood. The kernel must only store tiles into its
    result, and only the last result may be read elsewhere. Rows and columns that are added are loaded once for
    each tile and repeated along it.

    Before:
    ```mlir
    #xy = affine_map<(i, j) -> (i, j)>
    #y = affine_map<(i, j) -> (j)>
    tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
      %s = arith.addf %t, %t : !tile.tile<1x16xf32>
      tile.store %s, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
      tile.return
    }
    func.func @main(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
      %c8 = arith.constant 8 : index
      %e = tensor.empty() : tensor<8x16xf32>
      %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
      %y = linalg.generic {indexing_maps = [#xy, #y, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
          ins(%r, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      } -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    ```
    After:
    ```mlir
    tile.kernel @twice_add(%x: memref<8x16xf32>, %b: memref<16xf32>, %r: memref<8x16xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
      %s = arith.addf %t, %t : !tile.tile<1x16xf32>
      %row = tile.load %b[%c0] : memref<16xf32>, !tile.tile<16xf32>
    ...
      %f = arith.addf %s, %rows : !tile.tile<1x16xf32>
      tile.store %f, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
    ...
    %y = tile.launch @twice_add grid(%c8) ins(%x, %b : tensor<8x16xf32>, tensor<16xf32>)
        outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
    ```
  }];
  let dependentDialects = ["mlir::tensor::TensorDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::memref::MemRefDialect",
                           "tilewright::tile::TileDialect"];
}

def MaterializeFills : Pass<"tile-materialize-fills"> {
  let summary = "Make a kernel's work of fills that are not only an initial value";
  let description = [{
    A `linalg.fill` that only starts a reduction costs nothing. One whose
    tensor is read otherwise is work: it becomes a `linalg.generic`, which the
    planner puts into a kernel. Where an operation computes into a slice of it
    (padding), only the border around the slice is filled: the lines above and
    below at once, then what is left and right of the slice. Where a launch
    costs more than writing a tensor (`whole-below`), it is filled whole. Sizes
    may be open: they count as one in this comparison, and a border whose width
    is known at run time only may be empty.

    Before:
    ```mlir
    func.func @main() -> tensor<64xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<64xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
      return %f : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %f = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]}
        outs(%e : tensor<64xf32>) {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    } -> tensor<64xf32>
    ```
  }];
  let options = [Option<"wholeBelow", "whole-below", "int64_t", "-1",
                        "bytes below which a tensor is filled whole: launches "
                        "cost more than the inner part; -1: what a GPU (the "
                        "module's device) reads in the time of a launch, and "
                        "else 0">];
  let dependentDialects = ["mlir::affine::AffineDialect",
                           "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def ApplyOrders : Pass<"tile-apply-orders"> {
  let summary = "Store results in the order of `tile.order`";
  let description = [{
    `tile.order` names, for each dimension of the stored tensor, the dimension
    of the result that lies there. The operation writes, and all of its readers
    read, through permuted maps.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %e = tensor.empty() : tensor<4x8xf32>
      %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
          tile.order = array<i64: 1, 0>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %n = arith.negf %v : f32
        linalg.yield %n : f32
      } -> tensor<4x8xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %n = arith.negf %v : f32
        linalg.yield %n : f32
      } -> tensor<4x8xf32>
      return %b : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    %f = tensor.empty() : tensor<8x4xf32>
    %a = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<4x8xf32>) outs(%f : tensor<8x4xf32>) {
    ^bb0(%v: f32, %o: f32):
      %n = arith.negf %v : f32
      linalg.yield %n : f32
    } -> tensor<8x4xf32>
    %b = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) {
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def FormGroups : Pass<"tile-form-groups"> {
  let summary = "Put operations into nested tile.group regions";
  let description = [{
    Operations with the same `tile.task` become one outermost group; those of
    them with the same `tile.nest` one register group in it.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %e = tensor.empty() : tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
          tile.task = 0 : i64, tile.nest = 0 : i64,
          tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %y = tile.group "l2" (%x1 = %x : tensor<64xf32>) -> (tensor<64xf32>) {
      %r = tile.group "register" (%x2 = %x1 : tensor<64xf32>) -> (tensor<64xf32>) {
        %e = tensor.empty() : tensor<64xf32>
        %g = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
            ins(%x2 : tensor<64xf32>) outs(%e : tensor<64xf32>)
            attrs = {tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>} {
        ...
        tile.yield %g : tensor<64xf32>
      }
      tile.yield %r : tensor<64xf32>
    }
    ```
  }];
  let options = [
    Option<"level", "level", "std::string", "\"l2\"",
           "memory level of the outermost groups">
  ];
  let dependentDialects = ["tilewright::tile::TileDialect"];
}

def ApplyOnline : Pass<"tile-apply-online"> {
  let summary = "Run the reductions of a task in one loop, as `tile.online` says";
  let description = [{
    Operations of a task with `tile.online`, a loop and the size of its blocks,
    run block by block of that loop. A reduction carries what it has
    accumulated from block to block; where its terms are exp(x - m), relative to
    a maximum m that the same loop finds, the accumulator is first multiplied by
    exp(m before - m now). A row is thus read once, and no tensor of its length
    is made (Milakov and Gimelshein, "Online normalizer calculation for
    softmax", 2018; Dao et al., "FlashAttention", 2022). A remainder of the loop
    follows it; a third number is the size of its register tiles along the loop.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    func.func @main(%x: tensor<16x4096xf32>) -> tensor<16xf32> {
      %y = tile.group "l2" (%x0 = %x : tensor<16x4096xf32>) -> (tensor<16xf32>) {
        %m = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>) -> (tensor<16xf32>) {
          %low = arith.constant 0xFF800000 : f32
          %e = tensor.empty() : tensor<16xf32>
          %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
          %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
              tile.online = array<i64: 1, 512>, tile.rtile = #tile.rtile<l2 = [1, 4096], register = [1, 64]>}
              ins(%x1 : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
          ^bb0(%a: f32, %o: f32):
            %t = arith.maximumf %o, %a : f32
            linalg.yield %t : f32
          } -> tensor<16xf32>
          tile.yield %r : tensor<16xf32>
        }
        %s = tile.group "register" (%x1 = %x0 : tensor<16x4096xf32>, %m1 = %m : tensor<16xf32>) -> (tensor<16xf32>) {
          %zero = arith.constant 0.0 : f32
          %e = tensor.empty() : tensor<16xf32>
          %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
          %h = tensor.empty() : tensor<16x4096xf32>
          %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"],
              tile.online = array<i64: 1, 512>}
              ins(%x1, %m1 : tensor<16x4096xf32>, tensor<16xf32>) outs(%h : tensor<16x4096xf32>) {
          ^bb0(%a: f32, %b: f32, %o: f32):
            %d = arith.subf %a, %b : f32
            %t = math.exp %d : f32
            linalg.yield %t : f32
          } -> tensor<16x4096xf32>
          %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
              tile.online = array<i64: 1, 512>, tile.rtile = #tile.rtile<l2 = [1, 4096], register = [1, 32]>}
              ins(%p : tensor<16x4096xf32>) outs(%f : tensor<16xf32>) {
          ^bb0(%a: f32, %o: f32):
            %t = arith.addf %o, %a : f32
            linalg.yield %t : f32
          } -> tensor<16xf32>
          tile.yield %r : tensor<16xf32>
        }
        tile.yield %s : tensor<16xf32>
      }
      return %y : tensor<16xf32>
    }
    ```
    After:
    ```mlir
    %r:2 = scf.for %j = %c0 to %c4096 step %c512 iter_args(%m = %m0, %s = %s0) -> (tensor<16xf32>, tensor<16xf32>) {
      %block = tensor.extract_slice %x0[0, %j] [16, 512] [1, 1] : tensor<16x4096xf32> to tensor<16x512xf32>
      %n:2 = tile.group "register" (%x1 = %block : tensor<16x512xf32>, %m1 = %m : tensor<16xf32>)
          -> (tensor<16xf32>, tensor<16xf32>) {
        ...
        %max = arith.maximumf %o, %a : f32
        ...
        %growth = arith.subf %before, %now : f32
        %factor = math.exp %growth : f32
        ...
      }
      %block1 = tensor.extract_slice %x0[0, %j] [16, 512] [1, 1] : tensor<16x4096xf32> to tensor<16x512xf32>
      %sum = tile.group "register" (%x2 = %block1 : tensor<16x512xf32>, %m2 = %n#1 : tensor<16xf32>,
          %s2 = %s : tensor<16xf32>, %f2 = %n#0 : tensor<16xf32>) -> (tensor<16xf32>) {
        ...
        %scaled = arith.mulf %old, %f : f32
        ...
      }
      scf.yield %n#1, %sum : tensor<16xf32>, tensor<16xf32>
    }
    ```
  }];
  let dependentDialects = ["tilewright::tile::TileDialect",
                           "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect",
                           "mlir::arith::ArithDialect"];
}

def HoistInit : Pass<"tile-hoist-init", "mlir::ModuleOp"> {
  let summary = "Move what follows from weights alone into @init";
  let description = [{
    `@init` runs once, at compile time; each of its results is stored as a
    weight of its own (`tile.global` names it), and what is computed twice is
    stored once. Views of weights stay. In a loop
    over a list of weights, whose rows it takes one by one, a row is known too:
    what follows from it is made for all iterations, as a list. What only spreads a
    row over a larger tensor stays in the loop, with a remark, where that list would
    take more than 1 MiB.

    Before:
    ```mlir
    ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
    func.func @main() -> tensor<3x64x32xf32> {
      %w = ml_program.global_load_const @w : tensor<64x96xf32>
      %e = tensor.empty() : tensor<3x64x32xf32>
      %p = linalg.pack %w outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %e
        : tensor<64x96xf32> -> tensor<3x64x32xf32>
      return %p : tensor<3x64x32xf32>
    }
    ```
    After:
    ```mlir
    func.func private @init() -> (tensor<3x64x32xf32> {tile.global = "p_0"}) {
      %w = ml_program.global_load_const @w : tensor<64x96xf32>
      %e = tensor.empty() : tensor<3x64x32xf32>
      %p = linalg.pack %w outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32]
          into %e : tensor<64x96xf32> -> tensor<3x64x32xf32>
      return %p : tensor<3x64x32xf32>
    }
    ml_program.global private @p_0(#extern1) : tensor<3x64x32xf32>
    func.func @main() -> tensor<3x64x32xf32> {
      %q = ml_program.global_load_const @p_0 : tensor<3x64x32xf32>
      return %q : tensor<3x64x32xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::ml_program::MLProgramDialect",
                           "mlir::func::FuncDialect", "mlir::scf::SCFDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::tensor::TensorDialect"];
}

def SinkReshapes : Pass<"tile-sink-reshapes"> {
  let summary = "Let what follows a kernel element by element run over its result as it lies";
  let description = [{
    Kernels of products have results of two dimensions. Where a batch's are taken apart, and what follows goes over
    them element by element, this goes over the two dimensions instead, and its result is taken apart: nothing
    stands between it and the kernel then (`tile-plan-epilogues`). Operations that read another operand so that its
    dimensions do not lie together stay.

    Before:
    ```mlir
    #id = affine_map<(b, i, j) -> (b, i, j)>
    #row = affine_map<(b, i, j) -> (j)>
    tile.kernel @zeros(%r: memref<32x16xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %t = arith.constant dense<0.0> : !tile.tile<1x16xf32>
      tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<32x16xf32>
      tile.return
    }
    func.func @main(%q: tensor<4x8x16xf32>, %b: tensor<16xf32>) -> tensor<4x8x16xf32> {
      %c32 = arith.constant 32 : index
      %e = tensor.empty() : tensor<32x16xf32>
      %r = tile.launch @zeros grid(%c32) outs(%e : tensor<32x16xf32>) -> (tensor<32x16xf32>)
      %x = tensor.expand_shape %r [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
      %f = tensor.empty() : tensor<4x8x16xf32>
      %y = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x, %q, %b : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<16xf32>) outs(%f : tensor<4x8x16xf32>) {
      ^bb0(%p: f32, %s: f32, %t: f32, %o: f32):
        %m = arith.mulf %s, %t : f32
        %n = arith.addf %p, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x8x16xf32>
      return %y : tensor<4x8x16xf32>
    }
    ```
    After:
    ```mlir
    %r = tile.launch @zeros
    ...
    %s = tensor.collapse_shape %q [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
    ...
    linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%r, %s, %b : tensor<32x16xf32>, tensor<32x16xf32>, tensor<16xf32>)
    ...
    tensor.expand_shape
    ```
  }];
  let dependentDialects = ["mlir::tensor::TensorDialect",
                           "mlir::affine::AffineDialect"];
}

def VerifyPlan : Pass<"tile-verify-plan", "mlir::ModuleOp"> {
  let summary = "State what holds after phase `plan`";
  let description = [{
    Each linalg.generic outside `@init` is in a tile.group or has the attribute
    `tile.host`, the reason why it stays in the host function; a remark tells
    each large one of these, and each loop of the host over single elements.
    Another one tells each large product with `tile.widened`, the reason why no
    instruction for small numbers takes it, or with `tile.slow`, another reason
    why it takes longer than it could.
    Each register group has one root: the operation with the `tile.rtile` of the
    nest.

    Before:
    ```mlir
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      return %x : tensor<64xf32>
    }
    ```
    After: unchanged.
  }];
}

#endif // TILEWRIGHT_TRANSFORMS_PLAN_PASSES
