//===- Lifter.h - values for all elements at once ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_FRACTALTOLINALG_LIFTER_H
#define TILEWRIGHT_CONVERSION_FRACTALTOLINALG_LIFTER_H

#include "dialects/Fractal/Fractal.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {

/// What a leading dimension of a lifted tensor stands for: a map around the
/// value, by its number, or a level of the array that the value is.
using Axis = int64_t;

inline Axis levelAxis(int64_t level) { return -1 - level; }
inline bool isLevel(Axis axis) { return axis < 0; }
inline int64_t levelOf(Axis axis) { return -1 - axis; }
/// The same level where `levels` more stand in front of it; a map as it is.
inline Axis deeper(Axis axis, int64_t levels) {
  return isLevel(axis) ? axis - levels : axis;
}

/// Which elements of a level are there, if it is as long in memory as its
/// longest list may be.
struct Presence {
  /// Numbers (i64): so many elements of each list, from the first one on; or a
  /// mask (i1), which has an axis for the level itself. Null: all are there.
  mlir::Value tensor;
  /// Named as those of the list.
  llvm::SmallVector<Axis> axes;

  explicit operator bool() const { return static_cast<bool>(tensor); }
  bool isMask() const;
};

/// A value of the program, for all elements of the maps around it. Maps that it
/// does not vary with have no axis, and levels that only repeat elements
/// neither.
struct Lifted {
  /// Dimensions of the axes, then those of the leaf.
  mlir::Value tensor;
  llvm::SmallVector<Axis> axes;
  /// Of each level, outermost first; none for a leaf.
  llvm::SmallVector<mlir::OpFoldResult> lengths;
  /// Of the first levels; those that are left out are complete.
  llvm::SmallVector<Presence> presences = {};

  Presence presenceOf(int64_t level) const;
  void setPresence(int64_t level, Presence presence);
  /// Whether all lists of a level are equally long.
  bool isComplete() const;
  /// Which dimension an axis is; none where the value does not vary with it.
  std::optional<int64_t> dimOf(Axis axis) const;
  /// An element of each list, which `loop` is now a map over.
  Lifted entered(Axis loop) const;
  /// The list of such elements.
  Lifted listed(Axis loop, mlir::OpFoldResult length) const;
  /// A list of so many of it: nothing varies with the new level.
  Lifted repeated(mlir::OpFoldResult length) const;
  /// The same with axes renamed.
  Lifted renamed(llvm::function_ref<Axis(Axis)> rename) const;
  /// The axes that are maps.
  llvm::SmallVector<Axis> loops() const;
};

/// Lowers blocks op by op, at its builder's place.
class Lifter {
public:
  Lifter(mlir::OpBuilder &builder, mlir::Location loc, int64_t chunk)
      : b(loc, builder), chunk(chunk) {}

  /// Everything but the terminator.
  llvm::LogicalResult lift(mlir::Block &block);

  const Lifted &lookup(mlir::Value value) const;
  void define(mlir::Value value, Lifted lifted);
  /// A tensor that no map and no level stands in front of.
  void defineLeaf(mlir::Value value, mlir::Value tensor) {
    define(value, {tensor, {}, {}});
  }
  bool isLifted(mlir::Value value) const { return values.contains(value); }
  /// The scalar or index that a value is now.
  mlir::Value scalar(mlir::Value value) const {
    return scalars.lookupOrDefault(value);
  }
  void defineScalar(mlir::Value value, mlir::Value now) {
    scalars.map(value, now);
  }

  /// A new map over so many elements.
  Axis addLoop(mlir::OpFoldResult size);
  mlir::OpFoldResult sizeOf(const Lifted &value, Axis axis) const;
  llvm::SmallVector<mlir::OpFoldResult>
  sizesOf(const Lifted &value, llvm::ArrayRef<Axis> axes) const;
  /// Maps that one of the values varies with, in the order of the value with
  /// the most.
  static llvm::SmallVector<Axis> loopsOf(llvm::ArrayRef<Lifted> values);
  /// The same of those of the program's values that are tensors or arrays.
  llvm::SmallVector<Axis> loopsOf(mlir::ValueRange read) const;
  /// Maps that anything varies with that an op or its region reads.
  llvm::SmallVector<Axis> loopsOf(mlir::Operation *op) const;

  /// The tensor with exactly these axes in front, repeated along those that
  /// the value lacks.
  mlir::Value aligned(const Lifted &value, llvm::ArrayRef<Axis> axes);
  /// Where the result of an op is made, whose init is `init`: as large as it is
  /// for all elements.
  mlir::Value liftedInit(mlir::Value init, llvm::ArrayRef<Axis> axes);
  /// Each element of `into` from elements of the inputs, all at once; the map
  /// of the result is the identity.
  mlir::Value
  parallel(mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
           mlir::Value into,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                          mlir::ValueRange)>
               element);
  /// A tensor of these sizes, then those of the leaf.
  mlir::Value empty(llvm::ArrayRef<mlir::OpFoldResult> sizes,
                    mlir::RankedTensorType leaf);
  /// A part of a tensor, of this type or, if null, of the sizes; a part without
  /// elements is made anew: it has no offset that the op would allow.
  mlir::Value sliceOf(mlir::RankedTensorType type, mlir::Value tensor,
                      llvm::ArrayRef<mlir::OpFoldResult> offsets,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes,
                      llvm::ArrayRef<mlir::OpFoldResult> strides);
  /// Parts side by side along a dimension, written into a tensor.
  mlir::Value joined(mlir::ValueRange parts, mlir::Value into, int64_t dim);
  /// A tensor with a part written, the tensor itself if the part is empty.
  mlir::Value inserted(mlir::Value part, mlir::Value tensor,
                       llvm::ArrayRef<mlir::OpFoldResult> offsets,
                       llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       llvm::ArrayRef<mlir::OpFoldResult> strides);
  /// Dimensions made one, or one made several; nothing is read for a tensor
  /// without elements.
  template <typename Op>
  mlir::Value reshaped(mlir::RankedTensorType type, mlir::Value tensor,
                       llvm::ArrayRef<mlir::ReassociationIndices> groups);
  /// An element of each outermost list.
  Lifted elementAt(const Lifted &list, mlir::OpFoldResult index);
  mlir::Value index(mlir::OpFoldResult size);

  /// Whether something is computed for elements that are not there.
  bool computesMore = false;
  mlir::ImplicitLocOpBuilder b;
  /// How many nodes of a tree are computed at once.
  const int64_t chunk;

private:
  llvm::LogicalResult liftOp(mlir::Operation *op);
  llvm::LogicalResult prepareArrays(mlir::Operation *op);
  void applyClaims(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, Lifted> values;
  mlir::IRMapping scalars;
  llvm::SmallVector<mlir::OpFoldResult> loops;
};

/// The leaf of an array or the tensor itself.
mlir::RankedTensorType leafOf(mlir::Type element);
/// The error for what is right and has no lowering; callers tell it by its
/// first word.
mlir::InFlightDiagnostic unsupported(mlir::Operation *op);
/// Whether a type says that a tensor has no elements.
bool isEmpty(mlir::Type tensor);
/// Axes of all levels of an element, outermost first.
llvm::SmallVector<Axis> levelsOf(const Lifted &value);
/// Offsets of zero, sizes and strides of one that take all of a tensor's first
/// dimensions.
void takeAll(Lifter &l, mlir::Value tensor, int64_t dims,
             llvm::SmallVector<mlir::OpFoldResult> &offsets,
             llvm::SmallVector<mlir::OpFoldResult> &sizes,
             llvm::SmallVector<mlir::OpFoldResult> &strides);

template <typename Op>
mlir::Value
Lifter::reshaped(mlir::RankedTensorType type, mlir::Value tensor,
                 llvm::ArrayRef<mlir::ReassociationIndices> groups) {
  if (isEmpty(type))
    return mlir::tensor::EmptyOp::create(b, type.getShape(),
                                         type.getElementType());
  return Op::create(b, type, tensor, groups);
}

/// The map of an operand with these axes, among loops that stand in front of
/// those that `map` was for.
mlir::AffineMap liftedMap(mlir::AffineMap map, llvm::ArrayRef<Axis> axes,
                          llvm::ArrayRef<Axis> loops);
/// A number, or the nearer end of [0, last], which is of its type.
mlir::Value clamped(mlir::OpBuilder &b, mlir::Location loc, mlir::Value number,
                    mlir::Value last);

/// For each kind of op: whether it is one, and if so whether it was lowered.
std::optional<llvm::LogicalResult> liftComputeOp(Lifter &l,
                                                 mlir::Operation *op);
std::optional<llvm::LogicalResult> liftAccessOp(Lifter &l, mlir::Operation *op);
std::optional<llvm::LogicalResult> liftRegroupOp(Lifter &l,
                                                 mlir::Operation *op);
std::optional<llvm::LogicalResult> liftSparseOp(Lifter &l, mlir::Operation *op);
llvm::LogicalResult liftLeafOp(Lifter &l, mlir::Operation *op);
llvm::LogicalResult liftReduce(Lifter &l, fractal::ReduceOp op);
llvm::LogicalResult liftFilter(Lifter &l, fractal::FilterOp op);
llvm::LogicalResult liftRecurse(Lifter &l, fractal::RecurseOp op);

/// The elements of each outermost list at these places, of which there is one
/// list.
Lifted gathered(Lifter &l, const Lifted &list, mlir::Value indices,
                mlir::RankedTensorType leaf);

/// A loop in which states go through lists, by the op's body, whose arguments
/// are states, then elements. The results are the last states, or with `scans`
/// the lists of all of them.
llvm::LogicalResult liftLoop(Lifter &l, mlir::Operation *op,
                             mlir::ValueRange inits, mlir::ValueRange arrays,
                             bool right, bool scans);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_FRACTALTOLINALG_LIFTER_H
