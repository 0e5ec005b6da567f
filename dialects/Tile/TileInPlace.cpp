//===- TileInPlace.cpp - kernels that read where they write ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright::tile;

namespace {

/// One plain load or store: offsets, shape and bounds decide what it touches.
struct Window {
  Operation *op;
  ValueRange offsets, valid;
  SmallVector<int64_t> dims;
  ArrayRef<int64_t> shape;
  bool isStore;

  bool touchesSame(const Window &other) const {
    return offsets == other.offsets && valid == other.valid &&
           dims == other.dims && shape == other.shape;
  }
};

} // namespace

template <typename AccessOp>
static std::optional<Window> windowOf(AccessOp access, bool isStore) {
  if (access.getIndices() ||
      llvm::any_of(access.getTileSteps(), [](int64_t s) { return s != 1; }))
    return std::nullopt;
  return Window{access,
                access.getOffsets(),
                access.getValid(),
                access.getTileDims(),
                access.getTileType().getShape(),
                isStore};
}

/// Adds all accesses to `argument`; fails where one is not a plain tile access.
static LogicalResult collect(BlockArgument argument,
                             SmallVectorImpl<Window> &windows) {
  for (Operation *user : argument.getUsers()) {
    if (isa<memref::PrefetchOp>(user))
      continue; // reads nothing
    std::optional<Window> window;
    if (auto load = dyn_cast<LoadOp>(user))
      window = windowOf(load, /*isStore=*/false);
    else if (auto store = dyn_cast<StoreOp>(user); store && !store.getReduce())
      window = windowOf(store, /*isStore=*/true);
    if (!window)
      return failure();
    windows.push_back(*window);
  }
  return success();
}

namespace {

/// A sum of multiples of values, and of a constant.
struct Sum {
  SmallVector<std::pair<Value, int64_t>> terms;
  int64_t constant = 0;

  /// Adds `factor * value`; fails where that is no such sum.
  LogicalResult add(Value value, int64_t factor) {
    APInt number;
    if (matchPattern(value, m_ConstantInt(&number))) {
      constant += factor * number.getSExtValue();
      return success();
    }
    if (auto sum = value.getDefiningOp<arith::AddIOp>())
      return success(succeeded(add(sum.getLhs(), factor)) &&
                     succeeded(add(sum.getRhs(), factor)));
    if (auto product = value.getDefiningOp<arith::MulIOp>();
        product && matchPattern(product.getRhs(), m_ConstantInt(&number)))
      return add(product.getLhs(), factor * number.getSExtValue());
    if (auto apply = value.getDefiningOp<affine::AffineApplyOp>())
      return add(apply.getAffineMap().getResult(0), apply, factor);
    if (!isa<BlockArgument>(value) || factor < 1)
      return failure();
    terms.push_back({value, factor});
    return success();
  }

private:
  LogicalResult add(AffineExpr expr, affine::AffineApplyOp apply,
                    int64_t factor) {
    if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
      constant += factor * number.getValue();
      return success();
    }
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return add(apply.getMapOperands()[dim.getPosition()], factor);
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return add(apply.getMapOperands()[apply.getAffineMap().getNumDims() +
                                        symbol.getPosition()],
                 factor);
    auto binary = cast<AffineBinaryOpExpr>(expr);
    if (binary.getKind() == AffineExprKind::Add)
      return success(succeeded(add(binary.getLHS(), apply, factor)) &&
                     succeeded(add(binary.getRHS(), apply, factor)));
    auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (binary.getKind() != AffineExprKind::Mul || !scale)
      return failure();
    return add(binary.getLHS(), apply, factor * scale.getValue());
  }
};

/// What a window touches along one dimension, over all iterations of the loops
/// around it: [first, end), and `stride` more for each next value of the grid
/// coordinate `id`.
struct Range {
  Value id;
  int64_t stride = 0, first = 0, end = 0;
};

/// The elements that a window touches, where each task and iteration has
/// elements of its own.
class Footprint {
public:
  static std::optional<Footprint> of(const Window &window, KernelOp kernel) {
    Footprint found;
    for (unsigned dim = 0; dim < window.offsets.size(); ++dim)
      if (failed(found.addDim(window, dim)))
        return std::nullopt;
    for (auto loop = window.op->getParentOfType<scf::ForOp>(); loop;
         loop = loop->getParentOfType<scf::ForOp>())
      if (!found.told.contains(loop.getInductionVar()))
        return std::nullopt;
    if (!llvm::all_of(kernel.getGridIds(),
                      [&](Value id) { return found.told.contains(id); }))
      return std::nullopt;
    return found;
  }

  /// Whether no task touches with the one what another touches with the other.
  bool staysApart(const Footprint &other) const {
    return llvm::all_of(llvm::zip_equal(ranges, other.ranges),
                        [](const auto &pair) {
                          const auto &[a, b] = pair;
                          return a.id == b.id && a.stride == b.stride;
                        });
  }

  /// Whether a task touches different elements with the two.
  bool isDisjoint(const Footprint &other) const {
    return llvm::any_of(llvm::zip_equal(ranges, other.ranges),
                        [](const auto &pair) {
                          const auto &[a, b] = pair;
                          return a.end <= b.first || b.end <= a.first;
                        });
  }

private:
  LogicalResult addDim(const Window &window, unsigned dim) {
    Sum sum;
    if (failed(sum.add(window.offsets[dim], 1)))
      return failure();
    const auto *at = llvm::find(window.dims, static_cast<int64_t>(dim));
    int64_t size =
        at == window.dims.end() ? 1 : window.shape[at - window.dims.begin()];
    Range range;
    SmallVector<std::pair<int64_t, int64_t>> loops; // step and rounds
    for (auto [variable, factor] : sum.terms) {
      if (!told.insert(variable).second)
        return failure();
      auto argument = cast<BlockArgument>(variable);
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop) {
        if (range.id)
          return failure();
        range.id = variable;
        range.stride = factor;
        continue;
      }
      std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                             step = getConstantIntValue(loop.getStep());
      std::optional<APInt> trips = loop.getStaticTripCount();
      if (argument != loop.getInductionVar() || !lower || !step || !trips)
        return failure();
      sum.constant += factor * *lower;
      loops.push_back({factor * *step, trips->getSExtValue()});
    }
    llvm::sort(loops);
    for (auto [step, rounds] : loops) {
      if (step < size)
        return failure();
      size += step * (rounds - 1);
    }
    range.first = sum.constant;
    range.end = sum.constant + size;
    ranges.push_back(range);
    return success(range.first >= 0 &&
                   (!range.id || range.end <= range.stride));
  }

  SmallVector<Range> ranges;
  llvm::SmallDenseSet<Value> told;
};

} // namespace

/// Whether two operations are in different branches of one `scf.if`.
static bool areExclusive(Operation *a, Operation *b) {
  for (auto branch = a->getParentOfType<scf::IfOp>(); branch;
       branch = branch->getParentOfType<scf::IfOp>())
    if (branch->isProperAncestor(b))
      return branch.getThenRegion().isAncestor(a->getParentRegion()) !=
             branch.getThenRegion().isAncestor(b->getParentRegion());
  return false;
}

/// Whether stores come last, of accesses of one block to the same elements.
static bool storesLast(ArrayRef<Window> windows) {
  return llvm::all_of(windows, [&](const Window &window) {
    return !window.isStore || llvm::none_of(windows, [&](const Window &other) {
      return !other.isStore && window.op->isBeforeInBlock(other.op);
    });
  });
}

/// Windows that are in one block and touch the same elements are together.
static SmallVector<SmallVector<Window>> groupsOf(ArrayRef<Window> windows) {
  SmallVector<SmallVector<Window>> groups;
  for (const Window &window : windows) {
    auto *found = llvm::find_if(groups, [&](ArrayRef<Window> group) {
      const Window &first = group.front();
      return first.op->getBlock() == window.op->getBlock() &&
             first.touchesSame(window);
    });
    if (found == groups.end())
      groups.push_back({window});
    else
      found->push_back(window);
  }
  return groups;
}

/// The accesses whose order matters. What is read through the only operand
/// that is written is as it was: nothing else changes it.
static SmallVector<Window> hazards(ArrayRef<SmallVector<Window>> accesses) {
  auto isStore = [](const Window &window) { return window.isStore; };
  bool one = llvm::count_if(accesses, [&](ArrayRef<Window> windows) {
               return llvm::any_of(windows, isStore);
             }) == 1;
  SmallVector<Window> found;
  for (ArrayRef<Window> windows : accesses) {
    bool written = llvm::any_of(windows, isStore);
    llvm::copy_if(windows, std::back_inserter(found),
                  [&](const Window &window) {
                    return window.isStore || !(one && written);
                  });
  }
  return found;
}

bool tilewright::tile::shared::readsBeforeItWrites(
    LaunchOp launch, ArrayRef<OpOperand *> operands) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      launch, launch.getKernelAttr());
  if (!kernel)
    return false;
  SmallVector<SmallVector<Window>> accesses(operands.size());
  for (auto [operand, found] : llvm::zip_equal(operands, accesses)) {
    unsigned number = operand->getOperandNumber();
    if (number < launch.getGrid().size() ||
        failed(collect(kernel.getInputs()[number - launch.getGrid().size()],
                       found)))
      return false;
  }
  SmallVector<std::pair<Operation *, Footprint>> footprints;
  for (ArrayRef<Window> group : groupsOf(hazards(accesses))) {
    std::optional<Footprint> footprint = Footprint::of(group.front(), kernel);
    if (!footprint || !storesLast(group))
      return false;
    for (const auto &[op, other] : footprints)
      if (!footprint->staysApart(other) ||
          !(footprint->isDisjoint(other) || areExclusive(group.front().op, op)))
        return false;
    footprints.push_back({group.front().op, *footprint});
  }
  return true;
}
