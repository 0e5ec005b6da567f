//===- TablePatterns.cpp - gathers from tables of four --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gather from a buffer of four floats: all four lie in every quarter of a
// register, and each lane takes one of its own quarter (vpermilps), which takes
// a cycle where a gather of 16 takes ten.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {

constexpr int64_t kEntries = 4;

/// Whether all of the load's buffer is a table of four floats side by side.
bool readsTable(tile::LoadOp op) {
  MemRefType type = op.getMemRefType();
  if (!op.getIndices() || !op.getValid().empty() || op.getBounded())
    return false;
  if (op.getType().getShape().size() != 1 || type.getRank() != 1 ||
      type.getDimSize(0) != kEntries || !type.getElementType().isF32())
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[0] == 1 && op.getTileSteps()[0] == 1 &&
         getConstantIntValue(op.getOffsets()[0]) == 0;
}

/// The intrinsic that picks in each quarter; empty where there is none.
StringRef pickIntrinsic(int64_t lanes) {
  switch (lanes) {
  case 4:
    return "llvm.x86.avx.vpermilvar.ps";
  case 8:
    return "llvm.x86.avx.vpermilvar.ps.256";
  case 16:
    return "llvm.x86.avx512.vpermilvar.ps.512";
  default:
    return {};
  }
}

/// The instruction reads two bits: a mask that keeps these is not needed.
Value withoutMask(Value indices) {
  auto masked = indices.getDefiningOp<arith::AndIOp>();
  APInt mask;
  if (masked && matchPattern(masked.getRhs(), m_ConstantInt(&mask)) &&
      mask == kEntries - 1)
    return masked.getLhs();
  return indices;
}

struct TableLoadPattern : AccessPattern<tile::LoadOp> {
  TableLoadPattern(const TilePartsConverter &converter, MLIRContext *context)
      : Base(converter, context, /*benefit=*/2) {}

  LogicalResult
  matchAndRewrite(tile::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    PartLayout layout = getLayout(op.getType());
    auto hasIntrinsic = [](const Chunk &chunk) {
      return !pickIntrinsic(chunk.lanes).empty();
    };
    if (!readsTable(op) || layout.isScalar() ||
        !getElementTypeOrSelf(op.getIndices().getType()).isInteger(32) ||
        !llvm::all_of(layout.getChunks(), hasIntrinsic))
      return rewriter.notifyMatchFailure(op, "no table of four floats");
    Location loc = op.getLoc();
    AccessDesc desc = describe(op, adaptor);
    VectorAddress address(rewriter, loc, desc, layout);
    Value table = vector::LoadOp::create(
        rewriter, loc, VectorType::get(kEntries, rewriter.getF32Type()),
        address.getBuffer(), address.getRowStart(0));
    TileParts result(layout);
    for (const Chunk &chunk : layout.getChunks()) {
      Value indices = desc.indices->getLanes(rewriter, loc, 0, chunk.start,
                                             chunk, /*scalar=*/false);
      result.getMutableParts().push_back(
          pick(rewriter, loc, table, withoutMask(indices), chunk.lanes));
    }
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }

private:
  static Value pick(OpBuilder &b, Location loc, Value table, Value indices,
                    int64_t lanes) {
    SmallVector<int64_t> quarters;
    for (int64_t lane = 0; lane < lanes; ++lane)
      quarters.push_back(lane % kEntries);
    Value wide = vector::ShuffleOp::create(b, loc, table, table, quarters);
    auto call = LLVM::CallIntrinsicOp::create(
        b, loc, wide.getType(), b.getStringAttr(pickIntrinsic(lanes)),
        ValueRange{wide, indices});
    return call->getResult(0);
  }
};

} // namespace

void tilewright::populateTablePatterns(const TilePartsConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<TableLoadPattern>(converter, patterns.getContext());
}
