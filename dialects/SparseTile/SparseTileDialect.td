//===- SparseTileDialect.td - the sparse_tile dialect ------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_DIALECT
#define TILEWRIGHT_SPARSE_TILE_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def SparseTile_Dialect : Dialect {
  let name = "sparse_tile";
  let cppNamespace = "::tilewright::sparse_tile";
  let summary = "Sparsity patterns and number formats of tensors";
  let description = [{
    What is known of a tensor's zeros and of the numbers that stand for its
    elements is written on its type: the encoding `#sparse_tile.tesa`, a union of
    regions, each a *pattern* (dense, N:M, blocks, a mask, dynamic) with a number
    *format*. The value of an encoded tensor is a tensor of its shape and element
    type; what an encoding changes is how it is held: as *parts* (kept values,
    their positions, scales, ...). Ops convert between the two, find what is live
    at run time, and multiply.
  }];
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
  let useDefaultAttributePrinterParser = 1;
}

class SparseTile_Op<string mnemonic, list<Trait> traits = []>
    : Op<SparseTile_Dialect, mnemonic, traits>;

#endif // TILEWRIGHT_SPARSE_TILE_DIALECT
