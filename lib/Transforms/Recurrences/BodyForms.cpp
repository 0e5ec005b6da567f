//===- BodyForms.cpp - what a fold's body computes, as formulas -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/BodyForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Sums of more terms than a recurrence of softmax has are not followed.
static constexpr size_t kMostTerms = 16;

std::optional<double> tilewright::numberOf(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return numberOf(fill.getInputs().front());
  APFloat number(0.0);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  bool inexact;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

std::pair<Operation *, Value> tilewright::combinerOf(linalg::LinalgOp op) {
  Block &body = op->getRegion(0).front();
  if (body.getTerminator()->getNumOperands() != 1)
    return {};
  Value accumulator = body.getArguments().back();
  Operation *last = body.getTerminator()->getOperand(0).getDefiningOp();
  if (!last || last->getNumOperands() != 2 || !accumulator.hasOneUse())
    return {};
  Value left = last->getOperand(0), right = last->getOperand(1);
  if (left != accumulator && right != accumulator)
    return {};
  return {last, left == accumulator ? right : left};
}

llvm::DenseSet<Value> tilewright::followersOf(Block &block, ValueRange values) {
  llvm::DenseSet<Value> all(values.begin(), values.end());
  for (Operation &op : block) {
    bool reads = false;
    op.walk([&](Operation *inner) {
      reads |= llvm::any_of(inner->getOperands(),
                            [&](Value v) { return all.contains(v); });
    });
    if (reads)
      all.insert_range(op.getResults());
  }
  return all;
}

BodyForms::BodyForms(FoldOp fold) {
  Block &body = fold.getBodyBlock();
  stateful = followersOf(body, fold.getStates());
  varying = followersOf(body, body.getArguments());
  for (auto op : body.getOps<linalg::LinalgOp>()) {
    if (op.getNumReductionLoops() != 1 || op->getNumResults() != 1)
      continue;
    auto [combiner, term] = combinerOf(op);
    auto read = dyn_cast_if_present<BlockArgument>(term);
    if (isa_and_present<arith::MaximumFOp, arith::MaxNumFOp>(combiner) && read)
      scores.insert(op->getOperand(read.getArgNumber()));
  }
}

bool BodyForms::isStateful(const Atom &atom) const {
  return atom.kind == Atom::Element && stateful.contains(atom.tensor);
}

Indices BodyForms::ownIndices(Value tensor) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  Indices own;
  for (auto [dim, size] : llvm::enumerate(shape))
    own.push_back(size == 1 ? int64_t(kUnit) : int64_t(dim));
  return own;
}

std::optional<Form> BodyForms::at(Value tensor, const Indices &indices) {
  std::pair<const void *, std::vector<int64_t>> key = {
      tensor.getAsOpaquePointer(), {indices.begin(), indices.end()}};
  auto known = forms.find(key);
  if (known == forms.end())
    known = forms.emplace(key, found(tensor, indices)).first;
  return known->second;
}

std::optional<Form> BodyForms::found(Value tensor, const Indices &indices) {
  bool isState = isa<BlockArgument>(tensor) && stateful.contains(tensor);
  if (!isState && !scores.contains(tensor))
    if (std::optional<Form> form = made(tensor, indices))
      return form->over.size() <= kMostTerms ? form : std::nullopt;
  if ((!isState && stateful.contains(tensor)) ||
      !isa<RankedTensorType>(tensor.getType()))
    return std::nullopt;
  Atom element;
  element.tensor = tensor;
  element.at = indices;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [index, size] : llvm::zip_equal(element.at, shape))
    if (size == 1 && (isState || index < 1000))
      index = kUnit; // but a row of one score is still one to reduce
  return Form::atom(atoms.intern(element));
}

std::optional<Form> BodyForms::made(Value tensor, const Indices &indices) {
  if (std::optional<double> number = numberOf(tensor))
    return std::isfinite(*number) ? std::optional(Form::constant(*number))
                                  : std::nullopt;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return structured(linalgOp, indices);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return reshaped(op, indices);
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  return elementwise(op, [&](Value operand) { return at(operand, indices); });
}

/// Reshapes that only add or drop dimensions of size one.
std::optional<Form> BodyForms::reshaped(Operation *op, const Indices &indices) {
  auto expand = dyn_cast<tensor::ExpandShapeOp>(op);
  auto groups =
      expand ? expand.getReassociationIndices()
             : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  Value larger = expand ? op->getResult(0) : op->getOperand(0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(larger.getType()).getShape();
  Indices read(expand ? groups.size() : shape.size(), kUnit);
  for (auto [number, group] : llvm::enumerate(groups)) {
    auto isWide = [&](int64_t dim) { return shape[dim] != 1; };
    if (llvm::count_if(group, isWide) > 1)
      return std::nullopt;
    auto *wide = llvm::find_if(group, isWide);
    int64_t dim = wide == group.end() ? group.front() : *wide;
    if (expand)
      read[number] = indices[dim];
    else
      read[dim] = indices[number];
  }
  return at(op->getOperand(0), read);
}

//===----------------------------------------------------------------------===//
// Structured operations
//===----------------------------------------------------------------------===//

/// The loops along the dimensions of an operand; constants are zero, for
/// dimensions of size one. Nothing where another expression indexes it.
static std::optional<Indices> read(linalg::LinalgOp op, OpOperand &operand,
                                   const Indices &loops) {
  Indices indices;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [expr, size] :
       llvm::zip_equal(map.getResults(), op.getShape(&operand))) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      indices.push_back(loops[dim.getPosition()]);
    else if (constant && constant.getValue() == 0 && size == 1)
      indices.push_back(kUnit);
    else
      return std::nullopt;
  }
  return indices;
}

std::optional<Form> BodyForms::structured(linalg::LinalgOp op,
                                          const Indices &indices) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() > 1)
    return std::nullopt;
  AffineMap written = op.getIndexingMapsArray().back();
  if (!written.isProjectedPermutation())
    return std::nullopt;
  int64_t bound = next;
  Indices loops(op.getNumLoops(), bound);
  for (auto [expr, index] : llvm::zip_equal(written.getResults(), indices))
    loops[cast<AffineDimExpr>(expr).getPosition()] = index;
  if (op.getNumReductionLoops() == 0)
    return scalar(op, op->getRegion(0).front().getTerminator()->getOperand(0),
                  loops);
  ++next;
  return reduced(op, loops, bound, indices);
}

std::optional<Form> BodyForms::reduced(linalg::LinalgOp op,
                                       const Indices &loops, int64_t bound,
                                       const Indices &indices) {
  auto [combiner, term] = combinerOf(op);
  Value init = op.getDpsInits().front();
  if (isa_and_present<arith::MaximumFOp, arith::MaxNumFOp>(combiner)) {
    std::optional<double> low = numberOf(init);
    bool isLowest = low && std::isinf(*low) && *low < 0;
    return isLowest ? rowMaximum(op, term, loops, bound) : std::nullopt;
  }
  if (!isa_and_present<arith::AddFOp>(combiner))
    return std::nullopt;
  std::optional<Form> start = at(init, indices), each = scalar(op, term, loops);
  std::optional<Form> sum = each ? rowSum(*each, bound) : std::nullopt;
  return start && sum ? std::optional(add(*start, *sum)) : std::nullopt;
}

std::optional<Form> BodyForms::rowMaximum(linalg::LinalgOp op, Value term,
                                          const Indices &loops, int64_t bound) {
  auto argument = dyn_cast<BlockArgument>(term);
  if (!argument || argument.getOwner() != &op->getRegion(0).front())
    return std::nullopt;
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  std::optional<Indices> indices = read(op, operand, loops);
  if (!indices || stateful.contains(operand.get()))
    return std::nullopt;
  std::optional<Form> element = at(operand.get(), *indices);
  std::optional<AtomId> id = element ? element->asAtom() : std::nullopt;
  if (!id || !atoms.varies(*id, bound))
    return std::nullopt;
  Atom maximum = atoms[atoms.replaced(*id, bound, kBound)];
  maximum.kind = Atom::RowMaximum;
  return Form::atom(atoms.intern(maximum));
}

std::optional<Form> BodyForms::rowSum(const Form &term, int64_t bound) {
  auto varies = [&](const Monomial &part) {
    return atoms.any(part, [&](const Atom &atom) {
      return llvm::is_contained(atom.at, bound);
    });
  };
  for (const Polynomial &divisor : term.under)
    if (llvm::any_of(divisor, varies))
      return std::nullopt;
  Form sum = {{}, term.under};
  for (const Monomial &part : term.over) {
    Atom row;
    row.kind = Atom::RowSum;
    Monomial outside;
    outside.factor = part.factor;
    for (auto [id, power] : part.powers)
      if (atoms.varies(id, bound))
        row.term.powers[atoms.replaced(id, bound, kBound)] = power;
      else
        outside.powers[id] = power;
    for (auto [id, factor] : part.exponent)
      if (atoms.varies(id, bound))
        row.term.exponent[atoms.replaced(id, bound, kBound)] = factor;
      else
        outside.exponent[id] = factor;
    // A sum of no exponentials is a number like any other; one of states is not
    // a sum over elements.
    if (row.term.exponent.empty() ||
        atoms.any(row.term, [&](const Atom &atom) { return isStateful(atom); }))
      return std::nullopt;
    outside.powers[atoms.intern(row)] += 1;
    sum.over.push_back(outside);
  }
  sum.over = collected(std::move(sum.over));
  return sum;
}

std::optional<Form> BodyForms::scalar(linalg::LinalgOp op, Value value,
                                      const Indices &loops) {
  Block &body = op->getRegion(0).front();
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &body) {
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    std::optional<Indices> indices = read(op, operand, loops);
    if (!indices || !op.isDpsInput(&operand))
      return std::nullopt;
    return at(operand.get(), *indices);
  }
  if (std::optional<double> number = numberOf(value))
    return std::isfinite(*number) ? std::optional(Form::constant(*number))
                                  : std::nullopt;
  Operation *made = value.getDefiningOp();
  if (!made || made->getBlock() != &body)
    return std::nullopt;
  return elementwise(made,
                     [&](Value operand) { return scalar(op, operand, loops); });
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

std::optional<Form>
BodyForms::elementwise(Operation *op,
                       function_ref<std::optional<Form>(Value)> operand) {
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::NegFOp, arith::MaximumFOp, arith::MaxNumFOp, arith::ExtFOp,
           arith::TruncFOp, math::ExpOp, math::Exp2Op>(op))
    return std::nullopt;
  SmallVector<Form> forms;
  for (Value value : op->getOperands()) {
    std::optional<Form> form = operand(value);
    if (!form)
      return std::nullopt;
    forms.push_back(*form);
  }
  using Result = std::optional<Form>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::AddFOp) { return add(forms[0], forms[1]); })
      .Case([&](arith::SubFOp) { return add(forms[0], negate(forms[1])); })
      .Case([&](arith::MulFOp) { return multiply(forms[0], forms[1]); })
      .Case([&](arith::DivFOp) { return divide(forms[0], forms[1]); })
      .Case([&](arith::NegFOp) { return negate(forms[0]); })
      .Case([&](math::ExpOp) { return exponential(forms[0], 1); })
      .Case([&](math::Exp2Op) {
        return exponential(forms[0], llvm::numbers::ln2);
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) -> Result {
        std::optional<AtomId> left = forms[0].asAtom(),
                              right = forms[1].asAtom();
        if (!left || !right)
          return std::nullopt;
        return Form::atom(atoms.larger(*left, *right));
      })
      .Default([&](Operation *) { return forms[0]; }); // but for rounding
}
