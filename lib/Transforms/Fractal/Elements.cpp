//===- Elements.cpp - which leaf stands where -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Elements.h"

using namespace mlir;
using namespace tilewright::fractal;

Exprs tilewright::fractal::replaced(ArrayRef<AffineExpr> exprs,
                                    ArrayRef<AffineExpr> dims) {
  return llvm::map_to_vector(
      exprs, [&](AffineExpr expr) { return expr.replaceDims(dims); });
}

Constraints tilewright::fractal::replaced(ArrayRef<Constraint> constraints,
                                          ArrayRef<AffineExpr> dims) {
  return llvm::map_to_vector(constraints, [&](const Constraint &c) {
    return Constraint{c.expr.replaceDims(dims), c.isEqual};
  });
}

Exprs tilewright::fractal::dimRange(MLIRContext *context, unsigned from,
                                    unsigned to) {
  return llvm::map_to_vector(llvm::seq(from, to), [&](unsigned dim) {
    return getAffineDimExpr(dim, context);
  });
}

/// The element with all its dimensions replaced, in terms of other loops.
static Element rebased(const Element &element, unsigned loops,
                       ArrayRef<AffineExpr> dims) {
  Element result = {loops, {}, replaced(element.lengths, dims)};
  for (const Piece &piece : element.pieces)
    result.pieces.push_back({piece.buffer, replaced(piece.place, dims),
                             replaced(piece.where, dims), piece.indirect});
  return result;
}

Element Element::entered() const {
  Element element = *this;
  ++element.loops;
  element.lengths.erase(element.lengths.begin());
  return element;
}

Element Element::listed(AffineExpr length) const {
  Element list = *this;
  --list.loops;
  list.lengths.insert(list.lengths.begin(), length);
  return list;
}

Element Element::within(unsigned outer) const {
  if (outer == loops)
    return *this;
  Element element = *this;
  element.loops = outer;
  unsigned shift = outer - loops, rank = this->rank();
  auto move = [&](AffineExpr &expr) {
    expr = expr.shiftDims(rank, shift, loops);
  };
  llvm::for_each(element.lengths, move);
  for (Piece &piece : element.pieces) {
    llvm::for_each(piece.place, move);
    for (Constraint &condition : piece.where)
      move(condition.expr);
  }
  return element;
}

Element Element::accessed(ArrayRef<AffineExpr> places,
                          ArrayRef<AffineExpr> first) const {
  MLIRContext *context = (places.empty() ? first : places).front().getContext();
  unsigned now = loops + first.size(), rest = lengths.size() - places.size();
  Exprs dims = dimRange(context, 0, loops);
  llvm::append_range(dims, places);
  llvm::append_range(dims, dimRange(context, now, now + rest));
  Element result = rebased(*this, loops, dims);
  result.lengths.erase(result.lengths.begin(),
                       result.lengths.begin() + places.size());
  result.lengths.insert(result.lengths.begin(), first.begin(), first.end());
  return result;
}

Element Element::atIteration(AffineExpr at) const {
  Exprs dims = dimRange(at.getContext(), 0, loops - 1);
  dims.push_back(at);
  llvm::append_range(dims, dimRange(at.getContext(), loops - 1, rank() - 1));
  return rebased(*this, loops - 1, dims);
}

Element Element::where(ArrayRef<Constraint> conditions) const {
  Element element = *this;
  for (Piece &piece : element.pieces)
    llvm::append_range(piece.where, conditions);
  return element;
}
