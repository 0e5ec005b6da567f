//===- RowMaxima.cpp - maxima of the scores of a softmax ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/RowMaxima.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

std::optional<double> tilewright::splatOf(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  APFloat number = elements.getSplatValue<APFloat>();
  bool loses;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

namespace {

/// Below all scores: what maxima start from.
bool isLowest(Value value) {
  std::optional<double> number = splatOf(value);
  return number && *number < -1e38;
}

/// A score without its scale.
struct Unscaled {
  arith::MulFOp scaling; // none: 1
  double scale = 1.0;
  SmallVector<tile::SelectOp> masks; // from the last one on
};

/// A product of matrices, its scale and masks that put -infinity.
std::optional<Unscaled> matchScore(Value value) {
  Unscaled found;
  Operation *op = value.getDefiningOp();
  while (auto select = dyn_cast_or_null<tile::SelectOp>(op)) {
    std::optional<double> hidden = splatOf(select.getFalseValue());
    if (!hidden || *hidden != -std::numeric_limits<double>::infinity())
      return std::nullopt;
    found.masks.push_back(select);
    op = select.getTrueValue().getDefiningOp();
  }
  if (auto scaling = dyn_cast_or_null<arith::MulFOp>(op)) {
    std::optional<double> scale = splatOf(scaling.getRhs());
    if (!scale || !(*scale > 0.0) || *scale > 1.0)
      return std::nullopt;
    found.scaling = scaling;
    found.scale = *scale;
    op = scaling.getLhs().getDefiningOp();
  }
  if (!isa_and_nonnull<tile::MmaOp, tile::LoadOp>(op))
    return std::nullopt;
  // A maximum of 1 that is not scaled has no product with log2(e) near the
  // lowest number, which it starts from.
  return found.scale * 1.4426950408889634 <= 1.0
             ? std::optional<Unscaled>(found)
             : std::nullopt;
}

/// The score, made anew without its scale.
Value withoutScale(Unscaled score, Value value) {
  if (!score.scaling)
    return value;
  Value plain = score.scaling.getLhs();
  for (tile::SelectOp mask : llvm::reverse(score.masks)) {
    OpBuilder b(mask);
    plain = tile::SelectOp::create(b, mask.getLoc(), mask.getCondition(), plain,
                                   mask.getFalseValue());
  }
  return plain;
}

} // namespace

bool RowMaxima::followMaximum(Operation *op) {
  for (Value operand : op->getOperands())
    met.insert(operand);
  add(op->getResult(0));
  return true;
}

/// A score or a maximum less a maximum is an exponent and nothing else.
bool RowMaxima::followDifference(Operation *op) {
  for (Operation *user : op->getUsers())
    if (!isa<math::ExpOp>(user))
      return false;
  if (scores.contains(op->getOperand(0)))
    return true;
  met.insert(op->getOperand(0));
  met.insert(op->getOperand(1));
  for (Operation *user : op->getUsers())
    if (!llvm::is_contained(factors, user))
      factors.push_back(cast<math::ExpOp>(user));
  return true;
}

/// What a loop carries, or one of two branches makes.
bool RowMaxima::followYield(OpOperand &use) {
  Operation *parent = use.getOwner()->getParentOp();
  unsigned number = use.getOperandNumber();
  if (auto branch = dyn_cast<scf::IfOp>(parent)) {
    met.insert(branch.thenYield().getOperand(number));
    met.insert(branch.elseYield().getOperand(number));
    add(branch.getResult(number));
    return true;
  }
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (!loop)
    return false;
  met.insert(loop.getInitArgs()[number]);
  add(loop.getRegionIterArgs()[number]);
  add(loop.getResult(number));
  return true;
}

bool RowMaxima::follow(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return followMaximum(op);
  if (isa<arith::SubFOp>(op))
    return followDifference(op);
  if (isa<scf::YieldOp>(op))
    return followYield(use);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned number = use.getOperandNumber() - loop.getNumControlOperands();
    met.insert(loop.getYieldedValues()[number]);
    add(loop.getRegionIterArgs()[number]);
    add(loop.getResult(number));
    return true;
  }
  if (isa<tile::BroadcastOp, tile::ReshapeOp>(op)) {
    add(op->getResult(0));
    return true;
  }
  others.push_back(&use);
  return true;
}

bool RowMaxima::analyze() {
  for (Value score : scores)
    for (Operation *user : score.getUsers()) {
      auto reduce = dyn_cast<tile::ReduceOp>(user);
      if (reduce && reduce.getKind() == tile::ReduceKind::max)
        add(reduce.getResult());
      else if (!isa<arith::SubFOp>(user))
        return false;
    }
  for (size_t at = 0; at < maxima.size(); ++at)
    for (OpOperand &use : maxima[at].getUses())
      if (!follow(use))
        return false;
  for (Value value : met)
    if (!maxima.contains(value) && !isLowest(value))
      return false;
  known = !maxima.empty();
  return known;
}

std::optional<double> RowMaxima::unscale() {
  std::optional<double> scale;
  SmallVector<std::pair<Value, Unscaled>> plain;
  for (Value score : scores) {
    std::optional<Unscaled> found = matchScore(score);
    if (!known || !found || scale.value_or(found->scale) != found->scale)
      return std::nullopt;
    scale = found->scale;
    plain.emplace_back(score, *found);
  }
  if (!scale)
    return std::nullopt;
  for (auto &[score, found] : plain)
    score.replaceAllUsesWith(withoutScale(found, score));
  for (OpOperand *use : others) {
    OpBuilder b(use->getOwner());
    Value value = use->get();
    auto type = cast<ShapedType>(value.getType());
    auto number = b.getFloatAttr(type.getElementType(), *scale);
    Value by = arith::ConstantOp::create(b, value.getLoc(),
                                         DenseElementsAttr::get(type, number));
    use->set(arith::MulFOp::create(b, value.getLoc(), value, by));
  }
  return scale;
}
