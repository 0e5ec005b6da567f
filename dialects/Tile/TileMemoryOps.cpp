//===- TileMemoryOps.cpp - buffers, movement, meeting points --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// AllocOp
//===----------------------------------------------------------------------===//

void AllocOp::build(OpBuilder &builder, OperationState &state, MemRefType type,
                    int64_t alignment) {
  if (alignment)
    state.addAttribute(getAlignmentAttrName(state.name),
                       builder.getI64IntegerAttr(alignment));
  state.addTypes(type);
}

LogicalResult AllocOp::verify() {
  MemRefType type = getType();
  // alloc_c1
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("needs static sizes and no layout, got ") << type;
  // alloc_c2
  if (std::optional<uint64_t> alignment = getAlignment())
    if (static_cast<int64_t>(*alignment) <= 0 ||
        !llvm::isPowerOf2_64(*alignment))
      return emitOpError("alignment must be a positive power of two, got ")
             << static_cast<int64_t>(*alignment);
  // alloc_c3
  if (type.getMemorySpace() && !isa<LevelAttr>(type.getMemorySpace()))
    return emitOpError("memory space must be a #tile.level, got ")
           << type.getMemorySpace();
  return success();
}

//===----------------------------------------------------------------------===//
// CopyOp
//===----------------------------------------------------------------------===//

/// The buffer that a view looks at.
static Value baseBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

LogicalResult shared::verifyBounded(Operation *op,
                                    std::optional<ArrayRef<int64_t>> bounded,
                                    MemRefType buffer) {
  for (int64_t dim : bounded.value_or(ArrayRef<int64_t>()))
    if (dim < 0 || dim >= buffer.getRank())
      return op->emitOpError("bounded names dimension ")
             << dim << ", which its buffer of rank " << buffer.getRank()
             << " does not have";
  return success();
}

static LogicalResult verifyRemote(CopyOp op) {
  // copy_c2
  auto kernel = op->getParentOfType<KernelOp>();
  size_t rank = kernel ? kernel.getGridRank() : 0;
  if (op.getAt().size() != rank)
    return op.emitOpError("at gives ")
           << op.getAt().size() << " coordinates, the kernel around it has "
           << rank;
  // copy_c3
  if (!baseBuffer(op.getDst()).getDefiningOp<AllocOp>())
    return op.emitOpError("to another task needs a destination made by "
                          "tile.alloc, which every task has its own of");
  return success();
}

void CopyOp::build(OpBuilder &builder, OperationState &state, Value src,
                   Value dst, ValueRange at, bool fill) {
  state.addOperands({src, dst});
  state.addOperands(at);
  if (fill)
    state.addAttribute(getFillAttrName(state.name), builder.getUnitAttr());
}

/// Whether what is copied fits: the whole of `dst`, or with `fill` a part.
static bool fitsCopy(MemRefType src, MemRefType dst, bool fill) {
  if (src.getElementType() != dst.getElementType())
    return false;
  if (!fill)
    return succeeded(verifyCompatibleShape(src.getShape(), dst.getShape()));
  return src.getRank() == dst.getRank() &&
         llvm::all_of(llvm::zip_equal(src.getShape(), dst.getShape()),
                      [](auto sizes) {
                        auto [from, to] = sizes;
                        return ShapedType::isDynamic(from) ||
                               ShapedType::isDynamic(to) || from <= to;
                      });
}

LogicalResult CopyOp::verify() {
  auto src = cast<MemRefType>(getSrc().getType());
  auto dst = cast<MemRefType>(getDst().getType());
  // copy_c1
  if (!fitsCopy(src, dst, getFill()))
    return emitOpError("needs buffers of one shape and element type, got ")
           << src << " and " << dst;
  // copy_c4
  if (getFill() && !getAt().empty())
    return emitOpError("fills a buffer of its own task only, but has at");
  // copy_c5
  auto view = getSrc().getDefiningOp<memref::SubViewOp>();
  if (failed(shared::verifyBounded(*this, getBounded(),
                                   view ? view.getSourceType() : src)))
    return failure();
  return getAt().empty() ? success() : verifyRemote(*this);
}

LogicalResult CopyOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &) {
  return memref::foldMemRefCast(*this);
}

namespace {

/// A copy to itself, in the same task, does nothing.
struct EraseSelfCopy : OpRewritePattern<CopyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CopyOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getSrc() != op.getDst() || !op.getAt().empty() ||
        isa<AsyncOp>(op->getParentOp()))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void CopyOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<EraseSelfCopy>(context);
}

//===----------------------------------------------------------------------===//
// AsyncOp, AwaitOp, BarrierOp
//===----------------------------------------------------------------------===//

void AsyncOp::build(OpBuilder &builder, OperationState &state) {
  state.addTypes(TokenType::get(builder.getContext()));
  ensureTerminator(*state.addRegion(), builder, state.location);
}

LogicalResult AsyncOp::verify() {
  // async_c1
  bool copies = false;
  for (Operation &op : getBody().front().without_terminator()) {
    if (isa<CopyOp>(op))
      copies = true;
    else if (!isMemoryEffectFree(&op))
      return op.emitOpError("stands in a tile.async, which holds tile.copy and "
                            "operations without memory effects only");
  }
  if (!copies)
    return emitOpError("holds no tile.copy");
  return success();
}

LogicalResult AwaitOp::verify() {
  // await_c1
  if (getTokens().empty())
    return emitOpError("needs at least one token");
  return success();
}

LogicalResult BarrierOp::verify() {
  // barrier_c1
  if (!(*this)->getParentOfType<KernelOp>())
    return emitOpError("stands outside of a tile.kernel");
  return success();
}
