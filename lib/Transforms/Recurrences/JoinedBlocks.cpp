//===- JoinedBlocks.cpp - what a body makes, of all blocks at once --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/JoinedBlocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

RankedTensorType JoinedBlocks::joinedType(Value tensor, int64_t dim) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= length;
  return type.clone(shape);
}

/// A copy with other operands, none of which may be null, of what may not vary
/// in its region either; null where that cannot be.
Operation *JoinedBlocks::copied(Operation *op, ArrayRef<Value> operands) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  IRMapping map;
  for (Value value : captured) {
    Value moved = outside(value);
    if (!moved)
      return nullptr;
    map.map(value, moved);
  }
  if (!llvm::all_of(operands, [](Value operand) { return bool(operand); }))
    return nullptr;
  Operation *copy = b.clone(*op, map);
  copy->setOperands(operands);
  return copy;
}

/// A value that does not vary, in front of the fold.
Value JoinedBlocks::outside(Value value) {
  if (varying.contains(value))
    return {};
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &fold.getBodyBlock())
    return value;
  if (Value copy = known.lookup({value, -1}))
    return copy;
  if (!isMemoryEffectFree(op) || op->getNumResults() != 1)
    return {};
  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return outside(operand); });
  Operation *moved = copied(op, operands);
  return known[{value, -1}] = moved ? moved->getResult(0) : Value();
}

Value JoinedBlocks::join(Value tensor, int64_t dim) {
  auto found = known.find({tensor, dim});
  if (found != known.end())
    return found->second;
  Value joined = build(tensor, dim);
  return known[{tensor, dim}] = joined;
}

Value JoinedBlocks::build(Value tensor, int64_t dim) {
  if (!isa<RankedTensorType>(tensor.getType()))
    return outside(tensor);
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return argument.getOwner() == &fold.getBodyBlock() ? element(argument, dim)
                                                       : Value();
  if (!varying.contains(tensor))
    return place(tensor, dim);
  Operation *op = tensor.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return structured(linalgOp, dim);
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return {};
  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return join(operand, dim); });
  Operation *copy = copied(op, operands);
  if (!copy)
    return {};
  copy->getResult(0).setType(joinedType(tensor, dim));
  return copy->getResult(0);
}

/// The list as a tensor, its level in front of the dimension and part of it.
Value JoinedBlocks::element(BlockArgument argument, int64_t dim) {
  int64_t number = argument.getArgNumber() - fold.getStates().size();
  auto leaf = dyn_cast<RankedTensorType>(argument.getType());
  if (number < 0 || !leaf)
    return {};
  SmallVector<int64_t> shape = {length};
  llvm::append_range(shape, leaf.getShape());
  Value list = fold.getArrays()[number];
  Value whole = ToTensorOp::create(b, leaf.clone(shape), list);
  if (dim != 0) {
    SmallVector<int64_t> order;
    for (int64_t d : llvm::seq<int64_t>(1, dim + 1))
      order.push_back(d);
    order.push_back(0);
    for (int64_t d : llvm::seq<int64_t>(dim + 1, leaf.getRank() + 1))
      order.push_back(d);
    SmallVector<int64_t> moved =
        llvm::map_to_vector(order, [&](int64_t d) { return shape[d]; });
    Value into = tensor::EmptyOp::create(b, moved, leaf.getElementType());
    whole = linalg::TransposeOp::create(b, whole, into, order)->getResult(0);
  }
  SmallVector<ReassociationIndices> groups;
  for (int64_t d : llvm::seq<int64_t>(0, leaf.getRank() + 1)) {
    if (d == dim + 1)
      groups.back().push_back(d);
    else
      groups.push_back({d});
  }
  return tensor::CollapseShapeOp::create(b, joinedType(argument, dim), whole,
                                         groups);
}

/// A tensor that is the same for all blocks, since it is empty or of one
/// number.
Value JoinedBlocks::place(Value same, int64_t dim) {
  RankedTensorType type = joinedType(same, dim);
  DenseElementsAttr elements;
  if (matchPattern(same, m_Constant(&elements)) && elements.isSplat())
    return arith::ConstantOp::create(b, elements.resizeSplat(type));
  auto fill = same.getDefiningOp<linalg::FillOp>();
  if (!fill && !same.getDefiningOp<tensor::EmptyOp>())
    return {};
  Value empty =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  if (!fill)
    return empty;
  Value scalar = outside(fill.getInputs().front());
  return scalar ? linalg::FillOp::create(b, scalar, empty).getResult(0)
                : Value();
}

/// Whether an op makes one tensor from whole dimensions of others, and does not
/// ask where it is.
static bool isPlain(linalg::LinalgOp op) {
  bool counts = op->walk([](linalg::IndexOp) {
                    return WalkResult::interrupt();
                  }).wasInterrupted();
  return !counts && op->getNumResults() == 1 && op.hasPureTensorSemantics() &&
         op.getIndexingMapsArray().back().isProjectedPermutation();
}

/// An operand of an op, joined where a loop runs along one of its dimensions.
Value JoinedBlocks::input(linalg::LinalgOp op, OpOperand *input,
                          unsigned loop) {
  AffineMap read = op.getMatchingIndexingMap(input);
  std::optional<unsigned> at =
      read.getResultPosition(getAffineDimExpr(loop, op.getContext()));
  int64_t uses = llvm::count_if(read.getResults(), [&](AffineExpr expr) {
    return expr.isFunctionOfDim(loop);
  });
  if (!at)
    return uses == 0 ? outside(input->get()) : Value();
  return uses == 1 ? join(input->get(), *at) : Value();
}

/// An operation whose loop along the dimension is parallel.
Value JoinedBlocks::structured(linalg::LinalgOp op, int64_t dim) {
  if (!isPlain(op))
    return {};
  unsigned loop = op.getIndexingMapsArray().back().getDimPosition(dim);
  SmallVector<Value> operands =
      llvm::map_to_vector(op.getDpsInputOperands(), [&](OpOperand *operand) {
        return input(op, operand, loop);
      });
  operands.push_back(place(op.getDpsInits().front(), dim));
  Operation *copy = copied(op, operands);
  if (!copy)
    return {};
  copy->getResult(0).setType(operands.back().getType());
  return copy->getResult(0);
}
