//===- TaskNumbers.h - arithmetic on the numbers of tasks -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_TASKNUMBERS_H
#define TILEWRIGHT_ANALYSIS_TASKNUMBERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tilewright {

/// i32 arithmetic on the numbers of tasks: a GPU divides 64 bits in a hundred
/// instructions.
class TaskNumbers {
public:
  TaskNumbers(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Unsigned, as all tasks have numbers from 0 on.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value minSigned(mlir::Value x, mlir::Value y);
  mlir::Value maxSigned(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value which, mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                      mlir::Value y);
  mlir::Value toIndex(mlir::Value x);
  mlir::Value fromIndex(mlir::Value x);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// Coordinates of a task in a grid, from its number: the first one slowest.
/// With a `band` above 0 the last two are walked in bands of so many rows, each
/// by columns: what the blocks of a wave read stays in the L2 cache. The first
/// size may be null where it is not asked.
void takeCoordinates(TaskNumbers &n, mlir::Value task, int64_t band,
                     llvm::ArrayRef<mlir::Value> sizes,
                     llvm::MutableArrayRef<mlir::Value> coordinates);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_TASKNUMBERS_H
