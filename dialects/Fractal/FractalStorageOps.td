//===- FractalStorageOps.td - arrays and tensors ---------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_STORAGE_OPS
#define TILEWRIGHT_FRACTAL_STORAGE_OPS

include "dialects/Fractal/FractalAccessOps.td"

def Fractal_FromTensorOp : Fractal_Op<"from_tensor", [Pure]> {
  let summary = "leading dimensions of a tensor as levels";
  let description = [{
    - `from_tensor_c1`: the sizes of the tensor are compatible with the lengths of
      the array, followed by the shape of its leaf; both have one element type, and
      neither has an encoding.
    - `from_tensor_c2`: no level is ragged.

    Example:

    ```mlir
    func.func @f(%t: tensor<4x?x1x512xf32>) -> !fractal.array<[4, ?] of tensor<1x512xf32>> {
      %r = fractal.from_tensor %t : tensor<4x?x1x512xf32> -> !fractal.array<[4, ?] of tensor<1x512xf32>>
      return %r : !fractal.array<[4, ?] of tensor<1x512xf32>>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` type($source) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Fractal_ToTensorOp : Fractal_Op<"to_tensor", [Pure]> {
  let summary = "levels as leading dimensions of a tensor";
  let description = [{
    The inverse of `from_tensor`.

    - `to_tensor_c1`: the sizes of the tensor are compatible with the lengths of
      the array, followed by the shape of its leaf; both have one element type, and
      neither has an encoding.
    - `to_tensor_c2`: no level is ragged.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4, ?] of tensor<1x512xf32>>) -> tensor<4x?x1x512xf32> {
      %r = fractal.to_tensor %xs : !fractal.array<[4, ?] of tensor<1x512xf32>> -> tensor<4x?x1x512xf32>
      return %r : tensor<4x?x1x512xf32>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` qualified(type($source)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Fractal_FromRaggedOp : Fractal_Op<"from_ragged", [Pure]> {
  let summary = "leaves in a line, with offsets, as nested lists";
  let description = [{
    Leaves stand in depth-first order. There is one list of offsets per inner
    level, outermost first: list i of the level has elements `offsets[i]` to
    `offsets[i + 1]` (excluded) of the next level, or of the leaves. Offsets begin
    with 0 and do not descend; the last one is at most the number of all elements,
    and what stands behind it belongs to no list. `most` says for each inner level
    how long a list is at most. The reference interpreter checks that.

    - `from_ragged_c1`: `flat` has one level, and the leaf of the result.
    - `from_ragged_c2`: the result has two levels or more; there is one list of
      offsets, a tensor of i64 of rank 1, per level but the first.
    - `from_ragged_c3`: where the result's length and the size of the first
      offsets are known, that size is the length and one.
    - `from_ragged_c4`: `most`, where given, has a number for each inner level,
      not negative.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?] of tensor<8xf32>>, %o: tensor<5xi64>, %p: tensor<?xi64>)
        -> !fractal.array<[4, ragged, ragged] of tensor<8xf32>> {
      %r = fractal.from_ragged %xs, %o, %p : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>, tensor<?xi64>
          -> !fractal.array<[4, ragged, ragged] of tensor<8xf32>>
      return %r : !fractal.array<[4, ragged, ragged] of tensor<8xf32>>
    }
    func.func @bounded(%xs: !fractal.array<[64] of tensor<8xf32>>, %o: tensor<5xi64>)
        -> !fractal.array<[4, ragged] of tensor<8xf32>> {
      %r = fractal.from_ragged %xs, %o most [16] : !fractal.array<[64] of tensor<8xf32>>, tensor<5xi64>
          -> !fractal.array<[4, ragged] of tensor<8xf32>>
      return %r : !fractal.array<[4, ragged] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$flat,
                       Variadic<1DTensorOf<[I64]>>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$most);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $flat `,` $offsets (`most` $most^)? attr-dict
    `:` qualified(type($flat)) `,` type($offsets) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Fractal_ToRaggedOp : Fractal_Op<"to_ragged", [Pure]> {
  let summary = "nested lists as leaves in a line, with offsets";
  let description = [{
    The inverse of `from_ragged`, for any lengths. Where the type of `flat` or of
    offsets says how many there are, there may be more than the lists have: the
    rest of `flat` is zero, that of the offsets is their last one.

    - `to_ragged_c1`: `flat` has one level, and the leaf of the source.
    - `to_ragged_c2`: the source has two levels or more; there is one list of
      offsets, a tensor of i64 of rank 1, per level but the first.
    - `to_ragged_c3`: where the source's length and the size of the first
      offsets are known, that size is the length and one.

    Example:

    ```mlir
    func.func @f(%xss: !fractal.array<[4, ragged] of tensor<8xf32>>)
        -> (!fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>) {
      %xs, %o = fractal.to_ragged %xss
          : !fractal.array<[4, ragged] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>
      return %xs, %o : !fractal.array<[?] of tensor<8xf32>>, tensor<5xi64>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source);
  let results = (outs Fractal_ArrayType:$flat,
                      Variadic<1DTensorOf<[I64]>>:$offsets);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source))
    `->` qualified(type($flat)) `,` type($offsets)
  }];
  let hasVerifier = 1;
}

def Fractal_LengthOp : Fractal_Op<"length", [Pure]> {
  let summary = "number of elements of the outermost list";
  let description = [{
    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?, 4] of tensor<8xf32>>) -> index {
      %n = fractal.length %xs : !fractal.array<[?, 4] of tensor<8xf32>>
      return %n : index
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source);
  let results = (outs Index:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
}

def Fractal_CastOp : Fractal_AccessOp<"cast"> {
  let summary = "the same lists, with more or less known of their lengths";
  let description = [{
    For where types must be equal: states, arguments of functions. What the
    result's type claims is checked by the reference interpreter.

    - `cast_c1`: source and result are compatible.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4, ragged] of tensor<8xf32>>) -> !fractal.array<[?, 2] of tensor<8xf32>> {
      %r = fractal.cast %xs : !fractal.array<[4, ragged] of tensor<8xf32>> -> !fractal.array<[?, 2] of tensor<8xf32>>
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

#endif // TILEWRIGHT_FRACTAL_STORAGE_OPS
