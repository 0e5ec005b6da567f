//===- GraphBuilder.cpp - regions and compute ops -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/GraphBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::fractal;

/// Whether an op is walked into: its elements become those of a loop.
static bool isLoop(Operation *op) {
  return isa<MapOp, ScanOp, FoldOp, ReduceOp>(op);
}

/// Whether a body is more than lists that are read elsewhere around one loop.
static bool branches(Block &body) {
  unsigned loops = 0;
  for (Operation &op : body.without_terminator()) {
    if (isInlined(&op) || isAccess(&op))
      continue;
    if (!isLoop(&op))
      return true;
    loops += computes(&op);
  }
  return loops > 1;
}

/// Whether an op or its region reads a result of one of these.
static bool readsFrom(Operation *op, const SetVector<Operation *> &makers) {
  return op
      ->walk([&](Operation *inner) {
        bool reads = llvm::any_of(inner->getOperands(), [&](Value operand) {
          Operation *maker = operand.getDefiningOp();
          return maker && makers.contains(maker);
        });
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult GraphBuilder::build() {
  for (BlockArgument argument : function.getArguments())
    elements[argument] = given(argument);
  Block &body = function.getBody().front();
  if (failed(walk(body)))
    return failure();
  for (Value result : body.getTerminator()->getOperands()) {
    std::optional<Element> element = find(result);
    if (!element)
      return failure();
    outputs.push_back(*element);
  }
  return success();
}

LogicalResult GraphBuilder::walk(Block &body) {
  SetVector<Operation *> leaves;
  auto flush = [&] {
    LogicalResult done = addLeaves(leaves.getArrayRef());
    leaves.clear();
    return done;
  };
  for (Operation &op : body.without_terminator()) {
    bool follows = readsFrom(&op, leaves);
    if (isInlined(&op)) {
      if (follows)
        leaves.insert(&op);
      continue;
    }
    if (!isAccess(&op) && !isLoop(&op)) {
      leaves.insert(&op);
      continue;
    }
    if ((follows || computes(&op)) && failed(flush()))
      return failure();
    if (failed(isLoop(&op) ? visitCompute(&op) : visitAccess(op)))
      return failure();
  }
  return flush();
}

LogicalResult GraphBuilder::visitBody(Block &body) {
  bool ordered =
      llvm::any_of(loops, [](const Loop &loop) { return loop.kind != "map"; });
  if (!ordered || !branches(body))
    return walk(body);
  // Iterations wait for each other: the body stays whole.
  SetVector<Operation *> inside;
  for (Operation &op : body.without_terminator()) {
    bool leaf =
        !isInlined(&op) && !isAccess(&op) && (!isLoop(&op) || computes(&op));
    if (leaf || readsFrom(&op, inside))
      inside.insert(&op);
    else if (isLoop(&op) && failed(visitCompute(&op)))
      return failure();
    else if (isAccess(&op) && failed(visitAccess(op)))
      return failure();
  }
  SetVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    if (Operation *maker = value.getDefiningOp();
        maker && inside.contains(maker))
      results.insert(value);
  return addBlock(inside.getArrayRef(), results.getArrayRef());
}

//===----------------------------------------------------------------------===//
// Compute ops
//===----------------------------------------------------------------------===//

LogicalResult GraphBuilder::visitCompute(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](MapOp map) { return visitMap(map); })
      .Case([&](ReduceOp reduce) {
        return visitStates(op, reduce.getInits(), reduce.getArrays(), false);
      })
      .Case<ScanOp, FoldOp>([&](auto recurrence) {
        return visitStates(op, recurrence.getInits(), recurrence.getArrays(),
                           recurrence.getRight());
      });
}

bool GraphBuilder::enter(StringRef kind, ValueRange arrays,
                         ValueRange arguments) {
  SmallVector<Element> entered;
  AffineExpr length;
  for (Value array : arrays) {
    std::optional<Element> list = find(array);
    if (!list)
      return false;
    // All are equally long; a number says it best.
    if (!length || isa<AffineConstantExpr>(list->lengths.front()))
      length = list->lengths.front();
    entered.push_back(list->entered());
  }
  loops.push_back({kind, length});
  for (auto [argument, element] : llvm::zip_equal(arguments, entered))
    elements[argument] = element;
  return true;
}

std::optional<SmallVector<Element>> GraphBuilder::yieldedBy(Block &body) {
  SmallVector<Element> values;
  for (Value value : body.getTerminator()->getOperands()) {
    std::optional<Element> element = find(value);
    if (!element)
      return std::nullopt;
    values.push_back(*element);
  }
  return values;
}

LogicalResult GraphBuilder::visitMap(MapOp op) {
  if (!enter("map", op.getArrays(), op.getElements()) ||
      failed(visitBody(op.getBodyBlock())))
    return failure();
  std::optional<SmallVector<Element>> values = yieldedBy(op.getBodyBlock());
  if (!values)
    return failure();
  Loop loop = loops.pop_back_val();
  for (auto [result, value] : llvm::zip_equal(op.getResults(), *values))
    define(result, value.listed(loop.length));
  return success();
}

Element GraphBuilder::addState(Element init, Value argument, bool right) {
  unsigned own = loops.size() - 1;
  AffineExpr place = dim(own), length = loops.back().length;
  Constraint first = {right ? length - 1 - place : place, true};
  Constraint later = {right ? length - 2 - place : place - 1, false};
  Element state = init.within(loops.size()).where({first});
  Piece last = {unsigned(buffers.size()),
                dimRange(function.getContext(), 0, state.rank()),
                {later}};
  last.place[own] = right ? place + 1 : place - 1;
  state.pieces.push_back(last);
  Buffer &buffer = buffers.emplace_back();
  buffer.kind = Buffer::State;
  buffer.value = argument;
  buffer.loops = loops;
  return state;
}

Element GraphBuilder::lastState(const Element &yielded, const Element &init,
                                const Loop &loop, bool right) {
  Element last = yielded.atIteration(right ? constant(0) : loop.length - 1);
  auto known = dyn_cast<AffineConstantExpr>(loop.length);
  if (known)
    return known.getValue() > 0 ? last : init;
  last = last.where({{loop.length - 1}});
  llvm::append_range(last.pieces, init.where({{loop.length, true}}).pieces);
  return last;
}

/// The kind of a loop, as blocks name it.
static StringRef kindOf(Operation *op, bool right) {
  if (isa<ReduceOp>(op))
    return "reduce";
  if (isa<ScanOp>(op))
    return right ? "scan right" : "scan left";
  return right ? "fold right" : "fold left";
}

LogicalResult GraphBuilder::visitStates(Operation *op, ValueRange inits,
                                        ValueRange arrays, bool right) {
  Block &body = op->getRegion(0).front();
  SmallVector<Element> begin;
  for (Value init : inits) {
    std::optional<Element> element = find(init);
    if (!element)
      return failure();
    begin.push_back(*element);
  }
  ValueRange arguments(body.getArguments());
  if (!enter(kindOf(op, right), arrays, arguments.drop_front(inits.size())))
    return failure();
  unsigned first = buffers.size();
  for (auto [init, argument] : llvm::zip(begin, arguments))
    elements[argument] = addState(init, argument, right);
  if (failed(visitBody(body)))
    return failure();
  std::optional<SmallVector<Element>> values = yieldedBy(body);
  if (!values)
    return failure();
  Loop loop = loops.pop_back_val();
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    buffers[first + i].yielded = (*values)[i];
    buffers[first + i].state = body.getTerminator()->getOperand(i);
    define(result, isa<ScanOp>(op)
                       ? (*values)[i].listed(loop.length)
                       : lastState((*values)[i], begin[i], loop, right));
  }
  return success();
}
