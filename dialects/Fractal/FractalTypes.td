//===- FractalTypes.td - nested lists of tensors ---------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_TYPES
#define TILEWRIGHT_FRACTAL_TYPES

include "dialects/Fractal/FractalDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"

def Fractal_ArrayType : TypeDef<Fractal_Dialect, "Array"> {
  let mnemonic = "array";
  let summary = "nested lists of equal tensors";
  let description = [{
    `[4, ?, ragged] of tensor<1x512xf32>`: one entry per level, outermost first.
    A number is a known length, `?` one that a run knows and that all lists of
    the level share, `ragged` says that each of them has its own. The number of
    levels is the *depth*.

    Lengths refine a type, as sizes refine `tensor<?xf32>`: two types are
    *compatible* if depth and leaf are equal and no two known lengths differ. A
    ragged level is compatible with any, since lists of one length are ragged
    too. Results of ops may be typed with any compatible type: that is a claim,
    which the reference interpreter checks.

    - `array_c1`: there is at least one level.
    - `array_c2`: known lengths are not negative.
    - `array_c3`: the outermost level, which has one list only, is not ragged.
    - `array_c4`: the leaf has a static shape.

    Example:

    ```mlir
    func.func private @f(!fractal.array<[4, ?, ragged] of tensor<1x512xf32>>,
                         !fractal.array<[?] of tensor<f16>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$lengths,
                        "::mlir::RankedTensorType":$leaf);
  let builders = [
    TypeBuilderWithInferredContext<
        (ins "::llvm::ArrayRef<int64_t>":$lengths,
             "::mlir::RankedTensorType":$leaf), [{
      return $_get(leaf.getContext(), lengths, leaf);
    }]>,
  ];
  let extraClassDeclaration = [{
    /// The length of a level whose lists each have their own.
    static constexpr int64_t kRagged = ::mlir::ShapedType::kDynamic + 1;
    /// Whether a length is a number.
    static bool isKnown(int64_t length) { return length >= 0; }

    int64_t getDepth() const { return getLengths().size(); }
    /// Length of the outermost list; ShapedType::kDynamic where only a run
    /// knows it.
    int64_t getLength() const { return getLengths().front(); }
    bool isRagged() const { return ::llvm::is_contained(getLengths(), kRagged); }
    /// What indexing gives: the leaf at depth 1, else an array without the
    /// first level. One list of a ragged level has one length, `?`.
    ::mlir::Type getElementType() const;
    /// The same lists with another length of the outermost one.
    ArrayType withLength(int64_t length) const;
    bool isCompatibleWith(ArrayType other) const;
    /// The type of a list of elements of one type.
    static ArrayType listOf(int64_t length, ::mlir::Type element);
  }];
  let skipDefaultBuilders = 1;
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

def Fractal_Element
    : Type<CPred<"::tilewright::fractal::isElement($_self)">,
           "array or tensor of static shape">;

#endif // TILEWRIGHT_FRACTAL_TYPES
