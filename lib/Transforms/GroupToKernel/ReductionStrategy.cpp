//===- ReductionStrategy.cpp - accumulators of a reduction ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tilewright {

static std::optional<tile::ReduceKind> kindOf(Operation *op) {
  using K = tile::ReduceKind;
  return TypeSwitch<Operation *, std::optional<K>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return K::add; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return K::mul; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>([](auto) { return K::max; })
      .Case<arith::MinimumFOp, arith::MinSIOp>([](auto) { return K::min; })
      .Case<arith::MaxNumFOp>([](auto) { return K::maxnum; })
      .Case<arith::MinNumFOp>([](auto) { return K::minnum; })
      .Case<arith::MaxUIOp>([](auto) { return K::umax; })
      .Case<arith::MinUIOp>([](auto) { return K::umin; })
      .Case<arith::AndIOp>([](auto) { return K::and_; })
      .Case<arith::OrIOp>([](auto) { return K::or_; })
      .Case<arith::XOrIOp>([](auto) { return K::xor_; })
      .Default([](auto) { return std::nullopt; });
}

Value combine(OpBuilder &b, Operation *combiner, Value acc, Value term) {
  Value result = createLike(b, combiner, {acc, term}, acc.getType());
  // Which of two zeros a maximum is depends on the order of combination, which
  // is ours to choose; to say so saves four instructions each on x86.
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(combiner)) {
    auto op = cast<arith::ArithFastMathInterface>(result.getDefiningOp());
    auto flags = op.getFastMathFlagsAttr().getValue();
    op->setAttr(op.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(
                    b.getContext(), flags | arith::FastMathFlags::nsz));
  }
  return result;
}

/// Neutral element of a combiner, by arith's own table.
static FailureOr<TypedAttr> neutral(Operation *combiner) {
  std::optional<TypedAttr> attr = arith::getNeutralElement(combiner);
  if (!attr)
    return combiner->emitError("has no neutral element to start from");
  return *attr;
}

/// Whether an accumulator has nothing in it yet, so that the term takes its
/// place.
static bool isNeutral(Operation *combiner, Value acc) {
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combiner);
  if (auto same = acc.getDefiningOp<tile::BroadcastOp>())
    acc = same.getSource();
  DenseElementsAttr elements;
  return neutral && matchPattern(acc, m_Constant(&elements)) &&
         elements.isSplat() && elements.getSplatValue<Attribute>() == *neutral;
}

/// What a reduction starts from, at the current point.
FailureOr<Value> ReductionStrategy::evaluateInit(linalg::GenericOp op) {
  OpOperand *init = op.getDpsInitOperand(0);
  return bodies.evaluate(init->get(), compose(op.getMatchingIndexingMap(init),
                                              nest.bindings.lookup(op)));
}

/// What an accumulator starts from: the initial value or, where the reduction
/// runs in blocks, what the result holds since the block before.
FailureOr<Value> ReductionStrategy::startOf(Reduction &reduction,
                                            bool continues) {
  if (!continues)
    return evaluateInit(reduction.op);
  tile::GroupOp group = nest.group;
  auto result = cast<OpResult>(reduction.op->getResult(0));
  return memory.load(reduction.op.getLoc(), group->getResult(0),
                     nest.resultAccess(result));
}

/// Stores what the reduction starts from, for its first block.
LogicalResult ReductionStrategy::storeInit() {
  tile::GroupOp group = nest.group;
  linalg::GenericOp op = nest.root();
  FailureOr<Value> init = evaluateInit(op);
  if (failed(init))
    return failure();
  return memory.store(op.getLoc(), point.broadcast(*init, point.tileShape()),
                      point.storage.at(group->getResult(0)),
                      nest.resultAccess(cast<OpResult>(op->getResult(0))));
}

/// Allocates the accumulators: one per shape that a tile of the reduction can
/// take (whole and remainder, per tiled reduced dimension).
LogicalResult ReductionStrategy::initialize(Reduction &reduction,
                                            bool continues,
                                            SmallVectorImpl<Value> &accs) {
  linalg::GenericOp op = reduction.op;
  SmallVector<SmallVector<int64_t>> shapes = {{1, 1}};
  for (unsigned axis : {0, 1}) {
    SmallVector<int64_t> choices = {point.axisSize(axis)};
    if (int dim = point.reducedDim(axis); dim >= 0)
      choices = point.tileSizes(dim);
    SmallVector<SmallVector<int64_t>> next;
    for (int64_t choice : choices)
      for (SmallVector<int64_t> shape : shapes) {
        shape[axis] = choice;
        next.push_back(shape);
      }
    shapes = std::move(next);
  }
  bool inTile = point.reducedDim(0) >= 0 || point.reducedDim(1) >= 0;
  for (const SmallVector<int64_t> &shape : shapes) {
    if (point.hasBlocks()) {
      reduction.variants.emplace_back(shape, accs.size());
      accs.push_back(zeroBlocks(op, shape));
      continue;
    }
    FailureOr<Value> start = failure();
    if (inTile) {
      auto zero = neutral(reduction.combiner);
      if (failed(zero))
        return failure();
      start = point.constant(op.getLoc(), *zero);
    } else {
      start = startOf(reduction, continues);
    }
    if (failed(start))
      return failure();
    reduction.variants.emplace_back(shape, accs.size());
    accs.push_back(point.broadcast(*start, shape));
  }
  return success();
}

/// acc = acc + a * b on tiles: a tile product where a has no lanes of its own
/// and b no rows, element by element otherwise.
Value multiplyAdd(OpBuilder &b, Location loc, Value a, Value c, Value acc,
                  function_ref<Value(Value)> widen) {
  auto shape = [](Value v) {
    return cast<tile::TileType>(v.getType()).getShape();
  };
  auto isProduct = [&](Value lhs, Value rhs) {
    return shape(lhs)[1] == 1 && shape(rhs)[0] == 1 &&
           shape(lhs)[0] == shape(acc)[0] && shape(rhs)[1] == shape(acc)[1];
  };
  if (isProduct(a, c))
    return tile::MmaOp::create(b, loc, a, c, acc);
  if (isProduct(c, a))
    return tile::MmaOp::create(b, loc, c, a, acc);
  if (!isa<FloatType>(getElementTypeOrSelf(acc.getType())))
    return arith::AddIOp::create(
        b, loc, acc, arith::MulIOp::create(b, loc, widen(a), widen(c)));
  return math::FmaOp::create(b, loc, widen(a), widen(c), acc);
}

LogicalResult ReductionStrategy::accumulate(Reduction &reduction,
                                            MutableArrayRef<Value> accs) {
  linalg::GenericOp op = reduction.op;
  const Access binding = nest.bindings.lookup(op);
  SmallVector<int64_t> shape = point.tileShape();
  auto variant = llvm::find_if(reduction.variants, [&](const auto &entry) {
    return entry.first == shape;
  });
  assert(variant != reduction.variants.end() && "a tile of unplanned shape");
  Value &acc = accs[variant->second];
  if (point.depthDim >= 0) {
    FailureOr<Value> sum =
        nest.isPadded()
            ? tileProduct(op, reduction.combiner, reduction.term, acc)
            : depthProduct(op, reduction.combiner, reduction.term, acc);
    if (succeeded(sum))
      acc = *sum;
    return sum;
  }
  BodyEvaluator::Scope scope;
  Operation *product = reduction.term.getDefiningOp();
  bool floats = isa<arith::AddFOp>(reduction.combiner) &&
                isa_and_nonnull<arith::MulFOp>(product);
  bool integers = isa<arith::AddIOp>(reduction.combiner) &&
                  isa_and_nonnull<arith::MulIOp>(product);
  if ((floats || integers) && !endsInTile()) {
    auto lhs = bodies.evaluateBody(op, binding, product->getOperand(0), scope);
    auto rhs = bodies.evaluateBody(op, binding, product->getOperand(1), scope);
    if (failed(lhs) || failed(rhs))
      return failure();
    acc = multiplyAdd(builder, op.getLoc(), *lhs, *rhs, acc,
                      [&](Value v) { return point.broadcast(v, shape); });
    return success();
  }
  FailureOr<Value> term =
      bodies.evaluateBody(op, binding, reduction.term, scope);
  if (failed(term))
    return failure();
  Value added = point.broadcast(*term, shape);
  if (endsInTile()) {
    auto filler = neutral(reduction.combiner);
    if (failed(filler))
      return failure();
    added = maskReduced(added, *filler);
  }
  acc = nest.isPadded() && isNeutral(reduction.combiner, acc)
            ? added
            : combine(builder, reduction.combiner, acc, added);
  return success();
}

/// Combines the accumulators of a reduction over its tiled dimensions and
/// with the initial value.
FailureOr<Value> ReductionStrategy::finish(Reduction &reduction,
                                           ArrayRef<Value> accs) {
  SmallVector<int64_t> dims;
  for (unsigned axis : {0, 1})
    if (point.reducedDim(axis) >= 0)
      dims.push_back(axis);
  linalg::GenericOp op = reduction.op;
  if (dims.empty() && point.hasBlocks())
    return finishBlocks(op, reduction.combiner,
                        accs[reduction.variants.front().second]);
  if (dims.empty())
    return accs[reduction.variants.front().second];
  Value total;
  for (auto &[shape, number] : reduction.variants) {
    SmallVector<int64_t> reducedShape = shape;
    for (int64_t axis : dims)
      reducedShape[axis] = 1;
    Value part = accs[number];
    if (reducedShape != shape)
      part = tile::ReduceOp::create(builder, op.getLoc(), reduction.kind, part,
                                    dims);
    total = total ? combine(builder, reduction.combiner, total, part) : part;
  }
  auto zero = neutral(reduction.combiner);
  TypedAttr scalar;
  auto fill = op.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
  if (succeeded(zero) && fill &&
      matchPattern(fill.getInputs()[0], m_Constant(&scalar)) && scalar == *zero)
    return total;
  FailureOr<Value> start = evaluateInit(op);
  if (failed(start))
    return failure();
  return combine(
      builder, reduction.combiner,
      point.broadcast(*start, cast<tile::TileType>(total.getType()).getShape()),
      total);
}

/// The parts of `combiner(accumulator, term)`, which a reduction must be.
FailureOr<ReductionStrategy::Reduction>
ReductionStrategy::analyze(linalg::GenericOp op) {
  Reduction reduction;
  reduction.op = op;
  if (op.getNumDpsInits() != 1)
    return op.emitError("reduces into several results; give each reduction "
                        "an operation of its own");
  Value accumulator = op.getRegionOutputArgs()[0];
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  reduction.combiner = yielded.getDefiningOp();
  auto kind = reduction.combiner ? kindOf(reduction.combiner) : std::nullopt;
  if (!kind)
    return op.emitError("yields from its reduction something else than "
                        "combiner(accumulator, term)");
  reduction.kind = *kind;
  Value lhs = reduction.combiner->getOperand(0);
  Value rhs = reduction.combiner->getOperand(1);
  if ((lhs == accumulator) == (rhs == accumulator))
    return op.emitError("combines its accumulator other than once");
  reduction.term = lhs == accumulator ? rhs : lhs;
  return reduction;
}

LogicalResult ReductionStrategy::emit(bool continues,
                                      function_ref<LogicalResult()> perStep) {
  SmallVector<Reduction> reductions;
  SmallVector<Value> accs;
  for (linalg::GenericOp op : nest.roots) {
    FailureOr<Reduction> reduction = analyze(op);
    if (failed(reduction) || failed(findBlockSums(*reduction)) ||
        failed(initialize(*reduction, continues, accs)))
      return failure();
    reductions.push_back(std::move(*reduction));
  }
  auto step = [&](SmallVector<Value> accs) -> FailureOr<SmallVector<Value>> {
    bodies.enter();
    for (Reduction &reduction : reductions)
      if (failed(accumulate(reduction, accs)))
        return failure();
    if (failed(perStep()))
      return failure();
    bodies.leave();
    return accs;
  };
  auto block = [&](SmallVector<Value> accs) {
    return emitBlockSums(std::move(accs));
  };
  // Sizes of tiled reduced dimensions change in the loops; those of parallel
  // ones are the point's, also after them.
  unsigned all = point.reductionOrder.size();
  auto after = blockSums
                   ? schedule.overReduced(0, blockSums->level, accs, block)
                   : schedule.overReduced(0, all, accs, step);
  if (failed(after))
    return failure();
  for (Reduction &reduction : reductions) {
    FailureOr<Value> total = finish(reduction, *after);
    if (failed(total))
      return failure();
    auto result = cast<OpResult>(reduction.op->getResult(0));
    bodies.remember(result, nest.resultAccess(result), *total);
  }
  return success();
}

} // namespace tilewright
