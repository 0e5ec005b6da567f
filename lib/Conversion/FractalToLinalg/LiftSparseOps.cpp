//===- LiftSparseOps.cpp - products with encoded weights, lifted ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"
#include "lib/Conversion/FractalToLinalg/Lifter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tilewright;

/// Where the dimensions of the maps are in what is multiplied: in front of the
/// rows, or between rows and columns.
static SmallVector<int64_t> orderOf(int64_t maps, bool inFront) {
  auto order = llvm::to_vector(llvm::seq(maps + 2));
  if (!inFront)
    std::rotate(order.begin(), order.begin() + maps, order.end() - 1);
  return order;
}

static Value transposed(Lifter &l, Value tensor, ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : order)
    sizes.push_back(tensor::getMixedSize(l.b, l.b.getLoc(), tensor, dim));
  Value into = tensor::EmptyOp::create(l.b, sizes, type.getElementType());
  return linalg::TransposeOp::create(l.b, tensor, into, order)->getResult(0);
}

/// The dimensions of the maps as rows, or as columns, of one matrix.
static SmallVector<ReassociationIndices> groupsOf(int64_t maps, bool inFront) {
  SmallVector<ReassociationIndices> groups(2);
  for (int64_t dim : llvm::seq(maps + 2))
    groups[inFront ? dim > maps : dim > 0].push_back(dim);
  return groups;
}

/// What `value` is for all elements, as one matrix.
static Value matrixOf(Lifter &l, Value all, int64_t maps, bool inFront) {
  Value moved = transposed(l, all, orderOf(maps, inFront));
  return tensor::CollapseShapeOp::create(l.b, moved, groupsOf(maps, inFront));
}

/// What a product begins with, as one matrix: a number where it is one.
static Value sumsOf(Lifter &l, Value init, int64_t maps, bool inFront) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Value matrix = fill ? fill.getOutputs().front() : init;
  matrix = matrixOf(l, matrix, maps, inFront);
  auto type = cast<RankedTensorType>(matrix.getType());
  if (!fill)
    return matrix;
  if (type.hasStaticShape())
    matrix =
        tensor::EmptyOp::create(l.b, type.getShape(), type.getElementType());
  return linalg::FillOp::create(l.b, fill.getInputs(), ValueRange(matrix))
      .getResult(0);
}

/// A matrix as what it is for all elements.
static Value unfolded(Lifter &l, Value matrix, RankedTensorType leaf,
                      ArrayRef<OpFoldResult> maps, bool inFront) {
  SmallVector<OpFoldResult> all(maps);
  for (int64_t size : leaf.getShape())
    all.push_back(l.b.getIndexAttr(size));
  SmallVector<int64_t> order = orderOf(maps.size(), inFront);
  auto moved =
      llvm::map_to_vector(order, [&](int64_t dim) { return all[dim]; });
  auto type = RankedTensorType::get(
      llvm::map_to_vector(moved,
                          [](OpFoldResult size) {
                            std::optional<int64_t> known =
                                getConstantIntValue(size);
                            return known ? *known : ShapedType::kDynamic;
                          }),
      leaf.getElementType());
  Value whole = tensor::ExpandShapeOp::create(
      l.b, type, matrix, groupsOf(maps.size(), inFront), moved);
  return transposed(l, whole, invertPermutationVector(order));
}

std::optional<LogicalResult> tilewright::liftSparseOp(Lifter &l,
                                                      Operation *op) {
  auto product = dyn_cast<sparse_tile::MatmulOp>(op);
  SmallVector<Axis> loops = l.loopsOf(op);
  if (!product || loops.empty())
    return std::nullopt;
  auto isEncoded = [](Value value) {
    return static_cast<bool>(
        cast<RankedTensorType>(value.getType()).getEncoding());
  };
  bool inFront = isEncoded(product.getB());
  Value weight = inFront ? product.getB() : product.getA();
  Value other = inFront ? product.getA() : product.getB();
  if (isEncoded(other) || !l.lookup(weight).loops().empty())
    return unsupported(op)
           << "has an encoded operand that differs between elements of a list: "
              "one encoded weight is multiplied with all elements";
  Value init = l.liftedInit(product.getC(), loops);
  Value all = l.aligned(l.lookup(other), loops);
  if (isEmpty(all.getType()) || isEmpty(init.getType()))
    return l.define(product.getResult(), {init, loops, {}}), success();
  auto maps = static_cast<int64_t>(loops.size());
  Value dense = matrixOf(l, all, maps, inFront);
  Value sums = sumsOf(l, init, maps, inFront);
  Value encoded = l.lookup(weight).tensor;
  auto made = sparse_tile::MatmulOp::create(
      l.b, sums.getType(), inFront ? dense : encoded, inFront ? encoded : dense,
      sums, product.getKernelAttr());
  Lifted shape = {{}, loops, {}};
  Value result = unfolded(l, made, cast<RankedTensorType>(product.getType()),
                          l.sizesOf(shape, loops), inFront);
  return l.define(product.getResult(), {result, loops, {}}), success();
}
