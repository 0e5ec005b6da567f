//===- MatrixProducts.h - where matrix units work ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_MATRIXPRODUCTS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_MATRIXPRODUCTS_H

#include "mlir/IR/Operation.h"

namespace tilewright {

/// Whether an op is, or has inside, an instruction of a matrix unit or a wait
/// for one (`mma.sync`, `wgmma`), after tiles became registers.
bool holdsMatrixProduct(mlir::Operation *op);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_MATRIXPRODUCTS_H
