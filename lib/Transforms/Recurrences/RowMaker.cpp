//===- RowMaker.cpp - what a row of a sequence follows from ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/RowMaker.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tilewright;

static RankedTensorType withoutDim(Type type, unsigned dim) {
  return RankedTensorType::Builder(cast<RankedTensorType>(type)).dropDim(dim);
}

Value RowMaker::make(unsigned dim) {
  place = slice.getMixedOffsets()[dim];
  return reshaped(rowOf(slice.getSource(), dim), slice.getType());
}

/// The row of a value without its dimension `dim`.
Value RowMaker::rowOf(Value value, unsigned dim) {
  if (int64_t maker = group.makerOf(value); maker >= 0)
    return rowOfResult(maker, cast<OpResult>(value), dim);
  RankedTensorType type = withoutDim(value.getType(), dim);
  if (value.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(b, fill.getInputs(),
                                  rowOf(fill.getOutputs()[0], dim))
        .getResult(0);
  if (dependents.contains(value.getDefiningOp()))
    return rowOfGeneric(cast<linalg::GenericOp>(value.getDefiningOp()), dim);
  return sliceOf(value, dim);
}

Value RowMaker::rowOfResult(size_t maker, OpResult result, unsigned dim) {
  scf::ForOp loop = group.getLoops()[maker];
  int64_t state = stateWithLastRow(loop, result.getResultNumber());
  bool isLast = group.getLags()[reader] - group.getLags()[maker] == 1;
  if (state < 0 || !isLast)
    return sliceOf(before[maker][result.getResultNumber()], dim);
  return reshaped(before[maker][state], withoutDim(result.getType(), dim));
}

/// The operation for one row: without the loop, and without the dimensions of
/// operands that it goes along.
Value RowMaker::rowOfGeneric(linalg::GenericOp op, unsigned dim) {
  AffineMap result = op.getIndexingMapsArray().back();
  unsigned dropped = result.getDimPosition(dim);
  SmallVector<AffineMap> maps;
  SmallVector<Value> operands;
  MLIRContext *context = b.getContext();
  SmallVector<AffineExpr> remaining;
  for (unsigned loop : llvm::seq(op.getNumLoops()))
    remaining.push_back(
        getAffineDimExpr(loop > dropped ? loop - 1 : loop, context));
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value value = operand.get();
    auto along = map.getResultPosition(getAffineDimExpr(dropped, context));
    if (along) {
      value = rowOf(value, *along);
      map = map.dropResult(*along);
    }
    operands.push_back(value);
    maps.push_back(
        map.replaceDimsAndSymbols(remaining, {}, op.getNumLoops() - 1, 0));
  }
  auto kinds = op.getIteratorTypesArray();
  kinds.erase(kinds.begin() + dropped);
  ValueRange all = operands;
  ValueRange inputs = all.take_front(op.getNumDpsInputs());
  ValueRange outputs = all.drop_front(op.getNumDpsInputs());
  auto made = linalg::GenericOp::create(b, outputs.getTypes(), inputs, outputs,
                                        maps, kinds);
  IRMapping mapping;
  op.getRegion().cloneInto(&made.getRegion(), mapping);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<linalg::IndexOp> indices;
  made.walk([&](linalg::IndexOp index) { indices.push_back(index); });
  for (linalg::IndexOp index : indices) {
    b.setInsertionPoint(index);
    if (index.getDim() == dropped)
      index.replaceAllUsesWith(
          getValueOrCreateConstantIndexOp(b, index.getLoc(), place));
    else if (index.getDim() > dropped)
      index.setDim(index.getDim() - 1);
  }
  return made.getResult(0);
}

Value RowMaker::sliceOf(Value value, unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  offsets[dim] = place;
  sizes[dim] = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(b, withoutDim(type, dim), value,
                                        offsets, sizes, strides);
}

/// The same elements with dimensions of one more or fewer.
Value RowMaker::reshaped(Value value, RankedTensorType type) {
  auto have = cast<RankedTensorType>(value.getType());
  if (have == type)
    return value;
  if (have.getRank() > type.getRank())
    return tensor::createCanonicalRankReducingExtractSliceOp(b, slice.getLoc(),
                                                             value, type);
  if (have.getRank() == type.getRank()) {
    // Dimensions of size one stand elsewhere.
    ReassociationIndices all =
        llvm::to_vector(llvm::seq<int64_t>(0, have.getRank()));
    value = tensor::CollapseShapeOp::create(b, value, ArrayRef{all});
    return tensor::ExpandShapeOp::create(b, type, value, ArrayRef{all});
  }
  return tensor::ExpandShapeOp::create(
      b, type, value, *getReassociationIndicesForReshape(have, type));
}
