//===- FractalTreeOps.cpp - functions over trees --------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

/// The element type of each array; null for what is none.
static SmallVector<Type> elementsOf(TypeRange types) {
  return llvm::map_to_vector(types, [](Type type) -> Type {
    auto array = dyn_cast<ArrayType>(type);
    return array ? array.getElementType() : Type();
  });
}

SmallVector<Type> RecurseOp::getStateTypes() {
  return elementsOf(getResultTypes());
}

/// The states of each of `arity` children, then the elements.
static SmallVector<Type> nodeArguments(ArrayRef<Type> states, int64_t arity,
                                       ArrayRef<Type> elements) {
  SmallVector<Type> types;
  for ([[maybe_unused]] int64_t child : llvm::seq(arity))
    llvm::append_range(types, states);
  llvm::append_range(types, elements);
  return types;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyArguments(RecurseOp op, StringRef region,
                                     TypeRange given, TypeRange expected,
                                     StringRef layout) {
  if (given.size() != expected.size())
    return op.emitOpError("its ")
           << region << " region has " << given.size()
           << " block arguments, needs " << expected.size() << ": " << layout;
  for (auto [number, types] :
       llvm::enumerate(llvm::zip_equal(given, expected))) {
    auto [actual, type] = types;
    if (actual != type)
      return op.emitOpError("its ")
             << region << " region has a block argument " << number
             << " of type " << actual << ", needs " << type << ": " << layout;
  }
  return success();
}

LogicalResult RecurseOp::verify() {
  // recurse_c1
  RankedTensorType children = getChildren().getType();
  if (children.isDynamicDim(1) || getArity() == 0)
    return emitOpError("needs a known number of children, one or more, as the "
                       "second size of ")
           << children;
  // recurse_c2
  if (failed(verifyArguments(*this, "leaf", getLeafBody().getArgumentTypes(),
                             elementsOf(getLeaves().getTypes()),
                             "an element of each array in `leaves`")))
    return failure();
  // recurse_c3
  if (getNumResults() == 0)
    return emitOpError("has no result: it needs at least one state");
  int64_t roots = getRoots().getType().getDimSize(0);
  for (Type type : getResultTypes())
    if (int64_t length = cast<ArrayType>(type).getLength();
        ArrayType::isKnown(length) && ArrayType::isKnown(roots) &&
        length != roots)
      return emitOpError("has a result of ")
             << length << " elements, but " << roots << " roots";
  // recurse_c6
  int64_t rows = children.getDimSize(0);
  for (Type type : getNodes().getTypes())
    if (int64_t length = cast<ArrayType>(type).getLength();
        ArrayType::isKnown(length) && ArrayType::isKnown(rows) &&
        length != rows)
      return emitOpError("has ")
             << rows << " rows of children, but an array of " << length
             << " elements in `nodes`";
  // recurse_c7
  int64_t levels = getLevels().getType().getDimSize(0);
  if (ArrayType::isKnown(levels) && levels < 2)
    return emitOpError("has ")
           << levels << " entries in `levels`, needs two: where the leaves "
           << "begin, and where they end";
  // recurse_c4
  return verifyArguments(
      *this, "node", getNodeBody().getArgumentTypes(),
      nodeArguments(getStateTypes(), getArity(),
                    elementsOf(getNodes().getTypes())),
      "the states of each child, then an element of each array in `nodes`");
}

/// recurse_c5: what a region yields.
static LogicalResult verifyYield(RecurseOp op, StringRef region, Block &block) {
  TypeRange given = block.getTerminator()->getOperandTypes();
  SmallVector<Type> states = op.getStateTypes();
  if (given == TypeRange(states))
    return success();
  return op.emitOpError("its ")
         << region << " region yields (" << given
         << "), but the states, elements of the results, are ("
         << TypeRange(states) << ')';
}

LogicalResult RecurseOp::verifyRegions() {
  for (Block *block : {&getLeafBlock(), &getNodeBlock()})
    if (block->empty() || !isa<YieldOp>(block->back()))
      return emitOpError("both of its regions end with fractal.yield");
  if (failed(verifyYield(*this, "leaf", getLeafBlock())))
    return failure();
  return verifyYield(*this, "node", getNodeBlock());
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// `leaf (%x) { ... }`
static ParseResult parseBody(OpAsmParser &parser, OperationState &result,
                             StringRef keyword, ArrayRef<Type> types) {
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(keyword) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  if (arguments.size() != types.size())
    return parser.emitError(loc, "this region takes ")
           << types.size() << " arguments, not " << arguments.size();
  for (auto [argument, type] : llvm::zip_equal(arguments, types)) {
    if (!type)
      return parser.emitError(loc, "needs an operand of type !fractal.array");
    argument.type = type;
  }
  return parser.parseRegion(*result.addRegion(), arguments);
}

ParseResult RecurseOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<int32_t> segments = {1, 1, 1};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, /*requiredOperandCount=*/3))
    return failure();
  for (StringRef keyword : {"leaves", "nodes"}) {
    size_t before = operands.size();
    if (parser.parseKeyword(keyword) ||
        parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
      return failure();
    segments.push_back(operands.size() - before);
  }
  FunctionType type;
  if (parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  llvm::copy(
      segments,
      result.getOrAddProperties<Properties>().operandSegmentSizes.begin());
  auto children = dyn_cast<RankedTensorType>(type.getInput(0));
  if (!children || children.getRank() != 2 || children.isDynamicDim(1))
    return parser.emitError(loc, "the children of all nodes are a tensor of "
                                 "rank 2, with a known number for each node");
  ArrayRef<Type> arrays = type.getInputs().drop_front(3);
  SmallVector<Type> leaves = elementsOf(arrays.take_front(segments[3]));
  SmallVector<Type> nodes =
      nodeArguments(elementsOf(type.getResults()), children.getDimSize(1),
                    elementsOf(arrays.drop_front(segments[3])));
  return failure(parseBody(parser, result, "leaf", leaves) ||
                 parseBody(parser, result, "node", nodes));
}

static void printBody(OpAsmPrinter &printer, StringRef keyword,
                      Region &region) {
  printer << keyword << " (";
  llvm::interleaveComma(region.getArguments(), printer, [&](Value argument) {
    printer.printOperand(argument);
  });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

void RecurseOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getChildren() << ", " << getLevels() << ", " << getRoots()
          << " leaves(" << getLeaves() << ") nodes(" << getNodes() << ") : ";
  printer.printFunctionalType(*this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"operandSegmentSizes"});
  printer.printNewline();
  printBody(printer, "leaf", getLeafBody());
  printer << ' ';
  printBody(printer, "node", getNodeBody());
}

void RecurseOp::getAsmBlockArgumentNames(Region &region,
                                         OpAsmSetValueNameFn setName) {
  size_t states = &region == &getNodeBody() ? getArity() * getNumResults() : 0;
  for (auto [number, argument] : llvm::enumerate(region.getArguments()))
    setName(argument, number < states ? "s" : "x");
}
