//===- Passes.td - recurrences over lists -----------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_PASSES
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_PASSES

include "mlir/Pass/PassBase.td"

def HoistInvariants : Pass<"tile-hoist-invariants"> {
  let summary = "Compute what does not vary with elements once";
  let description = [{
    Operations in the body of a map, scan, fold or reduce that depend on nothing
    in it move in front of it. A result of a map that does not vary with its
    elements is a `fractal.repeat`: initial states that a program makes with the
    shape of its elements no longer depend on them.

    Before:
    ```mlir
    !list = !fractal.array<[4] of tensor<8xf32>>
    func.func @f(%xs: !list, %v: tensor<8xf32>) -> !list {
      %r = fractal.map (%x = %xs) : (!list) -> !list {
        %0 = arith.negf %v : tensor<8xf32>
        fractal.yield %0 : tensor<8xf32>
      }
      return %r : !list
    }
    ```
    After:
    ```mlir
    %0 = arith.negf %v : tensor<8xf32>
    %r = fractal.repeat %0 times 4
    ...
    return %r
    ```
  }];
}

def FuseExponents : Pass<"tile-fuse-exponents"> {
  let summary = "Compute exponentials and their exponents in one body";
  let description = [{
    In functions of lists, which are traced operation by operation, an
    exponential takes over the difference that it alone reads, and dimensions of
    size one that broadcasting added are read without. What follows knows
    `exp(x - m)` by its body: it is relative to a maximum, which may change
    while a loop runs (online softmax), and rows of one loop are plain.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i0 = affine_map<(i, j) -> (i, 0)>
    !list = !fractal.array<[4] of tensor<8x5xf32>>
    func.func @f(%xs: !list, %m: tensor<8xf32>) -> !list {
      %r = fractal.map (%x = %xs) : (!list) -> !list {
        %e = tensor.empty() : tensor<8x5xf32>
        %w = tensor.expand_shape %m [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
        %d = linalg.generic {indexing_maps = [#ij, #i0, #ij], iterator_types = ["parallel", "parallel"]}
            ins(%x, %w : tensor<8x5xf32>, tensor<8x1xf32>) outs(%e : tensor<8x5xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %0 = arith.subf %a, %b : f32
          linalg.yield %0 : f32
        } -> tensor<8x5xf32>
        %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
            ins(%d : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
        ^bb0(%a: f32, %o: f32):
          %0 = math.exp %a : f32
          linalg.yield %0 : f32
        } -> tensor<8x5xf32>
        fractal.yield %p : tensor<8x5xf32>
      }
      return %r : !list
    }
    ```
    After:
    ```mlir
    %p = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %m :
    ...
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    ```
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def FindPairs : Pass<"tile-find-pairs"> {
  let summary = "Find recurrences that could run along diagonals";
  let description = [{
    A recurrence whose lists of states go element by element through a scan in
    its body (see `tile-skew-recurrences`) gets the lengths of both,
    `tile.pair`. Whether diagonals pay is decided by `tile-plan-wavefronts`.

    Before:
    ```mlir
    !row = tensor<8xf32>
    !list = !fractal.array<[9] of tensor<8xf32>>
    func.func @f(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !row) -> !list {
      %r = fractal.fold left (%s = %xs) over (%w = %ws)
          : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list {
        %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!row, !list) -> !list {
          %0 = arith.addf %h, %x : !row
          fractal.yield %0 : !row
        }
        fractal.yield %hs : !list
      }
      return %r : !list
    }
    ```
    After:
    ```mlir
    %r = fractal.fold left (%s = %xs) over (%w = %ws)
    ...
    attributes {tile.pair = array<i64: 3, 9>} {
    ```
  }];
}

def JoinSoftmaxBlocks : Pass<"tile-join-softmax-blocks"> {
  let summary = "Take a softmax over all blocks at once, not block by block";
  let description = [{
    A fold over blocks whose states are a running maximum of scores and sums of
    their exponentials relative to it (attention, as FlashAttention computes it)
    is a softmax over all blocks: lists become one tensor whose blocks stand side
    by side. Planning makes one kernel of that, which again goes block by block,
    in blocks that fit the machine (`tile-plan-online`).

    A state is known by its update as a formula in exponentials, maxima and sums
    over rows, not by the operations that a program writes it with. With
    `m' = max(m, rowmax x)`, a sum must become `exp(m - m') s + exp(-m') A`, A
    the sum of `exp(x) w` over the block; it may be divided by another such sum
    in each step. Maxima start at minus infinity, sums at zero; the list is not
    empty and its length is known; scores and weights are made row by row of
    elements. In real numbers both are equal. A block all of whose scores are
    minus infinity makes the fold no number; here it adds nothing. What has a
    running maximum and is left as it is gets a remark that says why.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    !list = !fractal.array<[4] of tensor<8x5xf32>>
    func.func @f(%xs: !list) -> tensor<8xf32> {
      %low = arith.constant dense<0xFF800000> : tensor<8xf32>
      %zero = arith.constant dense<0.0> : tensor<8xf32>
      %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
          : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
        %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
            ins(%x : tensor<8x5xf32>) outs(%low : tensor<8xf32>) {
        ^bb0(%a: f32, %o: f32):
          %t = arith.maximumf %o, %a : f32
          linalg.yield %t : f32
        } -> tensor<8xf32>
        %m1 = arith.maximumf %m0, %top : tensor<8xf32>
        %d = arith.subf %m0, %m1 : tensor<8xf32>
        %f = math.exp %d : tensor<8xf32>
        %old = arith.mulf %f, %s0 : tensor<8xf32>
        %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
            ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %e = arith.subf %a, %b : f32
          %p = math.exp %e : f32
          %t = arith.addf %o, %p : f32
          linalg.yield %t : f32
        } -> tensor<8xf32>
        fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
      }
      return %s : tensor<8xf32>
    }
    ```
    After:
    ```mlir
    %whole = fractal.to_tensor %xs : !fractal.array<[4] of tensor<8x5xf32>> -> tensor<4x8x5xf32>
    ...
    %x = tensor.collapse_shape %rows [[0], [1, 2]] : tensor<8x4x5xf32> into tensor<8x20xf32>
    ...
    %m = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x20xf32>)
    ...
    %p = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x, %m : tensor<8x20xf32>, tensor<8xf32>)
    ...
    %s = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]}
        ins(%p : tensor<8x20xf32>)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SkewRecurrences : Pass<"tile-skew-recurrences"> {
  let summary = "Run two nested recurrences along the diagonals of their domain";
  let description = [{
    A recurrence whose lists of states go element by element through a scan, as
    the layers of a stacked network do, depends on itself at the distances (1, 0)
    and (0, 1) only. Where `tile.wavefront` is set on it, the unimodular
    transformation (d, l) -> (d + l, d) makes one scan of both, over
    `D + L - 1` diagonals, whose elements are computed by a map: all dimensions
    but the first are parallel (Lamport, CACM 1974; FractalTensor, SOSP 2024).

    What the scan reads at (d, l) is read along diagonals (`fractal.read`); the
    state of the layer below is the last diagonal's, shifted by one, with the
    outer recurrence's init at the border. Points outside of the domain keep the
    init in front of it, and compute what nobody reads behind it. With a number,
    bands of so many rows do, one behind the other in a loop: fewer such points.
    Products that need a state of neither are computed in front, for all points.

    The pair is legal where the outer states are read by the inner scan's lists
    only, its results are the next ones, both go from left to right over known
    lengths that are not zero, and nothing else in between depends on states.
    Where the decision asks for another pair, it is an error that says why.

    Before:
    ```mlir
    !row = tensor<8xf32>
    !list = !fractal.array<[9] of tensor<8xf32>>
    func.func @f(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !row) -> !list {
      %r = fractal.fold left (%s = %xs) over (%w = %ws)
          : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list attributes {tile.wavefront} {
        %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!row, !list) -> !list {
          %0 = arith.mulf %h, %w : !row
          %1 = arith.addf %0, %x : !row
          fractal.yield %1 : !row
        }
        fractal.yield %hs : !list
      }
      return %r : !list
    }
    ```
    After:
    ```mlir
    %d = fractal.scan left (%h = %init) over (%x = %border, %in = %inside)
    ...
      %below = fractal.shift %h by -1 fill %x
    ...
      %next = fractal.map (%a = %h, %b = %below, %c = %in, %w = %ws)
    ...
    fractal.read %d at #map
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def SplitScans : Pass<"tile-split-scans"> {
  let summary = "Compute what does not depend on the state before the scan";
  let description = [{
    Operations of a recurrence's body that need elements, but no state, become a
    `map` in front of it, over all elements at once: loop fission. The projection
    `x @ w` of a recurrent layer becomes one product for a whole sequence. Only
    what holds a contraction is moved, with all that it needs: other operations
    are cheaper beside their users. Maps in the body are split first, so that
    gates, each a sum of a projection and a product with the state, are no
    obstacle.

    Before:
    ```mlir
    !row = tensor<1x8xf32>
    !rows = !fractal.array<[9] of tensor<1x8xf32>>
    func.func @f(%xs: !rows, %h0: !row, %w: tensor<8x8xf32>, %z: !row) -> !row {
      %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!row, !rows) -> !row {
        %p = linalg.matmul ins(%x, %w : !row, tensor<8x8xf32>) outs(%z : !row) -> !row
        %n = arith.addf %p, %h : !row
        fractal.yield %n : !row
      }
      return %r : !row
    }
    ```
    After:
    ```mlir
    %ps = fractal.map (%x = %xs) :
    ...
      %p = linalg.matmul ins(%x, %w :
    ...
      fractal.yield %p :
    ...
    %r = fractal.fold left (%h = %h0) over (%y = %xs, %q = %ps) :
    ...
      %n = arith.addf %q, %h :
    ```
  }];
}

def UnrollRecurrences : Pass<"tile-unroll-recurrences"> {
  let summary = "Write the steps of a recurrence one after the other";
  let description = [{
    A scan or fold with `tile.unroll` over lists of a known length becomes as many
    copies of its body. Weights of each step are operands of their own then,
    which can be packed at compile time; equal kernels are compiled once. With a
    number, so many are an iteration of a loop, and what is left follows it.

    Before:
    ```mlir
    !row = tensor<8xf32>
    func.func @f(%h0: !row, %ws: !fractal.array<[2] of tensor<8xf32>>) -> !row {
      %r = fractal.fold left (%h = %h0) over (%w = %ws)
          : (!row, !fractal.array<[2] of tensor<8xf32>>) -> !row attributes {tile.unroll} {
        %0 = arith.mulf %h, %w : !row
        fractal.yield %0 : !row
      }
      return %r : !row
    }
    ```
    After:
    ```mlir
    %w = fractal.at %ws[%c0]
    ...
    %h = arith.mulf %h0, %w
    ...
    %v = fractal.at %ws[%c1]
    ...
    %r = arith.mulf %h, %v
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FindShifts : Pass<"tile-find-shifts"> {
  let summary = "Find loops that could be one with the loop in front";
  let description = [{
    Loops over tensors in one block, with the same bounds, may run as one: both
    directions of a recurrent layer, branches, layers of a stack. `tile.shift` is
    the least number of iterations by which a loop has to follow the loop in front
    of it: 0 where it needs none of the results, 1 where it reads, in iteration
    t, what that loop wrote in iteration t. There may be products and maps in
    between that keep rows apart, as a layer's projection of a whole sequence.
    All other needs stand against it, and so do effects in between. Whether it
    pays is decided by `tile-plan-shifts`.

    Before:
    ```mlir
    !row = tensor<8xf32>
    !rows = tensor<9x8xf32>
    func.func @f(%h0: !row, %g0: !row) -> (!rows, !rows) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %e = tensor.empty() : !rows
      %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
        %n = math.tanh %h : !row
        %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
        scf.yield %n, %i : !row, !rows
      }
      %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%g = %g0, %y = %e) -> (!row, !rows) {
        %x = tensor.extract_slice %a#1[%t, 0] [1, 8] [1, 1] : !rows to !row
        %n = arith.addf %g, %x : !row
        %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
        scf.yield %n, %i : !row, !rows
      }
      return %a#1, %b#1 : !rows, !rows
    }
    ```
    After:
    ```mlir
    %b:2 = scf.for
    ...
    } {tile.shift = 1 : i64}
    ```
  }];
}

def FuseShifted : Pass<"tile-fuse-shifted"> {
  let summary = "Run loops as one, each some iterations behind the one in front";
  let description = [{
    Loops with `tile.shift` become one with the loop in front of them: loop
    fusion with shift-and-peel (Manjikian and Abdelrahman, 1997), the wavefront
    of a stack of layers. An iteration has a step of each loop, none of which
    needs another one. Iterations in which some have not begun, or have ended,
    stand in front of the loop and behind it. What is computed of a sequence
    between two loops is computed row by row; where a state is what was written
    last, it is read in the row's place.

    A shift that is not what `tile-find-shifts` finds is an error.

    Before:
    ```mlir
    !row = tensor<8xf32>
    !rows = tensor<9x8xf32>
    func.func @f(%h0: !row, %g0: !row) -> (!rows, !rows) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %e = tensor.empty() : !rows
      %a:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0, %y = %e) -> (!row, !rows) {
        %n = math.tanh %h : !row
        %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
        scf.yield %n, %i : !row, !rows
      }
      %b:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%g = %g0, %y = %e) -> (!row, !rows) {
        %x = tensor.extract_slice %a#1[%t, 0] [1, 8] [1, 1] : !rows to !row
        %n = arith.addf %g, %x : !row
        %i = tensor.insert_slice %n into %y[%t, 0] [1, 8] [1, 1] : !row into !rows
        scf.yield %n, %i : !row, !rows
      } {tile.shift = 1 : i64}
      return %a#1, %b#1 : !rows, !rows
    }
    ```
    After:
    ```mlir
    %first = math.tanh %h0
    ...
    %r:4 = scf.for %t = %c0 to %c8 step %c1
    ...
      %n = arith.addf %g, %h
    ...
      %m = math.tanh %h
    ...
    arith.addf %r#2, %r#0
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_PASSES
