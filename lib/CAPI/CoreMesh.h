//===- CoreMesh.h - C API of the coremesh dialect ----------------*- C -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CAPI_COREMESH_H
#define TILEWRIGHT_CAPI_COREMESH_H

#include "mlir-c/AffineMap.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// The cores of an instruction: an integer set
//===----------------------------------------------------------------------===//

/// The constraints of an integer set as results of a map; null where the
/// attribute is none.
MLIR_CAPI_EXPORTED MlirAffineMap twCoreMeshGetConstraints(MlirAttribute set);
/// Whether a constraint is an equality with 0; the others are 0 or more.
MLIR_CAPI_EXPORTED bool twCoreMeshIsEquality(MlirAttribute set,
                                             intptr_t constraint);

//===----------------------------------------------------------------------===//
// #coremesh.layout
//===----------------------------------------------------------------------===//

/// A dictionary of the layout's parameters: `grid` and `at` (array<i64>, y
/// first, -1 where nothing is at one position only), `splits` (an array of unit
/// or a dictionary of parameters); null where the attribute is none.
MLIR_CAPI_EXPORTED MlirAttribute
twCoreMeshGetLayoutEntries(MlirAttribute layout);

/// What one core holds of a tensor with a layout, as a tensor type; null of any
/// other type.
MLIR_CAPI_EXPORTED MlirType twCoreMeshGetBlockType(MlirType type);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_CAPI_COREMESH_H
