//===- MmaPatterns.cpp - tile.mma as broadcasts and FMAs ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/TileParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Moves a load down to the insertion point, over operations that neither write
/// nor use it. A tile of lhs is read element by element: were all of
/// them read first, they would need a register each until their turn comes.
static void sinkLoad(RewriterBase &rewriter, Value element) {
  auto load = element.getDefiningOp<memref::LoadOp>();
  Block::iterator here = rewriter.getInsertionPoint();
  if (!load || load->getBlock() != rewriter.getInsertionBlock() ||
      here == load->getBlock()->end())
    return;
  for (Operation *user : load->getUsers()) {
    Operation *at = load->getBlock()->findAncestorOpInBlock(*user);
    // Casts between a tile and its parts go when the conversion ends.
    if (!isa<UnrealizedConversionCastOp>(user) && at &&
        at->isBeforeInBlock(&*here))
      return;
  }
  for (Operation *op = load->getNextNode(); op != &*here;
       op = op->getNextNode())
    if (!op || !(isMemoryEffectFree(op) || isa<memref::PrefetchOp>(op) ||
                 hasSingleEffect<MemoryEffects::Read>(op)))
      return;
  rewriter.moveOpBefore(load, rewriter.getInsertionBlock(), here);
}

/// d[m][n] = sum over k of a[m][k] * b[k][n] + c[m][n], in (k, m, n) order: the
/// row of b stays in registers while each a is broadcast once.
class MmaEmitter {
public:
  MmaEmitter(RewriterBase &b, tile::MmaOp op, const TileParts &lhs,
             const TileParts &rhs, const TileParts &acc)
      : b(b), op(op), loc(op.getLoc()), lhs(lhs), rhs(rhs), acc(acc) {}

  TileParts emit() {
    TileParts result = acc;
    int64_t depth = lhs.getLayout().getWidth();
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t m = 0; m < acc.getLayout().getRows(); ++m)
        step(result, k, m);
    return result;
  }

private:
  void step(TileParts &result, int64_t k, int64_t m) {
    const PartLayout &layout = acc.getLayout();
    Type wide = layout.getElementType();
    Value element = lhs.getElement(b, loc, m, k);
    sinkLoad(b, element);
    element = widenTo(b, loc, wide, element, op.getAUnsigned());
    for (auto [c, chunk] : llvm::enumerate(layout.getChunks())) {
      Value &target = result.getMutableParts()[layout.getPart(m, c)];
      Value x = splatTo(b, loc, layout.getPartType(chunk), element);
      Value y = widenTo(b, loc, wide, rhs.getPart(k, c), op.getBUnsigned());
      target = multiplyAdd(b, loc, x, y, target);
    }
  }

  RewriterBase &b;
  tile::MmaOp op;
  Location loc;
  const TileParts &lhs, &rhs, &acc;
};

struct MmaPattern : TilePattern<tile::MmaOp> {
  MmaPattern(const TilePartsConverter &converter, MLIRContext *context,
             DotUnits units)
      : Base(converter, context), units(units) {}

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getMeta())
      return op.emitOpError("with sparsity metadata has no CPU lowering: this "
                            "machine has no unit for N:M sparsity; expand the "
                            "operand to its dense form first");
    TileParts acc = getParts(op.getC().getType(), adaptor.getC());
    if (acc.getLayout().getShape().size() != 2)
      return op.emitOpError("takes tiles of rank 2 on a CPU; loop over the "
                            "batch dimensions");
    TileParts lhs = getParts(op.getA().getType(), adaptor.getA());
    TileParts rhs = getParts(op.getB().getType(), adaptor.getB());
    TileParts result = op.getB().getType().getInterleave()
                           ? emitDotProducts(rewriter, op, units, lhs, rhs, acc)
                           : MmaEmitter(rewriter, op, lhs, rhs, acc).emit();
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }

private:
  DotUnits units;
};

} // namespace

Value tilewright::widenTo(OpBuilder &b, Location loc, Type element, Value value,
                          bool isUnsigned) {
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (isa<FloatType>(element))
    return arith::ExtFOp::create(b, loc, type, value);
  if (isUnsigned)
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

Value tilewright::multiplyAdd(OpBuilder &b, Location loc, Value x, Value y,
                              Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum.getType()))) {
    if (isa<VectorType>(x.getType()))
      return vector::FMAOp::create(b, loc, x, y, sum);
    return math::FmaOp::create(b, loc, x, y, sum);
  }
  Value product = arith::MulIOp::create(b, loc, x, y);
  return arith::AddIOp::create(b, loc, product, sum);
}

void tilewright::populateMmaPatterns(const TilePartsConverter &converter,
                                     DotUnits units,
                                     RewritePatternSet &patterns) {
  patterns.add<MmaPattern>(converter, patterns.getContext(), units);
}
