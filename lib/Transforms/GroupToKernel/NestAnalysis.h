//===- NestAnalysis.h - what a register group iterates over -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register group becomes one loop nest. Its *root* is the operation whose
// iteration space the nest has: the reductions of the group, or else the
// operation that makes the first result. Every other operation is evaluated
// at the root's points: its own loop dimensions are bound to affine
// expressions over the root's ("nest") dimensions.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTANALYSIS_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTANALYSIS_H

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/raw_ostream.h"

namespace tilewright {

/// One affine expression over the nest's dimensions per tensor dimension.
using Access = llvm::SmallVector<mlir::AffineExpr>;

/// A tensor of the enclosing task that the nest reads, and where.
struct NestRead {
  mlir::Value value;
  Access access;
};

class NestAnalysis {
public:
  /// Analyses `group`. Emits an error on the offending operation and fails
  /// where the group is no single nest: two reductions over different spaces,
  /// or an operation whose dimensions do not follow from the root's.
  static mlir::FailureOr<NestAnalysis> get(tile::GroupOp group);

  tile::GroupOp group;
  /// The root first; further reductions over the same space after it.
  llvm::SmallVector<mlir::linalg::GenericOp> roots;
  tile::RTileAttr rtile;
  /// kDynamic where a size is known at run time only.
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<mlir::utils::IteratorType> iterators;
  /// Loop dimensions of each bound operation as expressions over nest dims.
  llvm::DenseMap<mlir::Operation *, Access> bindings;
  /// Everything read from outside the group; what the roots need comes first.
  llvm::SmallVector<NestRead> reads;
  unsigned numRootReads = 0;

  mlir::linalg::GenericOp root() const { return roots.front(); }
  bool isReduction(unsigned dim) const {
    return iterators[dim] == mlir::utils::IteratorType::reduction;
  }
  bool hasReductions() const {
    return llvm::is_contained(iterators, mlir::utils::IteratorType::reduction);
  }
  /// Traversal order of the nest's dimensions, outermost first.
  llvm::SmallVector<unsigned> order() const;
  bool isDynamic(unsigned dim) const {
    return mlir::ShapedType::isDynamic(extents[dim]);
  }
  /// The largest extent that a dimension can have, if one is known
  /// (`tile.bounds`).
  std::optional<int64_t> bound(unsigned dim) const;
  /// Whether all tiles have the planned sizes and ragged edges are bounds
  /// (`tile.padded`): what exists of a tile does not change its type.
  bool isPadded() const { return root()->hasAttr(tile::decisions::kPadded); }
  /// Register tile of a dimension, above its extent in padded nests only.
  int64_t registerTile(unsigned dim) const;
  /// Part of a reduced dimension after which the next part of the operands is
  /// brought near, or the whole extent.
  int64_t blockTile(unsigned dim) const { return taskTile(dim, "block"); }
  /// Steps of the innermost reduced dimension that one round of its loop takes.
  int64_t unroll(unsigned dim) const;
  /// Whether a step of a product takes several elements of a reduced
  /// dimension: the machine's matrix unit does.
  bool isDepth(unsigned dim) const;
  /// Task tile of a dimension: the size at `level`, or the whole extent
  /// (kDynamic where that is known at run time only).
  int64_t taskTile(unsigned dim, llvm::StringRef level) const;
  /// Tiles for what whole register tiles leave of a dimension whose extent is
  /// known at run time only, in decreasing order; the last one is 1.
  llvm::SmallVector<int64_t> tails(unsigned dim) const;
  /// Where the producer of `value` (an operation of this group) stores it.
  Access resultAccess(mlir::OpResult value) const;
  /// The value of the enclosing region behind an argument of the group.
  mlir::Value outer(mlir::BlockArgument arg) const {
    return tile::GroupOp(group)->getOperand(arg.getArgNumber());
  }

private:
  mlir::LogicalResult findRoots();
  mlir::LogicalResult checkTiles();
  mlir::LogicalResult bindConsumers();
  void visitReads(mlir::Value value, Access access);
  void visitOperands(mlir::linalg::GenericOp op, const Access &binding);
};

/// The text of a map or an expression, for messages.
template <typename T> std::string textOf(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// `map`, whose dimensions are the loops of an operation, over nest dims.
Access compose(mlir::AffineMap map, llvm::ArrayRef<mlir::AffineExpr> binding);

/// The loop, and its point, for which an operation makes the element at `at`
/// where its result's map says `made`: the loop itself, or blocks of it and
/// places in a block, as in packed operands, where `at` is in the same blocks.
/// Null where there is no such loop.
std::pair<mlir::AffineDimExpr, mlir::AffineExpr> loopAt(mlir::AffineExpr made,
                                                        mlir::AffineExpr at);

/// The loop binding under which `op` makes element `access` of its result.
mlir::FailureOr<Access> bindingFor(mlir::linalg::GenericOp op, unsigned result,
                                   llvm::ArrayRef<mlir::AffineExpr> access);

/// The first operation of the nests that has an attribute, and the number of
/// its nest; null where there is none.
std::pair<mlir::linalg::GenericOp, unsigned>
findWith(llvm::ArrayRef<NestAnalysis> nests, llvm::StringRef attribute);

/// The operand that says where a mask of this run leaves something of what `op`
/// makes (`tile.skip`), if there is one.
mlir::OpOperand *skipFlags(mlir::linalg::GenericOp op);

/// Whether a scalar of a body depends on a loop of the nest.
bool dependsOn(mlir::linalg::GenericOp op, mlir::Value value,
               const Access &binding, int dim);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTANALYSIS_H
