//===- OrderedReads.cpp - reads before what may be written ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/OrderedReads.h"
#include "dialects/Tile/Tile.h"

using namespace mlir;
using namespace tilewright;

OrderedReads::OrderedReads(gpu::GPUFuncOp function,
                           const LaunchMeetings &meetings,
                           function_ref<bool(Value)> mayBeWritten)
    : meetings(meetings), mayBeWritten(mayBeWritten) {
  visit(function.getBody().front(), {});
}

/// Gives the reads that nobody has met behind at the end of a block.
OrderedReads::Reads OrderedReads::visit(Block &block, Reads pending) {
  for (Operation &op : block) {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (mayBeWritten(load.getMemref()))
        pending.push_back(load);
    } else if (isa<tile::LaunchOp, memref::CopyOp, memref::StoreOp>(op)) {
      write(op, pending);
    } else if (op.getNumRegions() > 0) {
      pending = enter(op, std::move(pending));
      if (llvm::is_contained(meetings.behind(&op), Attribute()))
        pending.clear();
    }
  }
  return pending;
}

/// What a team reads, others need not wait for, unless they write it.
void OrderedReads::write(Operation &op, Reads &pending) {
  Team team = teamOf(&op);
  bool own = false, all = false;
  for (memref::LoadOp load : pending) {
    bool isOwn = teamOf(load) == team;
    own |= isOwn;
    all |= !isOwn && (!team || meetings.mayWrite(&op, load));
  }
  if (!own && !all)
    return;
  found.push_back({&op, all ? Team() : team});
  llvm::erase_if(pending, [&](memref::LoadOp load) {
    return all || teamOf(load) == team;
  });
}

OrderedReads::Reads OrderedReads::enter(Operation &op, Reads pending) {
  Team team = teamOf(&op);
  // Inside, nobody else can be met.
  if (team && llvm::any_of(pending, [&](memref::LoadOp load) {
        return teamOf(load) != team && meetings.mayWrite(&op, load);
      })) {
    found.push_back({&op, Team()});
    pending.clear();
  }
  Reads others;
  if (team) {
    llvm::copy_if(pending, std::back_inserter(others),
                  [&](memref::LoadOp load) { return teamOf(load) != team; });
    llvm::erase_if(pending,
                   [&](memref::LoadOp load) { return teamOf(load) != team; });
  }
  // In the next iteration, or in another region, as in any: reads stay.
  if (isa<LoopLikeOpInterface>(op))
    llvm::append_range(pending, readsIn(op));
  Reads after = pending;
  for (Region &region : op.getRegions())
    for (Block &block : region)
      llvm::append_range(after, visit(block, pending));
  llvm::append_range(after, others);
  return after;
}

OrderedReads::Reads OrderedReads::readsIn(Operation &op) {
  Reads reads;
  op.walk([&](memref::LoadOp load) {
    if (mayBeWritten(load.getMemref()))
      reads.push_back(load);
  });
  return reads;
}
