//===- SharedArguments.cpp - arguments that are one memory ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/SharedArguments.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::getViewed(Value memref) {
  Operation *op = memref.getDefiningOp();
  bool isView =
      isa_and_nonnull<memref::SubViewOp, memref::CastOp,
                      memref::ReinterpretCastOp, memref::ExpandShapeOp,
                      memref::CollapseShapeOp>(op);
  return isView ? op->getOperand(0) : Value();
}

bool tilewright::isParameter(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
}

Value tilewright::getRoot(Value memref) {
  while (Value viewed = getViewed(memref))
    memref = viewed;
  return memref;
}

SharedArguments::SharedArguments(gpu::GPUFuncOp function) {
  read(function, tile::decisions::kSameMemory, same);
  read(function, tile::decisions::kMayOverlap, near);
}

bool SharedArguments::mayMeet(Value root, Value other) const {
  return root == other || same.contains({root, other}) ||
         near.contains({root, other});
}

bool SharedArguments::isSame(Value memref, Value other) const {
  if (memref == other)
    return true;
  // A view that leaves nothing out, of the same sizes.
  auto isWhole = [](Value value) {
    auto whole = value.getDefiningOp<memref::ReinterpretCastOp>();
    return whole && isa<BlockArgument>(whole.getSource());
  };
  auto type = dyn_cast<MemRefType>(memref.getType());
  return type == other.getType() && type.hasStaticShape() && isWhole(memref) &&
         isWhole(other) && same.contains({getRoot(memref), getRoot(other)});
}

/// The parameter that points to an argument of the kernel.
static Value getPointer(gpu::GPUFuncOp function, int64_t argument) {
  auto parameters = tile::decisions::kParams.get(function);
  if (!parameters)
    return nullptr;
  for (auto [index, entry] :
       llvm::enumerate(parameters.getAsRange<DictionaryAttr>())) {
    auto kind = entry.getAs<StringAttr>("kind");
    auto number = entry.getAs<IntegerAttr>("arg");
    if (kind && kind.getValue() == "pointer" && number &&
        number.getInt() == argument)
      return function.getArgument(index);
  }
  return nullptr;
}

void SharedArguments::read(gpu::GPUFuncOp function, StringRef name,
                           Pairs &pairs) {
  auto entries = function->getAttrOfType<ArrayAttr>(name);
  if (!entries)
    return;
  for (auto pair : entries.getAsRange<DenseI64ArrayAttr>()) {
    Value first = getPointer(function, pair[0]),
          second = getPointer(function, pair[1]);
    if (!first || !second)
      continue;
    pairs.insert({first, second});
    pairs.insert({second, first});
  }
}
