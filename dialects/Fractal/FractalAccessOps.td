//===- FractalAccessOps.td - an element, or other elements -----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_ACCESS_OPS
#define TILEWRIGHT_FRACTAL_ACCESS_OPS

include "dialects/Fractal/FractalInterfaces.td"
include "dialects/Fractal/FractalTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// One result whose elements stand elsewhere in the source, as an affine map
// says.
class Fractal_AccessOp<string mnemonic, list<Trait> traits = []>
    : Fractal_Op<mnemonic, !listconcat([Pure, Fractal_AccessOpInterface],
                                       traits)> {
  code access = [{
    ::mlir::AffineMap getAccessMap();
  }];
  let extraClassDeclaration = access;
  let hasVerifier = 1;
}

def Fractal_AtOp : Fractal_AccessOp<"at"> {
  let summary = "one element";
  let description = [{
    Counted from 0. An index outside the list is an error in the reference
    interpreter and undefined elsewhere.

    - `at_c1`: the result is compatible with an element of the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4, ragged] of tensor<8xf32>>, %i: index) -> tensor<8xf32> {
      %x = fractal.at %xs[%i] : !fractal.array<[4, ragged] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>
      %y = fractal.at %x[%i] : !fractal.array<[?] of tensor<8xf32>> -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, Index:$index);
  let results = (outs Fractal_Element:$result);
  let assemblyFormat = [{
    $source `[` $index `]` attr-dict
    `:` qualified(type($source)) `->` type($result)
  }];
}

def Fractal_SliceOp : Fractal_AccessOp<"slice", [AttrSizedOperandSegments]> {
  let summary = "elements at equal distances";
  let description = [{
    `%xs [offset] [size] [stride]`: element i of the result is element
    `offset + stride * i` of the source. Elements outside the source are an error
    in the reference interpreter and undefined elsewhere.

    - `slice_c1`: there is one offset and one size, a number or an operand.
    - `slice_c2`: the stride is not zero.
    - `slice_c3`: what is known of offset, size and length lies inside the source.
    - `slice_c4`: the result is compatible with a list of `size` elements of the
      source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[16] of tensor<8xf32>>, %o: index, %n: index)
        -> (!fractal.array<[4] of tensor<8xf32>>, !fractal.array<[?] of tensor<8xf32>>) {
      %a = fractal.slice %xs [%o] [4] [2]
          : !fractal.array<[16] of tensor<8xf32>> -> !fractal.array<[4] of tensor<8xf32>>
      %b = fractal.slice %xs [15] [%n] [-1]
          : !fractal.array<[16] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>
      return %a, %b : !fractal.array<[4] of tensor<8xf32>>, !fractal.array<[?] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, Variadic<Index>:$offsets,
                       Variadic<Index>:$sizes,
                       DenseI64ArrayAttr:$static_offsets,
                       DenseI64ArrayAttr:$static_sizes, I64Attr:$stride);
  let results = (outs Fractal_ArrayType:$result);
  let extraClassDeclaration = access # [{
    ::mlir::OpFoldResult getMixedOffset();
    ::mlir::OpFoldResult getMixedSize();
  }];
  let assemblyFormat = [{
    $source custom<DynamicIndexList>($offsets, $static_offsets)
    custom<DynamicIndexList>($sizes, $static_sizes) ` ` `[` $stride `]` attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

def Fractal_ReverseOp : Fractal_AccessOp<"reverse"> {
  let summary = "from the last element to the first";
  let description = [{
    Element i of the result is element `L - 1 - i` of the source, whose length
    is L.

    - `reverse_c1`: the result is compatible with the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>> {
      %r = fractal.reverse %xs : !fractal.array<[?] of tensor<8xf32>> -> !fractal.array<[?] of tensor<8xf32>>
      return %r : !fractal.array<[?] of tensor<8xf32>>
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

def Fractal_ShiftOp : Fractal_AccessOp<"shift"> {
  let summary = "neighbours at a distance";
  let description = [{
    Element i of the result is element `i + by` of the source. Where that is
    outside, the `fill` stands; with `wrap` the list goes on from its other end.

    - `shift_c1`: it has either `fill` or `wrap`.
    - `shift_c2`: the fill is compatible with an element of the source.
    - `shift_c3`: the result is compatible with the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[8] of tensor<4xf32>>, %v: tensor<4xf32>)
        -> (!fractal.array<[8] of tensor<4xf32>>, !fractal.array<[8] of tensor<4xf32>>) {
      %a = fractal.shift %xs by 1 fill %v : !fractal.array<[8] of tensor<4xf32>>, tensor<4xf32>
          -> !fractal.array<[8] of tensor<4xf32>>
      %b = fractal.shift %xs by -2 wrap : !fractal.array<[8] of tensor<4xf32>> -> !fractal.array<[8] of tensor<4xf32>>
      return %a, %b : !fractal.array<[8] of tensor<4xf32>>, !fractal.array<[8] of tensor<4xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, I64Attr:$by,
                       Optional<Fractal_Element>:$fill, UnitAttr:$wrap);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `by` $by (`fill` $fill^)? (`wrap` $wrap^)? attr-dict
    `:` qualified(type($source)) (`,` type($fill)^)? `->` qualified(type($result))
  }];
}

def Fractal_WindowOp : Fractal_AccessOp<"window"> {
  let summary = "a list of lists of neighbours";
  let description = [{
    Element u of window i is element `stride * i + dilation * u - p` of the
    source, where `padding [p, q]` says how far windows go beyond the first and
    the last element. There the `fill` stands; with `wrap` the list goes on from
    its other end. Of a list of length L there are
    `(L + p + q - dilation * (size - 1) - 1) / stride + 1` windows (rounded
    down), and none where the first window does not fit.

    - `window_c1`: size, stride and dilation are positive.
    - `window_c2`: padding is two numbers that are not negative.
    - `window_c3`: it has either `fill` or `wrap`, or neither and no padding.
    - `window_c4`: the fill is compatible with an element of the source.
    - `window_c5`: the result is compatible with a list of windows, each a list
      of `size` elements of the source.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[8] of tensor<4xf32>>, %v: tensor<4xf32>)
        -> !fractal.array<[8, 3] of tensor<4xf32>> {
      %r = fractal.window %xs size 3 stride 1 dilation 1 padding [1, 1] fill %v
          : !fractal.array<[8] of tensor<4xf32>>, tensor<4xf32> -> !fractal.array<[8, 3] of tensor<4xf32>>
      return %r : !fractal.array<[8, 3] of tensor<4xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, I64Attr:$size, I64Attr:$stride,
                       I64Attr:$dilation, DenseI64ArrayAttr:$padding,
                       Optional<Fractal_Element>:$fill, UnitAttr:$wrap);
  let results = (outs Fractal_ArrayType:$result);
  let extraClassDeclaration = access # [{
    /// Number of windows; ShapedType::kDynamic where only a run knows it.
    int64_t getNumWindows();
  }];
  let assemblyFormat = [{
    $source `size` $size `stride` $stride `dilation` $dilation `padding` $padding
    (`fill` $fill^)? (`wrap` $wrap^)? attr-dict
    `:` qualified(type($source)) (`,` type($fill)^)? `->` qualified(type($result))
  }];
}

def Fractal_RepeatOp : Fractal_AccessOp<"repeat"> {
  let summary = "a list of the same element";
  let description = [{
    `%x, %n` gives n times x, with a number known at run time; `%x times 4` with
    one known before. A number below zero is an error in the reference
    interpreter and undefined elsewhere.

    - `repeat_c1`: it has either an operand or `times`, which is not negative.
    - `repeat_c2`: the result is compatible with a list of as many elements of
      the type of the source.

    Example:

    ```mlir
    func.func @f(%x: tensor<8xf32>, %n: index)
        -> (!fractal.array<[?] of tensor<8xf32>>, !fractal.array<[4] of tensor<8xf32>>) {
      %a = fractal.repeat %x, %n : tensor<8xf32> -> !fractal.array<[?] of tensor<8xf32>>
      %b = fractal.repeat %x times 4 : tensor<8xf32> -> !fractal.array<[4] of tensor<8xf32>>
      return %a, %b : !fractal.array<[?] of tensor<8xf32>>, !fractal.array<[4] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_Element:$source, Optional<Index>:$count,
                       OptionalAttr<I64Attr>:$times);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source (`,` $count^)? (`times` $times^)? attr-dict
    `:` type($source) `->` qualified(type($result))
  }];
}

def Fractal_ReadOp : Fractal_AccessOp<"read"> {
  let summary = "elements where an affine map says";
  let description = [{
    The dimensions of the map are the leading levels of the result, its results
    the leading levels of the source; further levels of both are the same. An
    index that leaves a list reads the list's nearest element. What other access
    ops cannot say, skewed lists for one: `(j, d) -> (d, j - d)` reads the
    diagonals of a matrix.

    - `read_c1`: the map has a dimension and a result at least, no symbols, and no
      more results than the source has levels.
    - `read_c2`: the lengths of those levels of source and result are known, and
      the source's are not zero.
    - `read_c3`: the result is compatible with such lists of what lies below the
      levels of the source that are read.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[2, 4] of tensor<8xf32>>) -> !fractal.array<[5, 2] of tensor<8xf32>> {
      %r = fractal.read %xs at affine_map<(d0, d1) -> (d1, d0 - d1)>
          : !fractal.array<[2, 4] of tensor<8xf32>> -> !fractal.array<[5, 2] of tensor<8xf32>>
      return %r : !fractal.array<[5, 2] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$source, AffineMapAttr:$map);
  let results = (outs Fractal_ArrayType:$result);
  let assemblyFormat = [{
    $source `at` $map attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
}

#endif // TILEWRIGHT_FRACTAL_ACCESS_OPS
