//===- CoreMeshDomain.cpp - values of affine expressions -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright::coremesh;

/// Points that a verifier looks at, at most: some milliseconds.
static constexpr int64_t kMostPoints = int64_t(1) << 16;

shared::Domain shared::domainOf(Operation *op) {
  Domain loops;
  Operation *parent = op->getParentOp();
  for (; !isa<ProgramOp>(parent); parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopOp>(parent))
      loops.push_back(loop.getCount());
  auto program = cast<ProgramOp>(parent);
  Domain domain = {int64_t(program.getHeight()), int64_t(program.getWidth())};
  llvm::append_range(domain, llvm::reverse(loops));
  return domain;
}

/// The value of two operands combined; none where it has no meaning.
static std::optional<int64_t> combine(AffineExprKind kind, int64_t left,
                                      int64_t right) {
  int64_t result;
  switch (kind) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(left, right, result) ? std::nullopt
                                                  : std::optional(result);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(left, right, result) ? std::nullopt
                                                  : std::optional(result);
  default:
    break;
  }
  if (right <= 0)
    return std::nullopt;
  if (kind == AffineExprKind::Mod)
    return llvm::mod(left, right);
  return kind == AffineExprKind::FloorDiv ? llvm::divideFloorSigned(left, right)
                                          : llvm::divideCeilSigned(left, right);
}

static std::optional<int64_t> evaluate(AffineExpr expr,
                                       ArrayRef<int64_t> point) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> left = evaluate(binary.getLHS(), point);
  std::optional<int64_t> right = evaluate(binary.getRHS(), point);
  if (!left || !right)
    return std::nullopt;
  return combine(expr.getKind(), *left, *right);
}

static bool holds(std::optional<IntegerSet> where, ArrayRef<int64_t> point) {
  if (!where)
    return true;
  for (unsigned i = 0; i < where->getNumConstraints(); ++i) {
    std::optional<int64_t> value = evaluate(where->getConstraint(i), point);
    bool met = where->isEq(i) ? value == 0 : value.value_or(-1) >= 0;
    if (!met)
      return false;
  }
  return true;
}

static void noteDims(ArrayRef<AffineExpr> exprs, llvm::SmallBitVector &used) {
  for (AffineExpr expr : exprs)
    expr.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        used.set(dim.getPosition());
    });
}

/// The next point, the last dimension fastest; false after the last one.
static bool advance(SmallVectorImpl<int64_t> &point, ArrayRef<int64_t> sizes) {
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (++point[dim] < sizes[dim])
      return true;
    point[dim] = 0;
  }
  return false;
}

void shared::forEachPoint(
    ArrayRef<int64_t> domain, ArrayRef<AffineExpr> exprs,
    std::optional<IntegerSet> where,
    function_ref<bool(ArrayRef<int64_t>, ArrayRef<std::optional<int64_t>>)>
        visit) {
  if (llvm::is_contained(domain, 0))
    return;
  llvm::SmallBitVector used(domain.size());
  noteDims(exprs, used);
  if (where)
    noteDims(where->getConstraints(), used);
  SmallVector<int64_t> sizes(domain.size(), 1);
  int64_t points = 1;
  for (int dim : used.set_bits()) {
    sizes[dim] = domain[dim];
    if (llvm::MulOverflow(points, sizes[dim], points) || points > kMostPoints)
      return;
  }
  SmallVector<int64_t> point(domain.size(), 0);
  do {
    if (!holds(where, point))
      continue;
    auto values = llvm::map_to_vector(
        exprs, [&](AffineExpr expr) { return evaluate(expr, point); });
    if (!visit(point, values))
      return;
  } while (advance(point, sizes));
}

std::string shared::describe(ArrayRef<int64_t> point) {
  static constexpr StringRef names[] = {"y", "x", "i", "j", "k", "l"};
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(llvm::zip(names, point), stream, [&](auto pair) {
    stream << std::get<0>(pair) << " = " << std::get<1>(pair);
  });
  return text;
}

bool shared::areOf(ArrayRef<AffineExpr> exprs, unsigned dims) {
  return llvm::all_of(exprs, [&](AffineExpr expr) {
    WalkResult result = expr.walk([&](AffineExpr part) {
      auto dim = dyn_cast<AffineDimExpr>(part);
      bool isWrong =
          isa<AffineSymbolExpr>(part) || (dim && dim.getPosition() >= dims);
      return isWrong ? WalkResult::interrupt() : WalkResult::advance();
    });
    return !result.wasInterrupted();
  });
}

bool shared::divideByPositive(ArrayRef<AffineExpr> exprs) {
  return llvm::all_of(exprs, [&](AffineExpr expr) {
    WalkResult result = expr.walk([&](AffineExpr part) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(part);
      if (!binary || part.getKind() == AffineExprKind::Add ||
          part.getKind() == AffineExprKind::Mul)
        return WalkResult::advance();
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      bool isSound = divisor && divisor.getValue() > 0;
      return isSound ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  });
}
