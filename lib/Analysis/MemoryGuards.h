//===- MemoryGuards.h - poisoned bytes of a buffer -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_MEMORYGUARDS_H
#define TILEWRIGHT_ANALYSIS_MEMORYGUARDS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright {

/// Bytes between two places in a buffer whose accesses are checked.
inline constexpr int64_t kGuardBytes = 64;

/// Whether the module is to be compiled to code for a CPU that checks its
/// accesses to memory (`sanitize` of `tile.options`).
bool checksAccesses(mlir::Operation *op);

/// Tells the run-time of AddressSanitizer which bytes of a buffer may be
/// accessed, by its interface (sanitizer/asan_interface.h).
class MemoryGuards {
public:
  /// Of the buffer `bytes`, a memref of i8; its address is taken at the place
  /// of `b`.
  MemoryGuards(mlir::OpBuilder &b, mlir::Location loc, mlir::Value bytes);

  /// From here on an access to these bytes is an error.
  void close(mlir::OpBuilder &b, int64_t offset, int64_t bytes) {
    call(b, "__asan_poison_memory_region", offset, bytes);
  }
  /// From here on these bytes may be accessed.
  void open(mlir::OpBuilder &b, int64_t offset, int64_t bytes) {
    call(b, "__asan_unpoison_memory_region", offset, bytes);
  }

private:
  void call(mlir::OpBuilder &b, mlir::StringRef name, int64_t offset,
            int64_t bytes);

  mlir::Location loc;
  mlir::Value address;
};

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_MEMORYGUARDS_H
