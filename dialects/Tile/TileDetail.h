//===- TileDetail.h - what the dialect's files share ------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_TILE_TILEDETAIL_H
#define TILEWRIGHT_DIALECTS_TILE_TILEDETAIL_H

#include "dialects/Tile/Tile.h"

namespace tilewright::tile::shared {

/// Whether `values` holds each of 0..size-1 once.
bool isPermutation(llvm::ArrayRef<int64_t> values);

/// Fails with an error on `op` unless there is an offset per dimension of
/// `shape` and the slice of `sizes` lies inside.
llvm::LogicalResult verifySlice(mlir::Operation *op,
                                llvm::ArrayRef<int64_t> offsets,
                                llvm::ArrayRef<int64_t> sizes,
                                llvm::ArrayRef<int64_t> shape);

/// Fails with an error on `op` unless `bounded` names dimensions of `buffer`.
llvm::LogicalResult
verifyBounded(mlir::Operation *op,
              std::optional<llvm::ArrayRef<int64_t>> bounded,
              mlir::MemRefType buffer);

/// Fails with an error on `op` unless each type may be an argument of a kernel
/// or program and there are no results.
llvm::LogicalResult verifySignature(mlir::Operation *op,
                                    mlir::FunctionType type);

/// A splat of `value` as a constant of type `type`.
mlir::DenseElementsAttr splatOf(TileType type, mlir::Attribute value);

/// The scalar behind a splat constant, null for anything else.
mlir::Attribute splatValue(mlir::Attribute constant);

/// Whether a buffer or tensor of type `from` may be passed where a kernel asks
/// for `to`: nothing that `to` states is unknown of `from`.
bool fitsArgument(mlir::Type from, mlir::Type to);

/// Whether the kernel may find these operands in one buffer: each task reads
/// exactly the elements that it writes later, and no other task touches them.
bool readsBeforeItWrites(LaunchOp launch,
                         llvm::ArrayRef<mlir::OpOperand *> operands);

/// A distributed layout whose verifier reports at `loc`; null where it fails.
mlir::Attribute getCheckedDistributed(mlir::AsmParser &parser, mlir::SMLoc loc,
                                      int64_t rank,
                                      llvm::ArrayRef<int64_t> registers,
                                      llvm::ArrayRef<int64_t> lanes,
                                      llvm::ArrayRef<int64_t> warps);

/// Prints and parses `(%a: type {attrs}, ...)` with the entry block's
/// arguments.
void printArguments(mlir::OpAsmPrinter &printer,
                    mlir::FunctionOpInterface function);
mlir::ParseResult
parseArguments(mlir::OpAsmParser &parser, mlir::OperationState &result,
               llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &arguments,
               mlir::StringAttr typeName, mlir::StringAttr argAttrsName,
               mlir::StringAttr resAttrsName);

} // namespace tilewright::tile::shared

#endif // TILEWRIGHT_DIALECTS_TILE_TILEDETAIL_H
