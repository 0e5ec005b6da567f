//===- ApplyOnline.cpp - tile-apply-online --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/OnlineParts.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_APPLYONLINE
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

using Part = OnlinePart;

/// Rewrites one task.
class OnlineTask {
public:
  OnlineTask(tile::GroupOp task, OnlineChain &chain)
      : task(task), chain(chain) {}

  LogicalResult rewrite();

private:
  using Values = SmallVector<Value>;

  /// What the accumulators hold before a block and after it, by what they are
  /// rescaled, and what else the block makes.
  struct State {
    Values carried, next, factors;
    IRMapping mapping;
  };

  Value makeStart(OpBuilder &builder, const Accumulator &acc);
  FailureOr<Values> emitPart(OpBuilder &builder, const Part &part,
                             Values carried);
  LogicalResult cloneNest(OpBuilder &builder, tile::GroupOp nest,
                          const Part &part, State &state);
  FailureOr<Values> inputsOf(OpBuilder &builder, tile::GroupOp nest,
                             const Part &part, const State &state);
  FailureOr<SmallVector<Type>> typesOf(tile::GroupOp nest, const Part &part);
  LogicalResult separateReads(tile::GroupOp nest);
  FailureOr<Value> slice(OpBuilder &builder, BlockArgument argument,
                         Value whole, const Part &part);
  FailureOr<RankedTensorType> cutType(linalg::GenericOp op, Type type,
                                      AffineMap map, int64_t size);
  Values openSizesOf(linalg::GenericOp op, const Part &part, IRMapping &inner);
  FailureOr<Value> startFor(OpBuilder &builder, linalg::GenericOp op,
                            const Part &part, IRMapping &inner);
  LogicalResult cloneOp(OpBuilder &builder, linalg::GenericOp op, Value start,
                        const Part &part, IRMapping &inner);
  Value rescale(OpBuilder &builder, const Accumulator &acc, ValueRange sizes,
                Value value, Value factor);
  Value makeFactor(OpBuilder &builder, const Accumulator &maximum,
                   ValueRange sizes, Value before, Value after);

  tile::GroupOp task;
  OnlineChain &chain;
};

Value OnlineTask::makeStart(OpBuilder &builder, const Accumulator &acc) {
  Location loc = acc.linalgOp().getLoc();
  auto type = cast<RankedTensorType>(acc.result().getType());
  Values sizes = llvm::map_to_vector(openSizes(acc.op), [&](Value size) {
    unsigned number = cast<BlockArgument>(size).getArgNumber();
    return tile::GroupOp(acc.nest)->getOperand(number);
  });
  auto nest =
      tile::GroupOp::create(builder, loc, "register", sizes, TypeRange(type));
  OpBuilder inner = OpBuilder::atBlockEnd(&nest.getBody().front());
  linalg::GenericOp op =
      elementwise(inner, loc, type, nest.getBody().front().getArguments(), {},
                  {}, [&](OpBuilder &nested, ValueRange) -> Value {
                    return arith::ConstantOp::create(nested, loc, startOf(acc));
                  });
  op->setDiscardableAttr(tile::decisions::kRtile, tileOfResult(acc));
  if (Attribute padded = acc.linalgOp()->getAttr(tile::decisions::kPadded))
    op->setDiscardableAttr(tile::decisions::kPadded, padded);
  tile::YieldOp::create(inner, loc, op->getResults());
  return nest->getResult(0);
}

/// `type`, an operand's that `op` accesses by `map`, for a block of the loop.
FailureOr<RankedTensorType> OnlineTask::cutType(linalg::GenericOp op, Type type,
                                                AffineMap map, int64_t size) {
  auto whole = cast<RankedTensorType>(type);
  unsigned loop = OnlineChain::loopOf(op);
  SmallVector<int64_t> shape(whole.getShape());
  for (auto [extent, expr] : llvm::zip_equal(shape, map.getResults())) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    std::optional<int64_t> unit = unitOf(expr);
    if (!unit || chain.block % *unit)
      return op.emitError("accesses a tensor by another function of the loop "
                          "that runs in blocks than the loop itself, or units "
                          "of it that divide a block");
    extent = (size + *unit - 1) / *unit;
  }
  return whole.clone(shape);
}

/// The part of `whole`, an operand of a register group, that a block reads.
FailureOr<Value> OnlineTask::slice(OpBuilder &builder, BlockArgument argument,
                                   Value whole, const Part &part) {
  RankedTensorType cut;
  std::optional<unsigned> along;
  int64_t unit = 1;
  for (OpOperand &use : argument.getUses()) {
    auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!op)
      continue;
    AffineMap map = op.getMatchingIndexingMap(&use);
    auto type = cutType(op, argument.getType(), map, part.size);
    if (failed(type))
      return failure();
    cut = *type;
    for (auto [number, expr] : llvm::enumerate(map.getResults()))
      if (expr.isFunctionOfDim(OnlineChain::loopOf(op))) {
        along = number;
        unit = *unitOf(expr);
      }
  }
  if (!along || (!part.length && cut == whole.getType()))
    return whole;
  Location loc = argument.getLoc();
  SmallVector<OpFoldResult> offsets(cut.getRank(), builder.getIndexAttr(0)),
      strides(cut.getRank(), builder.getIndexAttr(1)),
      sizes = tensor::getMixedSizes(builder, loc, whole);
  AffineExpr offset = builder.getAffineSymbolExpr(0).floorDiv(unit);
  offsets[*along] =
      affine::makeComposedFoldedAffineApply(builder, loc, offset, part.offset);
  sizes[*along] = builder.getIndexAttr(cut.getDimSize(*along));
  if (part.length)
    sizes[*along] = part.length;
  return tensor::ExtractSliceOp::create(builder, loc, cut, whole, offsets,
                                        sizes, strides)
      .getResult();
}

/// Lets operations that read a tensor at different points of the loop read it
/// through operands of their own.
LogicalResult OnlineTask::separateReads(tile::GroupOp nest) {
  Block &body = nest.getBody().front();
  for (unsigned number = 0; number < body.getNumArguments(); ++number) {
    BlockArgument argument = body.getArgument(number);
    RankedTensorType first;
    SmallVector<OpOperand *> others;
    for (OpOperand &use : argument.getUses()) {
      auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!op)
        continue;
      auto type = cutType(op, argument.getType(),
                          op.getMatchingIndexingMap(&use), chain.block);
      if (failed(type))
        return failure();
      if (!first)
        first = *type;
      if (first != *type)
        others.push_back(&use);
    }
    if (others.empty())
      continue;
    nest.getInputsMutable().append(nest.getInputs()[number]);
    Value own = body.addArgument(argument.getType(), argument.getLoc());
    for (OpOperand *use : others)
      use->set(own);
  }
  return success();
}

/// What an accumulator held, relative to the maximum of now.
Value OnlineTask::rescale(OpBuilder &builder, const Accumulator &acc,
                          ValueRange sizes, Value value, Value factor) {
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = acc.linalgOp().getLoc();
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  return elementwise(builder, loc, type, sizes, {value, factor},
                     {identity, acc.factor},
                     [&](OpBuilder &nested, ValueRange arguments) -> Value {
                       return arith::MulFOp::create(nested, loc, arguments[0],
                                                    arguments[1]);
                     })
      ->getResult(0);
}

/// exp(before - after), by which sums are rescaled.
Value OnlineTask::makeFactor(OpBuilder &builder, const Accumulator &maximum,
                             ValueRange sizes, Value before, Value after) {
  Operation *function = maximum.function;
  auto type = cast<RankedTensorType>(before.getType());
  Location loc = maximum.linalgOp().getLoc();
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  return elementwise(
             builder, loc, type, sizes, {before, after}, {identity, identity},
             [&](OpBuilder &nested, ValueRange arguments) -> Value {
               Value difference = arith::SubFOp::create(
                   nested, loc, arguments[0], arguments[1]);
               OperationState state(loc, function->getName());
               state.addOperands(difference);
               state.addTypes(difference.getType());
               state.propertiesAttr = function->getPropertiesAsAttribute();
               return nested.create(state)->getResult(0);
             })
      ->getResult(0);
}

/// The run-time sizes of what `op` makes of a part.
SmallVector<Value> OnlineTask::openSizesOf(linalg::GenericOp op,
                                           const Part &part, IRMapping &inner) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  AffineMap map = op.getIndexingMapsArray().back();
  Values all = openSizes(op, inner), sizes;
  for (auto [number, dim] : llvm::enumerate(map.getResults())) {
    if (!type.isDynamicDim(number))
      continue;
    unsigned at = type.getDynamicDimIndex(number);
    if (!dim.isFunctionOfDim(OnlineChain::loopOf(op)) && at < all.size())
      sizes.push_back(all[at]);
    else if (part.length)
      sizes.push_back(inner.lookup(part.length));
  }
  return sizes;
}

/// What `op` starts from, for one block.
FailureOr<Value> OnlineTask::startFor(OpBuilder &builder, linalg::GenericOp op,
                                      const Part &part, IRMapping &inner) {
  OpOperand &init = op.getDpsInitsMutable()[0];
  auto type = cutType(op, init.get().getType(),
                      op.getMatchingIndexingMap(&init), part.size);
  if (failed(type))
    return failure();
  Values sizes = openSizesOf(op, part, inner);
  if (sizes.size() != static_cast<size_t>(type->getNumDynamicDims()))
    return op.emitError("starts from a tensor whose sizes are not known, and "
                        "cannot run in blocks");
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(), *type, sizes);
  if (!op.payloadUsesValueFromOperand(&init))
    return empty;
  auto fill = init.get().getDefiningOp<linalg::FillOp>();
  if (!fill)
    return op.emitError("starts from a tensor, and cannot run in blocks");
  Value value = inner.lookup(fill.getInputs()[0]);
  return linalg::FillOp::create(builder, op.getLoc(), value, empty)
      .getResult(0);
}

/// An operation of the chain, for one block.
LogicalResult OnlineTask::cloneOp(OpBuilder &builder, linalg::GenericOp op,
                                  Value start, const Part &part,
                                  IRMapping &inner) {
  inner.map(op.getDpsInits()[0], start);
  Operation *copy = builder.clone(*op, inner);
  copy->removeDiscardableAttr(tile::decisions::kOnline);
  if (part.length && copy->hasAttr(tile::decisions::kRtile))
    setBound(copy, OnlineChain::loopOf(op), chain.block);
  if (chain.rest && part.size != chain.block)
    shrinkTile(copy, OnlineChain::loopOf(op), chain.rest);
  copy->getResult(0).setType(start.getType());
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto type = cutType(op, input->get().getType(),
                        op.getMatchingIndexingMap(input), part.size);
    if (failed(type))
      return failure();
    if (copy->getOperand(input->getOperandNumber()).getType() != *type)
      return op.emitError("reads a tensor that is not made in blocks");
  }
  return success();
}

/// The operands of a register group, for one block.
FailureOr<SmallVector<Value>> OnlineTask::inputsOf(OpBuilder &builder,
                                                   tile::GroupOp nest,
                                                   const Part &part,
                                                   const State &state) {
  Values inputs;
  for (auto [argument, operand] : llvm::zip_equal(
           nest.getBody().front().getArguments(), nest.getInputs())) {
    int number = chain.accumulatorOf(operand);
    Value made =
        number >= 0 ? state.next[number] : state.mapping.lookupOrNull(operand);
    if (!made) {
      FailureOr<Value> cut = slice(builder, argument, operand, part);
      if (failed(cut))
        return failure();
      made = *cut;
    }
    inputs.push_back(made);
  }
  return inputs;
}

/// The types of what a register group makes of one block.
FailureOr<SmallVector<Type>> OnlineTask::typesOf(tile::GroupOp nest,
                                                 const Part &part) {
  SmallVector<Type> types;
  for (Value value : nest.getBody().front().getTerminator()->getOperands()) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1)
      return nest.emitError("yields something else than the single result of "
                            "an operation, and cannot run in blocks");
    auto type = cutType(op, value.getType(), op.getIndexingMapsArray().back(),
                        part.size);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  return types;
}

/// A register group of the chain, for one block.
LogicalResult OnlineTask::cloneNest(OpBuilder &builder, tile::GroupOp nest,
                                    const Part &part, State &state) {
  FailureOr<Values> inputs = inputsOf(builder, nest, part, state);
  FailureOr<SmallVector<Type>> types = typesOf(nest, part);
  if (failed(inputs) || failed(types))
    return failure();
  Block &body = nest.getBody().front();
  // Accumulators come in as further operands, with what rescales them. Factors
  // are the first results: they need a maximum before it is overwritten.
  SmallVector<unsigned> own;
  for (auto [number, acc] : llvm::enumerate(chain.accumulators))
    if (acc.nest == nest)
      own.push_back(number);
  for (unsigned number : own) {
    const Accumulator &acc = chain.accumulators[number];
    inputs->push_back(state.carried[number]);
    if (acc.maximum >= 0)
      inputs->push_back(state.factors[acc.maximum]);
    if (acc.isMaximum)
      types->insert(types->begin(), acc.result().getType());
  }
  bool counted = llvm::any_of(body.getOps<linalg::GenericOp>(), counts);
  if (part.length)
    inputs->push_back(part.length);
  if (counted)
    inputs->push_back(
        getValueOrCreateConstantIndexOp(builder, nest.getLoc(), part.offset));
  auto copy = tile::GroupOp::create(builder, nest.getLoc(), nest.getLevel(),
                                    *inputs, *types);
  Block &inside = copy.getBody().front();
  OpBuilder nested = OpBuilder::atBlockEnd(&inside);
  IRMapping inner;
  auto last = inside.getArguments().rbegin();
  Value offset = counted ? Value(*last++) : Value();
  if (part.length)
    inner.map(part.length, *last);
  inner.map(body.getArguments(),
            inside.getArguments().take_front(body.getNumArguments()));
  unsigned extra = body.getNumArguments();
  DenseMap<Operation *, Value> starts;
  Values before(chain.accumulators.size());
  for (unsigned number : own) {
    Accumulator &acc = chain.accumulators[number];
    Value start = before[number] = inside.getArgument(extra++);
    if (acc.maximum >= 0)
      start = rescale(nested, acc, openSizes(acc.op, inner), start,
                      inside.getArgument(extra++));
    starts[acc.op] = start;
  }
  for (Operation &op : body.without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      nested.clone(op, inner);
      continue;
    }
    FailureOr<Value> start = starts.lookup(&op);
    if (!*start)
      start = startFor(nested, generic, part, inner);
    if (failed(start) || failed(cloneOp(nested, generic, *start, part, inner)))
      return failure();
    if (counts(generic))
      countFrom(generic, inner.lookup(generic->getResult(0)), offset);
  }
  Values yielded;
  for (unsigned number : own) {
    Accumulator &acc = chain.accumulators[number];
    if (!acc.isMaximum)
      continue;
    state.factors[number] = copy->getResult(yielded.size());
    yielded.push_back(makeFactor(nested, acc, openSizes(acc.op, inner),
                                 before[number],
                                 inner.lookup(acc.op->getResult(0))));
  }
  auto results = copy->getResults().drop_front(yielded.size());
  for (unsigned number : own)
    state.next[number] = results[chain.accumulators[number].number];
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(inner.lookup(value));
  tile::YieldOp::create(nested, nest.getLoc(), yielded);
  for (auto [old, now] : llvm::zip_equal(nest->getResults(), results))
    state.mapping.map(old, now);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(inside)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success();
}

/// All register groups of the chain, for one block; returns what the
/// accumulators hold after it.
FailureOr<SmallVector<Value>>
OnlineTask::emitPart(OpBuilder &builder, const Part &part, Values carried) {
  State state;
  state.next = state.carried = std::move(carried);
  state.factors.resize(state.next.size());
  for (tile::GroupOp nest : chain.nests)
    if (failed(cloneNest(builder, nest, part, state)))
      return failure();
  return state.next;
}

LogicalResult OnlineTask::rewrite() {
  for (tile::GroupOp nest : chain.nests)
    if (failed(separateReads(nest)))
      return failure();
  Location loc = task.getLoc();
  Block &body = task.getBody().front();
  OpBuilder builder(body.getTerminator());
  Values carried;
  for (const Accumulator &acc : chain.accumulators)
    carried.push_back(makeStart(builder, acc));
  bool open = ShapedType::isDynamic(chain.extent);
  int64_t whole = open ? 0 : chain.extent / chain.block * chain.block;
  Value lower = arith::ConstantIndexOp::create(builder, loc, 0), upper;
  Part rest = {builder.getIndexAttr(whole), chain.extent - whole};
  if (open) {
    Value extent = sizeOfLoop(builder, chain);
    if (!extent)
      return task.emitError("runs a loop in blocks whose size no tensor from "
                            "outside has");
    std::tie(upper, rest) = cutOpen(builder, extent, chain.block);
  } else {
    upper = arith::ConstantIndexOp::create(builder, loc, whole);
  }
  Value step = arith::ConstantIndexOp::create(builder, loc, chain.block);
  auto loop = scf::ForOp::create(builder, loc, lower, upper, step, carried);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    auto after = emitPart(builder, {loop.getInductionVar(), chain.block},
                          Values(loop.getRegionIterArgs()));
    if (failed(after))
      return failure();
    scf::YieldOp::create(builder, loc, *after);
  }
  carried = loop.getResults();
  if (open || whole < chain.extent) {
    auto after = emitPart(builder, rest, carried);
    if (failed(after))
      return failure();
    carried = *after;
  }
  for (auto [acc, value] : llvm::zip_equal(chain.accumulators, carried))
    acc.result().replaceAllUsesWith(value);
  for (tile::GroupOp nest : llvm::reverse(chain.nests))
    nest.erase();
  if (!sortTopologically(&body))
    return task.emitError("has register groups that run in blocks and need "
                          "what others make of the whole");
  return success();
}

struct ApplyOnline : public impl::ApplyOnlineBase<ApplyOnline> {
  void runOnOperation() override {
    SmallVector<tile::GroupOp> tasks;
    getOperation()->walk<WalkOrder::PreOrder>([&](tile::GroupOp group) {
      tasks.push_back(group);
      return WalkResult::skip();
    });
    for (tile::GroupOp task : tasks) {
      FailureOr<OnlineChain> chain = OnlineChain::get(task);
      if (failed(chain))
        return signalPassFailure();
      if (!chain->empty() && failed(OnlineTask(task, *chain).rewrite()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace tilewright
