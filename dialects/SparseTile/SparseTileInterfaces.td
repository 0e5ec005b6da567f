//===- SparseTileInterfaces.td - what every pattern can say -*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_SPARSE_TILE_INTERFACES
#define TILEWRIGHT_SPARSE_TILE_INTERFACES

include "mlir/IR/OpBase.td"

def SparseTile_PatternInterface : AttrInterface<"PatternInterface"> {
  let cppNamespace = "::tilewright::sparse_tile";
  let description = [{
    A pattern: which elements of a tensor may differ from zero, and how those are
    held. A further pattern implements this, its reference semantics in
    `tilewright.dialects.sparse_tile`, and a lowering.
  }];
  let methods = [
    InterfaceMethod<
      "Whether a tensor of `shape` can have the pattern; tells why not.",
      "::llvm::LogicalResult", "verifyShape",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<
      "Types of the parts that hold a tensor of `shape` whose kept values are "
      "of type `values`: the values first, then what says where they stand.",
      "::llvm::SmallVector<::mlir::Type>", "getParts",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$values)>,
  ];
}

#endif // TILEWRIGHT_SPARSE_TILE_INTERFACES
