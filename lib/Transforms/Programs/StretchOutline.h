//===- StretchOutline.h - a kernel of a stretch -----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCHOUTLINE_H
#define TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCHOUTLINE_H

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Programs/Stretch.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace tilewright {

/// Makes a kernel of a stretch of the host function, and launches it.
class StretchOutline {
public:
  StretchOutline(Stretch &stretch, mlir::SymbolTable &symbols)
      : stretch(stretch), symbols(symbols), loc(stretch.ops.front()->getLoc()),
        b(stretch.ops.front()->getContext()) {}

protected:
  static llvm::SmallVector<tile::LaunchOp> launchesIn(mlir::Operation *op);
  tile::KernelOp lookUp(llvm::StringRef name) {
    return symbols.lookup<tile::KernelOp>(name);
  }
  /// The kernel with the stretch's arguments, of a name that is free; `b`
  /// stands in it.
  void makeKernel(llvm::StringRef name, int64_t gridRank);
  /// Copies the stretch, and before each operation what it needs, and returns.
  void fill();
  /// Behind the stretch; what is only read becomes an input.
  tile::LaunchOp launchKernel(mlir::ValueRange grid);
  /// What the kernel does leaves the host function; of a loop whose buffers are
  /// used behind it, what tells which they are stays.
  mlir::LogicalResult leave();

  Stretch &stretch;
  mlir::SymbolTable &symbols;
  mlir::Location loc;
  mlir::OpBuilder b;
  mlir::IRMapping mapping;
  tile::KernelOp kernel;

private:
  void make(mlir::Value value);
  void reorder(llvm::ArrayRef<mlir::Value> inputs,
               llvm::ArrayRef<mlir::Value> outputs);
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCHOUTLINE_H
