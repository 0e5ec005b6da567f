//===- GraphBlocks.cpp - blocks and what they read ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Fractal/GraphBuilder.h"

#include "dialects/Tile/TileDecisions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Whether a value is the same in each run: made of constants alone.
static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa_and_present<FractalDialect>(op->getDialect()) &&
         isMemoryEffectFree(op) && llvm::all_of(getUsedValues(op), isConstant);
}

bool tilewright::fractal::isInlined(Operation *op) {
  if (op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return false;
  if (isa<ToTensorOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) ||
      isConstant(op->getResult(0)))
    return true;
  return llvm::none_of(op->getResultTypes(), isElement);
}

bool tilewright::fractal::computes(Operation *op) {
  if (isInlined(op) || isAccess(op) || isa<YieldOp>(op))
    return false;
  auto map = dyn_cast<MapOp>(op);
  return !map ||
         llvm::any_of(map.getBodyBlock().without_terminator(),
                      [](Operation &inner) { return computes(&inner); });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

AffineExpr GraphBuilder::constant(int64_t value) {
  return getAffineConstantExpr(value, function.getContext());
}

AffineExpr GraphBuilder::dim(unsigned number) {
  return getAffineDimExpr(number, function.getContext());
}

AffineExpr GraphBuilder::symbol(const Twine &name) {
  symbols.push_back(name.str());
  return getAffineSymbolExpr(symbols.size() - 1, function.getContext());
}

AffineExpr GraphBuilder::index(Value value) {
  auto found = indices.find(value);
  if (found != indices.end())
    return found->second;
  APInt number;
  Operation *op = value.getDefiningOp();
  AffineExpr expr;
  if (matchPattern(value, m_ConstantInt(&number)))
    expr = constant(number.getSExtValue());
  else if (auto length = dyn_cast_or_null<LengthOp>(op))
    // In terms of the loops around: not the same elsewhere.
    return find(length.getSource())->lengths.front();
  else if (isa_and_present<arith::AddIOp>(op))
    return index(op->getOperand(0)) + index(op->getOperand(1));
  else if (isa_and_present<arith::SubIOp>(op))
    return index(op->getOperand(0)) - index(op->getOperand(1));
  else
    expr = symbol(nameOf(value));
  indices[value] = expr;
  return expr;
}

std::string GraphBuilder::nameOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != function)
    return "a value";
  auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    tile::decisions::kName);
  return name ? name.str() : ("arg" + Twine(argument.getArgNumber())).str();
}

Exprs GraphBuilder::lengthsOf(Type type, const Twine &name) {
  Exprs lengths;
  auto array = dyn_cast<ArrayType>(type);
  if (!array)
    return lengths;
  for (auto [level, length] : llvm::enumerate(array.getLengths())) {
    StringRef what =
        length == ArrayType::kRagged ? "longest list of " : "length of ";
    lengths.push_back(ArrayType::isKnown(length)
                          ? constant(length)
                          : symbol(what + name + " at level " + Twine(level)));
  }
  return lengths;
}

Element GraphBuilder::given(Value value) {
  Element element;
  element.lengths = lengthsOf(value.getType(), nameOf(value));
  auto [known, isNew] = givens.try_emplace(value, buffers.size());
  if (isNew)
    buffers.emplace_back().value = value;
  element.pieces.push_back(
      {known->second, dimRange(function.getContext(), 0, element.rank())});
  return element;
}

/// Whether a list has all of its levels: what a block makes as a whole, as a
/// state that is a list, has none.
static bool hasLevels(const Element &element, Type type) {
  auto array = dyn_cast<ArrayType>(type);
  return !array || element.lengths.size() == array.getLengths().size();
}

std::optional<Element> GraphBuilder::find(Value value) {
  auto found = elements.find(value);
  bool known = found != elements.end();
  if (known && hasLevels(found->second, value.getType()))
    return found->second.within(loops.size());
  if (!known && isConstant(value))
    return given(value).within(loops.size());
  Operation *op = value.getDefiningOp();
  // A view that is an element has a block of its own.
  if (!known && op && isInlined(op) && isElement(value.getType()) &&
      succeeded(addBlock({op}, value)))
    return elements.lookup(value).within(loops.size());
  emitRemark(value.getLoc(), "no graph of this function: a value of type ")
      << value.getType() << " is read by another block, and is no element";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult GraphBuilder::addLeaves(ArrayRef<Operation *> ops) {
  SetVector<Value> results;
  for (Operation *op : ops)
    for (Value result : op->getResults()) {
      bool isRead = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !llvm::is_contained(
            ops, op->getBlock()->findAncestorOpInBlock(*user));
      });
      if (isRead && isElement(result.getType()))
        results.insert(result);
    }
  return addBlock(ops, results.getArrayRef());
}

LogicalResult GraphBuilder::addBlock(ArrayRef<Operation *> ops,
                                     ValueRange results) {
  // Nobody reads what they make, as in a fold that yields its states as found.
  if (results.empty())
    return success();
  Draft draft;
  draft.loops = loops;
  for (Operation *op : ops)
    if (failed(collect(draft, op)))
      return failure();
  // Reads may have made blocks: the number is known only now.
  unsigned number = drafts.size();
  for (Value result : results) {
    Element written;
    written.loops = loops.size();
    written.lengths =
        lengthsOf(result.getType(), "result of block " + Twine(number));
    written.pieces.push_back(
        {unsigned(buffers.size()),
         dimRange(function.getContext(), 0, written.rank())});
    Buffer &buffer = buffers.emplace_back();
    buffer.kind = Buffer::Written;
    buffer.block = number;
    buffer.result = draft.results.size();
    draft.results.push_back(result);
    elements[result] = written;
  }
  drafts.push_back(std::move(draft));
  return success();
}

LogicalResult GraphBuilder::collect(Draft &draft, Operation *op) {
  if (draft.ops.contains(op))
    return success();
  for (Value value : getUsedValues(op)) {
    Operation *maker = value.getDefiningOp();
    if (maker && draft.ops.contains(maker))
      continue;
    bool isCopied = maker && isInlined(maker) && !elements.contains(value);
    if (failed(isCopied ? collect(draft, maker) : addArgument(draft, value)))
      return failure();
  }
  draft.ops.insert(op);
  return success();
}

Element GraphBuilder::withLevels(Element element) {
  for (auto [level, length] : llvm::enumerate(element.lengths)) {
    AffineExpr place = dim(element.loops + level);
    element = element.where({{place}, {length - 1 - place}});
  }
  return element;
}

/// Whether one of its readers chooses elements as it runs.
static bool isChosenFrom(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (auto at = dyn_cast<AtOp>(user))
      return at.getSource() == value && !isAccess(at);
    if (auto scatter = dyn_cast<ScatterOp>(user))
      return scatter.getSource() == value;
    auto gather = dyn_cast<GatherOp>(user);
    return gather && gather.getSource() == value;
  });
}

LogicalResult GraphBuilder::addArgument(Draft &draft, Value value) {
  if (draft.arguments.contains(value))
    return success();
  std::optional<Element> element = find(value);
  if (!element)
    return failure();
  if (isChosenFrom(value))
    for (Piece &piece : element->pieces)
      piece.indirect = true;
  draft.arguments.insert(value);
  draft.elements.push_back(withLevels(*element));
  return success();
}
