//===- Passes.td - what a program of lists waits for -------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES
#define TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES

include "mlir/Pass/PassBase.td"

def FractalExtractGraph : Pass<"fractal-extract-graph", "::mlir::ModuleOp"> {
  let summary = "Write what a program of lists reads and waits for beside it";
  let description = [{
    A function of lists gets a `fractal.graph` beside it: its loops, what these
    read and write, and what their iterations wait for. Loops that stand right
    inside each other become one block; maps are distributed over what is in them,
    as long as no recurrence is around them. Access operations, constants and views
    become maps of the reads, at any depth: what is read through a closure, a list
    of lists or a state that is a list is read where it was written. A read of a
    state is one of the init in the first iteration, and of the block's own result
    in the others, an iteration (or several) before.

    `distances` are those iterations, found with MLIR's Presburger library: the
    reading iteration minus the one that wrote. What is not the same everywhere is
    not listed, and the block is `nonuniform`. A value that is chosen as the program
    runs (`gather`, an index that is computed) is read `indirect`: the map says where
    it may be. The function stays as it is; one without a graph gets a remark.

    Before:
    ```mlir
    func.func @f(%xs: !fractal.array<[9] of tensor<8xf32>>) -> !fractal.array<[9] of tensor<8xf32>> {
      %h0 = arith.constant dense<0.0> : tensor<8xf32>
      %hs = fractal.scan left (%h = %h0) over (%x = %xs)
          : (tensor<8xf32>, !fractal.array<[9] of tensor<8xf32>>) -> !fractal.array<[9] of tensor<8xf32>> {
        %n = arith.addf %h, %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      }
      return %hs : !fractal.array<[9] of tensor<8xf32>>
    }
    ```
    After:
    ```mlir
    #map = affine_map<(d0) -> (9)>
    #map1 = affine_map<(d0) -> ()>
    #map2 = affine_map<(d0) -> (d0 - 1)>
    #map3 = affine_map<(d0) -> (d0)>
    #set = affine_set<(d0) : (d0 >= 0, -d0 + 8 >= 0)>
    #set1 = affine_set<(d0) : (d0 == 0)>
    #set2 = affine_set<(d0) : (d0 - 1 >= 0)>
    ...
    fractal.graph @f_graph inputs ["arg0"] symbols [] {
    ...
      %hs = fractal.block ["scan left"] to #map in #set
          reads (%h0 for 0 at #map1 where #set1 : tensor<8xf32>,
                 %hs for 0 at #map2 where #set2 : !fractal.array<[9] of tensor<8xf32>>,
                 %xs for 1 at #map3 : !fractal.array<[9] of tensor<8xf32>>)
          writes [#map3] -> !fractal.array<[9] of tensor<8xf32>> {
      ^bb0(%h: tensor<8xf32>, %x: tensor<8xf32>):
        %n = arith.addf %h, %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      } {distances = [array<i64: 1>]}
      fractal.outputs (%hs for 0 at #map3 : !fractal.array<[9] of tensor<8xf32>>)
    }
    ```
  }];
  let dependentDialects = ["::tilewright::fractal::FractalDialect"];
}

def FractalSplitRegions : Pass<"fractal-split-regions"> {
  let summary = "Tell first iterations, which read inits, from others";
  let description = [{
    A block with a state has two kinds of iterations: the first one along a dimension
    reads the init, all others read what the block wrote. With k such dimensions a
    block has up to 2^k *regions*; those without a point are left out.
    `region_domains` are their sets, the first iterations first; `region_reads` are
    the numbers of the reads that take place somewhere in each.

    Before:
    ```mlir
    !grid = !fractal.array<[4, 6] of tensor<8xf32>>
    #none = affine_map<(d0, d1) -> ()>
    #all = affine_map<(d0, d1) -> (d0, d1)>
    #outer = affine_map<(d0, d1) -> (d0 - 1, d1)>
    #inner = affine_map<(d0, d1) -> (d0, d1 - 1)>
    fractal.graph @g inputs [] symbols [] {
      %z = arith.constant dense<0.0> : tensor<8xf32>
      %b = fractal.block ["fold left", "scan left"] to affine_map<(d0, d1) -> (4, 6)>
          in affine_set<(d0, d1) : (d0 >= 0, 3 - d0 >= 0, d1 >= 0, 5 - d1 >= 0)>
          reads (%z for 0 at #none where affine_set<(d0, d1) : (d0 == 0)> : tensor<8xf32>,
                 %b for 0 at #outer where affine_set<(d0, d1) : (d0 - 1 >= 0)> : !grid,
                 %z for 1 at #none where affine_set<(d0, d1) : (d1 == 0)> : tensor<8xf32>,
                 %b for 1 at #inner where affine_set<(d0, d1) : (d1 - 1 >= 0)> : !grid)
          writes [#all] -> !grid {
      ^bb0(%x: tensor<8xf32>, %h: tensor<8xf32>):
        %n = arith.addf %x, %h : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      } {distances = [array<i64: 1, 0>, array<i64: 0, 1>]}
      fractal.outputs (%b for 0 at #all : !grid)
    }
    ```
    After:
    ```mlir
    #set5 = affine_set<(d0, d1) : (d0 == 0, d1 == 0)>
    #set6 = affine_set<(d0, d1) : (d0 == 0, d1 - 1 >= 0, -d1 + 5 >= 0)>
    #set7 = affine_set<(d0, d1) : (d0 - 1 >= 0, d1 == 0, -d0 + 3 >= 0)>
    #set8 = affine_set<(d0, d1) : (d0 - 1 >= 0, d1 - 1 >= 0, -d0 + 3 >= 0, -d1 + 5 >= 0)>
    ...
    region_domains = [#set5, #set6, #set7, #set8],
    region_reads = [array<i64: 0, 2>, array<i64: 0, 3>, array<i64: 1, 2>, array<i64: 1, 3>]
    ```
  }];
}

def FractalFindWavefronts : Pass<"fractal-find-wavefronts"> {
  let summary = "Find iterations of a recurrence that may run at once";
  let description = [{
    An order in which a block's outermost dimension is sequential, and all others are
    parallel: the first row of its matrix is the row h of integers with the smallest
    sum for which h times every distance is at least one, found by an integer program
    (distances that differ from place to place by counterexamples, until there is
    none). The row has numbers only for dimensions with a state: from zero up for
    `left`, from zero down for `right`. Other rows are units, dimensions with a state
    before maps, so that the matrix has determinant 1 or -1.

    `schedule` is the matrix as a map, `schedule_distances` are the distances in the
    new order, `schedule_lower` and `schedule_upper` the bounds of each new dimension
    in terms of those before it (the largest lower one, the least upper one, which is
    exclusive), `hyperplanes` how many steps there are. Where there are regions, each
    has its own bounds. Whether a block runs in that order, another pass decides.

    Before:
    ```mlir
    !grid = !fractal.array<[4, 6] of tensor<8xf32>>
    #none = affine_map<(d0, d1) -> ()>
    #all = affine_map<(d0, d1) -> (d0, d1)>
    #outer = affine_map<(d0, d1) -> (d0 - 1, d1)>
    #inner = affine_map<(d0, d1) -> (d0, d1 - 1)>
    fractal.graph @g inputs [] symbols [] {
      %z = arith.constant dense<0.0> : tensor<8xf32>
      %b = fractal.block ["fold left", "scan left"] to affine_map<(d0, d1) -> (4, 6)>
          in affine_set<(d0, d1) : (d0 >= 0, 3 - d0 >= 0, d1 >= 0, 5 - d1 >= 0)>
          reads (%z for 0 at #none where affine_set<(d0, d1) : (d0 == 0)> : tensor<8xf32>,
                 %b for 0 at #outer where affine_set<(d0, d1) : (d0 - 1 >= 0)> : !grid,
                 %z for 1 at #none where affine_set<(d0, d1) : (d1 == 0)> : tensor<8xf32>,
                 %b for 1 at #inner where affine_set<(d0, d1) : (d1 - 1 >= 0)> : !grid)
          writes [#all] -> !grid {
      ^bb0(%x: tensor<8xf32>, %h: tensor<8xf32>):
        %n = arith.addf %x, %h : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      } {distances = [array<i64: 1, 0>, array<i64: 0, 1>]}
      fractal.outputs (%b for 0 at #all : !grid)
    }
    ```
    After:
    ```mlir
    #map5 = affine_map<() -> (9)>
    #map6 = affine_map<(d0, d1) -> (d0 + d1, d0)>
    #map7 = affine_map<() -> (0)>
    #map8 = affine_map<(d0) -> (0, d0 - 5)>
    #map9 = affine_map<(d0) -> (4, d0 + 1)>
    ...
    hyperplanes = #map5, schedule = #map6, schedule_distances = [array<i64: 1, 1>, array<i64: 1, 0>],
    schedule_lower = [#map7, #map8], schedule_upper = [#map5, #map9]
    ```
  }];
}

def FractalFindMerges : Pass<"fractal-find-merges"> {
  let summary = "Find blocks that may share their loops";
  let description = [{
    Two blocks may be merged *wide*, into one with two bodies, where neither waits
    for the other and kinds and domains are equal. A block may be merged *deep* with
    one that it reads, in the outer dimensions that have the same lengths in both
    (the third number), where no iteration reads what the other writes in a later
    one, and no third block stands between. There a map takes the kind of the other dimension; but a map cannot walk
    over partial results of a `reduce`, and two kinds of states do not mix. What is
    between them then needs room for as many iterations as lie between, instead of
    for all.

    `wide` and `deep` are written to the graph, and `refused` with the condition that
    fails. What of it is done, and in which order, another pass decides.

    Before:
    ```mlir
    !list = !fractal.array<[4] of tensor<8xf32>>
    #one = affine_map<(d0) -> (d0)>
    #four = affine_map<(d0) -> (4)>
    #range = affine_set<(d0) : (d0 >= 0, 3 - d0 >= 0)>
    fractal.graph @g inputs ["xs"] symbols [] {
    ^bb0(%xs: !list):
      %a = fractal.block ["map"] to #four in #range reads (%xs for 0 at #one : !list) writes [#one] -> !list {
      ^bb0(%x: tensor<8xf32>):
        %n = math.exp %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      }
      %b = fractal.block ["map"] to #four in #range reads (%a for 0 at #one : !list) writes [#one] -> !list {
      ^bb0(%x: tensor<8xf32>):
        %n = arith.negf %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      }
      %c = fractal.block ["map"] to #four in #range reads (%a for 0 at #one : !list) writes [#one] -> !list {
      ^bb0(%x: tensor<8xf32>):
        %n = math.tanh %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      }
      fractal.outputs (%b for 0 at #one : !list, %c for 1 at #one : !list)
    }
    ```
    After:
    ```mlir
    {deep = [array<i64: 0, 1, 1>, array<i64: 0, 2, 1>], wide = [array<i64: 1, 2>]}
    ```
  }];
}

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES
