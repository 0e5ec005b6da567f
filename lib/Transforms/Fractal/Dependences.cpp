//===- Dependences.cpp - which iteration reads which ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Dependences.h"

using namespace mlir;
using namespace mlir::presburger;
using namespace tilewright::fractal;

Constraints tilewright::fractal::constraintsOf(IntegerSet set) {
  Constraints constraints;
  for (auto [expr, isEqual] :
       llvm::zip_equal(set.getConstraints(), set.getEqFlags()))
    constraints.push_back({expr, isEqual});
  return constraints;
}

IntegerSet tilewright::fractal::setOf(MLIRContext *context, Space space,
                                      ArrayRef<Constraint> constraints) {
  SmallVector<AffineExpr> exprs;
  SmallVector<bool> flags;
  for (const Constraint &constraint : constraints) {
    exprs.push_back(
        simplifyAffineExpr(constraint.expr, space.dims, space.symbols));
    flags.push_back(constraint.isEqual);
  }
  if (exprs.empty()) {
    exprs.push_back(getAffineConstantExpr(0, context));
    flags.push_back(true);
  }
  return IntegerSet::get(space.dims, space.symbols, exprs, flags);
}

FlatLinearConstraints
tilewright::fractal::polyhedron(Space space, ArrayRef<Constraint> constraints) {
  Constraints affine = llvm::filter_to_vector(
      constraints, [](const Constraint &c) { return c.expr.isPureAffine(); });
  if (affine.empty())
    return FlatLinearConstraints(space.dims, space.symbols);
  MLIRContext *context = affine.front().expr.getContext();
  for (unsigned symbol : llvm::seq(space.symbols))
    affine.push_back({getAffineSymbolExpr(symbol, context)});
  return FlatLinearValueConstraints(setOf(context, space, affine));
}

bool tilewright::fractal::isEmpty(Space space,
                                  ArrayRef<Constraint> constraints) {
  return polyhedron(space, constraints).isIntegerEmpty();
}

/// Whether a constraint holds wherever these do.
static bool follows(Space space, const Constraint &constraint,
                    Constraints known) {
  if (!constraint.expr.isPureAffine())
    return false;
  known.push_back({-constraint.expr - 1});
  if (!isEmpty(space, known))
    return false;
  known.back().expr = constraint.expr - 1;
  return !constraint.isEqual || isEmpty(space, known);
}

Constraints tilewright::fractal::simplified(Space space,
                                            Constraints constraints,
                                            ArrayRef<Constraint> known) {
  for (size_t i = 0; i < constraints.size();) {
    Constraints others(known);
    // An equality says more than two inequalities that it follows from.
    for (size_t k = 0; k < constraints.size(); ++k)
      if (k != i && !constraints[i].isEqual)
        others.push_back(constraints[k]);
    if (follows(space, constraints[i], others))
      constraints.erase(constraints.begin() + i);
    else
      ++i;
  }
  return constraints;
}

Constraints tilewright::fractal::whereRead(BlockOp block, int64_t read) {
  Constraints where = constraintsOf(block.getDomain());
  if (std::optional<IntegerSet> condition = block.getCondition(read))
    llvm::append_range(where, constraintsOf(*condition));
  return where;
}

/// The distance, if each of its numbers can have one value only.
static std::optional<SmallVector<int64_t>>
uniformDistance(const Dependence &dependence) {
  FlatLinearConstraints set = polyhedron(dependence.space, dependence.relation);
  SmallVector<int64_t> distance;
  for (unsigned dim : llvm::seq(dependence.distanceAt, dependence.space.dims)) {
    auto least = set.getConstantBound64(BoundType::LB, dim);
    auto most = set.getConstantBound64(BoundType::UB, dim);
    if (!least || least != most)
      return std::nullopt;
    distance.push_back(*least);
  }
  return distance;
}

SmallVector<Dependence> tilewright::fractal::findDependences(BlockOp block) {
  SmallVector<Dependence> found;
  MLIRContext *context = block.getContext();
  unsigned loops = block.getNumLoops();
  for (int64_t read : llvm::seq<int64_t>(block.getSources().size())) {
    if (!block.isOwn(read))
      continue;
    AffineMap map = block.getMap(read);
    unsigned levels = map.getNumDims();
    Dependence dependence = {{levels + loops, map.getNumSymbols()},
                             whereRead(block, read),
                             levels,
                             std::nullopt};
    for (unsigned loop : llvm::seq(loops)) {
      AffineExpr distance = getAffineDimExpr(levels + loop, context);
      AffineExpr own = getAffineDimExpr(loop, context) - map.getResult(loop);
      dependence.relation.push_back({distance - own, true});
    }
    dependence.distance = uniformDistance(dependence);
    found.push_back(std::move(dependence));
  }
  return found;
}
