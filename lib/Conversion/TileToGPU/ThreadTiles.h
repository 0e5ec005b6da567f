//===- ThreadTiles.h - tiles spread over the threads of a block -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_THREADTILES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_THREADTILES_H

#include "lib/Conversion/TileToGPU/Passes.h"
#include "lib/Conversion/TileToVector/TileParts.h"

namespace tilewright {

/// Shared buffers through which the operands of an op are exchanged, made
/// before the conversion: operand number -> flat buffer.
using ExchangeBuffers =
    llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, mlir::Value>;

/// Whether a value is read by threads that do not hold it.
bool needsExchange(mlir::OpOperand &operand);

/// The elements of one tile type as one thread sees them.
class ThreadTile {
public:
  ThreadTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Type tileType,
             int64_t threads);

  int64_t getNumParts() const { return parts; }
  tile::TileType getType() const { return type; }
  /// Row-major number of the element that is part `part` of this thread.
  mlir::Value getNumber(int64_t part);
  /// Its coordinates.
  mlir::SmallVector<mlir::Value> getCoordinates(int64_t part);
  /// Whether the part exists in this thread; null where it always does.
  mlir::Value exists(int64_t part);
  /// Row-major number of an element from its coordinates.
  mlir::Value linearize(mlir::ArrayRef<mlir::Value> coordinates);

private:
  mlir::Value constant(int64_t value);

  mlir::OpBuilder &b;
  mlir::Location loc;
  tile::TileType type;
  int64_t threads, parts;
  mlir::Value thread;
};

/// Runs `body` under a condition (null: always); `otherwise` gives its value
/// if the condition is false.
mlir::Value guarded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value when,
                    llvm::function_ref<mlir::Value(mlir::OpBuilder &)> body,
                    mlir::Value otherwise);

/// Writes a tile's elements into a flat shared buffer and waits for all.
void shareTile(mlir::OpBuilder &b, mlir::Location loc, ThreadTile &tile,
               mlir::ValueRange parts, mlir::Value buffer);

void populateThreadMemoryPatterns(const TilePartsConverter &converter,
                                  mlir::RewritePatternSet &patterns);
void populateThreadExchangePatterns(const TilePartsConverter &converter,
                                    const ExchangeBuffers &buffers,
                                    mlir::RewritePatternSet &patterns);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_THREADTILES_H
