//===- Presences.h - lists as long as the longest one -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PRESENCES_H
#define TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PRESENCES_H

#include "lib/Conversion/FractalToLinalg/Lifter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tilewright {

/// The index along an axis of the element that a generic computes.
using Point = llvm::function_ref<mlir::Value(Axis)>;

/// Index arithmetic where a generic computes an element.
struct Indices {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value number(int64_t value) const {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) const {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) const {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MulIOp::create(b, loc, x, y);
  }
  mlir::Value least(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MinSIOp::create(b, loc, x, y);
  }
  mlir::Value most(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MaxSIOp::create(b, loc, x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) const {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::slt,
                                       x, y);
  }
  mlir::Value choose(mlir::Value condition, mlir::Value x,
                     mlir::Value y) const {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  mlir::Value word(mlir::Value index) const {
    return mlir::arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
};

/// Numbers, i64, one for each element of the axes.
struct Numbers {
  mlir::Value tensor;
  llvm::SmallVector<Axis> axes;
};

/// How elements of a list are read elsewhere.
struct Places {
  /// Leading levels of the source that the new ones stand for.
  int64_t replaced;
  /// Of the new levels.
  llvm::SmallVector<mlir::OpFoldResult> lengths;
  llvm::SmallVector<Presence> presences;
  /// Maps that the places vary with.
  llvm::SmallVector<Axis> around;
  /// The place in the levels replaced; the nearest element is read where it is
  /// outside.
  std::function<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &,
                                               mlir::Location, Point)>
      at;
};

/// The list whose elements stand at these places of another one.
Lifted reread(Lifter &l, const Lifted &source, const Places &places);

/// Each element of a tensor with these axes in front, from where it is.
mlir::Value
eachOf(Lifter &l, llvm::ArrayRef<Axis> axes,
       llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::RankedTensorType leaf,
       llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, Point,
                                      mlir::ValueRange leaf)>
           element);

/// Numbers for each element of these axes.
Numbers
numbersAt(Lifter &l, llvm::ArrayRef<Axis> axes,
          llvm::ArrayRef<mlir::OpFoldResult> sizes,
          llvm::function_ref<mlir::Value(const Indices &, Point)> index);
/// The index that stands in numbers at a point.
mlir::Value numberAt(mlir::OpBuilder &b, mlir::Location loc,
                     const Numbers &numbers, Point at);
/// How long a list of the outermost level is, at a point.
mlir::Value lengthAt(mlir::OpBuilder &b, mlir::Location loc, const Lifted &list,
                     Point at);

/// How many elements each list of the outermost level has; null tensor where
/// all have as many as its length says.
Numbers countsOf(Lifter &l, const Lifted &list);
/// For each element the sum of the numbers up to and with it, along `level`,
/// which is the last axis of the result.
Numbers sumsOf(Lifter &l, const Numbers &numbers, Axis level, int64_t length);
/// For each j in [0, length) how many sums are not larger, in front of which is
/// the place: sums ascend along their last axis, which becomes that of j.
Numbers placesIn(Lifter &l, const Numbers &sums, int64_t length);
/// The last one along the last axis.
Numbers lastOf(Lifter &l, const Numbers &sums);

/// The list with elements that a mask leaves out gone: lists of the first so
/// many elements, at all levels.
Lifted compacted(Lifter &l, const Lifted &list);
/// The list with so many elements in the outermost level, all of them there;
/// what it had not is its last element, or zero.
Lifted resized(Lifter &l, Lifted list, mlir::OpFoldResult length,
               bool zeros = false);

/// How many elements of a level of `length` are there in the longest list: a
/// constant where that is known, and no more than `length` in any run.
mlir::OpFoldResult longestOf(Lifter &l, const Presence &presence,
                             mlir::OpFoldResult length);
/// The next state where the element at `step` of the outermost list is there,
/// the one before where the list has ended, with these axes.
mlir::Value kept(Lifter &l, const Lifted &list, mlir::OpFoldResult step,
                 const Lifted &next, const Lifted &before,
                 llvm::ArrayRef<Axis> axes);
/// The list with a number in place of elements that are not there.
Lifted masked(Lifter &l, const Lifted &list, mlir::TypedAttr number);

/// The error for lists whose largest length is not known either.
llvm::LogicalResult unbounded(mlir::Operation *op);
/// Whether it is known at all levels how long lists are at most.
bool haveBounds(const Lifted &list);

/// Lists that are read in step: how long they are in common.
struct InStep {
  llvm::SmallVector<Lifted> lists;
  mlir::OpFoldResult length;
  Presence presence;
};
InStep inStep(Lifter &l, mlir::ValueRange arrays);

/// Places that a tensor lists: so many, of which the present ones count.
struct ListedPlaces {
  Numbers places;
  Presence presence;
  mlir::OpFoldResult length;
};
ListedPlaces listedPlaces(Lifter &l, mlir::Value indices);
llvm::LogicalResult liftScatter(Lifter &l, fractal::ScatterOp op);

/// Ops on lists that are not equally long; others have simpler forms.
llvm::LogicalResult liftRaggedFlatten(Lifter &l, fractal::FlattenOp op);
llvm::LogicalResult liftRaggedInterleave(Lifter &l, fractal::InterleaveOp op);
llvm::LogicalResult liftRaggedDeinterleave(Lifter &l,
                                           fractal::DeinterleaveOp op);
llvm::LogicalResult liftRaggedAt(Lifter &l, fractal::AtOp op);
llvm::LogicalResult liftRaggedSlice(Lifter &l, fractal::SliceOp op);
llvm::LogicalResult liftRaggedGather(Lifter &l, fractal::GatherOp op);
llvm::LogicalResult liftRaggedAccess(Lifter &l, fractal::AccessOpInterface op);
/// `whole` has the lists side by side, as long as they may be.
llvm::LogicalResult liftRaggedJoin(Lifter &l, fractal::JoinOp op,
                                   llvm::ArrayRef<Lifted> lists,
                                   const Lifted &whole);
/// Whether an op on leaves reads or makes numbers that differ between elements.
bool isVarying(Lifter &l, mlir::Operation *op);
llvm::LogicalResult liftVarying(Lifter &l, mlir::Operation *op);
/// Lists of which it is claimed that they have these lengths, where known.
Lifted claimed(Lifter &l, Lifted list, llvm::ArrayRef<int64_t> lengths);
/// Flat lists and offsets, and lengths.
llvm::LogicalResult liftStored(Lifter &l, mlir::Operation *op);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_FRACTALTOLINALG_PRESENCES_H
