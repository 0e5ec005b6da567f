//===- Lifter.cpp - values for all elements at once -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

RankedTensorType tilewright::leafOf(Type element) {
  if (auto array = dyn_cast<fractal::ArrayType>(element))
    return array.getLeaf();
  return cast<RankedTensorType>(element);
}

InFlightDiagnostic tilewright::unsupported(Operation *op) {
  return op->emitError("unsupported: '") << op->getName() << "' ";
}

bool tilewright::isEmpty(Type tensor) {
  return llvm::is_contained(cast<RankedTensorType>(tensor).getShape(), 0);
}

SmallVector<Axis> tilewright::levelsOf(const Lifted &value) {
  return llvm::map_to_vector(llvm::seq<int64_t>(value.lengths.size()),
                             levelAxis);
}

void tilewright::takeAll(Lifter &l, Value tensor, int64_t dims,
                         SmallVector<OpFoldResult> &offsets,
                         SmallVector<OpFoldResult> &sizes,
                         SmallVector<OpFoldResult> &strides) {
  for (int64_t dim : llvm::seq(dims)) {
    offsets.push_back(l.b.getIndexAttr(0));
    sizes.push_back(tensor::getMixedSize(l.b, l.b.getLoc(), tensor, dim));
    strides.push_back(l.b.getIndexAttr(1));
  }
}

//===----------------------------------------------------------------------===//
// Lifted
//===----------------------------------------------------------------------===//

bool Presence::isMask() const {
  return cast<RankedTensorType>(tensor.getType()).getElementType().isInteger(1);
}

Presence Lifted::presenceOf(int64_t level) const {
  return level < static_cast<int64_t>(presences.size()) ? presences[level]
                                                        : Presence();
}

void Lifted::setPresence(int64_t level, Presence presence) {
  if (level >= static_cast<int64_t>(presences.size()))
    presences.resize(level + 1);
  presences[level] = std::move(presence);
}

bool Lifted::isComplete() const {
  return llvm::none_of(presences, [](const Presence &presence) {
    return static_cast<bool>(presence);
  });
}

std::optional<int64_t> Lifted::dimOf(Axis axis) const {
  const auto *found = llvm::find(axes, axis);
  if (found == axes.end())
    return std::nullopt;
  return found - axes.begin();
}

Lifted Lifted::renamed(function_ref<Axis(Axis)> rename) const {
  Lifted result = *this;
  result.axes = llvm::map_to_vector(axes, rename);
  for (Presence &presence : result.presences)
    presence.axes = llvm::map_to_vector(presence.axes, rename);
  return result;
}

Lifted Lifted::entered(Axis loop) const {
  Lifted element = renamed([&](Axis axis) {
    return axis == levelAxis(0) ? loop : deeper(axis, -1);
  });
  element.lengths.erase(element.lengths.begin());
  if (!element.presences.empty())
    element.presences.erase(element.presences.begin());
  return element;
}

Lifted Lifted::listed(Axis loop, OpFoldResult length) const {
  Lifted list = renamed(
      [&](Axis axis) { return axis == loop ? levelAxis(0) : deeper(axis, 1); });
  list.lengths.insert(list.lengths.begin(), length);
  if (!list.presences.empty())
    list.presences.insert(list.presences.begin(), Presence());
  return list;
}

Lifted Lifted::repeated(OpFoldResult length) const {
  return listed(/*loop=*/std::numeric_limits<Axis>::max(), length);
}

SmallVector<Axis> Lifted::loops() const {
  return llvm::filter_to_vector(axes, [](Axis axis) { return !isLevel(axis); });
}

//===----------------------------------------------------------------------===//
// Lifter
//===----------------------------------------------------------------------===//

const Lifted &Lifter::lookup(Value value) const {
  auto found = values.find(value);
  assert(found != values.end() && "operands are lowered before their users");
  return found->second;
}

void Lifter::define(Value value, Lifted lifted) {
  computesMore |= !lifted.isComplete();
  values[value] = std::move(lifted);
}

Axis Lifter::addLoop(OpFoldResult size) {
  loops.push_back(size);
  return loops.size() - 1;
}

OpFoldResult Lifter::sizeOf(const Lifted &value, Axis axis) const {
  return isLevel(axis) ? value.lengths[levelOf(axis)] : loops[axis];
}

SmallVector<OpFoldResult> Lifter::sizesOf(const Lifted &value,
                                          ArrayRef<Axis> axes) const {
  return llvm::map_to_vector(axes,
                             [&](Axis axis) { return sizeOf(value, axis); });
}

SmallVector<Axis> Lifter::loopsOf(ArrayRef<Lifted> values) {
  SetVector<Axis> found;
  const auto *most = llvm::max_element(values, [](auto &one, auto &other) {
    return one.loops().size() < other.loops().size();
  });
  if (most != values.end())
    found.insert_range(most->loops());
  for (const Lifted &value : values) {
    found.insert_range(value.loops());
    for (const Presence &presence : value.presences)
      for (Axis axis : presence.axes)
        if (!isLevel(axis))
          found.insert(axis);
  }
  return found.takeVector();
}

SmallVector<Axis> Lifter::loopsOf(ValueRange read) const {
  SmallVector<Lifted> lifted;
  for (Value value : read)
    if (isLifted(value))
      lifted.push_back(lookup(value));
  return loopsOf(lifted);
}

SmallVector<Axis> Lifter::loopsOf(Operation *op) const {
  return loopsOf(getUsedValues(op).takeVector());
}

Value Lifter::empty(ArrayRef<OpFoldResult> sizes, RankedTensorType leaf) {
  SmallVector<OpFoldResult> all(sizes);
  for (int64_t size : leaf.getShape())
    all.push_back(b.getIndexAttr(size));
  return tensor::EmptyOp::create(b, all, leaf.getElementType());
}

Value Lifter::aligned(const Lifted &value, ArrayRef<Axis> axes) {
  if (ArrayRef<Axis>(value.axes) == axes)
    return value.tensor;
  auto type = cast<RankedTensorType>(value.tensor.getType());
  auto leaf = RankedTensorType::get(
      type.getShape().drop_front(value.axes.size()), type.getElementType());
  AffineMap read =
      liftedMap(b.getMultiDimIdentityMap(leaf.getRank()), value.axes, axes);
  return parallel(
      value.tensor, read, empty(sizesOf(value, axes), leaf),
      [](OpBuilder &, Location, ValueRange args) { return args.front(); });
}

Value Lifter::liftedInit(Value init, ArrayRef<Axis> axes) {
  const Lifted &given = lookup(init);
  if (ArrayRef<Axis>(given.axes) == axes)
    return given.tensor;
  auto leaf = cast<RankedTensorType>(init.getType());
  auto make = [&] { return empty(sizesOf(given, axes), leaf); };
  if (given.tensor.getDefiningOp<tensor::EmptyOp>())
    return make();
  if (auto fill = given.tensor.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(b, fill.getInputs(), ValueRange(make()))
        .getResult(0);
  return aligned(given, axes);
}

Value Lifter::parallel(
    ValueRange inputs, ArrayRef<AffineMap> maps, Value into,
    function_ref<Value(OpBuilder &, Location, ValueRange)> element) {
  int64_t rank = cast<RankedTensorType>(into.getType()).getRank();
  SmallVector<AffineMap> all(maps);
  all.push_back(b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, into.getType(), inputs, into, all, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        Value made = element(inner, loc, args.drop_back());
        linalg::YieldOp::create(inner, loc, made);
      });
  return generic.getResult(0);
}

AffineMap tilewright::liftedMap(AffineMap map, ArrayRef<Axis> axes,
                                ArrayRef<Axis> loops) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> results;
  for (Axis axis : axes) {
    const auto *place = llvm::find(loops, axis);
    assert(place != loops.end() && "an axis that would be lost");
    results.push_back(getAffineDimExpr(place - loops.begin(), context));
  }
  llvm::append_range(results, map.shiftDims(loops.size()).getResults());
  return AffineMap::get(map.getNumDims() + loops.size(), 0, results, context);
}

Value tilewright::clamped(OpBuilder &b, Location loc, Value number,
                          Value last) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(number.getType()));
  Value least = arith::MaxSIOp::create(b, loc, number, zero);
  return arith::MinSIOp::create(b, loc, least, last);
}

Value Lifter::joined(ValueRange parts, Value into, int64_t dim) {
  int64_t start = 0;
  for (Value part : parts) {
    auto type = cast<RankedTensorType>(part.getType());
    SmallVector<OpFoldResult> offsets, sizes, strides;
    takeAll(*this, part, type.getRank(), offsets, sizes, strides);
    offsets[dim] = b.getIndexAttr(start);
    into = inserted(part, into, offsets, sizes, strides);
    start += type.getDimSize(dim);
  }
  return into;
}

Value Lifter::sliceOf(RankedTensorType type, Value tensor,
                      ArrayRef<OpFoldResult> offsets,
                      ArrayRef<OpFoldResult> sizes,
                      ArrayRef<OpFoldResult> strides) {
  if (!type)
    type = tensor::ExtractSliceOp::inferResultType(
        cast<RankedTensorType>(tensor.getType()), sizes);
  if (isEmpty(type) && type.hasStaticShape())
    return tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  return tensor::ExtractSliceOp::create(b, type, tensor, offsets, sizes,
                                        strides);
}

Value Lifter::inserted(Value part, Value tensor, ArrayRef<OpFoldResult> offsets,
                       ArrayRef<OpFoldResult> sizes,
                       ArrayRef<OpFoldResult> strides) {
  if (isEmpty(part.getType()))
    return tensor;
  return tensor::InsertSliceOp::create(b, part, tensor, offsets, sizes,
                                       strides);
}

/// The tensor of one place of the outermost level, and the axes that are left.
static Lifted sliceAt(Lifter &l, Lifted list, OpFoldResult index) {
  std::optional<int64_t> dim = list.dimOf(levelAxis(0));
  if (!dim)
    return list;
  auto type = cast<RankedTensorType>(list.tensor.getType());
  SmallVector<OpFoldResult> offsets, sizes, strides;
  takeAll(l, list.tensor, type.getRank(), offsets, sizes, strides);
  offsets[*dim] = index;
  sizes[*dim] = l.b.getIndexAttr(1);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + *dim);
  list.axes.erase(list.axes.begin() + *dim);
  list.tensor = l.sliceOf(RankedTensorType::get(shape, type.getElementType()),
                          list.tensor, offsets, sizes, strides);
  return list;
}

Lifted Lifter::elementAt(const Lifted &list, OpFoldResult index) {
  Lifted rest = sliceAt(*this, list, index);
  for (auto [level, presence] : llvm::enumerate(rest.presences)) {
    if (!presence)
      continue;
    Lifted part =
        sliceAt(*this, {presence.tensor, presence.axes, list.lengths}, index);
    presence = level == 0 ? Presence() : Presence{part.tensor, part.axes};
  }
  return rest.entered(/*loop=*/0); // no axis is renamed
}

Value Lifter::index(OpFoldResult size) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
}

LogicalResult Lifter::lift(Block &block) {
  for (Operation &op : block.without_terminator()) {
    b.setLoc(op.getLoc());
    if (failed(liftOp(&op)))
      return failure();
  }
  return success();
}

/// Ops that know of lists whose elements are not all there, and those that also
/// know of gaps between elements.
static bool knowsLengths(Operation *op) {
  return !isa<fractal::SplitOp, fractal::ReadOp, fractal::RecurseOp>(op);
}
static bool knowsGaps(Operation *op) {
  return isa<fractal::MapOp, fractal::ScanOp, fractal::FoldOp,
             fractal::ReduceOp, fractal::FilterOp, fractal::LengthOp>(op);
}

/// Lists that are read in step have a length in common. Beside a list of a
/// length that only a run knows, none may be padded: how far is not known.
static bool isBounded(const Lifter &l, Operation *op) {
  bool isOpen = false, isPadded = false;
  for (Value operand : op->getOperands())
    if (isa<fractal::ArrayType>(operand.getType()) && l.isLifted(operand)) {
      const Lifted &list = l.lookup(operand);
      isOpen |= !getConstantIntValue(list.lengths.front());
      isPadded |= static_cast<bool>(list.presenceOf(0));
    }
  return !isOpen || !isPadded || op->getNumRegions() == 0;
}

/// Arrays are made as the op can read them.
LogicalResult Lifter::prepareArrays(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (!isa<fractal::ArrayType>(operand.getType()) || !isLifted(operand) ||
        lookup(operand).isComplete())
      continue;
    if (!knowsLengths(op))
      return unsupported(op) << "reads a list whose length only a run knows, "
                                "which has no lowering yet; give it one length";
    if (!knowsGaps(op))
      define(operand, compacted(*this, lookup(operand)));
  }
  return isBounded(*this, op) ? success() : unbounded(op);
}

/// What types claim of lengths holds.
void Lifter::applyClaims(Operation *op) {
  for (Value result : op->getResults())
    if (auto type = dyn_cast<fractal::ArrayType>(result.getType());
        type && isLifted(result) && !lookup(result).isComplete())
      define(result, claimed(*this, lookup(result), type.getLengths()));
}

LogicalResult Lifter::liftOp(Operation *op) {
  if (failed(prepareArrays(op)))
    return failure();
  for (auto *lower : {liftComputeOp, liftAccessOp, liftRegroupOp, liftSparseOp})
    if (std::optional<LogicalResult> done = lower(*this, op)) {
      if (succeeded(*done))
        applyClaims(op);
      return *done;
    }
  return liftLeafOp(*this, op);
}
