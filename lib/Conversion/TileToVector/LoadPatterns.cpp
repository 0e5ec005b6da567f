//===- LoadPatterns.cpp - tile.load ---------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/MemoryAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Reads the parts of one tile.
class TileReader {
public:
  TileReader(OpBuilder &b, Location loc, VectorAddress &address,
             const PartLayout &layout, Value pad)
      : b(b), loc(loc), address(address), layout(layout), pad(pad) {}

  TileParts read() {
    TileParts result(layout);
    for (int64_t row = 0; row < layout.getRows(); ++row)
      for (const Chunk &chunk : layout.getChunks())
        result.getMutableParts().push_back(readPart(row, chunk));
    return result;
  }

private:
  Value readPart(int64_t row, const Chunk &chunk) {
    Mask mask = address.getMask(row, chunk);
    if (mask.kind == Mask::None)
      return splatTo(b, loc, layout.getPartType(chunk), pad);
    Value value;
    if (layout.isScalar())
      value = readScalar(row, mask);
    else if (address.isContiguous(laneDim()))
      value = readContiguous(row, chunk, mask);
    else
      value = readGather(row, chunk, mask);
    return fromStorage(b, loc, layout.getElementType(), value);
  }

  Value readScalar(int64_t row, Mask mask) {
    Value index = address.getIndex(row, 0);
    if (mask.kind == Mask::All)
      return memref::LoadOp::create(b, loc, address.getBuffer(), index);
    auto guarded = scf::IfOp::create(
        b, loc, mask.value,
        [&](OpBuilder &nested, Location loc) {
          Value value =
              memref::LoadOp::create(nested, loc, address.getBuffer(), index);
          scf::YieldOp::create(nested, loc, value);
        },
        [&](OpBuilder &nested, Location loc) {
          scf::YieldOp::create(nested, loc, storedPad(nested));
        });
    return guarded.getResult(0);
  }

  Value readContiguous(int64_t row, const Chunk &chunk, Mask mask) {
    auto type = VectorType::get(chunk.lanes, address.getStorageType());
    Value index = address.getIndex(row, chunk.start);
    if (mask.kind == Mask::All)
      return vector::LoadOp::create(b, loc, type, address.getBuffer(), index);
    Value pass = splatTo(b, loc, type, storedPad(b));
    return vector::MaskedLoadOp::create(b, loc, type, address.getBuffer(),
                                        ValueRange{index}, mask.value, pass);
  }

  Value readGather(int64_t row, const Chunk &chunk, Mask mask) {
    auto type = VectorType::get(chunk.lanes, address.getStorageType());
    Value active = mask.value;
    if (mask.kind == Mask::All)
      active = constantPart(b, loc, VectorType::get(chunk.lanes, b.getI1Type()),
                            b.getBoolAttr(true));
    Value pass = splatTo(b, loc, type, storedPad(b));
    return vector::GatherOp::create(
        b, loc, type, address.getBuffer(), ValueRange{address.getRowStart(row)},
        address.getLaneOffsets(chunk), active, pass);
  }

  Value storedPad(OpBuilder &builder) {
    return toStorage(builder, loc, address.getStorageType(), pad);
  }
  int64_t laneDim() const {
    return static_cast<int64_t>(layout.getShape().size()) - 1;
  }

  OpBuilder &b;
  Location loc;
  VectorAddress &address;
  const PartLayout &layout;
  Value pad;
};

struct LoadPattern : AccessPattern<tile::LoadOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    PartLayout layout = getLayout(op.getType());
    if (failed(checkStorable(op, layout.getElementType())))
      return failure();
    if (op.getBounded())
      return op.emitOpError("reads over the border of its buffer (bounded), "
                            "which kernels for a CPU do not do: give it valid, "
                            "or a buffer with the border");
    AccessDesc desc = describe(op, adaptor);
    if (op.getType().getInterleave()) {
      // Lanes run over columns and the rows that alternate, as memory does.
      desc.dims.back() = op.getMemRefType().getRank() - 1;
      auto [strides, offset] = op.getMemRefType().getStridesAndOffset();
      if (strides[strides.size() - 2] != op.getType().getInterleave())
        return op.emitOpError("of an interleaved tile needs columns that lie "
                              "side by side in memory");
    }
    Value pad = adaptor.getPad().empty()
                    ? zero(rewriter, loc, layout.getElementType())
                    : adaptor.getPad().front();
    // Where another dimension runs along memory, rows are read along that one
    // and transposed in registers: shuffles cost less than a gather.
    if (auto perm = contiguousFirst(rewriter, loc, desc, layout)) {
      AccessDesc transposed = permute(desc, *perm);
      PartLayout transposedLayout = permuteLayout(layout, *perm);
      VectorAddress address(rewriter, loc, transposed, transposedLayout);
      TileParts rows = readTile(rewriter, loc, address, transposedLayout, pad);
      TileParts result = transposeParts(rewriter, loc, rows, layout, *perm);
      rewriter.replaceOpWithMultiple(op, {result.getParts()});
      return success();
    }
    VectorAddress address(rewriter, loc, desc, layout);
    TileParts result = readTile(rewriter, loc, address, layout, pad);
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }
};

} // namespace

TileParts tilewright::readTile(OpBuilder &b, Location loc,
                               VectorAddress &address, const PartLayout &layout,
                               Value pad) {
  return TileReader(b, loc, address, layout, pad).read();
}

void tilewright::populateLoadPatterns(const TilePartsConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LoadPattern>(converter, patterns.getContext());
}
