//===- CoreMeshSyntax.cpp - how expressions of positions are written -----===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::coremesh;

/// What the dimensions of expressions are called.
static constexpr StringRef kCoreNames[] = {"y", "x", "i", "j", "k", "l"};
static constexpr StringRef kRouteNames[] = {"p", "q", "i", "j", "k", "l"};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static ParseResult parseExpr(OpAsmParser &parser, ArrayRef<StringRef> names,
                             AffineExpr &expr) {
  SmallVector<std::pair<StringRef, AffineExpr>> known;
  for (auto [number, name] : llvm::enumerate(names))
    known.emplace_back(name, getAffineDimExpr(number, parser.getContext()));
  return parser.parseAffineExpr(known, expr);
}

/// The expression with names for dimensions. One without a name (which no
/// verifier lets pass) stays `d6`.
static std::string named(AffineExpr expr, ArrayRef<StringRef> names) {
  std::string plain, text;
  llvm::raw_string_ostream(plain) << expr;
  for (StringRef rest = plain; !rest.empty();) {
    unsigned number;
    StringRef after = rest.drop_front();
    if (rest.front() == 'd' && !after.consumeInteger(10, number) &&
        number < names.size()) {
      text += names[number];
      rest = after;
      continue;
    }
    text += rest.front();
    rest = rest.drop_front();
  }
  return text;
}

/// One more than the largest dimension of the expressions.
static unsigned numDims(ArrayRef<AffineExpr> exprs) {
  int64_t dims = -1, symbols = -1;
  getMaxDimAndSymbol<ArrayRef<AffineExpr>>({exprs}, dims, symbols);
  return dims + 1;
}

static AffineMapAttr mapOf(ArrayRef<AffineExpr> exprs, MLIRContext *context) {
  return AffineMapAttr::get(AffineMap::get(numDims(exprs), 0, exprs, context));
}

ParseResult shared::parseRouteExpr(OpAsmParser &parser, AffineMapAttr &expr) {
  AffineExpr parsed;
  if (parseExpr(parser, kRouteNames, parsed))
    return failure();
  expr = mapOf(parsed, parser.getContext());
  return success();
}

void shared::printRouteExpr(OpAsmPrinter &p, Operation *, AffineMapAttr expr) {
  for (AffineExpr result : expr.getValue().getResults())
    p << named(result, kRouteNames);
}

ParseResult shared::parseBlock(OpAsmParser &parser, AffineMapAttr &block) {
  SmallVector<AffineExpr> exprs;
  auto parseOne = [&] {
    return parseExpr(parser, ArrayRef(kCoreNames).take_front(2),
                     exprs.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  block = mapOf(exprs, parser.getContext());
  return success();
}

void shared::printBlock(OpAsmPrinter &p, Operation *, AffineMapAttr block) {
  p << '(';
  llvm::interleaveComma(block.getValue().getResults(), p,
                        [&](AffineExpr e) { p << named(e, kCoreNames); });
  p << ')';
}

ParseResult shared::parseSlot(OpAsmParser &parser, FlatSymbolRefAttr &buffer,
                              AffineMapAttr &index) {
  StringAttr name;
  AffineExpr expr = getAffineConstantExpr(0, parser.getContext());
  if (parser.parseSymbolName(name))
    return failure();
  if (succeeded(parser.parseOptionalLSquare()) &&
      (parseExpr(parser, kCoreNames, expr) || parser.parseRSquare()))
    return failure();
  buffer = FlatSymbolRefAttr::get(name);
  index = mapOf(expr, parser.getContext());
  return success();
}

void shared::printSlot(OpAsmPrinter &p, Operation *, FlatSymbolRefAttr buffer,
                       AffineMapAttr index) {
  p << buffer;
  for (AffineExpr expr : index.getValue().getResults())
    if (expr != 0)
      p << '[' << named(expr, kCoreNames) << ']';
}

ParseResult shared::parsePieces(OpAsmParser &parser, ArrayAttr &buffers,
                                ArrayAttr &indices, ArrayAttr &blocks) {
  SmallVector<Attribute> names, slots, places;
  auto parseOne = [&]() -> ParseResult {
    FlatSymbolRefAttr buffer;
    AffineMapAttr index, block;
    if (parseSlot(parser, buffer, index) || parser.parseKeyword("block") ||
        parseBlock(parser, block))
      return failure();
    names.push_back(buffer);
    slots.push_back(index);
    places.push_back(block);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  buffers = parser.getBuilder().getArrayAttr(names);
  indices = parser.getBuilder().getArrayAttr(slots);
  blocks = parser.getBuilder().getArrayAttr(places);
  return success();
}

void shared::printPieces(OpAsmPrinter &p, Operation *op, ArrayAttr buffers,
                         ArrayAttr indices, ArrayAttr blocks) {
  llvm::interleaveComma(llvm::zip(buffers.getAsRange<FlatSymbolRefAttr>(),
                                  indices.getAsRange<AffineMapAttr>(),
                                  blocks.getAsRange<AffineMapAttr>()),
                        p, [&](auto piece) {
                          auto [buffer, index, block] = piece;
                          printSlot(p, op, buffer, index);
                          p << " block";
                          printBlock(p, op, block);
                        });
}

//===----------------------------------------------------------------------===//
// Cores
//===----------------------------------------------------------------------===//

/// `x >= 1`, `x <= 3` or `x == 2`.
static ParseResult parseConstraint(OpAsmParser &parser,
                                   SmallVectorImpl<AffineExpr> &constraints,
                                   SmallVectorImpl<bool> &equalities) {
  AffineExpr left, right;
  if (parseExpr(parser, kCoreNames, left))
    return failure();
  bool isLess = succeeded(parser.parseOptionalLess());
  bool isEqual = !isLess && failed(parser.parseOptionalGreater());
  if ((isEqual && parser.parseEqual()) || parser.parseEqual() ||
      parseExpr(parser, kCoreNames, right))
    return failure();
  constraints.push_back(isLess ? right - left : left - right);
  equalities.push_back(isEqual);
  return success();
}

ParseResult shared::parseCores(OpAsmParser &parser, OrderAttr &order,
                               IntegerSetAttr &cores) {
  order = OrderAttr::get(parser.getContext(), Order::linear);
  if (failed(parser.parseOptionalKeyword("where")))
    return success();
  if (parseOrder(parser, order))
    return failure();
  SmallVector<AffineExpr> constraints;
  SmallVector<bool> equalities;
  auto parseOne = [&] {
    return parseConstraint(parser, constraints, equalities);
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalParen,
                                     parseOne))
    return failure();
  if (!constraints.empty())
    cores = IntegerSetAttr::get(
        IntegerSet::get(numDims(constraints), 0, constraints, equalities));
  return success();
}

/// A constant moves to the right, and what is subtracted too.
static void printConstraint(OpAsmPrinter &p, AffineExpr expr, bool isEqual) {
  AffineExpr left = expr;
  int64_t right = 0;
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (sum && sum.getKind() == AffineExprKind::Add)
    if (auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS())) {
      left = sum.getLHS();
      right = -constant.getValue();
    }
  auto product = dyn_cast<AffineBinaryOpExpr>(left);
  bool isNegated = product && product.getKind() == AffineExprKind::Mul &&
                   product.getRHS() == -1;
  if (isNegated && !isEqual) {
    p << named(product.getLHS(), kCoreNames) << " <= " << -right;
    return;
  }
  p << named(left, kCoreNames) << (isEqual ? " == " : " >= ") << right;
}

void shared::printCores(OpAsmPrinter &p, Operation *op, OrderAttr order,
                        IntegerSetAttr cores) {
  if (order.getValue() == Order::linear && !cores)
    return;
  p << " where";
  printOrder(p, op, order);
  if (!cores)
    return;
  IntegerSet set = cores.getValue();
  p << " (";
  llvm::interleaveComma(llvm::seq(set.getNumConstraints()), p, [&](unsigned i) {
    printConstraint(p, set.getConstraint(i), set.isEq(i));
  });
  p << ')';
}

//===----------------------------------------------------------------------===//
// Words that may be left out
//===----------------------------------------------------------------------===//

ParseResult shared::parseOrder(OpAsmParser &parser, OrderAttr &order) {
  StringRef word;
  Order value = Order::linear;
  if (succeeded(parser.parseOptionalKeyword(&word, {"linear", "ring"})))
    value = *symbolizeOrder(word);
  order = OrderAttr::get(parser.getContext(), value);
  return success();
}

void shared::printOrder(OpAsmPrinter &p, Operation *, OrderAttr order) {
  if (order.getValue() == Order::ring)
    p << " ring";
}

ParseResult shared::parseOverhead(OpAsmParser &parser, OverheadAttr &overhead) {
  StringRef word;
  Overhead value = Overhead::none;
  if (succeeded(parser.parseOptionalKeyword(&word, {"round", "collective"})))
    value = *symbolizeOverhead(word);
  overhead = OverheadAttr::get(parser.getContext(), value);
  return success();
}

void shared::printOverhead(OpAsmPrinter &p, Operation *,
                           OverheadAttr overhead) {
  if (overhead.getValue() != Overhead::none)
    p << ' ' << stringifyOverhead(overhead.getValue());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

ParseResult shared::parseBindings(
    OpAsmParser &parser, SmallVectorImpl<OpAsmParser::Argument> &arguments,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                        parseOne);
}

void shared::printBindings(OpAsmPrinter &p, ValueRange arguments,
                           ValueRange operands) {
  p << '(';
  llvm::interleaveComma(llvm::zip(arguments, operands), p, [&](auto pair) {
    p << std::get<0>(pair) << " = " << std::get<1>(pair);
  });
  p << ')';
}

ParseResult shared::parseLevels(OpAsmParser &parser, IntegerAttr &k,
                                DenseI64ArrayAttr &groups) {
  Builder &b = parser.getBuilder();
  if (succeeded(parser.parseOptionalKeyword("k"))) {
    int64_t levels;
    if (parser.parseInteger(levels))
      return failure();
    k = b.getI64IntegerAttr(levels);
  }
  if (failed(parser.parseOptionalKeyword("groups")))
    return success();
  SmallVector<int64_t> numbers;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(numbers.emplace_back());
      }))
    return failure();
  groups = b.getDenseI64ArrayAttr(numbers);
  return success();
}

void shared::printLevels(OpAsmPrinter &p, Operation *, IntegerAttr k,
                         DenseI64ArrayAttr groups) {
  if (k)
    p << " k " << k.getInt();
  if (!groups)
    return;
  p << " groups [";
  llvm::interleaveComma(groups.asArrayRef(), p);
  p << ']';
}
