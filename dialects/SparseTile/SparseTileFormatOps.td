//===- SparseTileFormatOps.td - held as parts, and as elements -*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_FORMAT_OPS
#define TILEWRIGHT_SPARSE_TILE_FORMAT_OPS

include "dialects/SparseTile/SparseTileAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SparseTile_PackOp : SparseTile_Op<"pack", [Pure]> {
  let summary = "a tensor, held by its pattern";
  let description = [{
    The value stays. What does not fit the pattern of the result is an error in
    the reference interpreter and undefined elsewhere: what is pruned is decided
    before.

    - `pack_c1`: source and result have the same shape and element type.
    - `pack_c2`: the source has no encoding, the result one of one region without
      a format.

    Example:

    ```mlir
    func.func @f(%x: tensor<64x96xf32>) -> tensor<64x96xf32, #sparse_tile.tesa<block<[32, 32]>>> {
      %p = sparse_tile.pack %x : tensor<64x96xf32> to tensor<64x96xf32, #sparse_tile.tesa<block<[32, 32]>>>
      return %p : tensor<64x96xf32, #sparse_tile.tesa<block<[32, 32]>>>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def SparseTile_UnpackOp : SparseTile_Op<"unpack", [Pure]> {
  let summary = "an encoded tensor, element by element";
  let description = [{
    The sum of the regions, with zeros wherever none has a value.

    - `unpack_c1`: source and result have the same shape and element type.
    - `unpack_c2`: the result has no encoding, and no region of the source a format.

    Example:

    ```mlir
    func.func @f(%p: tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>, mask>>) -> tensor<64x96xf32> {
      %x = sparse_tile.unpack %p : tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>, mask>> to tensor<64x96xf32>
      return %x : tensor<64x96xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def SparseTile_PartsOp : SparseTile_Op<"parts", [Pure]> {
  let summary = "the tensors that hold an encoded one";
  let description = [{
    Region after region: what the pattern's description lists; where there is a
    format, its scales and zero points behind.

    - `parts_c1`: the source has an encoding.
    - `parts_c2`: the results have the types of its parts (a size that is known
      may stand where the encoding has `?`).

    Example:

    ```mlir
    func.func @f(%p: tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>)
        -> (tensor<32x96xf32>, tensor<32x96xi8>) {
      %v, %i = sparse_tile.parts %p : tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>
          to tensor<32x96xf32>, tensor<32x96xi8>
      return %v, %i : tensor<32x96xf32>, tensor<32x96xi8>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs Variadic<AnyRankedTensor>:$parts);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($parts)";
  let hasVerifier = 1;
}

def SparseTile_AssembleOp : SparseTile_Op<"assemble", [Pure]> {
  let summary = "an encoded tensor of its parts";
  let description = [{
    The inverse of `parts`. Positions are not looked at: the interpreter tells
    those that are out of range, out of order or twice there.

    - `assemble_c1`: the result has an encoding.
    - `assemble_c2`: the operands have the types of its parts (a size that is
      known may stand where the encoding has `?`).

    Example:

    ```mlir
    func.func @f(%v: tensor<32x96xf32>, %i: tensor<32x96xi8>)
        -> tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>> {
      %p = sparse_tile.assemble %v, %i : tensor<32x96xf32>, tensor<32x96xi8>
          to tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>
      return %p : tensor<64x96xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$parts);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parts attr-dict `:` type($parts) `to` type($result)";
  let hasVerifier = 1;
}

def SparseTile_QuantizeOp : SparseTile_Op<"quantize", [Pure]> {
  let summary = "elements rounded to the codes of a format";
  let description = [{
    `code = saturate(round(x / scale) + zero point)`, rounding half to even, as
    QuantizeLinear of ONNX has it; the quotient is rounded to the type of the
    scales. NaN becomes the least code of integers and stays NaN in floats. The
    value of the result is `(code - zero point) * scale`.

    - `quantize_c1`: source and result have the same shape and element type.
    - `quantize_c2`: the result's encoding has one region, with a format; the
      source has the same pattern without it, or (if it is dense) no encoding.
    - `quantize_c3`: the format has scales; these, and zero points exactly where
      the format has them, have the sizes and types that it says.

    Example:

    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %s: tensor<4x1xf32>)
        -> tensor<4x8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, ?]>>> {
      %q = sparse_tile.quantize %x scales %s : tensor<4x8xf32>, tensor<4x1xf32>
          to tensor<4x8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, ?]>>>
      return %q : tensor<4x8xf32, #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, ?]>>>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$scales,
                       Optional<AnyRankedTensor>:$zero_points);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `scales` $scales (`zero_points` $zero_points^)? attr-dict `:`
    type($source) `,` type($scales) (`,` type($zero_points)^)? `to` type($result)
  }];
  let hasVerifier = 1;
}

def SparseTile_DequantizeOp : SparseTile_Op<"dequantize", [Pure]> {
  let summary = "elements as they are, of the codes of a format";
  let description = [{
    `(code - zero point) * scale`, computed in f32 (the difference of integers
    exactly) and rounded to the element type; without scales, the difference. The
    pattern stays.

    - `dequantize_c1`: source and result have the same shape and element type.
    - `dequantize_c2`: the source's encoding has one region, with a format; the
      result has the same pattern without it, or (if it is dense) no encoding.

    Example:

    ```mlir
    func.func @f(%q: tensor<4x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 1> : format<i8, scales = f32>>>)
        -> tensor<4x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 1>>> {
      %x = sparse_tile.dequantize %q
          : tensor<4x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 1> : format<i8, scales = f32>>>
          to tensor<4x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 1>>>
      return %x : tensor<4x8xf32, #sparse_tile.tesa<nm<2 : 4, axis = 1>>>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def SparseTile_DecodeOp : SparseTile_Op<"decode", [Pure, AttrSizedOperandSegments]> {
  let summary = "the number that a code stands for";
  let description = [{
    `dequantize` of one element, in the body of a `linalg.generic`: `(code - zero
    point) * scale`, computed in f32 (the difference of integers exactly) and
    rounded to the type of the result. So a body says which of its operands are
    codes, zero points and scales, for as long as someone may multiply the codes
    themselves; `tile-expand-decodes` makes arithmetic of it. A zero point of
    `i8` has a sign where the code has one.

    - `decode_c1`: the code is an `i8`, or a float of 8 bits, which has no zero
      point and is not `unsigned`; the zero point is an `i8`, an `i32` or a
      float, the scale a float.
    - `decode_c2`: the result is a float, or an `i32` where code and zero point
      are integers and there is no scale.

    Example:

    ```mlir
    func.func @f(%code: i8, %zero: i8, %scale: f32) -> (f32, i32) {
      %x = sparse_tile.decode unsigned %code zero_point %zero : i8 scale %scale : f32 : i8 to f32
      %d = sparse_tile.decode %code : i8 to i32
      return %x, %d : f32, i32
    }
    ```
  }];
  let arguments = (ins AnyType:$code, Optional<AnyType>:$zero_point,
                       Optional<AnyType>:$scale, UnitAttr:$is_unsigned);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    (`unsigned` $is_unsigned^)? $code (`zero_point` $zero_point^ `:` type($zero_point))?
    (`scale` $scale^ `:` type($scale))? attr-dict `:` type($code) `to` type($result)
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_SPARSE_TILE_FORMAT_OPS
