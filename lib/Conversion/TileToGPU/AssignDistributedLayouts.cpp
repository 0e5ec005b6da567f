//===- AssignDistributedLayouts.cpp - each tile gets its layout -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/DistributedRewriter.h"

#include "llvm/Support/MathExtras.h"

namespace tilewright {
#define GEN_PASS_DEF_ASSIGNDISTRIBUTEDLAYOUTS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

int64_t getDepth(Operation *op) {
  int64_t depth = 0;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp())
    depth += isa<LoopLikeOpInterface>(parent);
  return depth;
}

bool isShared(Value memref) {
  return gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
      cast<MemRefType>(memref.getType()));
}

/// Chooses the layouts of one function's classes.
class DistributedLayoutChooser {
public:
  DistributedLayoutChooser(gpu::GPUFuncOp function, int64_t arch,
                           DistributedClasses &classes)
      : function(function), arch(arch), classes(classes),
        threads(tile::decisions::kThreads.get(function).getInt()) {}

  LogicalResult run() {
    for (Value value : classes.getValues())
      if (auto given = LinearLayout::of(value.getType())) {
        if (given->getNumThreads() != threads)
          return emitError(value.getLoc(), "a tile is distributed over ")
                 << given->getNumThreads() << " threads in a kernel of "
                 << threads;
        classes.assign(value, *given);
      }
    if (failed(chooseForProducts()))
      return failure();
    chooseForAccesses();
    chooseForRest();
    return success();
  }

private:
  LogicalResult chooseForProducts() {
    SmallVector<tile::MmaOp> products;
    function.walk([&](tile::MmaOp op) { products.push_back(op); });
    llvm::stable_sort(products, [](tile::MmaOp x, tile::MmaOp y) {
      return getDepth(x) > getDepth(y);
    });
    for (tile::MmaOp op : products) {
      FailureOr<MmaUnit> unit = getUnit(op, arch);
      if (failed(unit))
        return failure();
      classes.assign(op.getResult(), resultLayout(op, *unit));
    }
    for (tile::MmaOp op : products)
      chooseForOperands(op);
    return success();
  }

  LinearLayout resultLayout(tile::MmaOp op, MmaUnit unit) {
    ArrayRef<int64_t> shape =
        cast<tile::TileType>(op.getC().getType()).getShape();
    switch (unit) {
    case MmaUnit::fma:
      return fmaResultLayout(shape, threads);
    case MmaUnit::mma:
      return mmaResultLayout(
          shape, chooseWarps(shape, threads / 32, isUsedByRows(op)));
    case MmaUnit::wgmma:
      return wgmmaResultLayout(shape, threads);
    case MmaUnit::mfma:
      return mfmaResultLayout(
          shape, chooseWarps(shape, threads / 64, isUsedByRows(op)));
    }
    llvm_unreachable("all units are above");
  }

  /// Whether rows of the result are reduced, or are rows of the next product:
  /// then a warp should have them whole.
  bool isUsedByRows(tile::MmaOp op) {
    for (Value member : classes.getMembers(op.getResult()))
      for (OpOperand &use : member.getUses()) {
        if (auto reduce = dyn_cast<tile::ReduceOp>(use.getOwner()))
          if (llvm::is_contained(reduce.getDims(), 1))
            return true;
        if (isa<tile::MmaOp>(use.getOwner()) && use.getOperandNumber() == 0)
          return true;
      }
    return false;
  }

  /// Operands that come from shared memory are loaded as the unit wants them.
  void chooseForOperands(tile::MmaOp op) {
    MmaUnit unit = *getUnit(op, arch);
    LinearLayout result = *classes.getLayout(op.getResult());
    // Metadata are loaded as words, from wherever they are.
    if (Value meta = op.getMeta(); meta && isMmaResult(result))
      classes.assign(meta, mmaMetaLayout(op, result));
    if (unit != MmaUnit::mma && unit != MmaUnit::mfma)
      return;
    for (Value operand : {op.getA(), op.getB()})
      if (!classes.getLayout(operand) && isFromShared(operand))
        classes.assign(operand, getOperandLayout(op, operand, result, arch));
  }

  bool isFromShared(Value value) {
    bool any = false;
    for (Value member : classes.getMembers(value)) {
      Operation *op = member.getDefiningOp();
      if (auto load = dyn_cast_or_null<tile::LoadOp>(op)) {
        if (!isShared(load.getMemref()))
          return false;
        any = true;
      }
    }
    return any;
  }

  void chooseForAccesses() {
    struct Access {
      int64_t weight;
      Value tile;
      AccessShape shape;
    };
    std::vector<Access> accesses;
    auto add = [&](auto op, Value tile) {
      int64_t size = cast<tile::TileType>(tile.getType()).getNumElements();
      int64_t depth = std::min<int64_t>(getDepth(op), 6);
      accesses.push_back({size << (3 * depth), tile, AccessShape::of(op)});
    };
    function.walk([&](tile::LoadOp op) {
      if (!isShared(op.getMemref()))
        add(op, op.getResult());
    });
    function.walk([&](tile::StoreOp op) {
      if (!isShared(op.getMemref()))
        add(op, op.getTile());
    });
    llvm::stable_sort(accesses, [](const Access &x, const Access &y) {
      return x.weight > y.weight;
    });
    for (const Access &access : accesses)
      classes.assign(access.tile,
                     getAccessLayout(
                         access.shape,
                         cast<tile::TileType>(access.tile.getType()), threads));
  }

  /// What is neither multiplied nor moved: largest first, so that slices
  /// follow from what they are slices of.
  void chooseForRest() {
    SmallVector<Value> rest(classes.getValues());
    llvm::stable_sort(rest, [](Value x, Value y) {
      return cast<tile::TileType>(x.getType()).getNumElements() >
             cast<tile::TileType>(y.getType()).getNumElements();
    });
    for (Value value : rest) {
      auto type = cast<tile::TileType>(value.getType());
      auto order =
          llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, type.getRank())));
      classes.assign(value,
                     LinearLayout::blocked(type.getShape(), order, 1, threads));
    }
  }

  gpu::GPUFuncOp function;
  int64_t arch;
  DistributedClasses &classes;
  int64_t threads;
};

/// Ops that cost nothing to make again are made for each use, so that no use
/// binds another.
void copyCheapOps(gpu::GPUFuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    bool isCheap = isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op);
    if (isCheap && isa<tile::TileType>(op->getResult(0).getType()) &&
        !LinearLayout::of(op->getResult(0).getType()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getResult(0).getUses())
      uses.push_back(&use);
    for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1)) {
      OpBuilder b(use->getOwner());
      use->set(b.clone(*op)->getResult(0));
    }
  }
}

struct AssignDistributedLayouts
    : public tilewright::impl::AssignDistributedLayoutsBase<
          AssignDistributedLayouts> {
  using AssignDistributedLayoutsBase::AssignDistributedLayoutsBase;

  void runOnOperation() override {
    int64_t unit = getCapability(arch, getOperation());
    WalkResult result = getOperation()->walk([&](gpu::GPUFuncOp function) {
      if (!function->hasAttr(tile::decisions::kThreads))
        return WalkResult::advance();
      copyCheapOps(function);
      DistributedClasses classes(function);
      bool fails =
          failed(DistributedLayoutChooser(function, unit, classes).run()) ||
          failed(DistributedRewriter(function, unit, classes).run());
      return fails ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
