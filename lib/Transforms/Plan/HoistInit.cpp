//===- HoistInit.cpp - tile-hoist-init ------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_HOISTINIT
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// A fresh or filled tensor, or a view of a weight, costs nothing to make: it
/// stays where it is used.
bool isFree(Value value) {
  Operation *op = value.getDefiningOp();
  if (isSource(op))
    return true;
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) || loopOfRow(op))
    return isFree(op->getOperand(0));
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return isFree(fill.getOutputs()[0]);
  return false;
}

/// A known value; of one that each iteration of a loop has its own of, a list
/// is made.
struct Result {
  Value value;
  scf::ForOp loop;
  SmallVector<Value> alike; ///< values that are the same

  RankedTensorType type() const {
    auto own = cast<RankedTensorType>(value.getType());
    if (!loop)
      return own;
    SmallVector<int64_t> shape = {length()};
    llvm::append_range(shape, own.getShape());
    return RankedTensorType::get(shape, own.getElementType());
  }

  /// Number of the iteration.
  Value number() const { return scf::ForOp(loop).getInductionVar(); }
  int64_t length() const {
    return *getConstantIntValue(scf::ForOp(loop).getUpperBound());
  }

  /// Offsets or sizes of the value in the list.
  SmallVector<OpFoldResult> place(OpBuilder &b, OpFoldResult first,
                                  bool sizes) const {
    SmallVector<OpFoldResult> place = {first};
    for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
      place.push_back(b.getIndexAttr(sizes ? size : 0));
    return place;
  }

  /// The row of a list, for an iteration.
  Value rowOf(OpBuilder &b, Value list, Value number) const {
    SmallVector<OpFoldResult> ones(type().getRank(), b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(
        b, value.getLoc(), cast<RankedTensorType>(value.getType()), list,
        place(b, number, false), place(b, b.getIndexAttr(1), true), ones);
  }

  /// The list with this as its row.
  Value insert(OpBuilder &b, Value row, Value list, Value number) const {
    SmallVector<OpFoldResult> ones(type().getRank(), b.getIndexAttr(1));
    return tensor::InsertSliceOp::create(
        b, value.getLoc(), row, list, place(b, number, false),
        place(b, b.getIndexAttr(1), true), ones);
  }
};

/// Finds values that are computed alike of the same weights.
class Alike {
public:
  explicit Alike(WeightAnalysis &weights) : weights(weights) {}

  /// The number of the value that was added before and is computed alike; else
  /// the value is added with this number.
  unsigned numberOf(Value value, unsigned number) {
    if (weights.of(value).loop)
      return number;
    SmallVector<std::pair<Value, unsigned>> &bucket = buckets[hash(value)];
    for (auto [other, known] : bucket)
      if (isSame(value, other))
        return known;
    bucket.push_back({value, number});
    return number;
  }

private:
  llvm::hash_code hash(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return llvm::hash_value(value.getAsOpaquePointer());
    if (auto known = hashes.find(value); known != hashes.end())
      return known->second;
    llvm::hash_code code =
        llvm::hash_combine(op->getName(), op->getAttrDictionary(),
                           cast<OpResult>(value).getResultNumber());
    for (Value operand : op->getOperands())
      code = llvm::hash_combine(code, hash(operand));
    return hashes.try_emplace(value, code).first->second;
  }

  bool isSame(Value a, Value b) {
    if (a == b || equal.lookup(a) == b)
      return true;
    auto left = dyn_cast<OpResult>(a), right = dyn_cast<OpResult>(b);
    if (!left || !right || left.getResultNumber() != right.getResultNumber())
      return false;
    if (OperationEquivalence::isEquivalentTo(
            left.getOwner(), right.getOwner(),
            [&](Value x, Value y) { return success(isSame(x, y)); },
            [&](Value x, Value y) { equal[x] = y; },
            OperationEquivalence::IgnoreLocations))
      return true;
    // Results are noted as equal before bodies are compared.
    for (Value result : left.getOwner()->getResults())
      equal.erase(result);
    return false;
  }

  WeightAnalysis &weights;
  DenseMap<llvm::hash_code, SmallVector<std::pair<Value, unsigned>>> buckets;
  DenseMap<Value, llvm::hash_code> hashes;
  DenseMap<Value, Value> equal; ///< also arguments of bodies, while compared
};

/// Makes copies of known values in @init.
class Copier {
public:
  Copier(WeightAnalysis &weights, Block *body)
      : weights(weights), outside(OpBuilder::atBlockEnd(body)) {}

  Value copy(const Result &result) {
    return result.loop ? list(result) : clone(result.value, nullptr);
  }

  OpBuilder &builder() { return outside; }

private:
  /// What all iterations share is made once, in front of their loop.
  Value clone(Value value, OpBuilder *inside) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    for (Value operand : getUsedValues(op))
      clone(operand, inside);
    if (!weights.of(value).loop)
      inside = &outside;
    else
      made.append(op->result_begin(), op->result_end());
    return inside->clone(*op, mapping)
        ->getResult(cast<OpResult>(value).getResultNumber());
  }

  Value list(const Result &result) {
    Value number = result.number();
    Location loc = result.value.getLoc();
    auto constant = [&](int64_t number) -> Value {
      return arith::ConstantIndexOp::create(outside, loc, number);
    };
    Value zero = constant(0), end = constant(result.length()),
          one = constant(1);
    Value empty = tensor::EmptyOp::create(
        outside, loc, result.type().getShape(), result.type().getElementType());
    auto loop = scf::ForOp::create(outside, loc, zero, end, one, empty);
    made = {number};
    mapping.map(number, loop.getInductionVar());
    outside.setInsertionPoint(loop);
    OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
    Value row = clone(result.value, &inside);
    row = result.insert(inside, row, loop.getRegionIterArg(0),
                        loop.getInductionVar());
    scf::YieldOp::create(inside, loc, row);
    outside.setInsertionPointAfter(loop);
    for (Value one : made)
      mapping.erase(one);
    made.clear();
    return loop.getResult(0);
  }

  WeightAnalysis &weights;
  OpBuilder outside;
  IRMapping mapping;
  SmallVector<Value> made; ///< keys of `mapping` for the loop at hand
};

struct HoistInit : public impl::HoistInitBase<HoistInit> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto main = symbols.lookup<func::FuncOp>("main");
    if (!main)
      return markAllAnalysesPreserved();
    WeightAnalysis weights;
    SmallVector<Result> results = findResults(main, weights);
    for (Operation *op : weights.onlySpread())
      op->emitRemark("weights that are only spread stay with the loop: a list "
                     "of them for all its iterations would take more than 1 "
                     "MiB");
    if (results.empty())
      return markAllAnalysesPreserved();
    if (symbols.lookup("init")) {
      main.emitError("@init exists already: weights are hoisted once");
      return signalPassFailure();
    }
    makeInit(main, results, weights, symbols);
    replace(main, results, symbols);
  }

  /// Known values that something unknown uses.
  static SmallVector<Result> findResults(func::FuncOp main,
                                         WeightAnalysis &weights) {
    SetVector<Value> results;
    main.walk([&](Operation *op) {
      if (op == main || isa<linalg::LinalgOp>(op->getParentOp()))
        return;
      if (op->getNumResults() > 0 &&
          llvm::all_of(op->getResults(),
                       [&](Value result) { return weights.isWeight(result); }))
        return;
      auto visit = [&](Value value) {
        auto type = dyn_cast<RankedTensorType>(value.getType());
        if (type && !type.getEncoding() && weights.isWeight(value) &&
            !isFree(value))
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
    SmallVector<Result> found;
    Alike alike(weights);
    for (Value value : results) {
      unsigned number = alike.numberOf(value, found.size());
      if (number == found.size())
        found.push_back({value, weights.of(value).loop, {}});
      else
        found[number].alike.push_back(value);
    }
    return found;
  }

  static void makeInit(func::FuncOp main, ArrayRef<Result> results,
                       WeightAnalysis &weights, SymbolTable &symbols) {
    OpBuilder builder(main);
    SmallVector<Type> types;
    for (const Result &result : results)
      types.push_back(result.type());
    auto init = func::FuncOp::create(builder, main.getLoc(), "init",
                                     builder.getFunctionType({}, types));
    init.setPrivate();
    Copier copier(weights, init.addEntryBlock());
    SmallVector<Value> made;
    for (const Result &result : results)
      made.push_back(copier.copy(result));
    func::ReturnOp::create(copier.builder(), main.getLoc(), made);
    symbols.insert(init);
  }

  /// Results of @init are weights of their own.
  static void replace(func::FuncOp main, ArrayRef<Result> results,
                      SymbolTable &symbols) {
    OpBuilder builder(main);
    auto init = symbols.lookup<func::FuncOp>("init");
    for (auto [number, result] : llvm::enumerate(results)) {
      Value value = result.value;
      RankedTensorType type = result.type();
      auto global = ml_program::GlobalOp::create(
          builder, value.getLoc(), ("p_" + Twine(number)).str(), type,
          /*is_mutable=*/false,
          ml_program::ExternAttr::get(type.getContext(), type),
          builder.getStringAttr("private"));
      StringAttr name = symbols.insert(global);
      init.setResultAttr(number, tile::decisions::kGlobal, name);
      SmallVector<Value> values = {value};
      llvm::append_range(values, result.alike);
      for (Value one : values) {
        OpBuilder at(one.getDefiningOp());
        Value loaded = ml_program::GlobalLoadConstOp::create(
            at, one.getLoc(), type, FlatSymbolRefAttr::get(name));
        if (result.loop)
          loaded = result.rowOf(at, loaded, result.number());
        one.replaceAllUsesWith(loaded);
      }
    }
    main.walk([](Block *block) {
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (isOpTriviallyDead(&op))
          op.erase();
    });
  }
};

} // namespace
} // namespace tilewright
