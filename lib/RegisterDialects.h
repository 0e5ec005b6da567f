//===- RegisterDialects.h - every dialect the compiler knows ----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_REGISTERDIALECTS_H
#define TILEWRIGHT_REGISTERDIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace tilewright {

/// Adds all upstream dialects, their extensions and LLVM IR translations, and
/// the project's own dialects with their external models.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace tilewright

#endif // TILEWRIGHT_REGISTERDIALECTS_H
