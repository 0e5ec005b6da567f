//===- SparseTileDialect.cpp - registration -------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

#include "dialects/SparseTile/SparseTileDialect.cpp.inc"
#include "dialects/SparseTile/SparseTileInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/SparseTile/SparseTileOps.cpp.inc"

void SparseTileDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/SparseTile/SparseTileOps.cpp.inc"
      >();
}
