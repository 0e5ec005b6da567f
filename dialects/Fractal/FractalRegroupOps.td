//===- FractalRegroupOps.td - lists cut, merged and combined ---*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_REGROUP_OPS
#define TILEWRIGHT_FRACTAL_REGROUP_OPS

include "dialects/Fractal/FractalAccessOps.td"

def Fractal_InterleaveOp : Fractal_AccessOp<"interleave"> {
  let summary = "groups of every n-th element";
  let description = [{
    Element p of group g is element `p * by + g` of the source. There are `by`
    groups, fewer where the source has fewer elements; they differ in length
    where `by` does not divide that of the source.

    - `interleave_c1`: the number of groups is positive.
    - `interleave_c2`: the result is compatible with a list of groups of elements
      of the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[8] of tensor<4xf32>>, %ys: !fractal.array<[?] of tensor<4xf32>>)
        -> (!fractal.array<[4, 2] of tensor<4xf32>>, !fractal.array<[?, ragged] of tensor<4xf32>>) {
      %a = fractal.interleave %xs by 4 : !fractal.array<[8] of tensor<4xf32>> -> !fractal.array<[4, 2] of tensor<4xf32>>
      %b = fractal.interleave %ys by 4
          : !fractal.array<[?] of tensor<4xf32>> -> !fractal.array<[?, ragged] of tensor<4xf32>>
      return %a, %b : !fractal.array<[4, 2] of tensor<4xf32>>, !fractal.array<[?, ragged] of tensor<4xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, I64Attr:$by);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `by` $by attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

def Fractal_DeinterleaveOp : Fractal_AccessOp<"deinterleave"> {
  let summary = "the inverse of interleave";
  let description = [{
    Of d groups, element `p * d + g` of the result is element p of group g. No
    group has fewer elements than the next one, and none more than one more than
    the last one.

    - `deinterleave_c1`: the source has two levels or more.
    - `deinterleave_c2`: the result is compatible with the source without its
      first two levels, in one list.

    Example:

    ```mlir
    func.func @f(%xss: !fractal.array<[4, 2] of tensor<4xf32>>) -> !fractal.array<[8] of tensor<4xf32>> {
      %r = fractal.deinterleave %xss : !fractal.array<[4, 2] of tensor<4xf32>> -> !fractal.array<[8] of tensor<4xf32>>
      return %r : !fractal.array<[8] of tensor<4xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

def Fractal_FlattenOp : Fractal_AccessOp<"flatten"> {
  let summary = "the lists of the first two levels, joined";
  let description = [{
    One list after the other.

    - `flatten_c1`: the source has two levels or more.
    - `flatten_c2`: the result is compatible with the source without its first
      two levels, in one list.

    Example:

    ```mlir
    func.func @f(%xss: !fractal.array<[4, ragged, 2] of tensor<8xf32>>) -> !fractal.array<[?, 2] of tensor<8xf32>> {
      %r = fractal.flatten %xss
          : !fractal.array<[4, ragged, 2] of tensor<8xf32>> -> !fractal.array<[?, 2] of tensor<8xf32>>
      return %r : !fractal.array<[?, 2] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

def Fractal_SplitOp : Fractal_AccessOp<"split"> {
  let summary = "a list cut into equally long ones";
  let description = [{
    Into `into` lists of neighbours. A length that `into` does not divide is an
    error in the reference interpreter and undefined elsewhere.

    - `split_c1`: the number of lists is positive and divides a known length.
    - `split_c2`: the result is compatible with a list of `into` lists of elements
      of the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[12] of tensor<8xf32>>) -> !fractal.array<[3, 4] of tensor<8xf32>> {
      %r = fractal.split %xs into 3 : !fractal.array<[12] of tensor<8xf32>> -> !fractal.array<[3, 4] of tensor<8xf32>>
      return %r : !fractal.array<[3, 4] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, I64Attr:$into);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `into` $into attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

def Fractal_ProductOp : Fractal_Op<"product", [Pure]> {
  let summary = "all pairs of elements of two lists";
  let description = [{
    Two lists of lists, to be mapped over in step: at [i][k], the first result
    has element i of `lhs`, the second one element k of `rhs`.

    - `product_c1`: the results are compatible with lists of as many lists as
      `lhs` has elements, each as long as `rhs`, of elements of `lhs` and `rhs`.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4] of tensor<8xf32>>, %ys: !fractal.array<[?] of tensor<2xf32>>)
        -> (!fractal.array<[4, ?] of tensor<8xf32>>, !fractal.array<[4, ?] of tensor<2xf32>>) {
      %a, %b = fractal.product %xs, %ys : !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[?] of tensor<2xf32>>
          -> !fractal.array<[4, ?] of tensor<8xf32>>, !fractal.array<[4, ?] of tensor<2xf32>>
      return %a, %b : !fractal.array<[4, ?] of tensor<8xf32>>, !fractal.array<[4, ?] of tensor<2xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$lhs, Fractal_ArrayType:$rhs);
  let results = (outs Fractal_ArrayType:$lefts, Fractal_ArrayType:$rights);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs))
    `->` qualified(type($lefts)) `,` qualified(type($rights))
  }];
  let hasVerifier = 1;
}

def Fractal_JoinOp : Fractal_Op<"join", [Pure]> {
  let summary = "lists, one after the other";
  let description = [{
    Along the outermost level.

    - `join_c1`: there is at least one array.
    - `join_c2`: the result has the sum of the lengths, as far as these are known.
    - `join_c3`: all arrays and the result are compatible in the further levels
      and the leaf; where the result is not ragged, no two known lengths differ.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4] of tensor<8xf32>>, %ys: !fractal.array<[2] of tensor<8xf32>>)
        -> !fractal.array<[6] of tensor<8xf32>> {
      %r = fractal.join %xs, %ys : !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[2] of tensor<8xf32>>
          -> !fractal.array<[6] of tensor<8xf32>>
      return %r : !fractal.array<[6] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Variadic<Fractal_ArrayType>:$sources);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $sources attr-dict
    `:` type($sources) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Fractal_GatherOp : Fractal_Op<"gather", [Pure]> {
  let summary = "elements at listed places";
  let description = [{
    Element i of the result is element `indices[i]` of the source. An index
    outside the list is an error in the reference interpreter and undefined
    elsewhere.

    - `gather_c1`: the result is compatible with a list of elements of the source,
      as long as the indices.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[16] of tensor<8xf32>>, %i: tensor<?xi32>)
        -> !fractal.array<[?] of tensor<8xf32>> {
      %r = fractal.gather %xs[%i]
          : !fractal.array<[16] of tensor<8xf32>>, tensor<?xi32> -> !fractal.array<[?] of tensor<8xf32>>
      return %r : !fractal.array<[?] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, 1DTensorOf<[I32, I64]>:$indices);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` attr-dict
    `:` qualified(type($source)) `,` type($indices) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Fractal_ScatterOp : Fractal_Op<"scatter", [Pure]> {
  let summary = "a list with elements at listed places replaced";
  let description = [{
    Element `indices[i]` of the result is element i of the source, all others
    are those of the destination; of several for one place it is the last one.
    Each element of the result finds what is written to it, so all of them are
    written once and at the same time. An index outside the list is an error in
    the reference interpreter and undefined elsewhere.

    - `scatter_c1`: the source is compatible with a list of elements of the
      destination, as long as the indices.
    - `scatter_c2`: the result is compatible with the destination.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?] of tensor<8xf32>>, %ys: !fractal.array<[16] of tensor<8xf32>>,
                 %i: tensor<?xi32>) -> !fractal.array<[16] of tensor<8xf32>> {
      %r = fractal.scatter %xs into %ys[%i]
          : !fractal.array<[?] of tensor<8xf32>>, !fractal.array<[16] of tensor<8xf32>>, tensor<?xi32>
          -> !fractal.array<[16] of tensor<8xf32>>
      return %r : !fractal.array<[16] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, Fractal_ArrayType:$dest, 1DTensorOf<[I32, I64]>:$indices);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `into` $dest `[` $indices `]` attr-dict
    `:` qualified(type($source)) `,` qualified(type($dest)) `,` type($indices) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_FRACTAL_REGROUP_OPS
