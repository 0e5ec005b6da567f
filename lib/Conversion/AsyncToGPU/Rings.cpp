//===- Rings.cpp - loops that load ahead of time -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Whether the tokens rotate: each becomes the one before, the last is new.
bool rotates(Ring &ring) {
  ValueRange yields = ring.loop.getYieldedValues();
  for (auto [number, place] : llvm::enumerate(ring.tokens)) {
    Value next = yields[place];
    if (number + 1 == ring.tokens.size()) {
      ring.issue = next.getDefiningOp<scf::IfOp>();
      return ring.issue && ring.issue->getBlock() == ring.loop.getBody();
    }
    if (next != ring.loop.getRegionIterArg(ring.tokens[number + 1]))
      return false;
  }
  return false;
}

/// Whether the issuing branch runs while step + stages - 1 < steps.
bool guardsAhead(Ring &ring) {
  auto compare = ring.issue.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getRhs() != ring.loop.getUpperBound() ||
      (compare.getPredicate() != arith::CmpIPredicate::slt &&
       compare.getPredicate() != arith::CmpIPredicate::ult))
    return false;
  ring.ahead = compare.getLhs();
  auto sum = ring.ahead.getDefiningOp<arith::AddIOp>();
  return sum && sum.getLhs() == ring.loop.getInductionVar() &&
         getConstantIntValue(sum.getRhs()) == ring.getStages() - 1;
}

/// Whether the branch's only effect is one tile.async, whose token it gives.
bool issuesCopies(Ring &ring) {
  auto yield = ring.issue.thenYield();
  if (yield.getNumOperands() != 1)
    return false;
  ring.async = yield.getOperand(0).getDefiningOp<tile::AsyncOp>();
  return ring.async &&
         llvm::all_of(*ring.issue.thenBlock(), [&](Operation &op) {
           return &op == ring.async || &op == yield || isMemoryEffectFree(&op);
         });
}

/// Whether the loop's tokens are waited for at the top of a step, and no other
/// op of the loop touches them.
bool awaitsFirst(Ring &ring) {
  for (auto [number, place] : llvm::enumerate(ring.tokens)) {
    Value token = ring.loop.getRegionIterArg(place);
    for (Operation *user : token.getUsers()) {
      if (isa<scf::YieldOp>(user))
        continue;
      auto await = dyn_cast<tile::AwaitOp>(user);
      if (!await || number != 0 || await->getBlock() != ring.loop.getBody())
        return false;
      ring.awaits.push_back(await);
    }
  }
  return !ring.awaits.empty() && llvm::all_of(ring.tokens, [&](unsigned place) {
    return ring.loop.getResult(place).use_empty();
  });
}

} // namespace

bool carriesTokens(scf::ForOp loop) {
  return llvm::any_of(loop.getResultTypes(),
                      [](Type type) { return isa<tile::TokenType>(type); });
}

std::optional<Ring> matchRing(scf::ForOp loop, std::string &reason) {
  Ring ring{loop, {}, {}, {}, {}, {}};
  for (auto [place, type] : llvm::enumerate(loop.getResultTypes()))
    if (isa<tile::TokenType>(type))
      ring.tokens.push_back(place);
  if (getConstantIntValue(loop.getLowerBound()) != 0 ||
      getConstantIntValue(loop.getStep()) != 1)
    reason = "does not count its steps from 0";
  else if (!rotates(ring))
    reason = "carries tokens that do not move up by one in each step";
  else if (!guardsAhead(ring))
    reason = "starts copies under another condition than that there is the "
             "step which its tokens are ahead";
  else if (!issuesCopies(ring))
    reason = "does more than start copies in the branch that does";
  else if (!awaitsFirst(ring))
    reason = "waits for other tokens than that of its own step";
  else
    return ring;
  return std::nullopt;
}

} // namespace tilewright
