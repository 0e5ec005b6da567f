//===- NestReduction.cpp - accumulators and reduction loops ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An accumulator is a whole tile, carried by the loops: lanes of a reduced
// dimension are only combined after them. Where the reduced dimension has a
// remainder, the remainder has an accumulator of its own shape. The order of
// the combinations thus depends on the rtile only, never on threads.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/NestEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tilewright {

/// One reducing operation of the nest.
struct NestEmitter::Reduction {
  linalg::GenericOp op;
  Operation *combiner = nullptr;
  /// The body's value that is combined into the accumulator.
  Value term;
  tile::ReduceKind kind;
  /// Shape of each accumulator and its number among all of the nest's.
  SmallVector<std::pair<SmallVector<int64_t>, unsigned>> variants;
};

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
FailureOr<Value> NestEmitter::evaluateInit(linalg::GenericOp op) {
  OpOperand *init = op.getDpsInitOperand(0);
  return evaluate(init->get(), compose(op.getMatchingIndexingMap(init),
                                       nest.bindings.lookup(op)));
}

/// What an accumulator starts from: the initial value or, where the reduction
/// runs in blocks, what the result holds since the block before.
FailureOr<Value> NestEmitter::startOf(Reduction &reduction) {
  if (part != Part::Block)
    return evaluateInit(reduction.op);
  tile::GroupOp group = nest.group;
  auto result = cast<OpResult>(reduction.op->getResult(0));
  return load(reduction.op.getLoc(), group->getResult(0),
              nest.resultAccess(result));
}

/// Stores what the reduction starts from, for its first block.
LogicalResult NestEmitter::storeInit() {
  tile::GroupOp group = nest.group;
  linalg::GenericOp op = nest.root();
  FailureOr<Value> init = evaluateInit(op);
  if (failed(init))
    return failure();
  return store(op.getLoc(), broadcast(*init, tileShape()),
               storage.at(group->getResult(0)),
               nest.resultAccess(cast<OpResult>(op->getResult(0))));
}

/// Allocates the accumulators: one per shape that a tile of the reduction can
/// take (whole and remainder, per tiled reduced dimension).
LogicalResult NestEmitter::initialize(Reduction &reduction,
                                      SmallVectorImpl<Value> &accs) {
  linalg::GenericOp op = reduction.op;
  SmallVector<SmallVector<int64_t>> shapes = {{1, 1}};
  for (unsigned axis : {0, 1}) {
    SmallVector<int64_t> choices = {axisSize(axis)};
    if (int dim = reducedDim(axis); dim >= 0)
      choices = tileSizes(dim);
    SmallVector<SmallVector<int64_t>> next;
    for (int64_t choice : choices)
      for (SmallVector<int64_t> shape : shapes) {
        shape[axis] = choice;
        next.push_back(shape);
      }
    shapes = std::move(next);
  }
  bool inTile = reducedDim(0) >= 0 || reducedDim(1) >= 0;
  for (const SmallVector<int64_t> &shape : shapes) {
    if (hasBlocks()) {
      reduction.variants.emplace_back(shape, accs.size());
      accs.push_back(zeroBlocks(op, shape));
      continue;
    }
    FailureOr<Value> start = failure();
    if (inTile) {
      auto zero = neutral(reduction.combiner);
      if (failed(zero))
        return failure();
      start = constant(op.getLoc(), *zero);
    } else {
      start = startOf(reduction);
    }
    if (failed(start))
      return failure();
    reduction.variants.emplace_back(shape, accs.size());
    accs.push_back(broadcast(*start, shape));
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

LogicalResult NestEmitter::accumulate(Reduction &reduction,
                                      MutableArrayRef<Value> accs) {
  linalg::GenericOp op = reduction.op;
  const Access binding = nest.bindings.lookup(op);
  SmallVector<int64_t> shape = tileShape();
  auto variant = llvm::find_if(reduction.variants, [&](const auto &entry) {
    return entry.first == shape;
  });
  assert(variant != reduction.variants.end() && "a tile of unplanned shape");
  Value &acc = accs[variant->second];
  if (depthDim >= 0) {
    FailureOr<Value> sum =
        nest.isPadded()
            ? tileProduct(op, reduction.combiner, reduction.term, acc)
            : depthProduct(op, reduction.combiner, reduction.term, acc);
    if (succeeded(sum))
      acc = *sum;
    return sum;
  }
  Scope scope;
  Operation *product = reduction.term.getDefiningOp();
  bool floats = isa<arith::AddFOp>(reduction.combiner) &&
                isa_and_nonnull<arith::MulFOp>(product);
  bool integers = isa<arith::AddIOp>(reduction.combiner) &&
                  isa_and_nonnull<arith::MulIOp>(product);
  if ((floats || integers) && !endsInTile()) {
    auto lhs = evaluateBody(op, binding, product->getOperand(0), scope);
    auto rhs = evaluateBody(op, binding, product->getOperand(1), scope);
    if (failed(lhs) || failed(rhs))
      return failure();
    acc = multiplyAdd(builder, op.getLoc(), *lhs, *rhs, acc,
                      [&](Value v) { return broadcast(v, shape); });
    return success();
  }
  FailureOr<Value> term = evaluateBody(op, binding, reduction.term, scope);
  if (failed(term))
    return failure();
  Value added = broadcast(*term, shape);
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

/// The loops over the reduced dimensions from `level` inwards. Returns the
/// accumulators after them.
FailureOr<SmallVector<Value>>
NestEmitter::emitReductionLoops(MutableArrayRef<Reduction> reductions,
                                unsigned level, SmallVector<Value> accs) {
  if (blockSums && !inBlock && level == blockSums->level)
    return emitBlockSums(reductions, std::move(accs));
  if (level == reductionOrder.size()) {
    known.emplace_back();
    if (inBlock) {
      LogicalResult added = addToBlock(accs);
      known.pop_back();
      return failed(added) ? FailureOr<SmallVector<Value>>() : std::move(accs);
    }
    for (Reduction &reduction : reductions)
      if (failed(accumulate(reduction, accs)))
        return failure();
    if (failed(storeResults(/*inReduction=*/true)))
      return failure();
    known.pop_back();
    return accs;
  }
  unsigned dim = reductionOrder[level];
  bool innermost = level + 1 == reductionOrder.size();
  for (Stretch stretch : stretches(dim, innermost ? nest.unroll(dim) : 1)) {
    OpBuilder::InsertionGuard guard(builder);
    scf::ForOp loop;
    Value variable;
    if (stretch.lower) {
      if (failed(clip(dim, stretch)))
        return failure();
      loop = openLoop(stretch, accs);
      accs = SmallVector<Value>(loop.getRegionIterArgs());
      variable = loop.getInductionVar();
      if (innermost) {
        setDim(dim, variable, 0, stretch.tile, stretch.unit);
        prefetch(dim, stretch.tile * stretch.unroll);
      }
    }
    for (int64_t step = 0; step < stretch.unroll; ++step) {
      setDim(dim, variable, stretch.start + step * stretch.tile, stretch.tile,
             stretch.unit);
      auto next = emitReductionLoops(reductions, level + 1, accs);
      if (failed(next))
        return failure();
      accs = *next;
    }
    if (loop) {
      scf::YieldOp::create(builder, loop.getLoc(), accs);
      accs = SmallVector<Value>(loop.getResults());
      // A depth that is one step leaves the steps to the window around it.
      Attribute stages = nest.root()->getAttr(tile::decisions::kStages);
      if (stages && loop.getBody()->getOps<scf::ForOp>().empty())
        loop->setAttr(tile::decisions::kStages, stages);
    }
  }
  return accs;
}

/// Combines the accumulators of a reduction over its tiled dimensions and
/// with the initial value.
FailureOr<Value> NestEmitter::finish(Reduction &reduction,
                                     ArrayRef<Value> accs) {
  SmallVector<int64_t> dims;
  for (unsigned axis : {0, 1})
    if (reducedDim(axis) >= 0)
      dims.push_back(axis);
  linalg::GenericOp op = reduction.op;
  if (dims.empty() && hasBlocks())
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
      broadcast(*start, cast<tile::TileType>(total.getType()).getShape()),
      total);
}

LogicalResult NestEmitter::emitReductions() {
  SmallVector<Reduction> reductions;
  SmallVector<Value> accs;
  for (linalg::GenericOp op : nest.roots) {
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
    if (failed(findBlockSums(op, reduction.combiner, reduction.term)))
      return failure();
    if (failed(initialize(reduction, accs)))
      return failure();
    reductions.push_back(std::move(reduction));
  }
  // Sizes of tiled reduced dimensions change in the loops; those of parallel
  // ones are the point's, also after them.
  auto after = emitReductionLoops(reductions, 0, accs);
  if (failed(after))
    return failure();
  for (Reduction &reduction : reductions) {
    FailureOr<Value> total = finish(reduction, *after);
    if (failed(total))
      return failure();
    auto result = cast<OpResult>(reduction.op->getResult(0));
    remember(result, nest.resultAccess(result), *total);
  }
  return success();
}

} // namespace tilewright
