//===- CopyEmitter.h - loops that copy a buffer by tiles -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_COPYEMITTER_H
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_COPYEMITTER_H

#include "dialects/Tile/Tile.h"

namespace tilewright {

/// Emits loops over the dimensions of `source` from `indices.size()` on and
/// copies to `target` in tiles along the last one. The leading `indices` are
/// given. The last size must be static.
void emitCopy(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source,
              mlir::Value target, mlir::ArrayRef<mlir::Value> indices);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_COPYEMITTER_H
