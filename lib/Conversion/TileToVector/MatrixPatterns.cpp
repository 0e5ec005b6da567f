//===- MatrixPatterns.cpp - tiles in the registers of AMX -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block is a value of LLVM's type x86_amx, whose register and configuration
// LLVM chooses: eight registers of up to 16 rows of 64 bytes (Intel 64 and
// IA-32 Architectures Software Developer's Manual, volume 1, chapter 18). A
// product of bf16 rounds to nearest even after each pair and takes denormal
// numbers as zero; one of bytes is exact.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tilewright;

std::optional<MatrixBlocks> MatrixBlocks::of(Type type) {
  auto tile = dyn_cast<tile::TileType>(type);
  if (!tile || tile.getBlocks().empty() ||
      !tile.getElementType().isIntOrFloat())
    return std::nullopt;
  MatrixBlocks result;
  result.shape.assign(tile.getShape().begin(), tile.getShape().end());
  result.size.assign(tile.getBlocks().begin(), tile.getBlocks().end());
  result.group = std::max<int64_t>(tile.getInterleave(), 1);
  result.elementBytes =
      llvm::divideCeil(tile.getElementType().getIntOrFloatBitWidth(), 8);
  return result;
}

namespace {

/// Emits the instructions of AMX.
class MatrixUnit {
public:
  MatrixUnit(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value call(StringRef name, ValueRange operands) {
    auto type = LLVM::LLVMX86AMXType::get(b.getContext());
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name),
                                         operands)
        ->getResult(0);
  }
  Value zero(int64_t rows, int64_t bytes) {
    return call("llvm.x86.tilezero.internal", {size(rows), size(bytes)});
  }
  Value load(int64_t rows, int64_t bytes, Value pointer, Value stride) {
    return call("llvm.x86.tileloadd64.internal",
                {size(rows), size(bytes), pointer, stride});
  }
  void store(int64_t rows, int64_t bytes, Value pointer, Value stride,
             Value block) {
    LLVM::CallIntrinsicOp::create(
        b, loc, b.getStringAttr("llvm.x86.tilestored64.internal"),
        ValueRange{size(rows), size(bytes), pointer, stride, block});
  }
  Value size(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(value));
  }

private:
  OpBuilder &b;
  Location loc;
};

/// What `make` gives for each block of a tile, row by row.
SmallVector<Value> forBlocks(const MatrixBlocks &blocks,
                             function_ref<Value(int64_t, int64_t)> make) {
  SmallVector<Value> parts;
  for (int64_t i = 0; i < blocks.rowBlocks(); ++i)
    for (int64_t j = 0; j < blocks.columnBlocks(); ++j)
      parts.push_back(make(i, j));
  return parts;
}

/// Where the blocks of a tile are in memory.
class BlockAddress {
public:
  BlockAddress(OpBuilder &b, Location loc, VectorAddress &address,
               const MatrixBlocks &blocks)
      : b(b), loc(loc), address(address), blocks(blocks) {
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, address.getBuffer());
    start = toInteger(base);
    Value distance = indexValue(b, loc, b.getIndexAttr(0));
    if (auto known = address.getStaticStride(0))
      distance = indexValue(b, loc, b.getIndexAttr(*known));
    else
      distance = arith::SubIOp::create(b, loc, address.getIndex(1, 0),
                                       address.getIndex(0, 0));
    stride = toBytes(distance);
  }

  Value getPointer(int64_t row, int64_t column) {
    Value index = address.getIndex(blocks.rowAt(row) / blocks.getGroup(),
                                   blocks.columnAt(column) * blocks.getGroup());
    Value sum = arith::AddIOp::create(b, loc, start, toBytes(index));
    return LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), sum);
  }
  /// Bytes from one row of a register to the next.
  Value getStride() const { return stride; }

private:
  Value toInteger(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  Value toBytes(Value index) {
    Value bytes = arith::ConstantOp::create(
        b, loc, b.getI64IntegerAttr(blocks.getElementBytes()));
    return arith::MulIOp::create(b, loc, toInteger(index), bytes);
  }

  OpBuilder &b;
  Location loc;
  VectorAddress &address;
  const MatrixBlocks &blocks;
  Value start, stride;
};

template <typename AccessOp>
LogicalResult checkAccess(AccessOp op, const AccessDesc &desc,
                          const VectorAddress &address) {
  if (!desc.valid.empty() || desc.indices || !address.isContiguous(1))
    return op.emitOpError("of a tile in blocks takes rows whose elements lie "
                          "side by side, and neither indices nor valid");
  return success();
}

struct LoadBlocks : AccessPattern<tile::LoadOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto blocks = MatrixBlocks::of(op.getType());
    if (!blocks)
      return failure();
    Location loc = op.getLoc();
    PartLayout layout = getLayout(op.getType());
    AccessDesc desc = describe(op, adaptor);
    if (op.getType().getInterleave())
      desc.dims.back() = op.getMemRefType().getRank() - 1;
    VectorAddress address(rewriter, loc, desc, layout);
    if (failed(checkAccess(op, desc, address)))
      return failure();
    BlockAddress at(rewriter, loc, address, *blocks);
    MatrixUnit unit(rewriter, loc);
    auto parts = forBlocks(*blocks, [&](int64_t i, int64_t j) {
      return unit.load(blocks->rows(i), blocks->bytes(j), at.getPointer(i, j),
                       at.getStride());
    });
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// Stores all blocks of a tile.
void storeBlocks(OpBuilder &b, Location loc, VectorAddress &address,
                 const MatrixBlocks &blocks, ValueRange parts) {
  BlockAddress at(b, loc, address, blocks);
  MatrixUnit unit(b, loc);
  for (int64_t i = 0; i < blocks.rowBlocks(); ++i)
    for (int64_t j = 0; j < blocks.columnBlocks(); ++j)
      unit.store(blocks.rows(i), blocks.bytes(j), at.getPointer(i, j),
                 at.getStride(), parts[i * blocks.columnBlocks() + j]);
}

struct StoreBlocks : AccessPattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto blocks = MatrixBlocks::of(op.getTile().getType());
    if (!blocks)
      return failure();
    PartLayout layout = getLayout(op.getTile().getType());
    AccessDesc desc = describe(op, adaptor);
    VectorAddress address(rewriter, op.getLoc(), desc, layout);
    if (failed(checkAccess(op, desc, address)))
      return failure();
    if (op.getReduce())
      return op.emitOpError("of a tile in blocks cannot combine with memory");
    storeBlocks(rewriter, op.getLoc(), address, *blocks, adaptor.getTile());
    rewriter.eraseOp(op);
    return success();
  }
};

/// From blocks to vectors, through a buffer of the task: the unit's registers
/// reach others by memory only.
struct MoveBlocks : TilePattern<tile::ConvertOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ConvertOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto blocks = MatrixBlocks::of(op.getSource().getType());
    if (!blocks && !MatrixBlocks::of(op.getType()))
      return failure();
    auto kernel = op->getParentOfType<tile::KernelOp>();
    if (!blocks || MatrixBlocks::of(op.getType()) || !kernel)
      return op.emitOpError("moves tiles out of blocks, in a tile.kernel");
    Location loc = op.getLoc();
    PartLayout layout = getLayout(op.getType());
    AccessDesc desc;
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&kernel.getBody().front());
      desc.memref = tile::AllocOp::create(
          rewriter, loc,
          MemRefType::get(layout.getShape(), layout.getElementType()), 64);
    }
    Value start = arith::ConstantIndexOp::create(rewriter, loc, 0);
    desc.offsets = {start, start};
    desc.dims = {0, 1};
    desc.steps = {1, 1};
    VectorAddress address(rewriter, loc, desc, layout);
    storeBlocks(rewriter, loc, address, *blocks, adaptor.getSource());
    Value pad = zero(rewriter, loc, layout.getElementType());
    TileParts result = readTile(rewriter, loc, address, layout, pad);
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }
};

struct ZeroBlocks : TilePattern<arith::ConstantOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto blocks = MatrixBlocks::of(op.getType());
    if (!blocks)
      return failure();
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense || !dense.isSplat() || !isZero(dense.getSplatValue<Attribute>()))
      return op.emitOpError("of a tile in blocks must be zero");
    MatrixUnit unit(rewriter, op.getLoc());
    auto parts = forBlocks(*blocks, [&](int64_t i, int64_t j) {
      return unit.zero(blocks->rows(i), blocks->bytes(j));
    });
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

private:
  static bool isZero(Attribute value) {
    if (auto number = dyn_cast<FloatAttr>(value))
      return number.getValue().isPosZero();
    auto number = dyn_cast<IntegerAttr>(value);
    return number && number.getValue().isZero();
  }
};

struct MultiplyBlocks : TilePattern<tile::MmaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto a = MatrixBlocks::of(op.getA().getType());
    auto b = MatrixBlocks::of(op.getB().getType());
    auto c = MatrixBlocks::of(op.getC().getType());
    if (!a || !b || !c)
      return failure();
    std::string name = instruction(op);
    if (name.empty())
      return op.emitOpError("in blocks multiplies bf16 into f32 or bytes into "
                            "i32, b in groups of 4 bytes");
    MatrixUnit unit(rewriter, op.getLoc());
    SmallVector<Value> sums(adaptor.getC());
    int64_t columns = c->columnBlocks(), depth = a->columnBlocks();
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < c->rowBlocks(); ++i)
        for (int64_t j = 0; j < columns; ++j) {
          Value &sum = sums[i * columns + j];
          sum = unit.call(name, {unit.size(c->rows(i)), unit.size(c->bytes(j)),
                                 unit.size(a->bytes(k)), sum,
                                 adaptor.getA()[i * depth + k],
                                 adaptor.getB()[k * columns + j]});
        }
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }

private:
  static std::string instruction(tile::MmaOp op) {
    Type element = op.getA().getType().getElementType();
    Type total = op.getC().getType().getElementType();
    int64_t group = op.getB().getType().getInterleave();
    if (element != op.getB().getType().getElementType())
      return {};
    if (element.isBF16() && total.isF32() && group == 2)
      return "llvm.x86.tdpbf16ps.internal";
    if (!element.isInteger(8) || !total.isInteger(32) || group != 4)
      return {};
    std::string signs = {op.getAUnsigned() ? 'u' : 's',
                         op.getBUnsigned() ? 'u' : 's'};
    return "llvm.x86.tdpb" + signs + "d.internal";
  }
};

} // namespace

void tilewright::populateMatrixPatterns(const TilePartsConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LoadBlocks, StoreBlocks, MoveBlocks, ZeroBlocks, MultiplyBlocks>(
      converter, patterns.getContext(), /*benefit=*/2);
}
