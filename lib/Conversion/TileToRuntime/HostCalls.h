//===- HostCalls.h - what the host function asks of the run-time -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETORUNTIME_HOSTCALLS_H
#define TILEWRIGHT_CONVERSION_TILETORUNTIME_HOSTCALLS_H

#include "lib/Conversion/TileToRuntime/RawMemory.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

namespace tilewright {

/// Turns assertions, allocations and results of the host function into calls
/// of libtwrt.
class HostCalls {
public:
  /// The word at which the sizes begin, of an input or output whose sizes are
  /// known at run time only.
  static constexpr int64_t kSizes = 2;

  HostCalls(mlir::ModuleOp module, const mlir::LLVMTypeConverter &converter);

  /// All assertions, allocations and deallocations in `entry`.
  void lower(mlir::func::FuncOp entry);

  /// A memref of sizes known at run time only, from the words that a caller
  /// passes for it.
  mlir::Value readInput(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::MemRefType type, mlir::Value words);

  /// Hands a memref over through the words of its output.
  void giveResult(mlir::OpBuilder &b, mlir::Location loc, mlir::Value result,
                  mlir::Value words);

private:
  void lower(mlir::cf::AssertOp op);
  void lower(mlir::memref::AllocOp op);
  void lower(mlir::memref::DeallocOp op);
  mlir::Value message(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::StringRef text);
  mlir::Value bytesOf(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::MemRefType type, mlir::ArrayRef<mlir::Value> sizes);
  /// A contiguous memref at `data`.
  mlir::Value makeMemRef(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::MemRefType type, mlir::Value data,
                         mlir::ArrayRef<mlir::Value> sizes);
  /// Calls a function of libtwrt, declared where it is not yet.
  mlir::func::CallOp call(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::StringRef name, mlir::TypeRange results,
                          mlir::ValueRange operands);

  mlir::ModuleOp module;
  const mlir::LLVMTypeConverter &converter;
  mlir::Type pointer, i64;
  llvm::StringMap<mlir::LLVM::GlobalOp> messages;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_HOSTCALLS_H
