//===- BlockTeams.cpp - blocks of a grid that meet by themselves ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/BlockTeams.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;

Team tilewright::teamOf(Operation *op) {
  for (; op && !isa<gpu::GPUFuncOp>(op); op = op->getParentOp())
    if (Team team = tile::decisions::kTeam.get(op))
      return team;
  return {};
}

Value tilewright::getSharedNumber(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  auto store = dyn_cast<memref::StoreOp>(op);
  Value memref = load ? load.getMemref() : store ? store.getMemref() : Value();
  return memref && !memref.getDefiningOp<memref::AllocaOp>() ? memref : Value();
}

BlockTeams::BlockTeams(gpu::GPUFuncOp function) {
  groups.insert({Team(), BlockGroup()});
  find(function);
  if (wrong)
    return;
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  Location loc = function.getLoc();
  BlockGroup &grid = groups.front().second;
  grid.block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  grid.blocks = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  if (!any())
    return;
  int64_t end = 0;
  for (auto &[team, group] : llvm::drop_begin(groups))
    end = std::max(end, cast<Team>(team)[0] + cast<Team>(team)[1]);
  Value isWhole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, grid.blocks,
                            constantIndex(b, loc, end));
  for (auto &[key, group] : llvm::drop_begin(groups)) {
    auto team = cast<Team>(key);
    Value first =
        arith::SelectOp::create(b, loc, isWhole, constantIndex(b, loc, team[0]),
                                constantIndex(b, loc, 0));
    group.blocks = arith::SelectOp::create(
        b, loc, isWhole, constantIndex(b, loc, team[1]), grid.blocks);
    // Blocks in front of the team have a number beyond any.
    group.block = arith::SubIOp::create(b, loc, grid.block, first);
    group.isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       group.block, group.blocks);
  }
}

void BlockTeams::find(gpu::GPUFuncOp function) {
  auto most = tile::decisions::kBlocks.get(function);
  function.walk([&](Operation *op) {
    Team team = tile::decisions::kTeam.get(op);
    if (!team)
      return;
    check(op, team, most ? most.getInt() : 0);
    groups.insert({team, BlockGroup()});
  });
}

/// Whether what an operation gives depends on numbers that only the blocks of a
/// team read: others leave its loops at once, and go through it with zeros.
static bool isKnownToTeam(Operation *op) {
  if (op->use_empty())
    return false;
  return op
      ->walk([](Operation *inner) {
        bool reads = isa<memref::LoadOp>(inner) && getSharedNumber(inner);
        return reads || isa<scf::WhileOp>(inner) ? WalkResult::interrupt()
                                                 : WalkResult::advance();
      })
      .wasInterrupted();
}

void BlockTeams::check(Operation *op, Team team, int64_t most) {
  auto fail = [&](const llvm::Twine &what) {
    op->emitOpError("has `tile.team` that ") << what;
    wrong = true;
  };
  if (team.size() != 2)
    return fail("is not two numbers: the first block, how many blocks");
  if (team[0] < 0 || team[1] < 1)
    return fail("has no block");
  if (most > 0 && team[0] + team[1] > most)
    return fail("ends with block " + llvm::Twine(team[0] + team[1] - 1) +
                " of a kernel that `tile.blocks` gives " + llvm::Twine(most) +
                " blocks");
  if (Team around = teamOf(op->getParentOp()); around && around != team)
    return fail("stands in what another team runs");
  if (isKnownToTeam(op))
    return fail("gives others what follows from numbers that it alone reads");
}
