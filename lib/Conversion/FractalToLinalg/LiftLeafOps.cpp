//===- LiftLeafOps.cpp - operations on leaf tensors, lifted ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/UsedValues.h"
#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

/// What the op and its regions read from outside is now.
static IRMapping currentOperands(Lifter &l, Operation *op) {
  IRMapping now;
  for (Value value : getUsedValues(op))
    now.map(value,
            l.isLifted(value) ? l.lookup(value).tensor : l.scalar(value));
  return now;
}

/// A copy that reads what its operands are now; for ops that no map is around.
static void cloneOp(Lifter &l, Operation *op) {
  IRMapping now = currentOperands(l, op);
  Operation *copy = l.b.clone(*op, now);
  for (auto [before, after] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    if (isa<RankedTensorType>(before.getType()))
      l.defineLeaf(before, after);
    else
      l.defineScalar(before, after);
}

//===----------------------------------------------------------------------===//
// Structured and elementwise operations
//===----------------------------------------------------------------------===//

/// Numbers that differ between elements of a list, which a body reads: they are
/// inputs now.
static SmallVector<Value> variesIn(Lifter &l, linalg::LinalgOp op) {
  SmallVector<Value> numbers;
  for (Value value : getUsedValues(op))
    if (l.isLifted(value) && !isa<ShapedType>(value.getType()) &&
        !llvm::is_contained(op->getOperands(), value))
      numbers.push_back(value);
  return numbers;
}

/// The body reads such numbers by arguments, of which the first is `number`.
static void readByArguments(Lifter &l, Block &body, ValueRange numbers,
                            unsigned number) {
  for (Value value : numbers) {
    Value tensor = l.lookup(value).tensor;
    Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
    Value here = body.insertArgument(number++, element, value.getLoc());
    if (element != value.getType()) {
      OpBuilder b = OpBuilder::atBlockBegin(&body);
      here =
          arith::IndexCastOp::create(b, value.getLoc(), value.getType(), here);
    }
    tensor.replaceUsesWithIf(here, [&](OpOperand &use) {
      return body.getParent()->isAncestor(use.getOwner()->getParentRegion());
    });
  }
}

static LogicalResult liftStructured(Lifter &l, linalg::LinalgOp op) {
  SmallVector<Value> numbers = variesIn(l, op);
  SmallVector<Value> read = llvm::to_vector(op->getOperands());
  llvm::append_range(read, numbers);
  SmallVector<Axis> loops = l.loopsOf(read);
  if (loops.empty())
    return cloneOp(l, op), success();
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs, inits;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!l.isLifted(input->get())) { // a scalar
      inputs.push_back(l.scalar(input->get()));
      maps.push_back(liftedMap(map, {}, loops));
      continue;
    }
    const Lifted &value = l.lookup(input->get());
    inputs.push_back(value.tensor);
    maps.push_back(liftedMap(map, value.axes, loops));
  }
  for (Value number : numbers) {
    const Lifted &value = l.lookup(number);
    inputs.push_back(value.tensor);
    maps.push_back(
        liftedMap(AffineMap::get(op.getNumLoops(), 0, l.b.getContext()),
                  value.axes, loops));
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    inits.push_back(l.liftedInit(init.get(), loops));
    maps.push_back(liftedMap(op.getMatchingIndexingMap(&init), loops, loops));
  }
  SmallVector<utils::IteratorType> kinds(loops.size(),
                                         utils::IteratorType::parallel);
  llvm::append_range(kinds, op.getIteratorTypesArray());
  SmallVector<Type> types =
      llvm::map_to_vector(inits, [](Value init) { return init.getType(); });
  auto lifted =
      linalg::GenericOp::create(l.b, types, inputs, inits, maps, kinds);
  IRMapping now = currentOperands(l, op);
  op->getRegion(0).cloneInto(&lifted.getRegion(), now);
  readByArguments(l, lifted.getRegion().front(), numbers, op.getNumDpsInputs());
  lifted.getRegion().walk([&](linalg::IndexOp index) {
    index.setDim(index.getDim() + loops.size());
  });
  for (auto [before, after] :
       llvm::zip_equal(op->getResults(), lifted.getResults()))
    l.define(before, {after, loops, {}});
  return success();
}

/// `arith` and `math` on tensors: a generic with the same op on elements.
static LogicalResult liftElementwise(Lifter &l, Operation *op) {
  SmallVector<Axis> loops = l.loopsOf(op->getOperands());
  auto leaf = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!leaf || op->getNumResults() != 1)
    return op->emitOpError("is not an operation on leaves");
  AffineMap identity = l.b.getMultiDimIdentityMap(leaf.getRank());
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands()) {
    bool isTensor = isa<RankedTensorType>(operand.getType());
    inputs.push_back(isTensor ? l.lookup(operand).tensor : l.scalar(operand));
    AffineMap map = isTensor
                        ? identity
                        : AffineMap::get(leaf.getRank(), 0, l.b.getContext());
    ArrayRef<Axis> axes;
    if (isTensor)
      axes = l.lookup(operand).axes;
    maps.push_back(liftedMap(map, axes, loops));
  }
  Lifted shape = {{}, loops, {}};
  Value into = l.empty(l.sizesOf(shape, loops), leaf);
  Value lifted =
      l.parallel(inputs, maps, into,
                 [&](OpBuilder &inner, Location loc, ValueRange args) -> Value {
                   OperationState state(loc, op->getName(), args,
                                        leaf.getElementType(), op->getAttrs());
                   return inner.create(state)->getResult(0);
                 });
  l.define(op->getResult(0), {lifted, loops, {}});
  return success();
}

//===----------------------------------------------------------------------===//
// Operations that move elements
//===----------------------------------------------------------------------===//

static SmallVector<ReassociationIndices>
shifted(ArrayRef<ReassociationIndices> groups, int64_t by) {
  SmallVector<ReassociationIndices> all;
  for (int64_t dim : llvm::seq(by))
    all.push_back({dim});
  for (const ReassociationIndices &group : groups)
    all.push_back(llvm::map_to_vector<2>(
        group, [&](int64_t dim) -> int64_t { return dim + by; }));
  return all;
}

/// The type of a leaf behind the leading dimensions of `lifted`.
static RankedTensorType behind(const Lifted &lifted, Type leaf) {
  auto type = cast<RankedTensorType>(leaf);
  auto now = cast<RankedTensorType>(lifted.tensor.getType());
  SmallVector<int64_t> shape(now.getShape().take_front(lifted.axes.size()));
  llvm::append_range(shape, type.getShape());
  return RankedTensorType::get(shape, type.getElementType());
}

/// Scalars that offsets and sizes are now.
static SmallVector<OpFoldResult> current(Lifter &l,
                                         ArrayRef<OpFoldResult> given) {
  return llvm::map_to_vector(given, [&](OpFoldResult size) -> OpFoldResult {
    auto value = dyn_cast<Value>(size);
    return value ? OpFoldResult(l.scalar(value)) : size;
  });
}

static void liftExtract(Lifter &l, tensor::ExtractSliceOp op) {
  Lifted value = l.lookup(op.getSource());
  SmallVector<OpFoldResult> offsets, sizes, strides;
  takeAll(l, value.tensor, value.axes.size(), offsets, sizes, strides);
  llvm::append_range(offsets, current(l, op.getMixedOffsets()));
  llvm::append_range(sizes, current(l, op.getMixedSizes()));
  llvm::append_range(strides, current(l, op.getMixedStrides()));
  value.tensor = l.sliceOf(behind(value, op.getType()), value.tensor, offsets,
                           sizes, strides);
  l.define(op.getResult(), value);
}

static void liftInsert(Lifter &l, tensor::InsertSliceOp op) {
  SmallVector<Axis> loops = l.loopsOf({op.getSource(), op.getDest()});
  Value source = l.aligned(l.lookup(op.getSource()), loops);
  Value dest = l.liftedInit(op.getDest(), loops);
  SmallVector<OpFoldResult> offsets, sizes, strides;
  takeAll(l, dest, loops.size(), offsets, sizes, strides);
  llvm::append_range(offsets, current(l, op.getMixedOffsets()));
  llvm::append_range(sizes, current(l, op.getMixedSizes()));
  llvm::append_range(strides, current(l, op.getMixedStrides()));
  Value result = l.inserted(source, dest, offsets, sizes, strides);
  l.define(op.getResult(), {result, loops, {}});
}

/// How many rows each block has where a tensor is a list of blocks whose rows
/// were just seen as one dimension; 0 elsewhere.
static int64_t rowsOfBlocks(Value tensor, int64_t dim) {
  auto collapse = tensor.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || !collapse.getSrcType().hasStaticShape())
    return 0;
  for (auto [number, group] :
       llvm::enumerate(collapse.getReassociationIndices()))
    if (group.size() != (static_cast<int64_t>(number) == dim ? 2 : 1))
      return 0;
  return collapse.getSrcType().getDimSize(dim + 1);
}

/// The type of a tensor whose rows are a list of blocks.
static RankedTensorType inBlocks(Value tensor, int64_t dim, int64_t rows) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> sizes(type.getShape());
  sizes[dim] /= rows;
  sizes.insert(sizes.begin() + dim + 1, rows);
  return type.clone(sizes);
}

/// Tensors one behind the other. Lists of blocks among them are put into a list
/// of blocks: what makes them can then make them there, which it could not
/// through a reshape.
static Value concatenated(Lifter &l, MutableArrayRef<Value> parts, Value into,
                          int64_t dim) {
  int64_t rows = 0;
  for (Value part : parts)
    rows = std::max(rows, rowsOfBlocks(part, dim));
  auto isWhole = [&](Value part) {
    auto type = cast<RankedTensorType>(part.getType());
    return type.hasStaticShape() && type.getDimSize(dim) % rows == 0;
  };
  if (rows == 0 || !isWhole(into) || !llvm::all_of(parts, isWhole))
    return l.joined(parts, into, dim);
  auto type = cast<RankedTensorType>(into.getType());
  SmallVector<ReassociationIndices> groups;
  for (int64_t d : llvm::seq(type.getRank()))
    groups.push_back({d < dim ? d : d + 1});
  groups[dim].insert(groups[dim].begin(), dim);
  for (Value &part : parts)
    part = l.reshaped<tensor::ExpandShapeOp>(inBlocks(part, dim, rows), part,
                                             groups);
  Value blocks = tensor::EmptyOp::create(
      l.b, inBlocks(into, dim, rows).getShape(), type.getElementType());
  return l.reshaped<tensor::CollapseShapeOp>(type, l.joined(parts, blocks, dim),
                                             groups);
}

static void liftConcat(Lifter &l, tensor::ConcatOp op) {
  SmallVector<Axis> loops = l.loopsOf(op.getInputs());
  Lifted shape = {{}, loops, {}};
  Value into = l.empty(l.sizesOf(shape, loops), op.getResultType());
  SmallVector<Value> parts =
      llvm::map_to_vector(op.getInputs(), [&](Value input) {
        return l.aligned(l.lookup(input), loops);
      });
  Value whole = concatenated(l, parts, into, loops.size() + op.getDim());
  l.define(op.getResult(), {whole, loops, {}});
}

template <typename Op> static LogicalResult liftReshape(Lifter &l, Op op) {
  Lifted value = l.lookup(op.getSrc());
  SmallVector<ReassociationIndices> groups =
      shifted(op.getReassociationIndices(), value.axes.size());
  RankedTensorType type = behind(value, op.getType());
  // A scalar and a tensor of ones: these belong to no group of theirs.
  if (op.getReassociationIndices().empty() && !groups.empty()) {
    auto now = cast<RankedTensorType>(value.tensor.getType());
    int64_t rank = std::max(type.getRank(), now.getRank());
    for (int64_t dim : llvm::seq<int64_t>(groups.size(), rank))
      groups.back().push_back(dim);
  }
  value.tensor = l.reshaped<Op>(type, value.tensor, groups);
  l.define(op.getResult(), value);
  return success();
}

/// `arith` or `math` on tensors, which no later phase knows.
static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

LogicalResult tilewright::liftLeafOp(Lifter &l, Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return liftStructured(l, structured);
  if (isVarying(l, op))
    return liftVarying(l, op);
  if (isElementwise(op))
    return liftElementwise(l, op);
  bool readsLists =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<fractal::ArrayType>);
  if (!readsLists && l.loopsOf(op).empty() && !isa<tensor::ConcatOp>(op))
    return cloneOp(l, op), success();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::ExtractSliceOp cut) {
        return liftExtract(l, cut), success();
      })
      .Case([&](tensor::InsertSliceOp put) {
        return liftInsert(l, put), success();
      })
      .Case(
          [&](tensor::ConcatOp join) { return liftConcat(l, join), success(); })
      .Case([&](tensor::ExpandShapeOp reshape) {
        return liftReshape(l, reshape);
      })
      .Case([&](tensor::CollapseShapeOp reshape) {
        return liftReshape(l, reshape);
      })
      .Default([&](Operation *other) -> LogicalResult {
        return unsupported(other)
               << "cannot be computed for all elements of a list at once: a "
                  "leaf operation is structured (linalg), elementwise, or "
                  "reshapes, cuts or joins tensors";
      });
}
