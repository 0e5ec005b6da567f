//===- TileDecisions.h - names of attributes that carry decisions -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_TILE_TILEDECISIONS_H
#define TILEWRIGHT_DIALECTS_TILE_TILEDECISIONS_H

#include "dialects/Tile/Tile.h"

namespace tilewright::tile::decisions {

/// Name of a discardable attribute that TileDecisions.td declares, with its
/// type. Wherever a name is asked for, it may be given.
template <typename AttrT> struct Decision {
  llvm::StringLiteral name;

  constexpr operator llvm::StringRef() const { return name; }

  /// The decision on an operation; null where there is none.
  AttrT get(mlir::Operation *op) const {
    return op->getAttrOfType<AttrT>(name);
  }
  AttrT get(mlir::Operation &op) const { return get(&op); }
};

#include "dialects/Tile/TileDecisions.h.inc"

} // namespace tilewright::tile::decisions

#endif // TILEWRIGHT_DIALECTS_TILE_TILEDECISIONS_H
