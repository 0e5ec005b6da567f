//===- SparseTile.h - the sparse_tile dialect -------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_SPARSETILE_SPARSETILE_H
#define TILEWRIGHT_DIALECTS_SPARSETILE_SPARSETILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/SparseTile/SparseTileInterfaces.h.inc"

#include "dialects/SparseTile/SparseTileDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/SparseTile/SparseTileAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/SparseTile/SparseTileOps.h.inc"

namespace tilewright::sparse_tile {

/// The encoding of a tensor of this type; null where it has none, or another
/// dialect's.
inline TesaAttr getTesa(mlir::RankedTensorType type) {
  return mlir::dyn_cast_if_present<TesaAttr>(type.getEncoding());
}

} // namespace tilewright::sparse_tile

#endif // TILEWRIGHT_DIALECTS_SPARSETILE_SPARSETILE_H
