//===- BodyEvaluator.h - linalg bodies on whole tiles -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the tile of a tensor at the current point: the bodies of the group's
// operations run on whole tiles, which arith and math take as they are, down to
// what is loaded. A tile that was made before at this point is not made again.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_BODYEVALUATOR_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_BODYEVALUATOR_H

#include "lib/Transforms/GroupToKernel/MemoryAccess.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {

/// An operation with the name and attributes of `op` on other operands.
mlir::Value createLike(mlir::OpBuilder &builder, mlir::Operation *op,
                       mlir::ValueRange operands, mlir::Type type);

/// An operation of a body on tiles of one shape, which makes such a tile of
/// `type`; an error where there is no such form.
mlir::FailureOr<mlir::Value> createOnTiles(mlir::OpBuilder &builder,
                                           mlir::Operation *op,
                                           llvm::ArrayRef<mlir::Value> operands,
                                           mlir::Type type);

class BodyEvaluator {
public:
  BodyEvaluator(NestPoint &point, MemoryAccess &memory)
      : point(point), builder(point.builder), nest(point.nest), memory(memory) {
  }

  mlir::FailureOr<mlir::Value> evaluate(mlir::Value tensor,
                                        const Access &access);
  /// The tiles of a body's values, so far.
  using Scope = llvm::DenseMap<mlir::Value, mlir::Value>;
  mlir::FailureOr<mlir::Value> evaluateBody(mlir::linalg::GenericOp op,
                                            const Access &binding,
                                            mlir::Value value, Scope &scope);
  mlir::LogicalResult preload();

  /// Tiles at hand, innermost loop last. The key is the tensor value and the
  /// access.
  struct Known {
    mlir::Value tensor;
    Access access;
    mlir::Value tile;
  };
  using Tiles = llvm::SmallVector<llvm::SmallVector<Known>>;
  void remember(mlir::Value tensor, const Access &access, mlir::Value tile) {
    known.back().push_back({tensor, access, tile});
  }
  /// Tiles made from here on are gone after `leave`.
  void enter() { known.emplace_back(); }
  void leave() { known.pop_back(); }
  /// Starts with `tiles` at hand instead, those of another point; returns what
  /// was there.
  Tiles exchange(Tiles tiles) {
    std::swap(known, tiles);
    return tiles;
  }

private:
  mlir::FailureOr<mlir::Value> evaluateProducer(mlir::OpResult result,
                                                const Access &binding);
  mlir::FailureOr<mlir::Value> evaluateOp(mlir::linalg::GenericOp op,
                                          const Access &binding,
                                          mlir::OpResult value, Scope &scope);
  mlir::FailureOr<mlir::Value> gather(mlir::linalg::GenericOp op,
                                      const Access &binding,
                                      mlir::tensor::ExtractOp extract,
                                      Scope &scope);
  mlir::FailureOr<mlir::Value> iota(mlir::Location loc, mlir::AffineExpr at);
  mlir::Value lookup(mlir::Value tensor, const Access &access) const;

  NestPoint &point;
  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
  MemoryAccess &memory;
  Tiles known = {{}};
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_BODYEVALUATOR_H
