//===- TaskBox.cpp - which elements a task touches ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Programs/TaskBox.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Largest number that is reckoned with: sums and products stay in 64 bits.
constexpr int64_t kMost = int64_t(1) << 30;

/// Finds the numbers of one kernel.
class NumberFinder {
public:
  explicit NumberFinder(tile::KernelOp kernel) : kernel(kernel) {}

  std::optional<TaskNumber> find(Value value);

private:
  using Found = std::optional<TaskNumber>;

  Found findCounter(scf::ForOp loop);
  Found findExpr(AffineExpr expr, AffineMap map, ValueRange operands);
  TaskNumber constant(int64_t value) {
    return {SmallVector<int64_t>(kernel.getGridIds().size(), 0), value, value};
  }
  static bool isConstant(const TaskNumber &number) {
    return number.least == number.most &&
           llvm::all_of(number.factors, [](int64_t f) { return f == 0; });
  }
  static Found checked(TaskNumber number) {
    auto fits = [](int64_t value) { return std::abs(value) < kMost; };
    bool all = fits(number.least) && fits(number.most) &&
               llvm::all_of(number.factors, fits);
    return all ? Found(std::move(number)) : std::nullopt;
  }
  static Found added(Found left, Found right);
  static Found scaled(Found number, int64_t by);
  static Found multiplied(Found left, Found right);

  tile::KernelOp kernel;
};

} // namespace

std::optional<TaskNumber> NumberFinder::added(Found left, Found right) {
  if (!left || !right)
    return std::nullopt;
  for (auto [factor, more] : llvm::zip_equal(left->factors, right->factors))
    factor += more;
  left->least += right->least;
  left->most += right->most;
  return checked(*left);
}

std::optional<TaskNumber> NumberFinder::scaled(Found number, int64_t by) {
  if (!number || std::abs(by) >= kMost)
    return std::nullopt;
  for (int64_t &factor : number->factors)
    factor *= by;
  number->least *= by;
  number->most *= by;
  if (by < 0)
    std::swap(number->least, number->most);
  return checked(*number);
}

std::optional<TaskNumber> NumberFinder::multiplied(Found left, Found right) {
  if (!left || !right)
    return std::nullopt;
  if (isConstant(*right))
    return scaled(left, right->least);
  return isConstant(*left) ? scaled(right, left->least) : std::nullopt;
}

std::optional<TaskNumber> NumberFinder::findExpr(AffineExpr expr, AffineMap map,
                                                 ValueRange operands) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return checked(constant(number.getValue()));
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return find(operands[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return find(operands[map.getNumDims() + symbol.getPosition()]);
  auto pair = cast<AffineBinaryOpExpr>(expr);
  Found left = findExpr(pair.getLHS(), map, operands),
        right = findExpr(pair.getRHS(), map, operands);
  if (expr.getKind() == AffineExprKind::Add)
    return added(left, right);
  return expr.getKind() == AffineExprKind::Mul ? multiplied(left, right)
                                               : std::nullopt;
}

/// From the first number that a loop counts to before its end.
std::optional<TaskNumber> NumberFinder::findCounter(scf::ForOp loop) {
  Found first = find(loop.getLowerBound()), end = find(loop.getUpperBound());
  if (!first || !end || first->factors != end->factors)
    return std::nullopt;
  // A counter between two numbers stops at the last step before the end.
  int64_t last = end->most - 1;
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (step && *step > 0 && first->least == first->most)
    last -= (last - first->least) % *step;
  return TaskNumber{first->factors, first->least, std::max(first->least, last)};
}

std::optional<TaskNumber> NumberFinder::find(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return checked(constant(number.getSExtValue()));
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto ids = kernel.getGridIds();
    if (auto *id = llvm::find(ids, argument); id != ids.end()) {
      TaskNumber found = constant(0);
      found.factors[id - ids.begin()] = 1;
      return found;
    }
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument == loop.getInductionVar())
      return findCounter(loop);
    return std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    AffineMap map = apply.getAffineMap();
    return findExpr(map.getResult(0), map, apply.getMapOperands());
  }
  if (isa<arith::AddIOp>(op))
    return added(find(op->getOperand(0)), find(op->getOperand(1)));
  if (isa<arith::SubIOp>(op))
    return added(find(op->getOperand(0)), scaled(find(op->getOperand(1)), -1));
  if (isa<arith::MulIOp>(op))
    return multiplied(find(op->getOperand(0)), find(op->getOperand(1)));
  return std::nullopt;
}

/// The box from an access's offsets; `valid` and `bounded` only make it less.
template <typename Access>
static std::optional<TaskBox> boxOf(tile::KernelOp kernel, Access access,
                                    tile::TileType type) {
  NumberFinder numbers(kernel);
  TaskBox box;
  for (Value offset : access.getOffsets()) {
    std::optional<TaskNumber> number = numbers.find(offset);
    if (!number)
      return std::nullopt;
    box.push_back(std::move(*number));
  }
  int64_t rank = type.getShape().size(), hidden = box.size() - rank;
  for (auto [t, size] : llvm::enumerate(type.getShape())) {
    int64_t dim = access.getDims() ? (*access.getDims())[t] : hidden + t;
    int64_t step = access.getSteps() ? (*access.getSteps())[t] : 1;
    int64_t span = (size - 1) * step;
    box[dim].least += std::min<int64_t>(span, 0);
    box[dim].most += std::max<int64_t>(span, 0);
  }
  return box;
}

std::optional<TaskBox> tilewright::findBox(tile::KernelOp kernel,
                                           Operation *access) {
  if (auto load = dyn_cast<tile::LoadOp>(access)) {
    // Interleaved tiles and gathers go other ways.
    bool isPlain = !load.getIndices() && !load.getType().getLayout();
    return isPlain ? boxOf(kernel, load, load.getType()) : std::nullopt;
  }
  auto store = dyn_cast<tile::StoreOp>(access);
  if (!store)
    return std::nullopt;
  auto type = cast<tile::TileType>(store.getTile().getType());
  return type.getLayout() ? std::nullopt : boxOf(kernel, store, type);
}

bool tilewright::areApart(const TaskBox &one, const TaskBox &other,
                          ArrayRef<unsigned> coordinates) {
  if (one.size() != other.size())
    return false;
  return llvm::all_of(coordinates, [&](unsigned coordinate) {
    return llvm::any_of(llvm::zip_equal(one, other), [&](auto pair) {
      const auto &[a, b] = pair;
      // Other coordinates would move the two against each other.
      auto single = [&](const TaskNumber &number) {
        for (auto [k, factor] : llvm::enumerate(number.factors))
          if (k != coordinate && factor != 0)
            return false;
        return true;
      };
      int64_t factor = std::abs(a.factors[coordinate]);
      return a.factors == b.factors && single(a) &&
             std::max(a.most, b.most) - std::min(a.least, b.least) < factor;
    });
  });
}
