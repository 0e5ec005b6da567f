//===- FoldExponents.cpp - exponentials as multiply-adds and powers -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/ExpandMath/Passes.h"
#include "lib/Transforms/ExpandMath/RowMaxima.h"

namespace tilewright {
#define GEN_PASS_DEF_FOLDEXPONENTS
#include "lib/Transforms/ExpandMath/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

constexpr double kLog2E = 1.4426950408889634;

Type withElement(Type type, Type element) {
  auto tile = cast<ShapedType>(type);
  return tile.clone(tile.getShape(), element);
}

bool isSmall(Type type) {
  Type element = cast<ShapedType>(type).getElementType();
  return element.isF16() || element.isBF16();
}

Value splat(OpBuilder &b, Location loc, Type type, double value) {
  auto tile = cast<ShapedType>(type);
  auto number = b.getFloatAttr(tile.getElementType(), value);
  return arith::ConstantOp::create(b, loc,
                                   DenseElementsAttr::get(tile, number));
}

/// What stands in front of the roundings of a tile of 16 bits: its elements in
/// f32. Null where it is computed in 16 bits, or comes from memory.
Value unrounded(OpBuilder &b, Value value) {
  Operation *op = value.getDefiningOp();
  Type wide = withElement(value.getType(), b.getF32Type());
  if (auto convert = dyn_cast_or_null<tile::ConvertOp>(op))
    return convert.getSource().getType() == wide ? convert.getSource()
                                                 : Value();
  if (std::optional<double> number = splatOf(value))
    return splat(b, value.getLoc(), wide, *number);
  auto select = dyn_cast_or_null<tile::SelectOp>(op);
  if (!select)
    return {};
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(select);
  Value yes = unrounded(b, select.getTrueValue());
  Value no = yes ? unrounded(b, select.getFalseValue()) : Value();
  return no ? tile::SelectOp::create(b, select.getLoc(), select.getCondition(),
                                     yes, no)
            : Value();
}

/// An exponential of a score less a maximum.
struct Exponential {
  math::ExpOp op;
  arith::SubFOp difference;
};

class Folding {
public:
  explicit Folding(tile::KernelOp kernel) : b(kernel.getContext()) {
    kernel.walk([&](math::ExpOp op) {
      auto difference = op.getOperand().getDefiningOp<arith::SubFOp>();
      if (op->hasAttr(tile::decisions::kApproximate) && difference &&
          isa<tile::TileType>(op.getType()) &&
          cast<ShapedType>(op.getType()).getElementType().isF32())
        found.push_back({op, difference});
    });
  }

  void run() {
    for (Exponential &one : found) {
      keepWide(one.difference.getLhs());
      sumUnrounded(one.op);
    }
    RowMaxima maxima;
    for (Exponential &one : found)
      maxima.addScore(one.difference.getLhs());
    if (maxima.analyze())
      for (math::ExpOp factor : maxima.getFactors())
        if (!factor->hasAttr(tile::decisions::kApproximate)) {
          factor->setAttr(tile::decisions::kApproximate, b.getUnitAttr());
          factors.push_back(factor);
        }
    std::optional<double> scale = maxima.unscale();
    for (Exponential &one : found)
      power(one, scale);
    for (math::ExpOp factor : factors)
      powerOfDifference(factor, scale.value_or(1.0) * kLog2E);
  }

private:
  /// Scores that were rounded and widened stay as they were before.
  void keepWide(Value score) {
    auto widening = score.getDefiningOp<tile::ConvertOp>();
    if (!widening || !isSmall(widening.getSource().getType()))
      return;
    b.setInsertionPoint(widening);
    Value wide = unrounded(b, widening.getSource());
    if (!wide)
      return;
    Operation *rounding = widening.getSource().getDefiningOp();
    widening.getResult().replaceAllUsesWith(wide);
    widening.erase();
    if (isOpTriviallyDead(rounding)) // else a reader of the score
      rounding->erase();
  }

  /// Sums of rounded exponentials add them as they were before.
  void sumUnrounded(math::ExpOp op) {
    for (Operation *user : op->getUsers()) {
      auto rounding = dyn_cast<tile::ConvertOp>(user);
      if (!rounding || !isSmall(rounding.getResult().getType()))
        continue;
      for (Operation *reader : rounding->getUsers())
        if (auto widening = dyn_cast<tile::ConvertOp>(reader);
            widening && widening.getResult().getType() == op.getType())
          widening.getResult().replaceAllUsesWith(op);
    }
  }

  /// One multiply-add, where the maximum has a product.
  void power(Exponential one, std::optional<double> scale) {
    double factor = scale.value_or(1.0) * kLog2E;
    auto spread = one.difference.getRhs().getDefiningOp<tile::BroadcastOp>();
    if (!scale || !spread)
      return powerOfDifference(one.op, factor);
    Location loc = one.op.getLoc();
    b.setInsertionPoint(one.op);
    Value row = spread.getSource();
    Value top = arith::MulFOp::create(b, loc, row,
                                      splat(b, loc, row.getType(), factor));
    Value less = tile::BroadcastOp::create(b, loc, spread.getType(),
                                           arith::NegFOp::create(b, loc, top));
    Value by = splat(b, loc, one.op.getType(), factor);
    replace(one.op,
            math::FmaOp::create(b, loc, one.difference.getLhs(), by, less));
  }

  void powerOfDifference(math::ExpOp op, double factor) {
    b.setInsertionPoint(op);
    replace(op,
            arith::MulFOp::create(b, op.getLoc(), op.getOperand(),
                                  splat(b, op.getLoc(), op.getType(), factor)));
  }

  void replace(math::ExpOp op, Value exponent) {
    auto made = math::Exp2Op::create(b, op.getLoc(), exponent);
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op.replaceAllUsesWith(made.getResult());
    op.erase();
  }

  OpBuilder b;
  SmallVector<Exponential> found;
  SmallVector<math::ExpOp> factors;
};

struct FoldExponents
    : public tilewright::impl::FoldExponentsBase<FoldExponents> {
  using FoldExponentsBase::FoldExponentsBase;

  void runOnOperation() override { Folding(getOperation()).run(); }
};

} // namespace
