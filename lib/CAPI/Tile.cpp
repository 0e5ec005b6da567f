//===- Tile.cpp - C API of the tile dialect -------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/Tile.h"

#include "dialects/Tile/Tile.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace tilewright::tile;

static ArrayRef<int64_t> unwrap(TwInt64List list) {
  return {list.data, static_cast<size_t>(list.size)};
}

static TwInt64List wrap(ArrayRef<int64_t> list) {
  return {static_cast<intptr_t>(list.size()), list.data()};
}

/// Diagnostics at `location`, for getChecked.
static auto errorAt(MlirLocation location) {
  return [location] { return emitError(unwrap(location)); };
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool twTypeIsATile(MlirType type) { return isa<TileType>(unwrap(type)); }

MlirTypeID twTileTypeGetTypeID(void) { return wrap(TileType::getTypeID()); }

MlirType twTileTypeGetChecked(MlirLocation location, TwInt64List shape,
                              MlirType elementType, MlirAttribute layout) {
  return wrap(Type(TileType::getChecked(errorAt(location), unwrap(shape),
                                        unwrap(elementType), unwrap(layout))));
}

MlirAttribute twTileTypeGetLayout(MlirType type) {
  return wrap(cast<TileType>(unwrap(type)).getLayout());
}

bool twTypeIsAToken(MlirType type) { return isa<TokenType>(unwrap(type)); }

MlirTypeID twTokenTypeGetTypeID(void) { return wrap(TokenType::getTypeID()); }

MlirType twTokenTypeGet(MlirContext context) {
  return wrap(Type(TokenType::get(unwrap(context))));
}

//===----------------------------------------------------------------------===//
// LevelAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsALevel(MlirAttribute attribute) {
  return isa<LevelAttr>(unwrap(attribute));
}

MlirTypeID twLevelAttrGetTypeID(void) { return wrap(LevelAttr::getTypeID()); }

MlirAttribute twLevelAttrGetChecked(MlirLocation location, MlirStringRef name) {
  return wrap(Attribute(LevelAttr::getChecked(
      errorAt(location), unwrap(location)->getContext(), unwrap(name))));
}

MlirStringRef twLevelAttrGetName(MlirAttribute attribute) {
  return wrap(cast<LevelAttr>(unwrap(attribute)).getName());
}

//===----------------------------------------------------------------------===//
// RTileAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsARTile(MlirAttribute attribute) {
  return isa<RTileAttr>(unwrap(attribute));
}

MlirTypeID twRTileAttrGetTypeID(void) { return wrap(RTileAttr::getTypeID()); }

MlirAttribute twRTileAttrGetChecked(MlirLocation location, MlirAttribute sizes,
                                    TwInt64List order) {
  return wrap(Attribute(RTileAttr::getChecked(
      errorAt(location), unwrap(location)->getContext(),
      cast<DictionaryAttr>(unwrap(sizes)), unwrap(order))));
}

MlirAttribute twRTileAttrGetSizes(MlirAttribute attribute) {
  return wrap(Attribute(cast<RTileAttr>(unwrap(attribute)).getSizes()));
}

TwInt64List twRTileAttrGetOrder(MlirAttribute attribute) {
  return wrap(cast<RTileAttr>(unwrap(attribute)).getOrder());
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsALayout(MlirAttribute attribute) {
  return isa<LayoutAttr>(unwrap(attribute));
}

MlirTypeID twLayoutAttrGetTypeID(void) { return wrap(LayoutAttr::getTypeID()); }

MlirAttribute twLayoutAttrGetChecked(MlirLocation location, TwInt64List perm,
                                     TwInt64List inner, TwInt64List tiles,
                                     int64_t swizzle, int64_t interleave,
                                     MlirType storage) {
  return wrap(Attribute(LayoutAttr::getChecked(
      errorAt(location), unwrap(location)->getContext(), unwrap(perm),
      unwrap(inner), unwrap(tiles), swizzle, interleave, unwrap(storage))));
}

TwInt64List twLayoutAttrGetPerm(MlirAttribute attribute) {
  return wrap(cast<LayoutAttr>(unwrap(attribute)).getPerm());
}

TwInt64List twLayoutAttrGetInner(MlirAttribute attribute) {
  return wrap(cast<LayoutAttr>(unwrap(attribute)).getInner());
}

TwInt64List twLayoutAttrGetTiles(MlirAttribute attribute) {
  return wrap(cast<LayoutAttr>(unwrap(attribute)).getTiles());
}

int64_t twLayoutAttrGetSwizzle(MlirAttribute attribute) {
  return cast<LayoutAttr>(unwrap(attribute)).getSwizzle();
}

int64_t twLayoutAttrGetInterleave(MlirAttribute attribute) {
  return cast<LayoutAttr>(unwrap(attribute)).getInterleave();
}

MlirType twLayoutAttrGetStorage(MlirAttribute attribute) {
  return wrap(cast<LayoutAttr>(unwrap(attribute)).getStorage());
}

//===----------------------------------------------------------------------===//
// DeviceAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsADevice(MlirAttribute attribute) {
  return isa<DeviceAttr>(unwrap(attribute));
}

MlirTypeID twDeviceAttrGetTypeID(void) { return wrap(DeviceAttr::getTypeID()); }

MlirAttribute twDeviceAttrGetChecked(MlirLocation location,
                                     MlirAttribute entries) {
  return wrap(Attribute(
      DeviceAttr::getChecked(errorAt(location), unwrap(location)->getContext(),
                             cast<DictionaryAttr>(unwrap(entries)))));
}

MlirAttribute twDeviceAttrGetEntries(MlirAttribute attribute) {
  return wrap(Attribute(cast<DeviceAttr>(unwrap(attribute)).getEntries()));
}

//===----------------------------------------------------------------------===//
// ReduceKindAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsAReduceKind(MlirAttribute attribute) {
  return isa<ReduceKindAttr>(unwrap(attribute));
}

MlirTypeID twReduceKindAttrGetTypeID(void) {
  return wrap(ReduceKindAttr::getTypeID());
}

MlirAttribute twReduceKindAttrGet(MlirContext context, MlirStringRef name) {
  std::optional<ReduceKind> kind = symbolizeReduceKind(unwrap(name));
  if (!kind)
    return {nullptr};
  return wrap(Attribute(ReduceKindAttr::get(unwrap(context), *kind)));
}

MlirStringRef twReduceKindAttrGetName(MlirAttribute attribute) {
  return wrap(
      stringifyReduceKind(cast<ReduceKindAttr>(unwrap(attribute)).getValue()));
}
