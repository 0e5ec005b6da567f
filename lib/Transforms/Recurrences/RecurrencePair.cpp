//===- RecurrencePair.cpp - a recurrence through a scan -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/RecurrencePair.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

template <typename Op> static RecurrencePair begin(Op op) {
  RecurrencePair pair;
  pair.outer = op;
  pair.inits = op.getInits();
  pair.arrays = op.getArrays();
  pair.states = op.getStates();
  pair.elements = op.getElements();
  pair.rows = op.getLength();
  return pair;
}

/// The op of the body that reads a state; null where several do, or none.
static Operation *onlyReader(Block &body, ArrayRef<BlockArgument> states) {
  Operation *found = nullptr;
  for (BlockArgument state : states)
    for (Operation *user : state.getUsers()) {
      Operation *own = body.findAncestorOpInBlock(*user);
      if (found && own != found)
        return nullptr;
      found = own;
    }
  return found;
}

/// Whether states are read as whole lists that the scan goes through.
static bool readsByElement(ScanOp scan, ArrayRef<BlockArgument> states) {
  unsigned first = scan.getInits().size();
  return llvm::all_of(states, [&](BlockArgument state) {
    return llvm::all_of(state.getUses(), [&](OpOperand &use) {
      return use.getOwner() == scan && use.getOperandNumber() >= first;
    });
  });
}

/// Which results of the scan are the next states.
static std::optional<SmallVector<unsigned>> nextOf(ScanOp scan, YieldOp yield) {
  SmallVector<unsigned> numbers;
  for (Value value : yield.getValues()) {
    if (value.getDefiningOp() != scan)
      return std::nullopt;
    numbers.push_back(cast<OpResult>(value).getResultNumber());
  }
  return numbers;
}

/// Whether anything behind the scan in the body is more than the yield.
static bool isLast(ScanOp scan, YieldOp yield) {
  return scan->getNextNode() == yield.getOperation();
}

static bool goesLeft(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<ScanOp, FoldOp>([](auto recurrence) { return recurrence.isLeft(); })
      .Default(false);
}

std::optional<RecurrencePair> tilewright::pairOf(Operation *op,
                                                 std::string &reason) {
  auto no = [&](StringRef why) {
    reason = why;
    return std::nullopt;
  };
  if (!isa<ScanOp, FoldOp>(op))
    return no("it is no scan and no fold");
  RecurrencePair pair =
      isa<ScanOp>(op) ? begin(cast<ScanOp>(op)) : begin(cast<FoldOp>(op));
  Block &body = op->getRegion(0).front();
  auto yield = cast<YieldOp>(body.getTerminator());
  pair.inner = dyn_cast_or_null<ScanOp>(onlyReader(body, pair.states));
  if (!pair.inner)
    return no("its states are not read by one scan alone");
  if (!readsByElement(pair.inner, pair.states))
    return no("its states are read as a whole, not element by element");
  std::optional<SmallVector<unsigned>> next = nextOf(pair.inner, yield);
  if (!next || !isLast(pair.inner, yield))
    return no("the next states are not what the scan in its body gives");
  pair.next = *next;
  if (!goesLeft(op) || !goesLeft(pair.inner))
    return no("it goes from right to left");
  pair.columns = pair.inner.getLength();
  if (pair.rows <= 0 || pair.columns <= 0)
    return no("lengths are zero or not known");
  return pair;
}
