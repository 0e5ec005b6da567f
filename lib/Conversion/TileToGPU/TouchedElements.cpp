//===- TouchedElements.cpp - which elements an access touches -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/TouchedElements.h"
#include "dialects/Tile/Tile.h"
#include "lib/Analysis/LinearLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// How a number changes between iterations of a loop: by `step` from one to the
/// next; in the iterations of loops inside it takes values that are at most
/// `spread` apart.
struct Movement {
  int64_t step = 0, spread = 0;
};

bool isInside(Value value, Operation *loop) {
  return loop->isAncestor(value.getParentRegion()->getParentOp());
}

std::optional<Movement> getMovement(Value value, Operation *loop);

/// Of the number that a loop counts with: of `loop`, or of one inside it.
std::optional<Movement> getCounterMovement(BlockArgument value,
                                           Operation *loop) {
  auto owner = dyn_cast<scf::ForOp>(value.getOwner()->getParentOp());
  if (!owner || value != owner.getInductionVar())
    return std::nullopt;
  std::optional<int64_t> first = getConstantIntValue(owner.getLowerBound()),
                         end = getConstantIntValue(owner.getUpperBound()),
                         step = getConstantIntValue(owner.getStep());
  if (!step)
    return std::nullopt;
  if (owner == loop)
    return Movement{*step, 0};
  if (!first || !end)
    return std::nullopt;
  return Movement{
      0, *step > 0 && *end > *first ? (*end - 1 - *first) / *step * *step : 0};
}

std::optional<Movement> scaled(Value value, Operation *loop, int64_t factor) {
  std::optional<Movement> moved = getMovement(value, loop);
  if (moved)
    moved = Movement{moved->step * factor, moved->spread * std::abs(factor)};
  return moved;
}

std::optional<Movement> combined(Operation *op, Operation *loop, int64_t sign) {
  std::optional<Movement> left = getMovement(op->getOperand(0), loop),
                          right = scaled(op->getOperand(1), loop, sign);
  if (!left || !right)
    return std::nullopt;
  return Movement{left->step + right->step, left->spread + right->spread};
}

/// None where it is not known.
std::optional<Movement> getMovement(Value value, Operation *loop) {
  if (!isInside(value, loop))
    return Movement();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getCounterMovement(argument, loop);
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp>(op))
    return combined(op, loop, 1);
  if (isa<arith::SubIOp>(op))
    return combined(op, loop, -1);
  if (isa<arith::MulIOp>(op)) {
    if (auto factor = getConstantIntValue(op->getOperand(1)))
      return scaled(op->getOperand(0), loop, *factor);
    if (auto factor = getConstantIntValue(op->getOperand(0)))
      return scaled(op->getOperand(1), loop, *factor);
  }
  if (isa<arith::ShLIOp>(op))
    if (auto bits = getConstantIntValue(op->getOperand(1)))
      return scaled(op->getOperand(0), loop, int64_t(1) << *bits);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return getMovement(op->getOperand(0), loop);
  // What depends on nothing that moves does not move.
  bool still = isPure(op) && op->getNumRegions() == 0 &&
               llvm::all_of(op->getOperands(), [&](Value operand) {
                 auto moved = getMovement(operand, loop);
                 return moved && moved->step == 0 && moved->spread == 0;
               });
  return still ? std::optional(Movement()) : std::nullopt;
}

/// Whether several threads hold the same elements: only one of them stores
/// these, while each one loads its own.
bool hasReplicas(Type tile) {
  std::optional<LinearLayout> layout = LinearLayout::of(tile);
  return !layout || layout->getReplicas() != 0;
}

} // namespace

std::optional<TouchedElements> TouchedElements::of(Operation *op,
                                                   Value memref) {
  TouchedElements found;
  found.op = op;
  found.memref = memref;
  auto ofTile = [&](auto access, tile::TileType type) {
    if (!type.getDistributed())
      return false;
    found.offsets = llvm::to_vector(access.getOffsets());
    found.spans.assign(found.offsets.size(), 1);
    found.dims = access.getTileDims();
    found.steps = access.getTileSteps();
    for (auto [size, dim, step] :
         llvm::zip_equal(type.getShape(), found.dims, found.steps))
      found.spans[dim] = (size - 1) * std::abs(step) + 1;
    if (access.getIndices())
      found.spans[found.dims[*access.getAlong()]] = -1;
    found.tile = type;
    return true;
  };
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    if (load.getMemref() == memref && ofTile(load, load.getType()))
      return found;
  } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
    if (ofTile(store, store.getTileType()))
      return found;
  } else if (isa<tile::CopyOp>(op)) {
    auto type = cast<MemRefType>(memref.getType());
    found.spans.assign(type.getRank(), -1);
    found.offsets.assign(type.getRank(), Value());
    return found;
  } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
    found.offsets = llvm::to_vector(store.getIndices());
    found.spans.assign(found.offsets.size(), 1);
    return found;
  }
  return std::nullopt;
}

bool TouchedElements::isSameInEachIteration(Operation *loop) const {
  return !isInside(memref, loop) && llvm::all_of(offsets, [&](Value offset) {
    if (!offset) // the whole buffer
      return true;
    auto moved = getMovement(offset, loop);
    return moved && moved->step == 0 && moved->spread == 0;
  });
}

bool TouchedElements::isDisjointByIteration(const TouchedElements &later,
                                            Operation *loop) const {
  if (isInside(memref, loop) || offsets != later.offsets)
    return false;
  for (auto [offset, span, other] :
       llvm::zip_equal(offsets, spans, later.spans)) {
    if (!offset || span < 0 || other < 0)
      continue;
    auto moved = getMovement(offset, loop);
    if (moved && std::abs(moved->step) >= std::max(span, other) + moved->spread)
      return true;
  }
  return false;
}

bool TouchedElements::areApart(const TouchedElements &later, Operation *loop,
                               const SharedArguments &arguments) const {
  if (!arguments.isSame(memref, later.memref))
    return false;
  if (loop && isDisjointByIteration(later, loop))
    return true;
  if (!tile || !later.tile)
    return op == later.op && (!loop || isSameInEachIteration(loop));
  // Places that a list of indices names may be anybody's.
  if (llvm::is_contained(spans, -1) || llvm::is_contained(later.spans, -1))
    return false;
  if (offsets != later.offsets || dims != later.dims || steps != later.steps ||
      tile != later.tile || (loop && !isSameInEachIteration(loop)))
    return false;
  return op->getName() == later.op->getName() || !hasReplicas(tile);
}
