//===- ResultsToArguments.cpp - results in the caller's buffers -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/HostBuffers/Passes.h"

namespace tilewright {
#define GEN_PASS_DEF_RESULTSTOARGUMENTS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The allocation of @main whose whole memory a value shows, through reshapes
/// and casts of contiguous memory; null if there is none.
memref::AllocOp findOwnBuffer(func::FuncOp main, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      bool usable = alloc.getType().hasStaticShape() &&
                    alloc->getBlock() == &main.getBody().front();
      return usable ? alloc : memref::AllocOp();
    }
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
            op))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

/// Whether elements of a type lie one after the other, whatever its open sizes
/// turn out to be.
bool isRowMajor(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0, expected = 1;
  if (failed(type.getStridesAndOffset(strides, offset)) || offset != 0)
    return false;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    int64_t size = type.getDimSize(dim);
    if (size == 1)
      continue;
    if (ShapedType::isDynamic(expected) || strides[dim] != expected)
      return false;
    expected =
        ShapedType::isDynamic(size) ? ShapedType::kDynamic : expected * size;
  }
  return true;
}

/// A result of open sizes as the caller reads it. Bufferization casts a slice
/// to the plain type, which holds only where the slice has no gaps.
Value withoutGaps(OpBuilder &b, Value result) {
  auto cast = result.getDefiningOp<memref::CastOp>();
  auto type = mlir::cast<MemRefType>(result.getType());
  auto source =
      cast ? dyn_cast<MemRefType>(cast.getSource().getType()) : MemRefType();
  if (!source || !type.getLayout().isIdentity() || isRowMajor(source))
    return result;
  Location loc = result.getLoc();
  SmallVector<Value> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      sizes.push_back(
          b.createOrFold<memref::DimOp>(loc, cast.getSource(), dim));
  Value whole = memref::AllocOp::create(b, loc, type, sizes);
  memref::CopyOp::create(b, loc, cast.getSource(), whole);
  return whole;
}

/// The argument with room for a result that continues an input; null where the
/// result has memory of its own.
BlockArgument roomFor(func::FuncOp main, unsigned result) {
  for (BlockArgument argument : main.getArguments()) {
    auto appends = main.getArgAttrOfType<DenseI64ArrayAttr>(
        argument.getArgNumber(), tile::decisions::kAppends);
    if (appends && appends.size() > 0 && appends[0] == int64_t(result))
      return argument;
  }
  return {};
}

/// Whether a value shows the first elements of a buffer.
bool isStartOf(Value value, Value buffer) {
  while (value != buffer) {
    Operation *op = value.getDefiningOp();
    if (auto view = dyn_cast_or_null<memref::SubViewOp>(op)) {
      if (!llvm::all_of(view.getMixedOffsets(), isZeroInteger) ||
          !llvm::all_of(view.getMixedStrides(), isOneInteger))
        return false;
    } else if (!isa_and_nonnull<memref::CastOp>(op)) {
      return false;
    }
    value = op->getOperand(0);
  }
  return true;
}

struct ResultsToArguments
    : public tilewright::impl::ResultsToArgumentsBase<ResultsToArguments> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    auto ret = cast<func::ReturnOp>(main.getBody().front().getTerminator());
    DictionaryAttr none = DictionaryAttr::get(&getContext());
    SmallVector<Value> kept;
    SmallVector<DictionaryAttr> keptAttrs;
    for (unsigned index = 0; index < ret.getNumOperands(); ++index) {
      Value result = ret.getOperand(index);
      auto type = dyn_cast<MemRefType>(result.getType());
      if (!type) {
        main.emitOpError("returns ") << result.getType() << " as result "
                                     << index << ", but results are buffers";
        return signalPassFailure();
      }
      DictionaryAttr given = main.getResultAttrDict(index);
      NamedAttrList attrs(given ? given : none);
      auto number =
          IntegerAttr::get(IntegerType::get(&getContext(), 64), index);
      attrs.set(tile::decisions::kResult, number);
      if (BlockArgument room = roomFor(main, index)) {
        main.setArgAttr(room.getArgNumber(), tile::decisions::kResult, number);
        if (failed(append(main, ret, result, room, number)))
          return signalPassFailure();
        continue;
      }
      if (!type.hasStaticShape()) {
        OpBuilder b(ret);
        kept.push_back(withoutGaps(b, result));
        keptAttrs.push_back(attrs.getDictionary(&getContext()));
        continue;
      }
      auto plain = MemRefType::get(type.getShape(), type.getElementType());
      unsigned position = main.getNumArguments();
      if (failed(main.insertArgument(position, plain,
                                     attrs.getDictionary(&getContext()),
                                     result.getLoc())))
        return signalPassFailure();
      place(ret, result, main.getArgument(position));
    }
    OpBuilder b(ret);
    func::ReturnOp::create(b, ret.getLoc(), kept);
    ret.erase();
    main.setType(FunctionType::get(&getContext(), main.getArgumentTypes(),
                                   ValueRange(kept).getTypes()));
    main->removeAttr(main.getResAttrsAttrName());
    if (!kept.empty())
      main.setAllResultAttrs(keptAttrs);
  }

private:
  /// Leaves a result in the memory with room for it, and tells its sizes.
  static LogicalResult append(func::FuncOp main, func::ReturnOp ret,
                              Value result, Value room, IntegerAttr number) {
    OpBuilder b(ret);
    Location loc = ret.getLoc();
    int64_t rank = cast<MemRefType>(result.getType()).getRank();
    SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)),
        strides(rank, b.getIndexAttr(1)),
        sizes = memref::getMixedSizes(b, loc, result);
    // Where it was made elsewhere (its last rows are read before they are
    // written), it is copied.
    if (!isStartOf(result, room))
      memref::CopyOp::create(
          b, loc, result,
          memref::SubViewOp::create(b, loc, room, offsets, sizes, strides));
    NamedAttrList attrs;
    attrs.set(tile::decisions::kSizesOf, number);
    unsigned position = main.getNumArguments();
    if (failed(main.insertArgument(
            position, MemRefType::get({rank}, b.getI64Type()),
            attrs.getDictionary(b.getContext()), result.getLoc())))
      return failure();
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      Value value = getValueOrCreateConstantIndexOp(b, loc, size);
      memref::StoreOp::create(
          b, loc,
          arith::IndexCastOp::create(b, loc, b.getI64Type(), value).getResult(),
          main.getArgument(position),
          arith::ConstantIndexOp::create(b, loc, dim).getResult());
    }
    return success();
  }

  /// Makes the result appear in `target`.
  static void place(func::ReturnOp ret, Value result, Value target) {
    if (memref::AllocOp own =
            findOwnBuffer(cast<func::FuncOp>(ret->getParentOp()), result)) {
      OpBuilder b(own);
      replaceBuffer(b, own, target);
      return;
    }
    OpBuilder b(ret);
    memref::CopyOp::create(b, ret.getLoc(), result, target);
  }

  static void replaceBuffer(OpBuilder &b, memref::AllocOp own, Value target) {
    MemRefType type = own.getType();
    if (target.getType() != type) {
      auto [strides, offset] = type.getStridesAndOffset();
      target = memref::ReinterpretCastOp::create(
          b, own.getLoc(), type, target, offset, type.getShape(), strides);
    }
    own.getResult().replaceAllUsesWith(target);
    own.erase();
  }
};

} // namespace
