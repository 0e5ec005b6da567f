//===- Fractal.h - the fractal dialect --------------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_FRACTAL_FRACTAL_H
#define TILEWRIGHT_DIALECTS_FRACTAL_FRACTAL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Fractal/FractalDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Fractal/FractalTypes.h.inc"

namespace tilewright::fractal {

/// Whether a list may have elements of this type: leaves and arrays.
bool isElement(mlir::Type type);

/// Whether two elements may be the same value: compatible arrays or equal
/// leaves.
bool areCompatible(mlir::Type one, mlir::Type other);

} // namespace tilewright::fractal

#include "dialects/Fractal/FractalInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Fractal/FractalOps.h.inc"

#endif // TILEWRIGHT_DIALECTS_FRACTAL_FRACTAL_H
