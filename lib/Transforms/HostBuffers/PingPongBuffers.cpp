//===- PingPongBuffers.cpp - loops exchange buffers instead of copying ----===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_PINGPONGBUFFERS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// A state's buffer, the one that its next value is made in, and the copy.
struct Rotation {
  memref::CopyOp copy;
  memref::AllocOp state, next;
};

class LoopRotation {
public:
  explicit LoopRotation(scf::ForOp loop) : loop(loop) {}

  /// Rewrites the loop where it copies the next value of a state.
  void run(RewriterBase &rewriter) {
    for (auto copy : loop.getBody()->getOps<memref::CopyOp>()) {
      Rotation found{copy, copy.getTarget().getDefiningOp<memref::AllocOp>(),
                     copy.getSource().getDefiningOp<memref::AllocOp>()};
      if (isRotation(found))
        rotations.push_back(found);
    }
    if (!rotations.empty())
      rewrite(rewriter);
  }

private:
  bool isRotation(Rotation found) {
    if (!found.state || !found.next ||
        found.state.getType() != found.next.getType())
      return false;
    // The state's buffer is met again only in this loop and behind it; the
    // other one holds nothing at the start of an iteration.
    if (found.state->getBlock() != loop->getBlock() ||
        found.next->getBlock() != loop.getBody())
      return false;
    for (Rotation other : rotations)
      if (other.state == found.state || other.next == found.next)
        return false;
    return endsWithCopy(found);
  }

  /// Nothing reads or writes the state behind the copy; views from before the
  /// loop are used before it only.
  bool endsWithCopy(Rotation found) {
    SmallVector<Value> values = {found.state.getResult()};
    while (!values.empty()) {
      Value value = values.pop_back_val();
      bool isState = value == found.state.getResult();
      bool isOutside = !loop->isAncestor(value.getDefiningOp());
      for (Operation *user : value.getUsers()) {
        if (user == loop || (user->hasTrait<OpTrait::IsTerminator>() &&
                             !isa<func::ReturnOp>(user)))
          return false;
        bool isBefore = isBeforeLoop(user);
        if (!isBefore && isOutside && !isState)
          return false;
        if (loop->isAncestor(user) && isBehind(user, found.copy))
          return false;
        if (auto view = dyn_cast<ViewLikeOpInterface>(user))
          if (isBefore || loop->isAncestor(user))
            llvm::append_range(values, view->getResults());
      }
    }
    return true;
  }

  bool isBeforeLoop(Operation *user) {
    Operation *here = loop->getBlock()->findAncestorOpInBlock(*user);
    return here && here->isBeforeInBlock(loop);
  }

  bool isBehind(Operation *user, Operation *copy) {
    Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
    return copy->isBeforeInBlock(here);
  }

  void rewrite(RewriterBase &rewriter) {
    SmallVector<Value> inits;
    for (Rotation &rotation : rotations) {
      rewriter.moveOpBefore(rotation.next, loop);
      inits.push_back(rotation.state);
      inits.push_back(rotation.next);
    }
    // What the rotation's buffers are called in the loop is their arguments.
    unsigned known = loop.getNumRegionIterArgs();
    auto exchange = [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
      SmallVector<Value> values;
      for (size_t i = 0; i < added.size(); i += 2) {
        values.push_back(added[i + 1]);
        values.push_back(added[i]);
      }
      return values;
    };
    for (Rotation &rotation : rotations)
      rewriter.eraseOp(rotation.copy);
    auto made = loop.replaceWithAdditionalYields(
        rewriter, inits, /*replaceInitOperandUsesInLoop=*/true, exchange);
    assert(succeeded(made) && "scf.for takes more values");
    auto rotated = cast<scf::ForOp>(made->getOperation());
    for (auto [number, rotation] : llvm::enumerate(rotations))
      useResult(rewriter, rotated, rotation.state,
                rotated.getResult(known + 2 * number));
  }

  /// Behind the loop the state is where the last iteration has put it.
  static void useResult(RewriterBase &rewriter, scf::ForOp loop, Value state,
                        Value last) {
    rewriter.replaceUsesWithIf(state, last, [&](OpOperand &use) {
      Operation *here =
          loop->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return here && loop->isBeforeInBlock(here);
    });
  }

  scf::ForOp loop;
  SmallVector<Rotation> rotations;
};

struct PingPongBuffers
    : public tilewright::impl::PingPongBuffersBase<PingPongBuffers> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    main.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      LoopRotation(loop).run(rewriter);
  }
};

} // namespace
