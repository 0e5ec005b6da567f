//===- StorePatterns.cpp - tile.store -------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToVector/Combine.h"
#include "lib/Conversion/TileToVector/MemoryAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Writes the parts of one tile.
class TileWriter {
public:
  TileWriter(OpBuilder &b, Location loc, VectorAddress &address,
             const TileParts &tile, std::optional<tile::ReduceKind> reduce,
             bool atomic, bool streamed)
      : b(b), loc(loc), address(address), tile(tile), reduce(reduce),
        atomic(atomic), streamed(streamed) {}

  void write() {
    Value aligned = streamed ? isAligned() : Value();
    if (!aligned)
      return writeParts();
    auto branch = scf::IfOp::create(b, loc, aligned, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    alignment = widestPart();
    writeParts();
    b.setInsertionPointToStart(branch.elseBlock());
    alignment = kStreamed;
    writeParts();
  }

private:
  /// Stores past the caches are of that many bytes at least. A caller's buffer
  /// is aligned so.
  static constexpr int64_t kStreamed = 16;

  int64_t widestPart() const {
    int64_t widest = 0;
    for (const Chunk &chunk : tile.getLayout().getChunks())
      widest = std::max(widest, bytesOf(chunk));
    return widest;
  }

  /// Whether all rows begin where stores of whole vectors may go past the
  /// caches; null where that is not a matter of alignment.
  Value isAligned() {
    int64_t widest = widestPart();
    if (widest <= kStreamed || !llvm::isPowerOf2_64(widest) ||
        tile.getLayout().isScalar() || atomic ||
        !address.isContiguous(laneDim()))
      return Value();
    Value bits = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, address.getBuffer());
    Value size = arith::ConstantIndexOp::create(b, loc, elementBytes());
    Value base = bits;
    for (int64_t row = 0; row < tile.getLayout().getRows(); ++row) {
      Value bytes =
          arith::MulIOp::create(b, loc, address.getIndex(row, 0), size);
      Value start = arith::AddIOp::create(b, loc, base, bytes);
      bits =
          row ? arith::OrIOp::create(b, loc, bits, start).getResult() : start;
    }
    Value mask = arith::ConstantIndexOp::create(b, loc, widest - 1);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 arith::AndIOp::create(b, loc, bits, mask),
                                 zero);
  }

  void writeParts() {
    const PartLayout &layout = tile.getLayout();
    // Two positions of a scatter may be the same address: a combining store
    // then takes them one by one.
    bool oneByOne = layout.isScalar() || atomic ||
                    (reduce && !address.isContiguous(laneDim()));
    for (int64_t row = 0; row < layout.getRows(); ++row)
      for (auto [index, chunk] : llvm::enumerate(layout.getChunks()))
        oneByOne ? writeElements(row, chunk)
                 : writeChunk(row, chunk, tile.getPart(row, index));
  }

  void writeElements(int64_t row, const Chunk &chunk) {
    for (int64_t lane = chunk.start; lane < chunk.start + chunk.valid; ++lane) {
      Mask mask = address.getElementMask(row, lane);
      if (mask.kind == Mask::None)
        continue;
      Value index = address.getIndex(row, lane);
      Value value = tile.getElement(b, loc, row, lane);
      if (mask.kind == Mask::All) {
        writeElement(b, index, value);
        continue;
      }
      scf::IfOp::create(b, loc, mask.value,
                        [&](OpBuilder &nested, Location loc) {
                          writeElement(nested, index, value);
                          scf::YieldOp::create(nested, loc);
                        });
    }
  }

  void writeElement(OpBuilder &builder, Value index, Value value) {
    Value buffer = address.getBuffer();
    if (atomic) {
      memref::AtomicRMWOp::create(builder, loc, value.getType(),
                                  atomicKind(*reduce, value.getType()), value,
                                  buffer, index);
      return;
    }
    if (reduce) {
      Value old = memref::LoadOp::create(builder, loc, buffer, index);
      old = fromStorage(builder, loc, value.getType(), old);
      value = combine(builder, loc, *reduce, old, value);
    }
    value = toStorage(builder, loc, address.getStorageType(), value);
    memref::StoreOp::create(builder, loc, value, buffer, index);
  }

  void writeChunk(int64_t row, const Chunk &chunk, Value value) {
    Mask mask = address.getMask(row, chunk);
    if (mask.kind == Mask::None)
      return;
    if (!address.isContiguous(laneDim()))
      return scatter(row, chunk, value, mask);
    Value index = address.getIndex(row, chunk.start);
    if (reduce)
      value = combine(b, loc, *reduce, readOld(index, chunk, mask), value);
    value = toStorage(b, loc, address.getStorageType(), value);
    if (mask.kind == Mask::All) {
      auto store =
          vector::StoreOp::create(b, loc, value, address.getBuffer(), index);
      if (streamed && bytesOf(chunk) % kStreamed == 0) {
        store.setNontemporal(true);
        // the largest power of two in the vector's size, where memory allows
        store.setAlignment(
            std::min(alignment, bytesOf(chunk) & -bytesOf(chunk)));
      }
    } else
      vector::MaskedStoreOp::create(b, loc, address.getBuffer(),
                                    ValueRange{index}, mask.value, value);
  }

  Value readOld(Value index, const Chunk &chunk, Mask mask) {
    auto type = VectorType::get(chunk.lanes, address.getStorageType());
    Value old;
    if (mask.kind == Mask::All)
      old = vector::LoadOp::create(b, loc, type, address.getBuffer(), index);
    else
      old = vector::MaskedLoadOp::create(b, loc, type, address.getBuffer(),
                                         ValueRange{index}, mask.value,
                                         zero(b, loc, type));
    return fromStorage(b, loc, tile.getLayout().getElementType(), old);
  }

  void scatter(int64_t row, const Chunk &chunk, Value value, Mask mask) {
    Value active = mask.value;
    if (mask.kind == Mask::All)
      active = constantPart(b, loc, VectorType::get(chunk.lanes, b.getI1Type()),
                            b.getBoolAttr(true));
    value = toStorage(b, loc, address.getStorageType(), value);
    vector::ScatterOp::create(b, loc, Type(), address.getBuffer(),
                              ValueRange{address.getRowStart(row)},
                              address.getLaneOffsets(chunk), active, value);
  }

  int64_t elementBytes() const {
    return address.getStorageType().getIntOrFloatBitWidth() / 8;
  }

  int64_t bytesOf(const Chunk &chunk) const {
    return chunk.lanes * elementBytes();
  }

  int64_t laneDim() const {
    return static_cast<int64_t>(tile.getLayout().getShape().size()) - 1;
  }

  OpBuilder &b;
  Location loc;
  VectorAddress &address;
  const TileParts &tile;
  std::optional<tile::ReduceKind> reduce;
  bool atomic, streamed;
  /// Bytes that the addresses of stores past the caches are multiples of.
  int64_t alignment = kStreamed;
};

struct StorePattern : AccessPattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TileParts tile = getParts(op.getTile().getType(), adaptor.getTile());
    Type element = tile.getLayout().getElementType();
    if (failed(checkStorable(op, element)))
      return failure();
    if (op.getAtomic() && element.isInteger(1))
      return op.emitOpError("cannot be atomic on i1; use i8 elements");
    AccessDesc desc = describe(op, adaptor);
    if (auto perm = contiguousFirst(rewriter, loc, desc, tile.getLayout())) {
      tile = transposeParts(rewriter, loc, tile,
                            permuteLayout(tile.getLayout(), *perm), *perm);
      desc = permute(desc, *perm);
    }
    VectorAddress address(rewriter, loc, desc, tile.getLayout());
    TileWriter(rewriter, loc, address, tile, op.getReduce(), op.getAtomic(),
               op->hasAttr(tile::decisions::kStreamed))
        .write();
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void tilewright::populateStorePatterns(const TilePartsConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<StorePattern>(converter, patterns.getContext());
}
