//===- Passes.td - nested lists as tensors ----------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PASSES
#define TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def ConvertFractalToLinalg : Pass<"convert-fractal-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Turn nested lists into tensors, maps into parallel loops";
  let description = [{
    A list becomes a tensor with a dimension per level in front of those of its
    leaf. The body of a `map` is computed for all elements at once: each
    structured operation in it gets a parallel loop per map around it (lifting,
    also called flattening of nested parallelism; Blelloch, CACM 1996). Operands
    that do not vary with a map, weights as a rule, are not repeated for it. A
    recurrence becomes an `scf.for` whose body is lifted over all maps around it,
    so that a scan of each sentence of a batch is one loop over time. Lists of
    its states that nobody reads are not made. A `reduce`
    by one elementwise operation becomes a reduction loop; any other one a loop,
    as a fold. A `recurse` becomes two loops, over chunks of leaves and over
    chunks of the other levels: the body is computed for `chunk` nodes at once,
    whose states are then written side by side. Where a level ends within a
    chunk, its last node is computed several times. How often the loops run,
    only a run knows.

    A product with one encoded weight (`sparse_tile.matmul`) is one for all
    elements, whose rows or columns are those of all of them.

    Lists of a level that are not equally long are as long in memory as the
    longest may be (`most` of `from_ragged`, or what follows from it), and beside
    them stands how many elements each has; what a `filter` leaves out, a mask
    says. A map computes all elements, those too that are not there; a recurrence
    runs to the longest list of the run, and keeps its states where a list has
    ended; a reduction takes its operation's
    neutral element there. What only permutes or counts elements moves those of
    a mask together first. Elements that are not there are copies of ones that
    are, or zero, and integers are divided safely. Numbers of a list (its length,
    places in it) that differ between lists of a batch are tensors of rank 0.

    Access operations that permute, cut or repeat lists cost nothing, or a slice.
    Others (windows, shifts, reversed lists, gathers) are copied by one generic.
    A scatter is two: each element of the result looks for the last index that
    names it, which takes a comparison for each pair of them, and is copied from
    the source or from the destination.

    Refused, with an error at the operation: ragged arguments and results of
    functions (flat lists and offsets stand for them), states whose length a step
    changes and only a run knows, repeating and splitting by such lengths, leaf
    operations that are neither structured nor elementwise, nor reshape, cut or
    join tensors.

    Before:
    ```mlir
    !row = tensor<1x8xf32>
    !rows = !fractal.array<[4] of tensor<1x8xf32>>
    func.func @f(%xs: !rows, %w: tensor<8x8xf32>) -> !rows {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : !row
      %i = linalg.fill ins(%zero : f32) outs(%e : !row) -> !row
      %r = fractal.map (%x = %xs) : (!rows) -> !rows {
        %y = linalg.matmul ins(%x, %w : !row, tensor<8x8xf32>) outs(%i : !row) -> !row
        fractal.yield %y : !row
      }
      return %r : !rows
    }
    ```
    After:
    ```mlir
    #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
    #map1 = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
    #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
    ...
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%xs, %w : tensor<4x1x8xf32>, tensor<8x8xf32>)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"chunk", "chunk", "int64_t", "4",
           "How many nodes of a tree are computed at once">,
  ];
}

#endif // TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PASSES
