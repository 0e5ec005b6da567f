//===- ExchangePatterns.cpp - ops that read other threads' elements -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/ThreadTiles.h"
#include "lib/Conversion/TileToVector/Combine.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// A pattern that reads its operands through shared memory.
template <typename SourceOp> struct ExchangePattern : TilePattern<SourceOp> {
  ExchangePattern(const TilePartsConverter &converter, MLIRContext *context,
                  const ExchangeBuffers &buffers)
      : TilePattern<SourceOp>(converter, context), buffers(buffers) {}

protected:
  ThreadTile getTile(OpBuilder &b, Location loc, Type type) const {
    return ThreadTile(b, loc, type, this->parts.getThreads());
  }
  /// Shares operand `number` and returns its buffer.
  Value share(OpBuilder &b, SourceOp op, unsigned number,
              ValueRange values) const {
    Value buffer = buffers.lookup({op.getOperation(), number});
    ThreadTile tile = getTile(b, op.getLoc(), op->getOperand(number).getType());
    shareTile(b, op.getLoc(), tile, values, buffer);
    return buffer;
  }

  const ExchangeBuffers &buffers;
};

Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Each result element is one source element; `SourceOp` says which.
template <typename SourceOp> struct MovePattern : ExchangePattern<SourceOp> {
  using ExchangePattern<SourceOp>::ExchangePattern;

  LogicalResult
  matchAndRewrite(SourceOp op, typename MovePattern::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ThreadTile source = this->getTile(rewriter, loc, op.getSource().getType());
    Value buffer = this->share(rewriter, op, 0, adaptor.getSource());
    if (!isa<tile::TileType>(op.getResult().getType())) {
      Value first = constant(rewriter, loc, 0);
      rewriter.replaceOp(
          op, memref::LoadOp::create(rewriter, loc, buffer, ValueRange{first}));
      return success();
    }
    ThreadTile result = this->getTile(rewriter, loc, op.getResult().getType());
    SmallVector<Value> results;
    for (int64_t part = 0; part < result.getNumParts(); ++part) {
      // Elements that do not exist read the first one.
      auto from = map(rewriter, op, result.getCoordinates(part), source);
      Value number = source.linearize(from);
      if (Value exists = result.exists(part))
        number = arith::SelectOp::create(rewriter, loc, exists, number,
                                         constant(rewriter, loc, 0));
      results.push_back(
          memref::LoadOp::create(rewriter, loc, buffer, ValueRange{number}));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static SmallVector<Value> map(OpBuilder &b, tile::BroadcastOp op,
                                ArrayRef<Value> at, ThreadTile &source) {
    ArrayRef<int64_t> shape = source.getType().getShape();
    SmallVector<Value> from(at.take_back(shape.size()));
    for (auto [coordinate, size] : llvm::zip_equal(from, shape))
      if (size == 1)
        coordinate = constant(b, op.getLoc(), 0);
    return from;
  }
  static SmallVector<Value> map(OpBuilder &, tile::TransposeOp op,
                                ArrayRef<Value> at, ThreadTile &) {
    SmallVector<Value> from(at.size());
    for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
      from[source] = at[dim];
    return from;
  }
  static SmallVector<Value> map(OpBuilder &b, tile::ExtractOp op,
                                ArrayRef<Value> at, ThreadTile &) {
    SmallVector<Value> from(at);
    for (auto [coordinate, offset] : llvm::zip_equal(from, op.getOffsets()))
      coordinate = arith::AddIOp::create(b, op.getLoc(), coordinate,
                                         constant(b, op.getLoc(), offset));
    return from;
  }
};

struct ReshapePattern : TilePattern<tile::ReshapeOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ReshapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // Row-major numbers stay, so every thread keeps its elements.
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }
};

struct ReducePattern : ExchangePattern<tile::ReduceOp> {
  using ExchangePattern::ExchangePattern;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ThreadTile source = getTile(rewriter, loc, op.getSource().getType());
    ThreadTile result = getTile(rewriter, loc, op.getResult().getType());
    Value buffer = share(rewriter, op, 0, adaptor.getSource());
    SmallVector<Value> results;
    for (int64_t part = 0; part < result.getNumParts(); ++part)
      results.push_back(reduceOne(rewriter, op, source,
                                  result.getCoordinates(part),
                                  result.exists(part), buffer));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  /// A loop over all reduced coordinates, none where the element is missing.
  Value reduceOne(OpBuilder &b, tile::ReduceOp op, ThreadTile &source,
                  ArrayRef<Value> at, Value exists, Value buffer) const {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = source.getType().getShape();
    int64_t count = 1;
    for (int64_t dim : op.getDims())
      count *= shape[dim];
    Value end = constant(b, loc, count), zero = constant(b, loc, 0);
    if (exists)
      end = arith::SelectOp::create(b, loc, exists, end, zero);
    Value neutral = arith::ConstantOp::create(
        b, loc,
        neutralElement(b, op.getKind(), source.getType().getElementType()));
    auto loop = scf::ForOp::create(b, loc, zero, end, constant(b, loc, 1),
                                   ValueRange{neutral});
    OpBuilder nested = OpBuilder::atBlockBegin(loop.getBody());
    SmallVector<Value> from(at);
    Value rest = loop.getInductionVar();
    for (int64_t dim : llvm::reverse(op.getDims())) {
      Value size = constant(nested, loc, shape[dim]);
      from[dim] = arith::RemUIOp::create(nested, loc, rest, size);
      rest = arith::DivUIOp::create(nested, loc, rest, size);
    }
    ThreadTile inside = getTile(nested, loc, op.getSource().getType());
    Value number = inside.linearize(from);
    Value value =
        memref::LoadOp::create(nested, loc, buffer, ValueRange{number});
    Value sum = combine(nested, loc, op.getKind(),
                        loop.getRegionIterArgs().front(), value);
    scf::YieldOp::create(nested, loc, sum);
    return loop.getResult(0);
  }
};

struct MmaPattern : ExchangePattern<tile::MmaOp> {
  using ExchangePattern::ExchangePattern;

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<tile::TileType>(op.getC().getType());
    if (op.getMeta() || type.getRank() != 2)
      return op.emitOpError("with sparsity metadata or of a rank other than 2 "
                            "has no GPU lowering yet");
    int64_t depth = cast<tile::TileType>(op.getA().getType()).getShape()[1];
    Value lhs = share(rewriter, op, 0, adaptor.getA());
    Value rhs = share(rewriter, op, 1, adaptor.getB());
    ThreadTile result = getTile(rewriter, loc, type);
    SmallVector<Value> rows, columns;
    for (int64_t part = 0; part < result.getNumParts(); ++part) {
      auto at = result.getCoordinates(part);
      // Elements that do not exist are computed for row 0, and dropped.
      if (Value exists = result.exists(part))
        at[0] = arith::SelectOp::create(rewriter, loc, exists, at[0],
                                        constant(rewriter, loc, 0));
      rows.push_back(arith::MulIOp::create(rewriter, loc, at[0],
                                           constant(rewriter, loc, depth)));
      columns.push_back(at[1]);
    }
    auto loop = scf::ForOp::create(rewriter, loc, constant(rewriter, loc, 0),
                                   constant(rewriter, loc, depth),
                                   constant(rewriter, loc, 1), adaptor.getC());
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    Value k = loop.getInductionVar();
    Value row =
        arith::MulIOp::create(b, loc, k, constant(b, loc, type.getShape()[1]));
    SmallVector<Value> sums;
    for (auto [part, sum] : llvm::enumerate(loop.getRegionIterArgs())) {
      Value i = arith::AddIOp::create(b, loc, rows[part], k);
      Value j = arith::AddIOp::create(b, loc, row, columns[part]);
      Value x = memref::LoadOp::create(b, loc, lhs, ValueRange{i});
      Value y = memref::LoadOp::create(b, loc, rhs, ValueRange{j});
      sums.push_back(multiplyAdd(b, loc, x, y, sum));
    }
    scf::YieldOp::create(b, loc, sums);
    rewriter.replaceOpWithMultiple(op, {loop.getResults()});
    return success();
  }

private:
  static Value widen(OpBuilder &b, Location loc, Value value, Type target) {
    if (value.getType() == target)
      return value;
    if (isa<FloatType>(target))
      return arith::ExtFOp::create(b, loc, target, value);
    return arith::ExtSIOp::create(b, loc, target, value);
  }

  static Value multiplyAdd(OpBuilder &b, Location loc, Value x, Value y,
                           Value sum) {
    x = widen(b, loc, x, sum.getType());
    y = widen(b, loc, y, sum.getType());
    if (!isa<FloatType>(sum.getType())) {
      Value product = arith::MulIOp::create(b, loc, x, y);
      return arith::AddIOp::create(b, loc, product, sum);
    }
    // Fused by the code generator: math.fma would become a library call.
    auto contract = arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(b, loc, x, y, contract);
    return arith::AddFOp::create(b, loc, product, sum, contract);
  }
};

} // namespace

void tilewright::populateThreadExchangePatterns(
    const TilePartsConverter &converter, const ExchangeBuffers &buffers,
    RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<MovePattern<tile::BroadcastOp>, MovePattern<tile::TransposeOp>,
               MovePattern<tile::ExtractOp>, ReducePattern, MmaPattern>(
      converter, context, buffers);
  patterns.add<ReshapePattern>(converter, context);
}
