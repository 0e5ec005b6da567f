//===- FractalDialect.td - the fractal dialect -----------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_DIALECT
#define TILEWRIGHT_FRACTAL_DIALECT

include "mlir/IR/OpBase.td"

def Fractal_Dialect : Dialect {
  let name = "fractal";
  let cppNamespace = "::tilewright::fractal";
  let summary = "Nested lists of equal tensors, and functions over them";
  let description = [{
    A program over nested lists whose leaves are tensors of one static shape.
    *Compute* ops (`map`, `scan`, `fold`, `reduce`, `filter`) apply a region to
    the elements of lists; *access* ops (`slice`, `window`, `shift`, ...) say
    which element is read where, and compute nothing. What a leaf is made of,
    ops of `linalg`, `tensor`, `arith` and `math` say.

    An *element* is what a list has: a leaf tensor or an array of one level less.
    Values do not change: what is written once is read as often as one likes.
  }];
  let extraClassDeclaration = [{
    void registerTypes();
  }];
  let useDefaultTypePrinterParser = 1;
}

class Fractal_Op<string mnemonic, list<Trait> traits = []>
    : Op<Fractal_Dialect, mnemonic, traits>;

#endif // TILEWRIGHT_FRACTAL_DIALECT
