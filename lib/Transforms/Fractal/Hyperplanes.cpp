//===- Hyperplanes.cpp - iterations that may run at once ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Hyperplanes.h"

using namespace mlir;
using namespace mlir::presburger;
using namespace tilewright::fractal;

//===----------------------------------------------------------------------===//
// The row
//===----------------------------------------------------------------------===//

/// The smallest row that is right for these distances: an integer program in
/// the sum of the numbers, which is minimized first, and the numbers.
static std::optional<SmallVector<int64_t>>
smallestRow(ArrayRef<Sign> signs, ArrayRef<SmallVector<int64_t>> distances) {
  unsigned size = signs.size();
  IntegerPolyhedron rows(PresburgerSpace::getSetSpace(size + 1));
  SmallVector<int64_t> sum(size + 2, -1);
  sum.front() = 1;
  sum.back() = 0;
  rows.addEquality(sum);
  for (auto [i, sign] : llvm::enumerate(signs)) {
    rows.addBound(BoundType::LB, i + 1, 0);
    if (sign == Sign::Zero)
      rows.addBound(BoundType::UB, i + 1, 0);
  }
  for (ArrayRef<int64_t> distance : distances) {
    SmallVector<int64_t> product(size + 2, 0);
    for (auto [i, number] : llvm::enumerate(distance))
      product[i + 1] = signs[i] == Sign::Negative ? -number : number;
    product.back() = -1;
    rows.addInequality(product);
  }
  auto least = rows.findIntegerLexMin();
  if (!least.isBounded())
    return std::nullopt;
  SmallVector<int64_t> row;
  for (auto [i, sign] : llvm::enumerate(signs)) {
    auto number = int64_t((*least)[i + 1]);
    row.push_back(sign == Sign::Negative ? -number : number);
  }
  return row;
}

/// A distance for which the row is wrong.
static std::optional<SmallVector<int64_t>>
counterexample(ArrayRef<int64_t> row, const Dependence &dependence) {
  MLIRContext *context = dependence.relation.front().expr.getContext();
  AffineExpr product = getAffineConstantExpr(0, context);
  for (auto [i, number] : llvm::enumerate(row))
    product =
        product + getAffineDimExpr(dependence.distanceAt + i, context) * number;
  Constraints wrong = dependence.relation;
  wrong.push_back({-product});
  auto sample = polyhedron(dependence.space, wrong).findIntegerSample();
  if (!sample)
    return std::nullopt;
  SmallVector<int64_t> distance;
  for (unsigned i : llvm::seq<unsigned>(row.size()))
    distance.push_back(int64_t((*sample)[dependence.distanceAt + i]));
  return distance;
}

std::optional<SmallVector<int64_t>>
tilewright::fractal::findHyperplane(ArrayRef<Sign> signs,
                                    ArrayRef<Dependence> dependences) {
  SmallVector<SmallVector<int64_t>> distances;
  for (const Dependence &dependence : dependences)
    if (dependence.distance)
      distances.push_back(*dependence.distance);
  // Each round rules out a distance; a set that needs many, with lengths that
  // nobody knows, may have no row at all.
  for (int round = 0; round < 64; ++round) {
    std::optional<SmallVector<int64_t>> row = smallestRow(signs, distances);
    if (!row)
      return std::nullopt;
    size_t before = distances.size();
    for (const Dependence &dependence : dependences)
      if (!dependence.distance)
        if (auto wrong = counterexample(*row, dependence))
          distances.push_back(*wrong);
    if (distances.size() == before)
      return row;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The matrix
//===----------------------------------------------------------------------===//

IntMatrix tilewright::fractal::inverseOf(const IntMatrix &rows) {
  IntMatrix inverse = rows;
  DynamicAPInt determinant = rows.determinant(&inverse);
  assert((determinant == 1 || determinant == -1) && "rows are unimodular");
  // What comes back is the inverse times the determinant.
  if (determinant == -1)
    for (unsigned row : llvm::seq(inverse.getNumRows()))
      inverse.negateRow(row);
  return inverse;
}

IntMatrix tilewright::fractal::completed(ArrayRef<int64_t> row,
                                         ArrayRef<unsigned> order) {
  unsigned size = row.size();
  IntMatrix rows(1, size);
  for (unsigned i : llvm::seq(size))
    rows(0, i) = row[i];
  auto isUnit = [&](unsigned i) { return row[i] == 1 || row[i] == -1; };
  auto last = llvm::find_if(llvm::reverse(order), isUnit);
  if (last == order.rend())
    // row * U = (1, 0, ...), so that the inverse of U begins with the row.
    return inverseOf(rows.computeHermiteNormalForm().second);
  for (unsigned dim : order)
    if (dim != *last)
      rows(rows.appendExtraRow(), dim) = 1;
  return rows;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

Bounds tilewright::fractal::boundsOf(MLIRContext *context, Space space,
                                     ArrayRef<Constraint> constraints) {
  Bounds bounds;
  FlatLinearConstraints all = polyhedron(space, constraints);
  for (unsigned dim : llvm::seq(space.dims)) {
    FlatLinearConstraints outer = all;
    unsigned locals = outer.getNumVars() - space.dims - space.symbols;
    outer.projectOut(space.dims + space.symbols, locals);
    outer.projectOut(dim + 1, space.dims - dim - 1);
    outer.removeRedundantConstraints();
    auto [lower, upper] = outer.getLowerAndUpperBound(
        0, dim, 1, dim + 1, {}, context, /*closedUB=*/false);
    bounds.lower.push_back(lower);
    bounds.upper.push_back(upper);
  }
  return bounds;
}
