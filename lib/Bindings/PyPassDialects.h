//===- PyPassDialects.h - dialects of Python passes, by name -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_PYPASSDIALECTS_H
#define TILEWRIGHT_BINDINGS_PYPASSDIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace tilewright {

/// Every dialect (and extension) that Tilewright knows; made once.
const mlir::DialectRegistry &allDialects();

/// Whether a dialect of that name exists.
bool isDialect(llvm::StringRef name);

/// Adds the dialect of that name, which must exist, to `registry`.
void insertDialect(llvm::StringRef name, mlir::DialectRegistry &registry);

} // namespace tilewright

#endif // TILEWRIGHT_BINDINGS_PYPASSDIALECTS_H
