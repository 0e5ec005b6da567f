//===- DistributedTiles.h - a tile as one thread sees it --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile with a `#tile.distributed` becomes one scalar per register of a
// thread: value number `r` is register number `r` of the layout.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDTILES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDTILES_H

#include "lib/Analysis/LinearLayout.h"
#include "lib/Conversion/TileToGPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tilewright {

/// The thread's number in its block, i32.
mlir::Value getThreadNumber(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value constantI32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
mlir::Value constantIndex(mlir::OpBuilder &b, mlir::Location loc,
                          int64_t value);
/// Bits of `number`, each moved to where its coordinate bit in `bits` says, if
/// that is of dimension `dim`; i32.
mlir::Value gatherBits(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value number, mlir::ArrayRef<CoordinateBit> bits,
                       int64_t dim);
/// `x & y` where either may be missing (true).
mlir::Value bothHold(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                     mlir::Value y);

/// Coordinates of the elements that the running thread holds.
class ThreadView {
public:
  ThreadView(mlir::OpBuilder &b, mlir::Location loc, mlir::Type tileType);
  ThreadView(mlir::OpBuilder &b, mlir::Location loc, LinearLayout layout,
             mlir::ArrayRef<int64_t> shape);

  const LinearLayout &getLayout() const { return layout; }
  mlir::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getNumRegisters() const { return layout.getNumRegisters(); }
  /// What the thread's number adds to a coordinate, i32.
  mlir::Value getThreadPart(int64_t dim);
  /// A coordinate of the element in a register, i32.
  mlir::Value getCoordinate(int64_t number, int64_t dim);
  /// Whether a register holds an element rather than padding; null where all
  /// threads do.
  mlir::Value exists(int64_t number);
  /// Whether no thread holds padding in this register.
  bool alwaysExists(int64_t number);
  /// Whether no thread holds an element in this register.
  bool neverExists(int64_t number);
  /// Whether this is the first of the threads that hold the same elements;
  /// null where no two do.
  mlir::Value isFirstReplica();

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  LinearLayout layout;
  mlir::SmallVector<int64_t> shape;
  mlir::SmallVector<mlir::Value> threadParts;
};

/// Converts tile types 1:N by their layout.
class DistributedConverter : public mlir::TypeConverter {
public:
  explicit DistributedConverter(int64_t arch);
  /// 80 for sm_80, 90 for sm_90.
  int64_t getArch() const { return arch; }

private:
  int64_t arch;
};

/// Base class of the patterns of one tile op.
template <typename SourceOp>
class DistributedPattern : public mlir::OpConversionPattern<SourceOp> {
public:
  using Base = DistributedPattern<SourceOp>;
  using Adaptor = typename mlir::OpConversionPattern<SourceOp>::OneToNOpAdaptor;
  DistributedPattern(const DistributedConverter &converter,
                     mlir::MLIRContext *context,
                     mlir::PatternBenefit benefit = 1)
      : mlir::OpConversionPattern<SourceOp>(converter, context, benefit),
        distributed(converter) {}

protected:
  const DistributedConverter &distributed;
};

void populateDistributedElementwisePatterns(
    const DistributedConverter &converter, mlir::RewritePatternSet &patterns);
void populateDistributedMemoryPatterns(const DistributedConverter &converter,
                                       mlir::RewritePatternSet &patterns);
void populateDistributedCopyPatterns(const DistributedConverter &converter,
                                     mlir::RewritePatternSet &patterns);
void populateDistributedReducePatterns(const DistributedConverter &converter,
                                       mlir::RewritePatternSet &patterns);
void populateDistributedShapePatterns(const DistributedConverter &converter,
                                      mlir::RewritePatternSet &patterns);
void populateRelayoutPatterns(const DistributedConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateFmaPatterns(const DistributedConverter &converter,
                         mlir::RewritePatternSet &patterns);
void populateMfmaPatterns(const DistributedConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateMmaSyncPatterns(const DistributedConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateStagedStorePatterns(const DistributedConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateWgmmaPatterns(const DistributedConverter &converter,
                           mlir::RewritePatternSet &patterns);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDTILES_H
