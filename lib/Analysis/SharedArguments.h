//===- SharedArguments.h - arguments that are one memory --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_SHAREDARGUMENTS_H
#define TILEWRIGHT_ANALYSIS_SHAREDARGUMENTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/DenseSet.h"

namespace tilewright {

/// What a view looks at; null where the value is no view.
mlir::Value getViewed(mlir::Value memref);

/// The buffer behind a view, which may be one of a view.
mlir::Value getRoot(mlir::Value memref);

/// Whether a value is an argument of a kernel itself, not of a loop in it.
bool isParameter(mlir::Value value);

/// Arguments of a kernel that a launch may pass the same memory for, by the
/// attributes of `tile-split-host-device`.
class SharedArguments {
public:
  explicit SharedArguments(mlir::gpu::GPUFuncOp function);

  /// Whether bytes of the one may be bytes of the other; both are roots.
  bool mayMeet(mlir::Value root, mlir::Value other) const;
  /// Whether equal indices are equal places.
  bool isSame(mlir::Value memref, mlir::Value other) const;

private:
  using Pairs = llvm::DenseSet<std::pair<mlir::Value, mlir::Value>>;

  static void read(mlir::gpu::GPUFuncOp function, llvm::StringRef name,
                   Pairs &pairs);

  Pairs same, near;
};

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_SHAREDARGUMENTS_H
