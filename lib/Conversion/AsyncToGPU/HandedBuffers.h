//===- HandedBuffers.h - the buffers that a launch may be given -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_HANDEDBUFFERS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_HANDEDBUFFERS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace tilewright {

/// A buffer that a kernel may hand to a launch: bytes of one of its parameters
/// from `shift` on.
struct HandedBuffer {
  mlir::BlockArgument parameter;
  int64_t shift = 0;

  bool operator==(const HandedBuffer &other) const {
    return parameter == other.parameter && shift == other.shift;
  }
};

/// All buffers that `memref`, of a kernel that launches others, may be in any
/// iteration of the loops and in any of the branches that hand it on. Empty,
/// with the reason, where one of them is not known, or where no descriptor that
/// is made before the launch fits all that it may be.
llvm::SmallVector<HandedBuffer> findHandedBuffers(mlir::Value memref,
                                                  std::string &reason);

/// What tells the host how `memref` lies in the argument that `buffer` is in,
/// in a `tensor_map` parameter: bytes from the argument's first element, and
/// shape.
mlir::NamedAttrList placeOf(mlir::gpu::GPUFuncOp kernel, mlir::Value memref,
                            const HandedBuffer &buffer);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_HANDEDBUFFERS_H
