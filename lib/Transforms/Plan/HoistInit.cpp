//===- HoistInit.cpp - tile-hoist-init ------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Plan/Passes.h"
#include "lib/Transforms/Plan/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_HOISTINIT
#include "lib/Transforms/Plan/Passes.h.inc"

static bool isSource(Operation *op) {
  return isa<ml_program::GlobalLoadConstOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op);
}

/// Whether an operation of the `sparse_tile` dialect packs what a run does not
/// change. Encoded values stay inside @init, or where they are used.
static bool isPacking(Operation *op) {
  return isa<sparse_tile::AssembleOp, sparse_tile::PackOp,
             sparse_tile::UnpackOp, sparse_tile::PartsOp,
             sparse_tile::QuantizeOp, sparse_tile::DequantizeOp>(op);
}

static bool isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

static bool isKnown(Value value, llvm::DenseMap<Value, bool> &memo) {
  auto [it, isNew] = memo.try_emplace(value, false);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  bool isConstant = op && isSource(op) && op->getNumOperands() == 0;
  bool known = op && isMemoryEffectFree(op) &&
               (isConstant ||
                (type && type.hasStaticShape() &&
                 (isa<linalg::LinalgOp, linalg::PackOp>(op) || isPacking(op) ||
                  isa<tensor::TensorDialect>(op->getDialect()))));
  if (known && !isConstant)
    known = llvm::all_of(getUsedValues(op),
                         [&](Value v) { return isKnown(v, memo); });
  return memo[value] = known;
}

/// Whether something stored stands behind a known value. Without it the value
/// is cheaper to make than to keep: a filled tensor, for example.
static bool hasWeight(Value value, llvm::DenseMap<Value, bool> &memo) {
  auto [it, isNew] = memo.try_emplace(value, false);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  bool found =
      isa<ml_program::GlobalLoadConstOp>(op) ||
      (matchPattern(value, m_Constant(&elements)) && !elements.isSplat());
  found = found || llvm::any_of(getUsedValues(op),
                                [&](Value v) { return hasWeight(v, memo); });
  return memo[value] = found;
}

bool dependsOnWeightsOnly(Value value) {
  llvm::DenseMap<Value, bool> known, weights;
  return isKnown(value, known) && hasWeight(value, weights);
}

namespace {

/// A fresh or filled tensor, or a view of a weight, costs nothing to make: it
/// stays where it is used.
bool isFree(Value value) {
  Operation *op = value.getDefiningOp();
  if (isSource(op))
    return true;
  if (isView(op))
    return isFree(op->getOperand(0));
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return isFree(fill.getOutputs()[0]);
  return false;
}

struct HoistInit : public impl::HoistInitBase<HoistInit> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto main = symbols.lookup<func::FuncOp>("main");
    if (!main)
      return markAllAnalysesPreserved();
    SmallVector<Value> results = findResults(main);
    if (results.empty())
      return markAllAnalysesPreserved();
    if (symbols.lookup("init")) {
      main.emitError("@init exists already: weights are hoisted once");
      return signalPassFailure();
    }
    hoist(main, results, symbols);
  }

  /// Known values that something unknown uses.
  static SmallVector<Value> findResults(func::FuncOp main) {
    llvm::DenseMap<Value, bool> memo, weights;
    SetVector<Value> results;
    main.walk([&](Operation *op) {
      if (op == main || isa<linalg::LinalgOp>(op->getParentOp()))
        return;
      if (op->getNumResults() > 0 &&
          llvm::all_of(op->getResults(), [&](Value result) {
            return isKnown(result, memo) && hasWeight(result, weights);
          }))
        return;
      auto visit = [&](Value value) {
        auto type = dyn_cast<RankedTensorType>(value.getType());
        if (type && !type.getEncoding() && isKnown(value, memo) &&
            hasWeight(value, weights) && !isFree(value))
          results.insert(value);
      };
      for (Value operand : op->getOperands())
        visit(operand);
      if (!isa<linalg::LinalgOp>(op))
        return;
      SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      for (Value value : captured)
        visit(value);
    });
    return results.takeVector();
  }

  void hoist(func::FuncOp main, ArrayRef<Value> results, SymbolTable &symbols) {
    OpBuilder builder(main);
    SmallVector<Type> types;
    for (Value value : results)
      types.push_back(value.getType());
    auto init = func::FuncOp::create(builder, main.getLoc(), "init",
                                     builder.getFunctionType({}, types));
    init.setPrivate();
    Block *body = init.addEntryBlock();
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    IRMapping mapping;
    SmallVector<Value> made;
    for (Value value : results)
      made.push_back(cloneInto(inside, value, mapping));
    func::ReturnOp::create(inside, main.getLoc(), made);
    symbols.insert(init);
    for (auto [number, result] : llvm::enumerate(results)) {
      Value value = result;
      auto type = cast<RankedTensorType>(value.getType());
      auto global = ml_program::GlobalOp::create(
          builder, value.getLoc(), ("p_" + Twine(number)).str(), type,
          /*is_mutable=*/false,
          ml_program::ExternAttr::get(type.getContext(), type),
          builder.getStringAttr("private"));
      StringAttr name = symbols.insert(global);
      init.setResultAttr(number, tile::decisions::kGlobal, name);
      OpBuilder at(value.getDefiningOp());
      Value loaded = ml_program::GlobalLoadConstOp::create(
          at, value.getLoc(), type, FlatSymbolRefAttr::get(name));
      value.replaceAllUsesWith(loaded);
    }
    main.walk([](Block *block) {
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (isOpTriviallyDead(&op))
          op.erase();
    });
  }

  static Value cloneInto(OpBuilder &builder, Value value, IRMapping &mapping) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    for (Value operand : getUsedValues(op))
      cloneInto(builder, operand, mapping);
    return builder.clone(*op, mapping)
        ->getResult(cast<OpResult>(value).getResultNumber());
  }
};

} // namespace
} // namespace tilewright
