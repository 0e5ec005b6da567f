//===- SparseTile.h - C API of the sparse_tile dialect ------------*- C -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CAPI_SPARSETILE_H
#define TILEWRIGHT_CAPI_SPARSETILE_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// #sparse_tile.tesa
//===----------------------------------------------------------------------===//

// Entries are a list with a dictionary per region: `pattern`, a dictionary with
// its mnemonic as `kind` and its parameters by name, and where there is one
// `format`, a dictionary of parameters. Numbers are i64, lists array<i64>.

MLIR_CAPI_EXPORTED bool twAttributeIsATesa(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twTesaAttrGetTypeID(void);
/// Null where the entries are wrong; the context's diagnostics then say why.
MLIR_CAPI_EXPORTED MlirAttribute twTesaAttrGetChecked(MlirLocation location,
                                                      MlirAttribute entries);
MLIR_CAPI_EXPORTED MlirAttribute twTesaAttrGetEntries(MlirAttribute attribute);

/// Number of the parts that hold a tensor of this type; -1 where the type is no
/// tensor with such an encoding.
MLIR_CAPI_EXPORTED intptr_t twTesaGetNumParts(MlirType type);
MLIR_CAPI_EXPORTED MlirType twTesaGetPart(MlirType type, intptr_t number);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_CAPI_SPARSETILE_H
