//===- BufferBytes.h - which bytes of which buffer --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_BUFFERBYTES_H
#define TILEWRIGHT_ANALYSIS_BUFFERBYTES_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

namespace tilewright {

/// Bytes of a buffer from `begin` to before `end`: all, where nothing is known.
struct BufferBytes {
  mlir::Value buffer;
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();

  /// Whether a byte is of both, if they are of one buffer.
  bool overlaps(const BufferBytes &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The bytes of a view of untyped memory, in the buffer behind it.
BufferBytes getBytes(mlir::memref::ViewOp view);

/// What a loop begins with and what its iterations leave, for a buffer that it
/// hands on or gives; none for other values.
std::optional<std::pair<mlir::Value, mlir::Value>>
getHandedOn(mlir::Value root);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_BUFFERBYTES_H
