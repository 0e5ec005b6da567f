//===- TileTypes.cpp - types of the tile dialect --------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::tile;

#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/TileTypes.cpp.inc"
      >();
}

int64_t TileType::getInterleave() const {
  auto layout = dyn_cast_or_null<LayoutAttr>(getLayout());
  return layout ? layout.getInterleave() : 0;
}

ArrayRef<int64_t> TileType::getBlocks() const {
  auto layout = dyn_cast_or_null<LayoutAttr>(getLayout());
  if (!layout || getRank() != 2 || layout.getInner() != ArrayRef<int64_t>{0, 1})
    return {};
  return layout.getTiles();
}

DistributedAttr TileType::getDistributed() const {
  return dyn_cast_or_null<DistributedAttr>(getLayout());
}

bool TileType::isInShared() const {
  auto level = dyn_cast_or_null<LevelAttr>(getLayout());
  return level && level.getName() == "shared";
}

bool TileType::isValidElementType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless();
  return isa<FloatType, IndexType>(type);
}

static LogicalResult
verifyTileLayout(function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<int64_t> shape, LayoutAttr layout) {
  auto rank = static_cast<int64_t>(shape.size());
  // tile_type_c3
  if (!layout.getPerm().empty() &&
      static_cast<int64_t>(layout.getPerm().size()) != rank)
    return emitError() << "layout permutes " << layout.getPerm().size()
                       << " dimensions of a tile of rank " << rank;
  for (int64_t dim : layout.getInner())
    if (dim >= rank)
      return emitError() << "layout cuts dimension " << dim
                         << " of a tile of rank " << rank;
  return success();
}

/// tile_type_c4
static LogicalResult
verifyTileDistributed(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> shape, DistributedAttr distributed) {
  auto rank = static_cast<int64_t>(shape.size());
  if (distributed.getRank() != rank)
    return emitError() << "distributed layout has vectors of "
                       << distributed.getRank()
                       << " entries for a tile of rank " << rank;
  for (auto [dim, sizes] :
       llvm::enumerate(llvm::zip_equal(shape, distributed.getSizes()))) {
    auto [size, covered] = sizes;
    if (covered < size)
      return emitError() << "distributed layout covers " << covered
                         << " positions of dimension " << dim << ", which has "
                         << size;
  }
  return success();
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType,
                               Attribute layout) {
  // tile_type_c1
  for (int64_t size : shape)
    if (size <= 0)
      return emitError() << "tile sizes must be positive, got "
                         << (size == ShapedType::kDynamic
                                 ? std::string("?")
                                 : std::to_string(size));
  // tile_type_c2
  if (!isValidElementType(elementType))
    return emitError() << "elements of a tile must be signless integers, "
                          "floats or index, got "
                       << elementType;
  if (auto ours = dyn_cast_or_null<LayoutAttr>(layout))
    return verifyTileLayout(emitError, shape, ours);
  if (auto distributed = dyn_cast_or_null<DistributedAttr>(layout))
    return verifyTileDistributed(emitError, shape, distributed);
  return success();
}

ShapedType TileType::cloneWith(std::optional<ArrayRef<int64_t>> shape,
                               Type elementType) const {
  // A layout describes one shape: it does not survive a change of it.
  if (!shape || *shape == getShape())
    return get(getShape(), elementType, getLayout());
  return get(*shape, elementType);
}

Type TileType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  Attribute layout;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return {};
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (failed(verify(emitError, shape, elementType, layout)))
    return {};
  return get(shape, elementType, layout);
}

void TileType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape())
    printer << size << 'x';
  printer << getElementType();
  if (getLayout())
    printer << ", " << getLayout();
  printer << '>';
}
