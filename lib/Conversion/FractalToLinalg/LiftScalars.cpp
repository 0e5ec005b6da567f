//===- LiftScalars.cpp - numbers that differ between elements -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

/// Numbers of each list of a batch (its length, what is computed of that, where
/// it is read) are no scalars in front of all elements: they are leaves of rank
/// 0, an index as i64.
static RankedTensorType storedType(Lifter &l, Type scalar) {
  return RankedTensorType::get({},
                               scalar.isIndex() ? l.b.getI64Type() : scalar);
}

static Value castIndex(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return arith::IndexCastOp::create(b, loc, type, value);
}

static LogicalResult liftScalarOp(Lifter &l, Operation *op) {
  SmallVector<Axis> loops = l.loopsOf(op->getOperands());
  Type type = op->getResult(0).getType();
  Lifted shape = {{}, loops, {}};
  RankedTensorType stored = storedType(l, type);
  Value made =
      eachOf(l, loops, l.sizesOf(shape, loops), stored,
             [&](OpBuilder &b, Location loc, Point at, ValueRange) -> Value {
               IRMapping now;
               for (Value operand : op->getOperands()) {
                 if (!l.isLifted(operand)) {
                   now.map(operand, l.scalar(operand));
                   continue;
                 }
                 const Lifted &value = l.lookup(operand);
                 Value entry = tensor::ExtractOp::create(
                     b, loc, value.tensor, llvm::map_to_vector(value.axes, at));
                 now.map(operand, castIndex(b, loc, entry, operand.getType()));
               }
               Value result = b.clone(*op, now)->getResult(0);
               return castIndex(b, loc, result, stored.getElementType());
             });
  l.define(op->getResult(0), {made, loops, {}});
  return success();
}

/// The number in a leaf that differs between elements.
static LogicalResult liftExtract(Lifter &l, tensor::ExtractOp op) {
  const Lifted &value = l.lookup(op.getTensor());
  if (!op.getIndices().empty())
    return unsupported(op) << "reads one number of many, which has no lowering "
                              "where these differ between elements of a list; "
                              "slice the leaf";
  l.define(op.getResult(), value);
  return success();
}

static LogicalResult liftFromElements(Lifter &l, tensor::FromElementsOp op) {
  if (op.getType().getRank() != 0)
    return unsupported(op) << "makes a tensor of numbers that differ between "
                              "elements of a list, which has no lowering yet; "
                              "concatenate tensors";
  l.define(op.getResult(), l.lookup(op.getElements().front()));
  return success();
}

/// Places in a list, whose length is that of one.
static LogicalResult liftGenerate(Lifter &l, tensor::GenerateOp op) {
  auto length =
      op.getDynamicExtents().front().getDefiningOp<fractal::LengthOp>();
  if (!length || op.getType().getRank() != 1)
    return unsupported(op) << "makes a tensor of a size that only a run knows, "
                              "which has no lowering yet";
  const Lifted &list = l.lookup(length.getSource());
  if (!getConstantIntValue(list.lengths.front()))
    return unbounded(op);
  Lifted places = {{}, {levelAxis(0)}, {list.lengths.front()}};
  if (Presence presence = list.presenceOf(0)) {
    // As many places as a filter has left, without holes.
    Numbers counts = countsOf(l, list);
    places.setPresence(
        0, presence.isMask() ? Presence{counts.tensor, counts.axes} : presence);
  }
  IRMapping outer;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  for (Value value : captured) {
    if (l.isLifted(value))
      return unsupported(op) << "reads what differs between elements of a "
                                "list, which has no lowering yet";
    outer.map(value, l.scalar(value));
  }
  places.tensor =
      eachOf(l, places.axes, list.lengths.front(),
             RankedTensorType::get({}, op.getType().getElementType()),
             [&](OpBuilder &b, Location loc, Point at, ValueRange) -> Value {
               IRMapping now = outer;
               Block &body = op.getBody().front();
               now.map(body.getArgument(0), at(levelAxis(0)));
               for (Operation &inner : body.without_terminator())
                 b.clone(inner, now);
               return now.lookupOrDefault(body.getTerminator()->getOperand(0));
             });
  l.define(op.getResult(), places);
  return success();
}

bool tilewright::isVarying(Lifter &l, Operation *op) {
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return !l.lookup(extract.getTensor()).loops().empty();
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return llvm::any_of(generate.getDynamicExtents(), [&](Value extent) {
      auto length = extent.getDefiningOp<fractal::LengthOp>();
      return length && l.lookup(length.getSource()).presenceOf(0);
    });
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return !isa<ShapedType, fractal::ArrayType>(operand.getType()) &&
           l.isLifted(operand);
  });
}

LogicalResult tilewright::liftVarying(Lifter &l, Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::ExtractOp one) { return liftExtract(l, one); })
      .Case([&](tensor::FromElementsOp made) {
        return liftFromElements(l, made);
      })
      .Case([&](tensor::GenerateOp made) { return liftGenerate(l, made); })
      .Default([&](Operation *other) -> LogicalResult {
        auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
        if (other->getNumResults() == 1 && other->getNumRegions() == 0 &&
            llvm::all_of(other->getOperandTypes(), isScalar) &&
            isScalar(other->getResult(0).getType()))
          return liftScalarOp(l, other);
        return unsupported(other)
               << "reads a number that differs between elements of a list, "
                  "which has no lowering yet";
      });
}
