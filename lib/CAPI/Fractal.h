//===- Fractal.h - C API of the fractal dialect ------------------*- C -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CAPI_FRACTAL_H
#define TILEWRIGHT_CAPI_FRACTAL_H

#include "mlir-c/AffineMap.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// !fractal.array
//===----------------------------------------------------------------------===//

// Lengths are numbers, or one of these.
MLIR_CAPI_EXPORTED int64_t twFractalDynamic(void);
MLIR_CAPI_EXPORTED int64_t twFractalRagged(void);

MLIR_CAPI_EXPORTED bool twTypeIsAFractalArray(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID twFractalArrayTypeGetTypeID(void);
/// Null where lengths or leaf are wrong; the context's diagnostics then say
/// why.
MLIR_CAPI_EXPORTED MlirType twFractalArrayTypeGetChecked(MlirLocation location,
                                                         intptr_t depth,
                                                         const int64_t *lengths,
                                                         MlirType leaf);
MLIR_CAPI_EXPORTED intptr_t twFractalArrayTypeGetDepth(MlirType type);
MLIR_CAPI_EXPORTED int64_t twFractalArrayTypeGetLength(MlirType type,
                                                       intptr_t level);
MLIR_CAPI_EXPORTED MlirType twFractalArrayTypeGetLeaf(MlirType type);
MLIR_CAPI_EXPORTED MlirType twFractalArrayTypeGetElement(MlirType type);

/// Whether two elements, leaves or arrays, may be the same value.
MLIR_CAPI_EXPORTED bool twFractalAreCompatible(MlirType one, MlirType other);

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

/// From levels of the result to levels of the source; null where the op has no
/// such map.
MLIR_CAPI_EXPORTED MlirAffineMap twFractalGetAccessMap(MlirOperation op);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_CAPI_FRACTAL_H
