//===- GridBarrier.cpp - where blocks of a grid meet ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/GridBarrier.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/KernelGlobals.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tilewright;

/// Block 0 adds what is missing to 2^31, the others one: the counter's last bit
/// changes when all have come, and the others are as they were. So the counter
/// serves any number of meetings, launches and blocks, and is never reset. Each
/// arrival releases what its block has seen, and reads and writes at once: who
/// acquires the last one's value sees what all have released (PTX ISA,
/// "Causality order").
static constexpr llvm::StringLiteral kMeet =
    "{ .reg .pred P1; .reg .b32 R1, R2; "
    "atom.release.gpu.global.add.u32 R1, [$0], $1; "
    "LAB_WAIT: ld.acquire.gpu.global.u32 R2, [$0]; "
    "xor.b32 R2, R2, R1; setp.ge.s32 P1, R2, 0; "
    "@P1 bra.uni LAB_WAIT; }";

/// Numbers from one counter to the next: each has a line of the L2 cache.
static constexpr int64_t kApart = 32;

GridBarrier::GridBarrier(gpu::GPUFuncOp function, const BlockTeams &teams)
    : teams(teams) {
  OpBuilder b(function.getContext());
  Location loc = function.getLoc();
  // Behind the numbers of blocks.
  const BlockGroup &last = teams.all().back().second;
  b.setInsertionPointAfter(
      (last.isIn ? last.isIn : last.blocks).getDefiningOp());
  int64_t count = 1 + kApart * (static_cast<int64_t>(teams.all().size()) - 1);
  auto zero = DenseElementsAttr::get(
      RankedTensorType::get({count}, b.getI32Type()), int32_t(0));
  Value memory = makeGlobal(b, function, "_meetings", zero, /*constant=*/false);
  Value start = getBufferStart(b, loc, memory);
  for (auto [number, entry] : llvm::enumerate(teams.all())) {
    const auto &[team, group] = entry;
    Counter &counter = counters[team];
    counter.address =
        number == 0 ? start
                    : LLVM::GEPOp::create(
                          b, loc, start.getType(), b.getI32Type(), start,
                          ArrayRef<LLVM::GEPArg>{int32_t(kApart * number)})
                          .getResult();
    Value place =
        arith::IndexCastOp::create(b, loc, b.getI32Type(), group.block);
    Value blocks =
        arith::IndexCastOp::create(b, loc, b.getI32Type(), group.blocks);
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          place, constantI32(b, loc, 0));
    Value rest = arith::SubIOp::create(
        b, loc, constantI32(b, loc, std::numeric_limits<int32_t>::min() + 1),
        blocks);
    counter.arrival =
        arith::SelectOp::create(b, loc, isFirst, rest, constantI32(b, loc, 1));
  }
  function->setAttr(tile::decisions::kWaits, b.getUnitAttr());
}

/// All threads of the block meet. Two of gpu.barrier with nothing between
/// become one.
static void meetThreads(OpBuilder &b, Location loc, bool areCounted) {
  if (areCounted)
    NVVM::BarrierOp::create(b, loc);
  else
    gpu::BarrierOp::create(b, loc);
}

void GridBarrier::meet(OpBuilder &b, Location loc, Team team,
                       function_ref<void(OpBuilder &)> first,
                       bool areCounted) const {
  const BlockGroup &group = teams.of(team);
  const Counter &counter = counters.find(team)->second;
  guarded(b, loc, group.isIn, [&](OpBuilder &inner) {
    meetThreads(inner, loc, areCounted);
    Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq,
                                          getThreadNumber(inner, loc),
                                          constantI32(inner, loc, 0));
    guarded(inner, loc, isFirst, [&](OpBuilder &nested) {
      if (first) {
        Value isBlock0 = arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::eq, group.block,
            arith::ConstantIndexOp::create(nested, loc, 0));
        guarded(nested, loc, isBlock0, first);
      }
      LLVM::InlineAsmOp::create(
          nested, loc, TypeRange(),
          ValueRange{counter.address, counter.arrival}, kMeet, "l,r,~{memory}",
          /*has_side_effects=*/true,
          /*is_align_stack=*/false, LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
          ArrayAttr());
    });
    meetThreads(inner, loc, areCounted);
  });
}

void GridBarrier::attend(OpBuilder &b, Location loc, Team team) const {
  guarded(b, loc, teams.of(team).isIn, [&](OpBuilder &inner) {
    meetThreads(inner, loc, /*areCounted=*/true);
    meetThreads(inner, loc, /*areCounted=*/true);
  });
}
