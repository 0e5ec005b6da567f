//===- FractalComputeSyntax.cpp - how functions over lists are written ---===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/Fractal.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::fractal;

namespace {
/// What stands between an op's name and its body: names of block arguments,
/// operands in order, and how many there are of each kind.
struct Head {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<int32_t> segments;
};
} // namespace

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// `(%a = %x, %b = %y)`
static ParseResult parsePairs(OpAsmParser &parser, Head &head) {
  size_t before = head.operands.size();
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(head.arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(head.operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  head.segments.push_back(head.operands.size() - before);
  return success();
}

/// `(%l, %r = %x, ...)`: the block has all lefts, then all rights.
static ParseResult parseTriples(OpAsmParser &parser, Head &head) {
  SmallVector<OpAsmParser::Argument> rights;
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(head.arguments.emplace_back()) ||
                   parser.parseComma() ||
                   parser.parseArgument(rights.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(head.operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  head.segments.push_back(head.operands.size());
  llvm::append_range(head.arguments, rights);
  return success();
}

/// `: (types) -> types attributes {...} { ... }`. `typeArguments` says of which
/// types block arguments are, by the types of the operands; null for one that
/// cannot be told.
static ParseResult
parseTail(OpAsmParser &parser, OperationState &result, Head &head,
          function_ref<SmallVector<Type>(TypeRange)> typeArguments) {
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(head.operands, type.getInputs(), loc,
                             result.operands))
    return failure();
  result.addTypes(type.getResults());
  SmallVector<Type> types = typeArguments(type.getInputs());
  for (auto [argument, known] : llvm::zip_equal(head.arguments, types)) {
    if (!known)
      return parser.emitError(argument.ssaName.location,
                              "needs an operand of type !fractal.array");
    argument.type = known;
  }
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, head.arguments))
    return failure();
  // All bodies end alike.
  MapOp::ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

/// The element type of each array; null for what is none.
static SmallVector<Type> elementsOf(TypeRange types) {
  return llvm::map_to_vector(types, [](Type type) -> Type {
    auto array = dyn_cast<ArrayType>(type);
    return array ? array.getElementType() : Type();
  });
}

static ParseResult parseMap(OpAsmParser &parser, OperationState &result) {
  Head head;
  return failure(parsePairs(parser, head) ||
                 parseTail(parser, result, head, elementsOf));
}

template <typename RecurrenceOp>
static ParseResult parseRecurrence(OpAsmParser &parser,
                                   OperationState &result) {
  Head head;
  StringRef direction;
  Builder &b = parser.getBuilder();
  auto &properties =
      result.getOrAddProperties<typename RecurrenceOp::Properties>();
  if (parser.parseOptionalKeyword(&direction, {"left", "right"}))
    return parser.emitError(parser.getCurrentLocation(),
                            "expected 'left' or 'right'");
  if (direction == "right")
    properties.right = b.getUnitAttr();
  if (parsePairs(parser, head) || parser.parseKeyword("over") ||
      parsePairs(parser, head))
    return failure();
  llvm::copy(head.segments, properties.operandSegmentSizes.begin());
  size_t states = head.segments.front();
  auto typeArguments = [&](TypeRange types) {
    SmallVector<Type> known(types.take_front(states));
    llvm::append_range(known, elementsOf(types.drop_front(states)));
    return known;
  };
  return parseTail(parser, result, head, typeArguments);
}

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseMap(parser, result);
}

ParseResult FilterOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseMap(parser, result);
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseRecurrence<ScanOp>(parser, result);
}

ParseResult FoldOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseRecurrence<FoldOp>(parser, result);
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  Head head;
  if (parseTriples(parser, head) || parser.parseKeyword("init"))
    return failure();
  size_t arrays = head.operands.size();
  if (parser.parseOperandList(head.operands, OpAsmParser::Delimiter::Paren))
    return failure();
  head.segments.push_back(head.operands.size() - arrays);
  llvm::copy(
      head.segments,
      result.getOrAddProperties<Properties>().operandSegmentSizes.begin());
  auto typeArguments = [&](TypeRange types) {
    SmallVector<Type> known = elementsOf(types.take_front(arrays));
    known.append(SmallVector<Type>(known));
    return known;
  };
  return parseTail(parser, result, head, typeArguments);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printPairs(OpAsmPrinter &printer, ValueRange arguments,
                       ValueRange operands) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(arguments, operands), printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ')';
}

static void printTail(OpAsmPrinter &printer, Operation *op) {
  printer << " : ";
  printer.printFunctionalType(op);
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(),
                                           {"operandSegmentSizes", "right"});
  printer << ' ';
  printer.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
}

template <typename RecurrenceOp>
static void printRecurrence(OpAsmPrinter &printer, RecurrenceOp op) {
  printer << (op.isLeft() ? " left " : " right ");
  printPairs(printer, ValueRange(op.getStates()), op.getInits());
  printer << " over ";
  printPairs(printer, ValueRange(op.getElements()), op.getArrays());
  printTail(printer, op);
}

void MapOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printPairs(printer, ValueRange(getElements()), getArrays());
  printTail(printer, *this);
}

void FilterOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printPairs(printer, ValueRange(getElement()), ValueRange(getArray()));
  printTail(printer, *this);
}

void ScanOp::print(OpAsmPrinter &printer) { printRecurrence(printer, *this); }

void FoldOp::print(OpAsmPrinter &printer) { printRecurrence(printer, *this); }

void ReduceOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip_equal(getLefts(), getRights(), getArrays()),
                        printer, [&](auto triple) {
                          auto [left, right, array] = triple;
                          printer << left << ", " << right << " = " << array;
                        });
  printer << ") init (" << getInits() << ')';
  printTail(printer, *this);
}

//===----------------------------------------------------------------------===//
// Names of block arguments
//===----------------------------------------------------------------------===//

static void nameAll(ValueRange arguments, StringRef name,
                    OpAsmSetValueNameFn setName) {
  for (Value argument : arguments)
    setName(argument, name);
}

void MapOp::getAsmBlockArgumentNames(Region &region,
                                     OpAsmSetValueNameFn setName) {
  nameAll(region.getArguments(), "x", setName);
}

void FilterOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  nameAll(region.getArguments(), "x", setName);
}

void ScanOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  nameAll(getStates(), "s", setName);
  nameAll(getElements(), "x", setName);
}

void FoldOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  nameAll(getStates(), "s", setName);
  nameAll(getElements(), "x", setName);
}

void ReduceOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  nameAll(getLefts(), "a", setName);
  nameAll(getRights(), "b", setName);
}
