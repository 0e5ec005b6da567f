//===- Lines.h - cache lines of tiles ----------------------------*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LINES
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LINES

#include "lib/Analysis/Device.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tilewright {

/// Caches that memref.prefetch can fill, in its own terms.
enum class Cache : unsigned { L2 = 2, L1 = 3 };

/// The first elements of the lines of a tile, as steps from its own first one
/// per memref dimension. `dims` and `steps` are those of a tile.load.
llvm::SmallVector<llvm::SmallVector<int64_t>>
linesOf(mlir::MemRefType type, llvm::ArrayRef<int64_t> shape,
        llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> steps,
        const Device &device);

/// Fetches lines of a tile that starts at `offsets`.
void prefetchLines(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref,
                   mlir::ValueRange offsets,
                   llvm::ArrayRef<llvm::SmallVector<int64_t>> lines,
                   bool isWrite, Cache into);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LINES
