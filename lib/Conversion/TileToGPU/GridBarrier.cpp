//===- GridBarrier.cpp - where all blocks of a grid meet ------------------===//
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

GridBarrier::GridBarrier(gpu::GPUFuncOp function) {
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  Location loc = function.getLoc();
  block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  blocks = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  auto zero = DenseElementsAttr::get(RankedTensorType::get({1}, b.getI32Type()),
                                     int32_t(0));
  Value memory = makeGlobal(b, function, "_meetings", zero, /*constant=*/false);
  counter = getBufferStart(b, loc, memory);
  Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), block);
  Value count = arith::IndexCastOp::create(b, loc, b.getI32Type(), blocks);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        number, constantI32(b, loc, 0));
  Value rest = arith::SubIOp::create(
      b, loc, constantI32(b, loc, std::numeric_limits<int32_t>::min() + 1),
      count);
  arrival =
      arith::SelectOp::create(b, loc, isFirst, rest, constantI32(b, loc, 1));
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

void GridBarrier::meet(OpBuilder &b, Location loc,
                       function_ref<void(OpBuilder &)> first,
                       bool areCounted) const {
  meetThreads(b, loc, areCounted);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            getThreadNumber(b, loc), constantI32(b, loc, 0));
  guarded(b, loc, isFirst, [&](OpBuilder &nested) {
    if (first) {
      Value isBlock0 =
          arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, block,
                                arith::ConstantIndexOp::create(nested, loc, 0));
      guarded(nested, loc, isBlock0, first);
    }
    LLVM::InlineAsmOp::create(
        nested, loc, TypeRange(), ValueRange{counter, arrival}, kMeet,
        "l,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  });
  meetThreads(b, loc, areCounted);
}

void GridBarrier::attend(OpBuilder &b, Location loc) {
  meetThreads(b, loc, /*areCounted=*/true);
  meetThreads(b, loc, /*areCounted=*/true);
}
