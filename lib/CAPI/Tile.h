//===- Tile.h - C API of the tile dialect -------------------------*- C -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CAPI_TILE_H
#define TILEWRIGHT_CAPI_TILE_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

// Functions that make a type or attribute return a null one where the arguments
// are wrong; the context's diagnostics then say why. Lists come as a count and
// a pointer; getters return views that live as long as the context.

typedef struct {
  intptr_t size;
  const int64_t *data;
} TwInt64List;

//===----------------------------------------------------------------------===//
// !tile.tile, !tile.token
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twTypeIsATile(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID twTileTypeGetTypeID(void);
/// `layout` may be null.
MLIR_CAPI_EXPORTED MlirType twTileTypeGetChecked(MlirLocation location,
                                                 TwInt64List shape,
                                                 MlirType elementType,
                                                 MlirAttribute layout);
/// Null where the tile has no layout.
MLIR_CAPI_EXPORTED MlirAttribute twTileTypeGetLayout(MlirType type);

MLIR_CAPI_EXPORTED bool twTypeIsAToken(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID twTokenTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType twTokenTypeGet(MlirContext context);

//===----------------------------------------------------------------------===//
// #tile.level
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twAttributeIsALevel(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twLevelAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute twLevelAttrGetChecked(MlirLocation location,
                                                       MlirStringRef name);
MLIR_CAPI_EXPORTED MlirStringRef twLevelAttrGetName(MlirAttribute attribute);

//===----------------------------------------------------------------------===//
// #tile.rtile
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twAttributeIsARTile(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twRTileAttrGetTypeID(void);
/// `sizes` is a dictionary of DenseI64ArrayAttr by level.
MLIR_CAPI_EXPORTED MlirAttribute twRTileAttrGetChecked(MlirLocation location,
                                                       MlirAttribute sizes,
                                                       TwInt64List order);
MLIR_CAPI_EXPORTED MlirAttribute twRTileAttrGetSizes(MlirAttribute attribute);
MLIR_CAPI_EXPORTED TwInt64List twRTileAttrGetOrder(MlirAttribute attribute);

//===----------------------------------------------------------------------===//
// #tile.layout
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twAttributeIsALayout(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twLayoutAttrGetTypeID(void);
/// `storage` may be null; 0 means no swizzle and no interleave.
MLIR_CAPI_EXPORTED MlirAttribute twLayoutAttrGetChecked(
    MlirLocation location, TwInt64List perm, TwInt64List inner,
    TwInt64List tiles, int64_t swizzle, int64_t interleave, MlirType storage);
MLIR_CAPI_EXPORTED TwInt64List twLayoutAttrGetPerm(MlirAttribute attribute);
MLIR_CAPI_EXPORTED TwInt64List twLayoutAttrGetInner(MlirAttribute attribute);
MLIR_CAPI_EXPORTED TwInt64List twLayoutAttrGetTiles(MlirAttribute attribute);
MLIR_CAPI_EXPORTED int64_t twLayoutAttrGetSwizzle(MlirAttribute attribute);
MLIR_CAPI_EXPORTED int64_t twLayoutAttrGetInterleave(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirType twLayoutAttrGetStorage(MlirAttribute attribute);

//===----------------------------------------------------------------------===//
// #tile.device
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twAttributeIsADevice(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twDeviceAttrGetTypeID(void);
/// `entries` is a dictionary.
MLIR_CAPI_EXPORTED MlirAttribute twDeviceAttrGetChecked(MlirLocation location,
                                                        MlirAttribute entries);
MLIR_CAPI_EXPORTED MlirAttribute
twDeviceAttrGetEntries(MlirAttribute attribute);

//===----------------------------------------------------------------------===//
// #tile<reduce_kind ...>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool twAttributeIsAReduceKind(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID twReduceKindAttrGetTypeID(void);
/// Null for a name that is none of a kind.
MLIR_CAPI_EXPORTED MlirAttribute twReduceKindAttrGet(MlirContext context,
                                                     MlirStringRef name);
MLIR_CAPI_EXPORTED MlirStringRef
twReduceKindAttrGetName(MlirAttribute attribute);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_CAPI_TILE_H
