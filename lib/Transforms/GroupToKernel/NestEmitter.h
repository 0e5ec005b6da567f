//===- NestEmitter.h - a register group as loops over tiles -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the loop nest of one register group: the loops (LoopSchedule), the tile
// loads and stores in them (MemoryAccess), the bodies of the group's operations
// on whole tiles (BodyEvaluator) and what its reductions carry through the
// loops (ReductionStrategy), all at one point of the nest at a time
// (NestPoint).
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H

#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

namespace tilewright {

class NestEmitter {
public:
  NestEmitter(mlir::OpBuilder &builder, const NestAnalysis &nest, Box box,
              const llvm::DenseMap<mlir::Value, Storage> &storage,
              mlir::ArrayRef<mlir::Value> symbols)
      : point(builder, nest, std::move(box), storage, symbols), memory(point),
        bodies(point, memory), schedule(point, memory),
        reductions(point, schedule, memory, bodies) {}

  /// What of a nest to emit: all of it or, where its reduction runs in blocks,
  /// the values that the sum starts from, or one block that adds to the result.
  enum class Part { All, Init, Block };
  void emitOnly(Part wanted) { part = wanted; }

  /// Emits the whole nest at the builder's insertion point.
  mlir::LogicalResult emit();

private:
  mlir::LogicalResult emitPoint();
  mlir::LogicalResult storeResults(bool inReduction);

  NestPoint point;
  MemoryAccess memory;
  BodyEvaluator bodies;
  LoopSchedule schedule;
  ReductionStrategy reductions;
  Part part = Part::All;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H
