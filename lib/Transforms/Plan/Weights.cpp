//===- Weights.cpp - what is known at compile time ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/Weights.h"

#include "dialects/SparseTile/SparseTile.h"
#include "lib/Analysis/UsedValues.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::isSource(Operation *op) {
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

/// The loop whose number this is, where it counts rows of a list:
/// `for %i = 0 to n step 1`.
static scf::ForOp countingLoop(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || argument != loop.getInductionVar())
    return {};
  bool counts = getConstantIntValue(loop.getLowerBound()) == 0 &&
                getConstantIntValue(loop.getStep()) == 1 &&
                getConstantIntValue(loop.getUpperBound()).value_or(0) > 0;
  return counts ? loop : scf::ForOp();
}

scf::ForOp tilewright::loopOfRow(Operation *op) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || slice.getOffsets().size() != 1 || !slice.getSizes().empty() ||
      !slice.getStrides().empty())
    return {};
  scf::ForOp loop = countingLoop(slice.getOffsets().front());
  size_t dim = llvm::find_if(slice.getStaticOffsets(), ShapedType::isDynamic) -
               slice.getStaticOffsets().begin();
  bool isRow = loop && slice.getStaticSizes()[dim] == 1 &&
               *getConstantIntValue(loop.getUpperBound()) <=
                   slice.getSourceType().getDimSize(dim);
  return isRow ? loop : scf::ForOp();
}

/// Bytes that what is only spread over the iterations of a loop may take.
static constexpr int64_t kMostSpread = 1 << 20;

static int64_t bytesOf(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t bits =
      element.isIntOrFloat() ? int64_t(element.getIntOrFloatBitWidth()) : 64;
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}

bool tilewright::spreads(Operation *op, scf::ForOp loop) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !loop || op->getNumResults() != 1)
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return false;
  int64_t read = 0;
  for (Value input : linalgOp.getDpsInputs())
    if (auto own = dyn_cast<RankedTensorType>(input.getType()))
      read +=
          own.hasStaticShape() ? own.getNumElements() : type.getNumElements();
  int64_t trips = *getConstantIntValue(loop.getUpperBound());
  return type.getNumElements() > 2 * read &&
         bytesOf(type) > kMostSpread / trips;
}

Knowledge WeightAnalysis::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isMemoryEffectFree(op))
    return {};
  if (isSource(op) && op->getNumOperands() == 0)
    return {true, {}};
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() ||
      !(isa<linalg::LinalgOp, linalg::PackOp>(op) || isPacking(op) ||
        isa<tensor::TensorDialect>(op->getDialect())))
    return {};
  scf::ForOp row = loopOfRow(op), all = row;
  for (Value used : getUsedValues(op)) {
    if (row && used == row.getInductionVar())
      continue;
    Knowledge one = of(used);
    if (!one.isKnown || (one.loop && all && one.loop != all))
      return {}; // a table of two loops would be larger than the weights
    all = one.loop ? one.loop : all;
  }
  if (spreads(op, all)) {
    spread.push_back(op);
    return {};
  }
  return {true, all};
}

Knowledge WeightAnalysis::of(Value value) {
  auto [it, isNew] = known.try_emplace(value);
  if (!isNew)
    return it->second;
  Knowledge found = compute(value);
  return known[value] = found;
}

bool WeightAnalysis::hasWeight(Value value) {
  auto [it, isNew] = weights.try_emplace(value, false);
  Operation *op = value.getDefiningOp();
  if (!isNew || !op)
    return it->second;
  DenseElementsAttr elements;
  bool found =
      isa<ml_program::GlobalLoadConstOp>(op) ||
      (matchPattern(value, m_Constant(&elements)) && !elements.isSplat());
  found = found || llvm::any_of(getUsedValues(op),
                                [&](Value v) { return hasWeight(v); });
  return weights[value] = found;
}

bool tilewright::dependsOnWeightsOnly(Value value) {
  return WeightAnalysis().isWeight(value);
}
