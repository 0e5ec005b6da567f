//===- JoinSoftmaxBlocks.cpp - a softmax over all blocks at once ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/JoinedBlocks.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/SoftmaxFold.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace tilewright {
#define GEN_PASS_DEF_JOINSOFTMAXBLOCKS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

namespace {
using Kind = utils::IteratorType;

/// Writes the last states of a fold as a softmax over all blocks.
class Writer {
public:
  Writer(ImplicitLocOpBuilder &b, FoldOp fold, const SoftmaxFold &softmax)
      : b(b), fold(fold), softmax(softmax), blocks(b, fold, fold.getLength()) {}

  /// Values of the results, null for those that nobody reads; none where a
  /// tensor cannot be joined.
  std::optional<SmallVector<Value>> write();

private:
  bool prepare();
  Value result(unsigned number);
  Value reduce(Value tensor, double start, bool isMaximum);
  Value exponentials();
  Value weighted(const SoftmaxState &state, RankedTensorType type);
  Value rowSums();
  Value divided(Value sums, const SoftmaxState &state);
  Value shaped(Value rows, Type type);
  AffineMap rowsOf(int64_t rank) const;

  ImplicitLocOpBuilder &b;
  FoldOp fold;
  const SoftmaxFold &softmax;
  JoinedBlocks blocks;
  int64_t along = 0; ///< which dimension of the scores is joined
  Value scores, maximum, powers, sums;
};
} // namespace

/// The dimensions of the scores but the joined one.
AffineMap Writer::rowsOf(int64_t rank) const {
  return b.getMultiDimIdentityMap(rank).dropResult(along);
}

static Value filled(ImplicitLocOpBuilder &b, RankedTensorType type,
                    double value) {
  Value scalar = arith::ConstantOp::create(
      b, b.getFloatAttr(type.getElementType(), value));
  Value empty =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  return linalg::FillOp::create(b, scalar, empty).getResult(0);
}

/// The joined tensor reduced along the blocks.
Value Writer::reduce(Value tensor, double start, bool isMaximum) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t rank = type.getRank();
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + along);
  SmallVector<Kind> kinds(rank, Kind::parallel);
  kinds[along] = Kind::reduction;
  Value into = filled(b, type.clone(shape), start);
  auto element = [&](OpBuilder &inner, Location loc, ValueRange args) {
    Value next =
        isMaximum
            ? arith::MaximumFOp::create(inner, loc, args[1], args[0],
                                        arith::FastMathFlags::nsz)
                  .getResult()
            : arith::AddFOp::create(inner, loc, args[1], args[0]).getResult();
    linalg::YieldOp::create(inner, loc, next);
  };
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank), rowsOf(rank)};
  return linalg::GenericOp::create(b, into.getType(), tensor, into, maps, kinds,
                                   element)
      .getResult(0);
}

/// exp(scale * (x - m)), by the exponential that needs no factor if there is
/// one.
static Value power(OpBuilder &b, Location loc, Value difference, double scale) {
  if (scale == llvm::numbers::ln2)
    return math::Exp2Op::create(b, loc, difference);
  if (scale != 1) {
    Value factor = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(difference.getType(), scale));
    difference = arith::MulFOp::create(b, loc, difference, factor);
  }
  return math::ExpOp::create(b, loc, difference);
}

Value Writer::exponentials() {
  auto type = cast<RankedTensorType>(scores.getType());
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  Value into =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  SmallVector<Kind> kinds(type.getRank(), Kind::parallel);
  return linalg::GenericOp::create(
             b, type, ValueRange{scores, maximum}, into,
             ArrayRef<AffineMap>{all, rowsOf(type.getRank()), all}, kinds,
             [&](OpBuilder &inner, Location loc, ValueRange args) {
               Value difference =
                   arith::SubFOp::create(inner, loc, args[0], args[1]);
               linalg::YieldOp::create(
                   inner, loc, power(inner, loc, difference, softmax.scale));
             })
      .getResult(0);
}

/// A map to a tensor at these indices, of a nest over a state's dimensions and
/// what is joined. Dimensions of size one take loops of that size which no
/// other dimension of the tensor has.
static AffineMap mapTo(ImplicitLocOpBuilder &b, const Indices &at,
                       ArrayRef<int64_t> loops) {
  int64_t bound = loops.size();
  SmallVector<AffineExpr> exprs;
  llvm::SmallDenseSet<int64_t> taken(at.begin(), at.end());
  for (int64_t index : at) {
    if (index == kBound)
      index = bound;
    for (int64_t loop = 0; index == kUnit && loop < bound; ++loop)
      if (loops[loop] == 1 && taken.insert(loop).second)
        index = loop;
    exprs.push_back(index == kUnit ? b.getAffineConstantExpr(0)
                                   : b.getAffineDimExpr(index));
  }
  return AffineMap::get(bound + 1, 0, exprs, b.getContext());
}

/// The product of the exponentials with the joined weights.
Value Writer::weighted(const SoftmaxState &state, RankedTensorType type) {
  int64_t dim =
      llvm::find(state.weighted, int64_t(kBound)) - state.weighted.begin();
  Value weights = blocks.join(state.weights, dim);
  if (!weights)
    return {};
  Type held = cast<RankedTensorType>(weights.getType()).getElementType();
  if (held != type.getElementType() &&
      held.getIntOrFloatBitWidth() >=
          type.getElementType().getIntOrFloatBitWidth())
    return {};
  int64_t rank = type.getRank();
  SmallVector<AffineMap> maps = {
      mapTo(b, state.scores, type.getShape()),
      mapTo(b, state.weighted, type.getShape()),
      AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext())
          .dropResult(rank)};
  SmallVector<Kind> kinds(rank, Kind::parallel);
  kinds.push_back(Kind::reduction);
  Value into = filled(b, type, 0);
  return linalg::GenericOp::create(
             b, type, ValueRange{powers, weights}, into, maps, kinds,
             [](OpBuilder &inner, Location loc, ValueRange args) {
               Value weight = args[1];
               if (weight.getType() != args[0].getType())
                 weight = arith::ExtFOp::create(inner, loc, args[0].getType(),
                                                weight);
               Value term = arith::MulFOp::create(inner, loc, args[0], weight);
               Value sum = arith::AddFOp::create(inner, loc, args[2], term);
               linalg::YieldOp::create(inner, loc, sum);
             })
      .getResult(0);
}

Value Writer::rowSums() {
  if (!sums)
    sums = reduce(powers, 0, /*isMaximum=*/false);
  return sums;
}

/// Sums over those of the rows.
Value Writer::divided(Value sums, const SoftmaxState &state) {
  auto type = cast<RankedTensorType>(sums.getType());
  Indices rows = state.scores;
  rows.erase(rows.begin() + along);
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  AffineMap map = mapTo(b, rows, type.getShape());
  map = AffineMap::get(type.getRank(), 0, map.getResults(), b.getContext());
  Value into =
      tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  SmallVector<Kind> kinds(type.getRank(), Kind::parallel);
  return linalg::GenericOp::create(
             b, type, ValueRange{sums, rowSums()}, into,
             ArrayRef<AffineMap>{all, map, all}, kinds,
             [](OpBuilder &inner, Location loc, ValueRange args) {
               Value quotient =
                   arith::DivFOp::create(inner, loc, args[0], args[1]);
               linalg::YieldOp::create(inner, loc, quotient);
             })
      .getResult(0);
}

/// Rows in the shape of a state, which has them in the same order.
Value Writer::shaped(Value rows, Type type) {
  auto from = cast<RankedTensorType>(rows.getType());
  auto to = cast<RankedTensorType>(type);
  if (from == to)
    return rows;
  auto groups = getReassociationIndicesForReshape(from, to);
  if (!groups)
    return {};
  if (from.getRank() < to.getRank())
    return tensor::ExpandShapeOp::create(b, to, rows, *groups);
  return tensor::CollapseShapeOp::create(b, to, rows, *groups);
}

Value Writer::result(unsigned number) {
  const SoftmaxState &state = softmax.states[number];
  auto type = cast<RankedTensorType>(fold.getResult(number).getType());
  if (state.kind == SoftmaxState::Maximum)
    return shaped(maximum, type);
  if (!state.weights)
    return state.kind == SoftmaxState::Sum ? shaped(rowSums(), type) : Value();
  Value sums = weighted(state, type);
  if (!sums || state.kind == SoftmaxState::Sum)
    return sums;
  return softmax.states[*state.under].weights ? Value() : divided(sums, state);
}

/// Rows of the scores must be those of each state, in one order.
static bool isInOrder(const SoftmaxState &state) {
  Indices rows;
  for (int64_t index : state.scores)
    if (index >= 0)
      rows.push_back(index);
  return llvm::is_sorted(rows);
}

bool Writer::prepare() {
  along = llvm::find(softmax.states.front().scores, int64_t(kBound)) -
          softmax.states.front().scores.begin();
  Type element =
      cast<RankedTensorType>(softmax.scores.getType()).getElementType();
  for (auto [state, type] :
       llvm::zip_equal(softmax.states, fold.getResultTypes()))
    if (!isInOrder(state) ||
        cast<RankedTensorType>(type).getElementType() != element)
      return false;
  scores = blocks.join(softmax.scores, along);
  if (!scores)
    return false;
  double lowest = -std::numeric_limits<double>::infinity();
  maximum = reduce(scores, lowest, /*isMaximum=*/true);
  powers = exponentials();
  return true;
}

std::optional<SmallVector<Value>> Writer::write() {
  if (!prepare())
    return std::nullopt;
  SmallVector<Value> results;
  for (auto [number, old] : llvm::enumerate(fold.getResults())) {
    results.push_back(old.use_empty() ? Value() : result(number));
    if (!old.use_empty() && !results.back())
      return std::nullopt;
  }
  return results;
}

namespace {
/// Remembers what is made, to take it back.
struct Made : OpBuilder::Listener {
  SmallVector<Operation *> ops;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (!isa<linalg::YieldOp>(op) && op->getBlock() == block)
      ops.push_back(op);
  }
  Block *block;
};

struct JoinSoftmaxBlocks
    : tilewright::impl::JoinSoftmaxBlocksBase<JoinSoftmaxBlocks> {
  void runOnOperation() override {
    SmallVector<FoldOp> folds;
    getOperation()->walk([&](FoldOp fold) { folds.push_back(fold); });
    for (FoldOp fold : folds)
      join(fold);
  }

private:
  static void join(FoldOp fold) {
    if (!ArrayType::isKnown(fold.getLength()) || fold.getLength() == 0)
      return;
    std::string why;
    std::optional<SoftmaxFold> softmax = asSoftmax(fold, why);
    std::optional<SmallVector<Value>> results;
    if (softmax)
      results = written(fold, *softmax);
    if (!results) {
      if (softmax)
        why = "scores or weights are not made row by row of its elements";
      if (!why.empty())
        fold.emitRemark("a running maximum in a loop over blocks, not one "
                        "softmax over all of them: ")
            << why;
      return;
    }
    for (auto [old, now] : llvm::zip_equal(fold.getResults(), *results))
      if (now)
        old.replaceAllUsesWith(now);
    fold.erase();
  }

  static std::optional<SmallVector<Value>> written(FoldOp fold,
                                                   const SoftmaxFold &softmax) {
    Made made;
    made.block = fold->getBlock();
    ImplicitLocOpBuilder b(fold.getLoc(), fold);
    b.setListener(&made);
    auto results = Writer(b, fold, softmax).write();
    if (!results)
      for (Operation *op : llvm::reverse(made.ops))
        op->erase();
    return results;
  }
};
} // namespace
