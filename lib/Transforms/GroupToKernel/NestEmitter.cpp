//===- NestEmitter.cpp - a register group as loops over tiles -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestEmitter.h"
#include "dialects/Tile/TileDecisions.h"

using namespace mlir;

namespace tilewright {

LogicalResult NestEmitter::emit() {
  if (failed(schedule.plan()))
    return failure();
  return schedule.overParallel([&] { return emitPoint(); });
}

/// Everything at one tile of the parallel dimensions.
LogicalResult NestEmitter::emitPoint() {
  bodies.exchange({{}});
  if (part == Part::Init)
    return reductions.storeInit();
  if (point.nest.hasReductions()) {
    auto perStep = [&] { return storeResults(/*inReduction=*/true); };
    if (failed(bodies.preload()) ||
        failed(reductions.emit(part == Part::Block, perStep)))
      return failure();
  }
  return storeResults(/*inReduction=*/false);
}

/// Stores the yielded values. Those that exist per point of the reduction are
/// stored inside its loops, the others after them.
LogicalResult NestEmitter::storeResults(bool inReduction) {
  tile::GroupOp group = point.nest.group;
  Operation *yield = group.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
    auto result = cast<OpResult>(value);
    Access access = point.nest.resultAccess(result);
    bool perPoint = point.dependsOnReduction(access);
    if (perPoint != inReduction)
      continue;
    FailureOr<Value> tile = bodies.evaluate(value, access);
    const Storage &place = point.storage.at(group->getResult(number));
    bool streamed = point.nest.root()->hasAttr(tile::decisions::kStream) &&
                    memory.mayStream(place);
    if (failed(tile) || failed(memory.store(result.getOwner()->getLoc(), *tile,
                                            place, access, streamed)))
      return failure();
  }
  return success();
}

} // namespace tilewright
