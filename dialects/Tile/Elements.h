//===- Elements.h - facts of element types ----------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_TILE_ELEMENTS_H
#define TILEWRIGHT_DIALECTS_TILE_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"

namespace tilewright {

/// Whether kernels move elements of this type.
inline bool hasTiles(mlir::Type element) {
  return element.isIntOrIndex() || (mlir::isa<mlir::FloatType>(element) &&
                                    element.getIntOrFloatBitWidth() >= 8);
}

/// Whether elements fill the bytes that they take in a buffer; i1 counts, which
/// takes a whole one.
inline bool hasWholeBytes(mlir::Type element) {
  return element.isInteger(1) ||
         (element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 == 0);
}

/// Bytes of an element of a buffer; i1 takes a whole one.
inline int64_t bytesOfElement(mlir::Type element) {
  if (auto complex = mlir::dyn_cast<mlir::ComplexType>(element))
    return 2 * bytesOfElement(complex.getElementType());
  return element.isIndex() ? 8
                           : (int64_t(element.getIntOrFloatBitWidth()) + 7) / 8;
}

} // namespace tilewright

#endif // TILEWRIGHT_DIALECTS_TILE_ELEMENTS_H
