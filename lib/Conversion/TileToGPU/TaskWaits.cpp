//===- TaskWaits.cpp - tasks that wait for others of their grid -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/TaskWaits.h"

#include "dialects/Tile/TileTasks.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Adds one behind all that the block's threads did: they have met, and the
/// release of the one that tells orders what it saw of the others, too (PTX
/// ISA, "Causality order").
constexpr llvm::StringLiteral kPost = "red.release.gpu.global.add.u32 [$0], 1;";

/// Reads until there is enough, and takes it off. Nobody else takes it, and who
/// posts next does so in another launch.
std::string takeText(int64_t count) {
  std::string number = std::to_string(count);
  return "{ .reg .pred P1; .reg .b32 R1; LAB_WAIT: "
         "ld.acquire.gpu.global.u32 R1, [$0]; setp.lt.u32 P1, R1, " +
         number +
         "; @P1 bra.uni LAB_WAIT; red.relaxed.gpu.global.add.s32 [$0], -" +
         number + "; }";
}

/// One thread runs an instruction on a semaphore.
void onSemaphore(OpBuilder &b, Location loc, Value semaphores, Value index,
                 StringRef text) {
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            getThreadNumber(b, loc), constantI32(b, loc, 0));
  guarded(b, loc, isFirst, [&](OpBuilder &nested) {
    Value number =
        arith::IndexCastOp::create(nested, loc, nested.getI32Type(), index);
    Value bytes =
        arith::MulIOp::create(nested, loc, number, constantI32(nested, loc, 4));
    Value pointer = movePointer(nested, loc,
                                getBufferStart(nested, loc, semaphores), bytes);
    LLVM::InlineAsmOp::create(
        nested, loc, TypeRange(), ValueRange{pointer}, text, "l,~{memory}",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  });
}

} // namespace

void tilewright::lowerTaskWaits(gpu::GPUFuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<tile::SemaphorePostOp, tile::SemaphoreTakeOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (auto post = dyn_cast<tile::SemaphorePostOp>(op)) {
      gpu::BarrierOp::create(b, loc);
      onSemaphore(b, loc, post.getSemaphores(), post.getIndex(), kPost);
    } else {
      auto take = cast<tile::SemaphoreTakeOp>(op);
      onSemaphore(b, loc, take.getSemaphores(), take.getIndex(),
                  takeText(static_cast<int64_t>(take.getCount())));
      gpu::BarrierOp::create(b, loc);
    }
    op->erase();
  }
}
