//===- CoreMesh.h - the coremesh dialect ------------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_COREMESH_COREMESH_H
#define TILEWRIGHT_DIALECTS_COREMESH_COREMESH_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/CoreMesh/CoreMeshDialect.h.inc"
#include "dialects/CoreMesh/CoreMeshEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/CoreMesh/CoreMeshAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/CoreMesh/CoreMeshTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/CoreMesh/CoreMeshOps.h.inc"

#endif // TILEWRIGHT_DIALECTS_COREMESH_COREMESH_H
