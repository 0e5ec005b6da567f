//===- Divisors.cpp - what an index is a multiple of ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Divisors.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

static constexpr int64_t most = 4096;

int64_t tilewright::getDivisor(int64_t value) {
  return value == 0 ? most : std::min(most, value & -value);
}

namespace {
class Divisors {
public:
  int64_t get(Value value, int depth = 0) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return getDivisor(constant.getSExtValue());
    if (depth > 12)
      return 1;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return getOfArgument(argument, depth);
    return getOfOp(value.getDefiningOp(), depth);
  }

private:
  /// An induction variable; a carried value could be anything.
  int64_t getOfArgument(BlockArgument argument, int depth) {
    auto loop =
        dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return 1;
    return std::min(get(loop.getLowerBound(), depth + 1),
                    get(loop.getStep(), depth + 1));
  }

  int64_t all(OperandRange operands, int depth) {
    int64_t divisor = most;
    for (Value operand : operands)
      divisor = std::min(divisor, get(operand, depth + 1));
    return divisor;
  }

  int64_t getOfOp(Operation *op, int depth) {
    return llvm::TypeSwitch<Operation *, int64_t>(op)
        .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
              arith::MinUIOp, arith::MaxUIOp, arith::IndexCastOp,
              arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
              arith::RemSIOp, arith::RemUIOp>(
            [&](Operation *same) { return all(same->getOperands(), depth); })
        .Case([&](arith::MulIOp product) {
          return std::min(most, get(product.getLhs(), depth + 1) *
                                    get(product.getRhs(), depth + 1));
        })
        .Case([&](arith::SelectOp select) {
          return std::min(get(select.getTrueValue(), depth + 1),
                          get(select.getFalseValue(), depth + 1));
        })
        .Case([&](affine::AffineApplyOp apply) {
          return getOfMap(apply.getAffineMap(), apply.getOperands(), depth);
        })
        .Case<affine::AffineMinOp, affine::AffineMaxOp>([&](auto bound) {
          return getOfMap(bound.getAffineMap(), bound.getOperands(), depth);
        })
        .Default([](Operation *) { return 1; });
  }

  int64_t getOfMap(AffineMap map, ValueRange operands, int depth) {
    int64_t divisor = most;
    for (AffineExpr result : map.getResults())
      divisor = std::min(divisor, getOfExpr(result, map, operands, depth + 1));
    return divisor;
  }

  int64_t getOfExpr(AffineExpr expr, AffineMap map, ValueRange operands,
                    int depth) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return getDivisor(constant.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return get(operands[dim.getPosition()], depth);
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return get(operands[map.getNumDims() + symbol.getPosition()], depth);
    auto binary = cast<AffineBinaryOpExpr>(expr);
    int64_t left = getOfExpr(binary.getLHS(), map, operands, depth);
    int64_t right = getOfExpr(binary.getRHS(), map, operands, depth);
    if (expr.getKind() == AffineExprKind::Mul)
      return std::min(most, left * right);
    if (expr.getKind() == AffineExprKind::Add ||
        expr.getKind() == AffineExprKind::Mod)
      return std::min(left, right);
    return 1;
  }
};
} // namespace

int64_t tilewright::getDivisor(Value value) { return Divisors().get(value); }

SmallVector<int64_t> tilewright::getStrideFactors(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0, behind = 1;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return SmallVector<int64_t>(type.getRank(), 1);
  bool rowMajor = type.getLayout().isIdentity();
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (ShapedType::isDynamic(strides[dim]))
      strides[dim] = rowMajor ? behind : 1;
    int64_t size = type.getDimSize(dim);
    behind *= ShapedType::isDynamic(size) || size == 0 ? 1 : size;
  }
  return strides;
}
