//===- CpAsyncCopy.h - a copy by the threads of a block -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_CPASYNCCOPY_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_CPASYNCCOPY_H

#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"

namespace tilewright {

/// Starts a copy of `threads` threads, each of which moves some chunks of 4, 8
/// or 16 bytes with cp.async. Chunks of threads that follow each other do so in
/// memory. Fails where rows do not start at multiples of 4 bytes, or where the
/// destination is no slot.
mlir::LogicalResult emitCpAsync(mlir::OpBuilder &b, tile::CopyOp copy,
                                int64_t threads);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_CPASYNCCOPY_H
