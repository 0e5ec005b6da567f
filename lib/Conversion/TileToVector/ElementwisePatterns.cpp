//===- ElementwisePatterns.cpp - arith, math, select, constants -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/AnyMachine.h"
#include "lib/Conversion/TileToVector/TileParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/CastInterfaces.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Any arith or math op on tiles, part by part.
struct ElementwisePattern : ConversionPattern {
  ElementwisePattern(const TilePartsConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        parts(converter) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 ||
        !isa<tile::TileType>(op->getResult(0).getType()))
      return failure();
    for (Value operand : op->getOperands())
      if (!isa<tile::TileType>(operand.getType()))
        return rewriter.notifyMatchFailure(op, "mixes tiles and scalars");
    PartLayout layout = parts.getLayout(op->getResult(0).getType());
    SmallVector<Value> results;
    for (int64_t part = 0; part < layout.getNumParts(); ++part) {
      SmallVector<Value> inputs;
      for (ValueRange range : operands)
        inputs.push_back(range[part]);
      const Chunk &chunk = layout.getChunkOfPart(part);
      if (dividesIntegers(op) && chunk.isRagged())
        inputs[1] = avoidZeroLanes(rewriter, op->getLoc(), inputs[1], chunk);
      results.push_back(clone(rewriter, op, inputs, layout.getPartType(chunk)));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value clone(OpBuilder &b, Operation *op, ValueRange inputs,
                     Type resultType) {
    Operation *copy = Operation::create(
        op->getLoc(), op->getName(), resultType, inputs,
        op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
        /*successors=*/BlockRange(), /*numRegions=*/0);
    return b.insert(copy)->getResult(0);
  }

  /// Lanes beyond the tile hold anything, and an integer division by zero
  /// traps.
  static Value avoidZeroLanes(OpBuilder &b, Location loc, Value divisor,
                              const Chunk &chunk) {
    auto type = cast<VectorType>(divisor.getType());
    Value one =
        constantPart(b, loc, type, b.getIntegerAttr(type.getElementType(), 1));
    return arith::SelectOp::create(b, loc, raggedMask(b, loc, chunk), divisor,
                                   one);
  }

  const TilePartsConverter &parts;
};

/// Constants: splats stay splats, others are cut.
struct ConstantPattern : TilePattern<arith::ConstantOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<tile::TileType>(op.getType()))
      return failure();
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense)
      return op.emitOpError("of a tile must hold dense elements");
    PartLayout layout = getLayout(op.getType());
    SmallVector<Attribute> values(dense.getValues<Attribute>());
    SmallVector<Value> results;
    for (int64_t row = 0; row < layout.getRows(); ++row)
      for (const Chunk &chunk : layout.getChunks())
        results.push_back(
            makePart(rewriter, op.getLoc(), layout, chunk,
                     ArrayRef(values).drop_front(row * layout.getWidth())));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value makePart(OpBuilder &b, Location loc, const PartLayout &layout,
                        const Chunk &chunk, ArrayRef<Attribute> row) {
    if (layout.isScalar())
      return arith::ConstantOp::create(b, loc, cast<TypedAttr>(row.front()));
    SmallVector<Attribute> lanes(row.slice(chunk.start, chunk.valid));
    lanes.resize(chunk.lanes, lanes.back());
    auto type = cast<VectorType>(layout.getPartType(chunk));
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, lanes));
  }
};

struct SelectPattern : TilePattern<tile::SelectOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::SelectOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results;
    for (auto [condition, left, right] :
         llvm::zip_equal(adaptor.getCondition(), adaptor.getTrueValue(),
                         adaptor.getFalseValue()))
      results.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                                condition, left, right));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// Number conversions of one part.
class PartConverter {
public:
  PartConverter(OpBuilder &b, Location loc, bool isUnsigned)
      : b(b), loc(loc), isUnsigned(isUnsigned) {}

  Value convert(Value value, Type target) {
    Type from = getElementTypeOrSelf(value.getType());
    if (from == target)
      return value;
    if (from.isIndex())
      return convert(cast<arith::IndexCastOp>(value, b.getI64Type()), target);
    if (isa<FloatType>(from))
      return fromFloat(value, target);
    // The only values of an i1 are 0 and 1, never -1.
    bool zeroExtend = isUnsigned || from.isInteger(1);
    if (isa<FloatType>(target))
      return zeroExtend ? cast<arith::UIToFPOp>(value, target)
                        : cast<arith::SIToFPOp>(value, target);
    if (target.isInteger(1))
      return isNotZero(value);
    if (target.isIndex())
      return zeroExtend ? cast<arith::IndexCastUIOp>(value, target)
                        : cast<arith::IndexCastOp>(value, target);
    if (target.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth())
      return cast<arith::TruncIOp>(value, target);
    return zeroExtend ? cast<arith::ExtUIOp>(value, target)
                      : cast<arith::ExtSIOp>(value, target);
  }

private:
  Value fromFloat(Value value, Type target) {
    Type from = getElementTypeOrSelf(value.getType());
    if (target.isInteger(1))
      return isNotZero(value);
    if (target.isIndex())
      return convert(convert(value, b.getI64Type()), target);
    if (!isa<FloatType>(target))
      return isUnsigned ? cast<arith::FPToUIOp>(value, target)
                        : cast<arith::FPToSIOp>(value, target);
    unsigned to = target.getIntOrFloatBitWidth();
    unsigned width = from.getIntOrFloatBitWidth();
    if (to == width) // f16 <-> bf16 go through f32
      return convert(convert(value, b.getF32Type()), target);
    return to < width ? cast<arith::TruncFOp>(value, target)
                      : cast<arith::ExtFOp>(value, target);
  }

  Value isNotZero(Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    Value none = constantPart(b, loc, value.getType(),
                              mlir::cast<TypedAttr>(b.getZeroAttr(element)));
    if (isa<FloatType>(element))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value,
                                   none);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, none);
  }

  template <typename CastOp> Value cast(Value value, Type element) {
    Type type = element;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = vector.clone(element);
    return CastOp::create(b, loc, type, value);
  }

  OpBuilder &b;
  Location loc;
  bool isUnsigned;
};

struct ConvertPattern : TilePattern<tile::ConvertOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ConvertOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type target = getElementTypeOrSelf(op.getResult().getType());
    PartConverter converter(rewriter, op.getLoc(), op.getIsUnsigned());
    SmallVector<Value> results;
    for (Value part : adaptor.getSource())
      results.push_back(converter.convert(part, target));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct SplatPattern : TilePattern<tile::SplatOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::SplatOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    PartLayout layout = getLayout(op.getResult().getType());
    SmallVector<Value> row, results;
    for (const Chunk &chunk : layout.getChunks())
      row.push_back(splatTo(rewriter, op.getLoc(), layout.getPartType(chunk),
                            adaptor.getScalar().front()));
    for (int64_t i = 0; i < layout.getRows(); ++i)
      llvm::append_range(results, row);
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct IotaPattern : TilePattern<tile::IotaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::IotaOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    PartLayout layout = getLayout(op.getResult().getType());
    auto dim = static_cast<int64_t>(op.getDim());
    auto rank = static_cast<int64_t>(layout.getShape().size());
    SmallVector<Value> results;
    for (int64_t row = 0; row < layout.getRows(); ++row)
      for (const Chunk &chunk : layout.getChunks()) {
        SmallVector<Attribute> lanes;
        for (int64_t lane = 0; lane < chunk.lanes; ++lane)
          lanes.push_back(number(rewriter, layout.getElementType(),
                                 dim == rank - 1
                                     ? chunk.start + lane
                                     : layout.getRowIndex(row)[dim]));
        TypedAttr value = cast<TypedAttr>(lanes.front());
        if (auto type = dyn_cast<VectorType>(layout.getPartType(chunk)))
          value = DenseElementsAttr::get(type, lanes);
        results.push_back(
            arith::ConstantOp::create(rewriter, op.getLoc(), value));
      }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Attribute number(Builder &b, Type element, int64_t value) {
    if (isa<FloatType>(element))
      return b.getFloatAttr(element, static_cast<double>(value));
    return b.getIntegerAttr(element, value);
  }
};

} // namespace

Value tilewright::convertNumber(OpBuilder &b, Location loc, Value value,
                                Type element, bool isUnsigned) {
  return PartConverter(b, loc, isUnsigned).convert(value, element);
}

void tilewright::populateElementwisePatterns(
    const TilePartsConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ElementwisePattern, ConstantPattern, SelectPattern,
               ConvertPattern, SplatPattern, IotaPattern>(
      converter, patterns.getContext());
}
