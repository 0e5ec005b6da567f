//===- LiftTrees.cpp - recursion over trees, level by level ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

namespace {
/// Makes the loops. A state of all nodes is one tensor, whose rows are nodes. A
/// chunk writes as many rows as it has lanes. Where its level ends before, the
/// other lanes compute the last node again: a body runs for nodes only, so that
/// it may do what fails for other values. Their rows belong to the next chunk,
/// which writes them again, or stand behind all nodes.
class TreeLowering {
public:
  TreeLowering(Lifter &l, RecurseOp op)
      : l(l), b(l.b), op(op), around(l.loopsOf(op)) {}

  LogicalResult lower();

private:
  LogicalResult prepare();
  Value constant(int64_t value) { return l.index(b.getIndexAttr(value)); }
  Value tensorOf(Value operand) { return l.lookup(operand).tensor; }

  Value within(Value value, int64_t last);
  Value levelStart(Value level);
  Value countChunks(Value levels);
  Value zeros(const Lifted &shape, RankedTensorType leaf);
  /// Numbers made of other ones, by `make`, bounded.
  Value bounded(
      Value numbers, int64_t last,
      function_ref<Value(OpBuilder &, Location, Value)> make =
          [](OpBuilder &, Location, Value number) { return number; });
  Value nodesOfLanes(Value first, Value end);

  FailureOr<SmallVector<Value>> loopOverLeaves();
  FailureOr<SmallVector<Value>> loopOverNodes(ValueRange leaves);
  FailureOr<SmallVector<Value>> computed(Block &body, ValueRange states,
                                         Value first);

  void defineElements(ValueRange arrays, ValueRange arguments, Value nodes);
  void defineChildren(ValueRange states, Value nodes);
  Lifted allStates(int64_t number, Value tensor);

  Lifter &l;
  ImplicitLocOpBuilder &b;
  RecurseOp op;
  SmallVector<Axis> around;
  int64_t count = 0, lanes = 0; ///< of all nodes; of those computed at once
  Axis lane = 0;
};
} // namespace

/// What cannot be lowered is refused.
LogicalResult TreeLowering::prepare() {
  for (Value table : {op.getChildren(), op.getLevels(), op.getRoots()})
    if (!l.lookup(table).loops().empty())
      return unsupported(op) << "has trees that differ between elements of a "
                                "list around it, which has no lowering yet";
  count = op.getChildren().getType().getDimSize(0);
  if (count < 1)
    return op.emitOpError("needs a known number of nodes, at least one");
  lanes = std::min(count, l.chunk);
  for (Value list : llvm::concat<Value>(op.getLeaves(), op.getNodes())) {
    std::optional<int64_t> length =
        getConstantIntValue(l.lookup(list).lengths.front());
    if (length.value_or(0) < 1)
      return op.emitOpError("needs arrays of known lengths, not zero");
  }
  for (Type state : op.getStateTypes())
    if (auto list = dyn_cast<ArrayType>(state);
        list && !llvm::all_of(list.getLengths(), ArrayType::isKnown))
      return op.emitOpError("has a state of unknown lengths: ") << list;
  lane = l.addLoop(b.getIndexAttr(lanes));
  return success();
}

//===----------------------------------------------------------------------===//
// Numbers of nodes: nothing outside is read, whatever a caller's numbers are
//===----------------------------------------------------------------------===//

/// The value, or the nearer end of [0, last].
Value TreeLowering::within(Value value, int64_t last) {
  return clamped(b, b.getLoc(), value, constant(last));
}

/// The first node of a level.
Value TreeLowering::levelStart(Value level) {
  Value start = tensor::ExtractOp::create(b, tensorOf(op.getLevels()), level);
  return within(arith::IndexCastOp::create(b, b.getIndexType(), start), count);
}

/// How many chunks the levels have, without that of the leaves.
Value TreeLowering::countChunks(Value levels) {
  Value zero = constant(0), one = constant(1);
  auto loop = scf::ForOp::create(b, one, levels, one, zero);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value level = loop.getInductionVar();
  Value next = arith::AddIOp::create(b, level, one);
  Value size = arith::SubIOp::create(b, levelStart(next), levelStart(level));
  Value room = arith::AddIOp::create(b, size, constant(lanes - 1));
  Value chunks = arith::DivSIOp::create(b, room, constant(lanes));
  Value more = arith::MaxSIOp::create(b, chunks, zero);
  Value sum = arith::AddIOp::create(b, loop.getRegionIterArg(0), more);
  scf::YieldOp::create(b, sum);
  return loop.getResult(0);
}

Value TreeLowering::bounded(
    Value numbers, int64_t last,
    function_ref<Value(OpBuilder &, Location, Value)> make) {
  auto type = cast<RankedTensorType>(numbers.getType());
  Type element = type.getElementType();
  Value into = l.empty(tensor::getMixedSize(b, b.getLoc(), numbers, 0),
                       RankedTensorType::get({}, element));
  return l.parallel(numbers, b.getMultiDimIdentityMap(1), into,
                    [&](OpBuilder &inner, Location loc, ValueRange args) {
                      Value number = make(inner, loc, args.front());
                      Value high = arith::ConstantOp::create(
                          inner, loc, inner.getIntegerAttr(element, last));
                      return clamped(inner, loc, number, high);
                    });
}

/// Which node each lane is for: those from `first` on, before `end`.
Value TreeLowering::nodesOfLanes(Value first, Value end) {
  Type number = op.getChildren().getType().getElementType();
  Value last = within(arith::SubIOp::create(b, end, constant(1)), count - 1);
  Value into = l.empty(OpFoldResult(b.getIndexAttr(lanes)),
                       RankedTensorType::get({}, number));
  return l.parallel({}, {}, into,
                    [&](OpBuilder &inner, Location loc, ValueRange) -> Value {
                      Value i = linalg::IndexOp::create(inner, loc, 0);
                      Value at = arith::AddIOp::create(inner, loc, first, i);
                      at = arith::MinSIOp::create(inner, loc, at, last);
                      return arith::IndexCastOp::create(inner, loc, number, at);
                    });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value TreeLowering::zeros(const Lifted &shape, RankedTensorType leaf) {
  Value into = l.empty(l.sizesOf(shape, shape.axes), leaf);
  Value zero =
      arith::ConstantOp::create(b, b.getZeroAttr(leaf.getElementType()));
  return linalg::FillOp::create(b, zero, into).getResult(0);
}

/// `into` with rows from `first` on.
static Value insertRows(Lifter &l, Value rows, Value into, OpFoldResult first) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  int64_t rank = cast<RankedTensorType>(rows.getType()).getRank();
  takeAll(l, rows, rank, offsets, sizes, strides);
  offsets.front() = first;
  return tensor::InsertSliceOp::create(l.b, rows, into, offsets, sizes,
                                       strides);
}

/// The list of a state of all nodes.
Lifted TreeLowering::allStates(int64_t number, Value tensor) {
  Lifted all = {tensor, {}, {b.getIndexAttr(count + lanes - 1)}};
  if (auto list = dyn_cast<ArrayType>(op.getStateTypes()[number]))
    for (int64_t length : list.getLengths())
      all.lengths.push_back(b.getIndexAttr(length));
  all.axes = levelsOf(all);
  llvm::append_range(all.axes, around);
  return all;
}

void TreeLowering::defineElements(ValueRange arrays, ValueRange arguments,
                                  Value nodes) {
  for (auto [array, argument] : llvm::zip_equal(arrays, arguments)) {
    const Lifted &list = l.lookup(array);
    int64_t length = *getConstantIntValue(list.lengths.front());
    Value places = length < count ? bounded(nodes, length - 1) : nodes;
    l.define(argument,
             gathered(l, list, places, leafOf(array.getType())).entered(lane));
  }
}

/// All states of the first child, then those of the next one.
void TreeLowering::defineChildren(ValueRange states, Value nodes) {
  Value table = tensorOf(op.getChildren());
  for (int64_t child : llvm::seq(op.getArity())) {
    Value column = constant(child);
    auto read = [&](OpBuilder &inner, Location loc, Value node) -> Value {
      Value row =
          arith::IndexCastOp::create(inner, loc, inner.getIndexType(), node);
      return tensor::ExtractOp::create(inner, loc, table,
                                       ValueRange{row, column});
    };
    Value numbers = bounded(nodes, count - 1, read);
    for (auto [number, tensor] : llvm::enumerate(states)) {
      Value argument =
          op.getNodeBlock().getArgument(child * states.size() + number);
      Lifted state = gathered(l, allStates(number, tensor), numbers,
                              leafOf(argument.getType()));
      l.define(argument, state.entered(lane));
    }
  }
}

/// The states with those that a body, whose arguments are defined, gives to the
/// lanes.
FailureOr<SmallVector<Value>>
TreeLowering::computed(Block &body, ValueRange states, Value first) {
  if (failed(l.lift(body)))
    return failure();
  b.setLoc(op.getLoc());
  SmallVector<Value> next;
  for (auto [value, into] :
       llvm::zip_equal(body.getTerminator()->getOperands(), states)) {
    const Lifted &state = l.lookup(value);
    SmallVector<Axis> axes = {lane};
    llvm::append_range(axes, levelsOf(state));
    llvm::append_range(axes, around);
    next.push_back(insertRows(l, l.aligned(state, axes), into, first));
  }
  return next;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> TreeLowering::loopOverLeaves() {
  SmallVector<Value> states;
  for (auto [number, type] : llvm::enumerate(op.getStateTypes()))
    states.push_back(zeros(allStates(number, {}), leafOf(type)));
  Value end = levelStart(constant(1));
  auto loop = scf::ForOp::create(b, constant(0), end, constant(lanes), states);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value first = loop.getInductionVar();
  defineElements(op.getLeaves(), op.getLeafBlock().getArguments(),
                 nodesOfLanes(first, end));
  FailureOr<SmallVector<Value>> next =
      computed(op.getLeafBlock(), loop.getRegionIterArgs(), first);
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, *next);
  return SmallVector<Value>(loop.getResults());
}

/// One loop over the chunks of all other levels, which carries where it stands.
FailureOr<SmallVector<Value>> TreeLowering::loopOverNodes(ValueRange leaves) {
  Value one = constant(1);
  Value ends = l.index(
      tensor::getMixedSize(b, op.getLoc(), tensorOf(op.getLevels()), 0));
  Value chunks = countChunks(arith::SubIOp::create(b, ends, one));
  SmallVector<Value> carried(leaves);
  llvm::append_values(carried, one, levelStart(one));
  auto loop = scf::ForOp::create(b, constant(0), chunks, one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  ValueRange states = loop.getRegionIterArgs().drop_back(2);
  Value level = loop.getRegionIterArgs().take_back(2)[0];
  Value at = loop.getRegionIterArgs().back();
  Value above = arith::AddIOp::create(b, level, one);
  Value end = levelStart(above);
  Value first = within(at, count - 1);
  Value nodes = nodesOfLanes(first, end);
  defineChildren(states, nodes);
  ValueRange arguments = op.getNodeBlock().getArguments();
  defineElements(op.getNodes(), arguments.take_back(op.getNodes().size()),
                 nodes);
  FailureOr<SmallVector<Value>> next =
      computed(op.getNodeBlock(), states, first);
  if (failed(next))
    return failure();
  Value behind = arith::AddIOp::create(b, at, constant(lanes));
  Value ended =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, behind, end);
  next->push_back(arith::SelectOp::create(b, ended, above, level));
  next->push_back(arith::MinSIOp::create(b, behind, end));
  scf::YieldOp::create(b, *next);
  return SmallVector<Value>(loop.getResults().drop_back(2));
}

LogicalResult TreeLowering::lower() {
  if (failed(prepare()))
    return failure();
  FailureOr<SmallVector<Value>> states = loopOverLeaves();
  if (succeeded(states))
    states = loopOverNodes(*states);
  if (failed(states))
    return failure();
  b.setLoc(op.getLoc());
  Value roots = bounded(tensorOf(op.getRoots()), count - 1);
  for (auto [number, result] : llvm::enumerate(op.getResults()))
    l.define(result, gathered(l, allStates(number, (*states)[number]), roots,
                              leafOf(result.getType())));
  return success();
}

LogicalResult tilewright::liftRecurse(Lifter &l, RecurseOp op) {
  return TreeLowering(l, op).lower();
}
