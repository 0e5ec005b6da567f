//===- ListBuilder.cpp - ops on lists from functions ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/ListBuilder.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Fills an empty region; gives the types of what it yields.
static SmallVector<Type> fill(ImplicitLocOpBuilder &b, Region &region,
                              TypeRange arguments, ListBody body) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> places(arguments.size(), b.getLoc());
  Block *block = b.createBlock(&region, region.end(), arguments, places);
  SmallVector<Value> values = body(b, block->getArguments());
  YieldOp::create(b, values);
  return llvm::map_to_vector(values,
                             [](Value value) { return value.getType(); });
}

static SmallVector<Type> elementsOf(ValueRange arrays) {
  return llvm::map_to_vector(arrays, [](Value array) {
    return cast<ArrayType>(array.getType()).getElementType();
  });
}

MapOp tilewright::buildMap(ImplicitLocOpBuilder &b, int64_t length,
                           ValueRange arrays, ListBody body) {
  Region region;
  SmallVector<Type> types;
  for (Type yielded : fill(b, region, elementsOf(arrays), body))
    types.push_back(ArrayType::listOf(length, yielded));
  auto map = MapOp::create(b, types, arrays);
  map.getBody().takeBody(region);
  return map;
}

ScanOp tilewright::buildScan(ImplicitLocOpBuilder &b, int64_t length,
                             ValueRange inits, ValueRange arrays,
                             ListBody body) {
  Region region;
  SmallVector<Type> arguments(inits.getTypes()), types;
  llvm::append_range(arguments, elementsOf(arrays));
  for (Type yielded : fill(b, region, arguments, body))
    types.push_back(ArrayType::listOf(length, yielded));
  auto scan = ScanOp::create(b, types, inits, arrays, /*right=*/false);
  scan.getBody().takeBody(region);
  return scan;
}

Value tilewright::buildRead(ImplicitLocOpBuilder &b, Value source,
                            AffineMap map, ArrayRef<int64_t> lengths) {
  auto type = cast<ArrayType>(source.getType());
  SmallVector<int64_t> all(lengths);
  llvm::append_range(all, type.getLengths().drop_front(map.getNumResults()));
  return ReadOp::create(b, ArrayType::get(all, type.getLeaf()), source,
                        AffineMapAttr::get(map));
}
