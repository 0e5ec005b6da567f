//===- AnyMachine.h - what lowerings of tiles share -------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parts of lowerings that do not ask how the values of a tile are held.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_ANYMACHINE_H
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_ANYMACHINE_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tilewright {

/// Whether an operation divides integers: by a zero, which padding may hold, it
/// is undefined.
inline bool dividesIntegers(mlir::Operation *op) {
  return mlir::isa<mlir::arith::DivSIOp, mlir::arith::DivUIOp,
                   mlir::arith::RemSIOp, mlir::arith::RemUIOp,
                   mlir::arith::CeilDivSIOp, mlir::arith::CeilDivUIOp,
                   mlir::arith::FloorDivSIOp>(op);
}

/// The copies of an asynchronous body, here and now; its token is no value.
/// `PatternOf` is the base of a lowering's patterns.
template <template <typename> class PatternOf>
struct AsyncAtOncePattern : PatternOf<tile::AsyncOp> {
  using Base = PatternOf<tile::AsyncOp>;
  using Base::Base;

  mlir::LogicalResult
  matchAndRewrite(tile::AsyncOp op, typename Base::Adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    mlir::Block &body = op.getBody().front();
    rewriter.eraseOp(body.getTerminator());
    rewriter.inlineBlockBefore(&body, op);
    rewriter.replaceOpWithMultiple(op, {mlir::ValueRange()});
    return mlir::success();
  }
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_ANYMACHINE_H
