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
  MmaEmitter(RewriterBase &b, Location loc, const TileParts &lhs,
             const TileParts &rhs, const TileParts &acc)
      : b(b), loc(loc), lhs(lhs), rhs(rhs), acc(acc) {}

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
    Value element = lhs.getElement(b, loc, m, k);
    sinkLoad(b, element);
    element = widen(element);
    for (auto [c, chunk] : llvm::enumerate(layout.getChunks())) {
      Value &target = result.getMutableParts()[layout.getPart(m, c)];
      Value x = splatTo(b, loc, layout.getPartType(chunk), element);
      target = multiplyAdd(x, widen(rhs.getPart(k, c)), target);
    }
  }

  /// To the accumulator's element type.
  Value widen(Value value) {
    Type target = acc.getLayout().getElementType();
    if (getElementTypeOrSelf(value.getType()) == target)
      return value;
    Type type = target;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = vector.clone(target);
    if (isa<FloatType>(target))
      return arith::ExtFOp::create(b, loc, type, value);
    return arith::ExtSIOp::create(b, loc, type, value);
  }

  Value multiplyAdd(Value x, Value y, Value sum) {
    if (isa<FloatType>(acc.getLayout().getElementType())) {
      if (isa<VectorType>(x.getType()))
        return vector::FMAOp::create(b, loc, x, y, sum);
      return math::FmaOp::create(b, loc, x, y, sum);
    }
    Value product = arith::MulIOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, product, sum);
  }

  RewriterBase &b;
  Location loc;
  const TileParts &lhs, &rhs, &acc;
};

struct MmaPattern : TilePattern<tile::MmaOp> {
  using Base::Base;

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
    TileParts result =
        MmaEmitter(rewriter, op.getLoc(),
                   getParts(op.getA().getType(), adaptor.getA()),
                   getParts(op.getB().getType(), adaptor.getB()), acc)
            .emit();
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }
};

} // namespace

void tilewright::populateMmaPatterns(const TilePartsConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<MmaPattern>(converter, patterns.getContext());
}
