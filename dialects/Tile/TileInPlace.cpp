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

/// `offset` as `factor * variable`; the variable is null for a constant.
static std::optional<std::pair<Value, int64_t>> linear(Value offset) {
  if (matchPattern(offset, m_Constant()))
    return std::pair<Value, int64_t>{Value(), 0};
  if (isa<BlockArgument>(offset))
    return std::pair<Value, int64_t>{offset, 1};
  APInt factor;
  if (auto product = offset.getDefiningOp<arith::MulIOp>();
      product && matchPattern(product.getRhs(), m_ConstantInt(&factor)))
    return std::pair<Value, int64_t>{product.getLhs(), factor.getSExtValue()};
  auto apply = offset.getDefiningOp<affine::AffineApplyOp>();
  if (!apply || apply.getMapOperands().size() != 1)
    return std::nullopt;
  // Multiplications by a constant have it on the right.
  auto scaled = dyn_cast<AffineBinaryOpExpr>(apply.getAffineMap().getResult(0));
  if (!scaled || scaled.getKind() != AffineExprKind::Mul ||
      !isa<AffineDimExpr, AffineSymbolExpr>(scaled.getLHS()))
    return std::nullopt;
  auto scale = dyn_cast<AffineConstantExpr>(scaled.getRHS());
  if (!scale)
    return std::nullopt;
  return std::pair<Value, int64_t>{apply.getMapOperands()[0], scale.getValue()};
}

/// Distance between neighbouring values of a grid coordinate or loop variable.
static int64_t strideOf(Value variable) {
  auto argument = cast<BlockArgument>(variable);
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop)
    return 1;
  APInt step;
  bool isConstant = loop.getInductionVar() == argument &&
                    matchPattern(loop.getStep(), m_ConstantInt(&step));
  return isConstant ? step.getSExtValue() : 0;
}

/// Whether the window of each task and iteration has elements of its own.
static bool isDisjoint(const Window &window, KernelOp kernel) {
  llvm::SmallDenseSet<Value> told;
  for (auto [dim, offset] : llvm::enumerate(window.offsets)) {
    auto form = linear(offset);
    if (!form || (form->first && !isa<BlockArgument>(form->first)))
      return false;
    if (!form->first)
      continue;
    const auto *at = llvm::find(window.dims, static_cast<int64_t>(dim));
    int64_t size =
        at == window.dims.end() ? 1 : window.shape[at - window.dims.begin()];
    if (form->second * strideOf(form->first) < size)
      return false;
    told.insert(form->first);
  }
  for (auto loop = window.op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (!told.contains(loop.getInductionVar()))
      return false;
  return llvm::all_of(kernel.getGridIds(),
                      [&](Value id) { return told.contains(id); });
}

bool tilewright::tile::shared::readsBeforeItWrites(
    LaunchOp launch, ArrayRef<OpOperand *> operands) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      launch, launch.getKernelAttr());
  if (!kernel)
    return false;
  SmallVector<Window> windows;
  for (OpOperand *operand : operands) {
    unsigned number = operand->getOperandNumber();
    if (number < launch.getGrid().size() ||
        failed(collect(kernel.getInputs()[number - launch.getGrid().size()],
                       windows)))
      return false;
  }
  for (const Window &window : windows) {
    if (!window.touchesSame(windows.front()) ||
        window.op->getBlock() != windows.front().op->getBlock())
      return false;
    if (window.isStore && llvm::any_of(windows, [&](const Window &other) {
          return !other.isStore && window.op->isBeforeInBlock(other.op);
        }))
      return false;
  }
  return windows.empty() || isDisjoint(windows.front(), kernel);
}
