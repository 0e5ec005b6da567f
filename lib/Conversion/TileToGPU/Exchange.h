//===- Exchange.h - values that cross threads -------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_EXCHANGE_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_EXCHANGE_H

#include "lib/Conversion/TileToGPU/DistributedTiles.h"

namespace tilewright {

/// The external array that all shared memory of a kernel is part of.
constexpr llvm::StringLiteral sharedName = "tile_shared";
/// A pointer into the shared array, at the op's scratch; fails with an error
/// where it was given none.
mlir::FailureOr<mlir::Value> getScratch(mlir::OpBuilder &b,
                                        mlir::Operation *op);
/// Lets threads wait until none uses the op's scratch any more.
void waitForScratch(mlir::OpBuilder &b, mlir::Operation *op);
/// The op's scratch as a typed buffer.
mlir::FailureOr<mlir::Value> getScratchView(mlir::OpBuilder &b,
                                            mlir::Operation *op,
                                            mlir::ArrayRef<int64_t> shape,
                                            mlir::ArrayRef<int64_t> strides,
                                            mlir::Type element);
/// The same, row-major.
mlir::FailureOr<mlir::Value> getScratchView(mlir::OpBuilder &b,
                                            mlir::Operation *op,
                                            mlir::ArrayRef<int64_t> shape,
                                            mlir::Type element);
/// The value of the lane whose number differs in the bits of `mask`.
mlir::Value shuffleXor(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value value, int64_t mask);
/// The value of lane `lane` (i32).
mlir::Value shuffleFrom(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value value, mlir::Value lane);

/// Where the elements of a tile lie in scratch: each coordinate bit moves the
/// offset by an exclusive or. Row-major with one dimension fastest, and chunks
/// of 16 bytes exchanged by row so that columns meet different banks.
class ScratchMap {
public:
  /// `sizes` are powers of two.
  ScratchMap(mlir::ArrayRef<int64_t> sizes, int64_t fastest,
             int64_t elementBytes);
  /// Offsets by dimension and bit, of what takes `bytes`.
  ScratchMap(mlir::SmallVector<mlir::SmallVector<int64_t>> offsets,
             int64_t bytes)
      : offsets(std::move(offsets)), bytes(bytes) {}

  /// Zero for bits that are not in the map.
  int64_t getOffset(CoordinateBit bit) const;
  int64_t getBytes() const { return bytes; }

private:
  mlir::SmallVector<mlir::SmallVector<int64_t>> offsets;
  int64_t bytes = 1;
};

/// The pointers of one thread into a map.
class ThreadOffsets {
public:
  ThreadOffsets(mlir::OpBuilder &b, mlir::Location loc,
                const LinearLayout &layout, const ScratchMap &map,
                mlir::Value base);
  mlir::Value getPointer(int64_t number);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  const LinearLayout &layout;
  const ScratchMap &map;
  mlir::Value base, thread;
  int64_t threadMask = 0;
  llvm::DenseMap<int64_t, mlir::Value> bases;
};

/// A change of layout through scratch: the fastest dimension, the map.
struct ScratchExchange {
  ScratchExchange(const LinearLayout &from, const LinearLayout &to,
                  mlir::Type element);

  int64_t fastest = 0, storeVector = 1, loadVector = 1;
  ScratchMap map;
};

/// Writes a tile into scratch; `vector` elements along `fastest` at once.
void storeToScratch(mlir::OpBuilder &b, mlir::Location loc, ThreadView &view,
                    mlir::ValueRange values, const ScratchMap &map,
                    int64_t fastest, int64_t vector, mlir::Value base);
/// Reads a tile from scratch, in another layout.
mlir::SmallVector<mlir::Value>
loadFromScratch(mlir::OpBuilder &b, mlir::Location loc,
                const LinearLayout &layout, mlir::Type element,
                const ScratchMap &map, int64_t fastest, int64_t vector,
                mlir::Value base);

/// Bytes of scratch that an op needs; 0 for most.
struct ScratchNeed {
  /// How long it needs them: while it runs, until its last user, until the
  /// kernel ends, or as long as the kernel runs (what one round of a loop
  /// leaves is there in the next).
  enum Life { itself, users, rest, always };
  int64_t bytes = 0;
  Life life = itself;
  int64_t alignment = 128;
};
ScratchNeed getScratchNeed(mlir::Operation *op);
/// Of a `tile.store` that puts boxes into shared memory, for TMA.
ScratchNeed getStagedScratch(tile::StoreOp op);
int64_t getReduceScratch(mlir::Operation *op);
int64_t getShapeScratch(mlir::Operation *op);

/// How a conversion between layouts is done.
enum class RelayoutKind { none, registers, shuffles, scratch };
RelayoutKind getRelayoutKind(const LinearLayout &from, const LinearLayout &to);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_EXCHANGE_H
