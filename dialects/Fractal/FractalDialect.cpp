//===- FractalDialect.cpp - registration ---------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

#include "dialects/Fractal/FractalDialect.cpp.inc"
#include "dialects/Fractal/FractalInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Fractal/FractalOps.cpp.inc"

void FractalDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Fractal/FractalOps.cpp.inc"
      >();
}
