//===- ShiftedLoops.cpp - loops that may be one ---------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/ShiftedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// factor * d + offset, of a loop's induction variable d.
struct Place {
  int64_t factor, offset;
  bool operator==(const Place &other) const {
    return factor == other.factor && offset == other.offset;
  }
};

/// One row of a tensor: at `place` in dimension `dim`.
struct Row {
  unsigned dim;
  Place place;
};
} // namespace

/// An index as a sum of the induction variable and constants.
static std::optional<Place> placeOf(Value index, Value variable) {
  if (index == variable)
    return Place{1, 0};
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return Place{0, *constant};
  Operation *op = index.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  auto left = placeOf(op->getOperand(0), variable),
       right = placeOf(op->getOperand(1), variable);
  if (!left || !right)
    return std::nullopt;
  int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
  return Place{left->factor + sign * right->factor,
               left->offset + sign * right->offset};
}

/// The row that a slice is, where all other dimensions are whole.
static std::optional<Row> rowOf(OffsetSizeAndStrideOpInterface slice,
                                RankedTensorType whole, Value variable) {
  std::optional<Row> row;
  for (auto [dim, offset, size, stride] :
       llvm::enumerate(slice.getMixedOffsets(), slice.getMixedSizes(),
                       slice.getMixedStrides())) {
    if (!isConstantIntValue(stride, 1))
      return std::nullopt;
    if (isConstantIntValue(offset, 0) &&
        getConstantIntValue(size) == whole.getDimSize(dim))
      continue;
    auto index = dyn_cast<Value>(offset);
    if (row || !index || !isConstantIntValue(size, 1))
      return std::nullopt;
    std::optional<Place> place = placeOf(index, variable);
    // Any two iterations read and write different rows.
    if (!place || place->factor == 0)
      return std::nullopt;
    row = Row{static_cast<unsigned>(dim), *place};
  }
  return row;
}

unsigned tilewright::rowDimOf(tensor::ExtractSliceOp slice, Value variable) {
  return rowOf(slice, slice.getSourceType(), variable)->dim;
}

/// The insertion by which a loop writes a row of its result.
static tensor::InsertSliceOp insertionOf(scf::ForOp loop, unsigned number) {
  auto insert =
      loop.getYieldedValues()[number].getDefiningOp<tensor::InsertSliceOp>();
  return insert && insert.getDest() == loop.getRegionIterArg(number)
             ? insert
             : tensor::InsertSliceOp();
}

/// What a copy copies.
static Value withoutCopies(Value value) {
  while (auto generic = value.getDefiningOp<linalg::GenericOp>()) {
    auto yield = cast<linalg::YieldOp>(generic.getBody()->getTerminator());
    bool copies = generic.getNumDpsInputs() == 1 &&
                  yield.getNumOperands() == 1 &&
                  yield.getOperand(0) == generic.getBody()->getArgument(0) &&
                  llvm::all_of(generic.getIndexingMapsArray(),
                               [](AffineMap map) { return map.isIdentity(); });
    if (!copies)
      break;
    value = generic.getInputs()[0];
  }
  return value;
}

int64_t tilewright::stateWithLastRow(scf::ForOp loop, unsigned number) {
  tensor::InsertSliceOp insert = insertionOf(loop, number);
  if (!insert)
    return -1;
  Value row = withoutCopies(insert.getSource());
  for (auto [state, value] : llvm::enumerate(loop.getYieldedValues()))
    if (value == row)
      return state;
  return -1;
}

scf::ForOp tilewright::loopInFront(scf::ForOp loop) {
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    if (auto front = dyn_cast<scf::ForOp>(op))
      return front;
  return {};
}

int64_t ShiftedLoops::makerOf(Value value) const {
  auto found = llvm::find(loops, value.getDefiningOp());
  return found == loops.end() ? -1 : found - loops.begin();
}

llvm::SetVector<Operation *> ShiftedLoops::dependents() const {
  llvm::SetVector<Operation *> found;
  auto needs = [&](Value value) {
    return makerOf(value) >= 0 || found.contains(value.getDefiningOp());
  };
  for (Operation *op = loops.front()->getNextNode(); op != nullptr;
       op = op->getNextNode()) {
    if (llvm::is_contained(loops, op))
      continue;
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(op->getRegions(), used);
    if (llvm::any_of(op->getOperands(), needs) || llvm::any_of(used, needs))
      found.insert(op);
  }
  return found;
}

namespace {
/// Whether a loop needs of others' results the row of its own iteration only.
class RowReads {
public:
  RowReads(const ShiftedLoops &group, scf::ForOp loop)
      : group(group), loop(loop), dependents(group.dependents()),
        reads(group.getLoops().size(), false) {}

  /// What stands against it; empty: nothing does.
  std::string check() {
    if (llvm::any_of(loop->getOperands(), [&](Value v) { return needs(v); }))
      return "it starts from what they give at their ends";
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(loop->getRegions(), used);
    for (Value value : used)
      for (OpOperand &use : value.getUses())
        if (needs(value) && loop->isProperAncestor(use.getOwner()) &&
            !readsRow(use))
          return "it reads more of their results than the row of an iteration, "
                 "or another one";
    return "";
  }

  bool readsOf(size_t number) const { return reads[number]; }

private:
  bool needs(Value value) const {
    return group.makerOf(value) >= 0 ||
           dependents.contains(value.getDefiningOp());
  }

  bool readsRow(OpOperand &use) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner());
    if (!slice)
      return false;
    std::optional<Row> row =
        rowOf(slice, slice.getSourceType(), loop.getInductionVar());
    return row && followsFrom(slice.getSource(), *row);
  }

  /// Whether a row of a value follows from the same row of loops' results.
  bool followsFrom(Value value, Row row) {
    if (!needs(value))
      return true;
    if (int64_t maker = group.makerOf(value); maker >= 0)
      return isWritten(maker, cast<OpResult>(value), row);
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1)
      return false;
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op.getRegion(), captured);
    if (llvm::any_of(captured, [&](Value read) { return needs(read); }))
      return false;
    auto along = dyn_cast<AffineDimExpr>(
        op.getIndexingMapsArray().back().getResult(row.dim));
    if (!along)
      return false;
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      std::optional<unsigned> dim = map.getResultPosition(along);
      if ((dim ? map.dropResult(*dim) : map)
              .isFunctionOfDim(along.getPosition()))
        return false;
      // What has no dimension for the loop is whole sequences, if it needs any.
      return dim ? cast<ShapedType>(operand.get().getType()).hasStaticShape() &&
                       followsFrom(operand.get(), Row{*dim, row.place})
                 : !needs(operand.get());
    });
  }

  bool isWritten(int64_t maker, OpResult result, Row row) {
    scf::ForOp writer = group.getLoops()[maker];
    tensor::InsertSliceOp insert =
        insertionOf(writer, result.getResultNumber());
    if (!insert)
      return false;
    std::optional<Row> written =
        rowOf(insert, insert.getDestType(), writer.getInductionVar());
    reads[maker] = true;
    return written && written->dim == row.dim && written->place == row.place;
  }

  const ShiftedLoops &group;
  scf::ForOp loop;
  llvm::SetVector<Operation *> dependents;
  SmallVector<bool> reads;
};
} // namespace

static bool isSame(OpFoldResult one, OpFoldResult other) {
  std::optional<int64_t> constant = getConstantIntValue(one);
  return one == other || (constant && constant == getConstantIntValue(other));
}

std::optional<int64_t> ShiftedLoops::leastShift(scf::ForOp loop,
                                                std::string &reason) {
  scf::ForOp last = loops.back();
  auto fails = [&](const Twine &why) {
    reason = why.str();
    return std::nullopt;
  };
  if (loopInFront(loop) != last)
    return fails("another loop stands between");
  if (!isSame(loop.getLowerBound(), last.getLowerBound()) ||
      !isSame(loop.getUpperBound(), last.getUpperBound()) ||
      !isSame(loop.getStep(), last.getStep()))
    return fails("their bounds differ");
  for (Operation *op = loops.front(); op != loop->getNextNode();
       op = op->getNextNode())
    if (!isMemoryEffectFree(op))
      return fails("what stands between has effects");
  RowReads rows(*this, loop);
  if (std::string why = rows.check(); !why.empty())
    return fails(why);
  int64_t shift = 0;
  for (size_t number : llvm::seq(loops.size()))
    if (rows.readsOf(number))
      shift = std::max(shift, 1 - (lags.back() - lags[number]));
  if (!mayLag(loop, shift))
    return fails("they have too few iterations, or an unknown number");
  return shift;
}

bool ShiftedLoops::mayLag(scf::ForOp loop, int64_t shift) const {
  int64_t lag = lags.back() + shift;
  std::optional<APInt> trips = loop.getStaticTripCount();
  bool counted = trips && isConstantIntValue(loop.getLowerBound(), 0) &&
                 isConstantIntValue(loop.getStep(), 1);
  return lag == 0 || (counted && trips->getSExtValue() > lag);
}
