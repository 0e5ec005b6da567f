//===- CoreMeshDialect.cpp - registration --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::coremesh;
using namespace tilewright::coremesh::shared;

#include "dialects/CoreMesh/CoreMeshDialect.cpp.inc"
#include "dialects/CoreMesh/CoreMeshEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/CoreMesh/CoreMeshTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/CoreMesh/CoreMeshOps.cpp.inc"

void CoreMeshDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/CoreMesh/CoreMeshTypes.cpp.inc"
      >();
}

void CoreMeshDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/CoreMesh/CoreMeshOps.cpp.inc"
      >();
}
