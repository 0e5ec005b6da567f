//===- CoreMeshProgramOps.cpp - programs, buffers, routes ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::coremesh;
using namespace tilewright::coremesh::shared;

ProgramOp shared::programOf(Operation *op) {
  return op->getParentOfType<ProgramOp>();
}

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  int64_t height, width;
  if (parser.parseAttribute(name) || parser.parseKeyword("grid") ||
      parser.parseLParen() || parser.parseInteger(height) ||
      parser.parseComma() || parser.parseInteger(width) || parser.parseRParen())
    return failure();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.name = name;
  properties.height = b.getI64IntegerAttr(height);
  properties.width = b.getI64IntegerAttr(width);
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne) ||
      parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  for (auto [argument, input] : llvm::zip_equal(arguments, type.getInputs()))
    argument.type = input;
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ProgramOp::print(OpAsmPrinter &p) {
  p << ' ' << getNameAttr() << " grid(" << getHeight() << ", " << getWidth()
    << ") (";
  llvm::interleaveComma(
      llvm::zip(getBody().getArguments(), getInputs()), p,
      [&](auto pair) { p << std::get<0>(pair) << " = " << std::get<1>(pair); });
  p << ") : ";
  p.printFunctionalType(*this);
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getNameAttrName(), getHeightAttrName(), getWidthAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ProgramOp::verify() {
  if (int64_t(getHeight()) < 1 || int64_t(getWidth()) < 1) // program_c1
    return emitOpError("has a grid of ")
           << int64_t(getHeight()) << " x " << int64_t(getWidth())
           << " cores: it needs one core at least";
  if (getBody().getArgumentTypes() != getInputs().getTypes()) // program_c2
    return emitOpError("has block arguments of types (")
           << getBody().getArgumentTypes() << "), needs those of its operands ("
           << getInputs().getTypes() << ')';
  // program_c5
  SmallVector<Type> types(getOperandTypes());
  llvm::append_range(types, getResultTypes());
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || !tensor.hasStaticShape())
      return emitOpError("takes and returns tensors of static shape, not ")
             << type;
  return success();
}

/// program_c3
static LogicalResult verifySequence(ProgramOp program) {
  Operation *instruction = nullptr, *collected = nullptr;
  for (Operation &op : program.getBodyBlock().without_terminator()) {
    if (isa<BufferOp, RouteOp>(op))
      continue;
    if (isa<PlaceOp>(op) && (instruction || collected))
      return op.emitOpError("stands behind an instruction: inputs are placed "
                            "before the program runs");
    if (isa<CollectOp>(op))
      collected = &op;
    else if (!isa<PlaceOp>(op))
      instruction = &op;
    if (instruction == &op && collected)
      return collected->emitOpError("stands before an instruction: outputs are "
                                    "collected after the program has run");
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (failed(verifySequence(*this)))
    return failure();
  Operation *last = getBodyBlock().empty() ? nullptr : &getBodyBlock().back();
  if (isa_and_present<YieldOp>(last) &&
      last->getOperandTypes() == getResultTypes()) // program_c4
    return success();
  InFlightDiagnostic error = emitOpError("must end in coremesh.yield of (")
                             << getResultTypes() << ')';
  if (last)
    error << ", but ends in " << last->getName() << " of ("
          << last->getOperandTypes() << ')';
  return error;
}

//===----------------------------------------------------------------------===//
// BufferOp and RouteOp
//===----------------------------------------------------------------------===//

LogicalResult BufferOp::verify() {
  RankedTensorType tile = getTileType();
  Type element = tile.getElementType();
  // buffer_c1
  if (!tile.hasStaticShape() || llvm::is_contained(tile.getShape(), 0) ||
      tile.getEncoding() || !element.isIntOrFloat() ||
      element.getIntOrFloatBitWidth() % 8 != 0)
    return emitOpError("cannot hold ")
           << tile << ": a tile has a static shape, no size of 0, elements of "
           << "whole bytes, and no encoding";
  // buffer_c2
  if (int64_t(getSlots()) < 1)
    return emitOpError("has ")
           << int64_t(getSlots()) << " slots: it needs one at least";
  if (std::optional<uint64_t> address = getAddress();
      address && int64_t(*address) < 0)
    return emitOpError("has the address ")
           << int64_t(*address) << ": it must not be negative";
  return success();
}

/// route_c2
static LogicalResult verifyColors(RouteOp route) {
  ArrayRef<int64_t> colors = route.getColors().value_or(ArrayRef<int64_t>());
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t color : colors)
    if (color < 0 || !seen.insert(color).second)
      return route.emitOpError("has the color ")
             << color << (color < 0 ? ": it must not be negative" : " twice");
  if (colors.empty() && !route.getColor())
    return success();
  AffineMap map = route.getColor().value_or(AffineMap());
  if (!map || map.getNumResults() != 1 || !areOf(map.getResults(), 2))
    return route.emitOpError("needs one expression of p and q that chooses "
                             "among its colors");
  ProgramOp program = programOf(route);
  Domain domain = {int64_t(program.getHeight()), int64_t(program.getWidth())};
  if (route.getAxis() == Axis::x)
    std::swap(domain[0], domain[1]);
  LogicalResult result = success();
  forEachPoint(domain, map.getResults(), std::nullopt, [&](auto, auto values) {
    if (values[0] && *values[0] >= 0 && *values[0] < int64_t(colors.size()))
      return true;
    InFlightDiagnostic error = route.emitOpError("chooses color number ");
    if (values[0])
      error << *values[0];
    else
      error << "(undefined)";
    result = error << " of " << colors.size() << " colors";
    return false;
  });
  return result;
}

LogicalResult RouteOp::verify() {
  // route_c1
  AffineMap source = getSource();
  if (source.getNumResults() != 1 ||
      !areOf(source.getResults(), 2 + kMostLoops))
    return emitOpError("needs one expression of p, q and loops as its source, "
                       "not ")
           << getSourceAttr();
  return verifyColors(*this);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

LogicalResult shared::verifySlot(Operation *op, BufferOp buffer,
                                 AffineMap index,
                                 std::optional<IntegerSet> where) {
  int64_t slots = buffer.getSlots();
  LogicalResult result = success();
  forEachPoint(domainOf(op), index.getResults(), where,
               [&](ArrayRef<int64_t> point, auto values) {
                 if (values[0] && *values[0] >= 0 && *values[0] < slots)
                   return true;
                 InFlightDiagnostic error = op->emitOpError("takes slot ");
                 if (values[0])
                   error << *values[0];
                 else
                   error << "(undefined)";
                 result = error << " of @" << buffer.getSymName() << " where "
                                << describe(point) << ", but there are "
                                << slots << ", counted from 0";
                 return false;
               });
  return result;
}

/// Labels 1 to 3 of place and collect.
template <typename Op> static LogicalResult verifyPlacement(Op op) {
  auto buffer =
      findIn<BufferOp>(op, op.getBufferAttr()); // place_c1, collect_c1
  if (!buffer)
    return failure();
  AffineMap index = op.getIndex(), block = op.getBlock();
  auto tensor = cast<RankedTensorType>(op.getTensor().getType());
  RankedTensorType tile = buffer.getTileType();
  // place_c3, collect_c3
  if (tensor.getElementType() != tile.getElementType() ||
      tensor.getRank() != tile.getRank())
    return op.emitOpError("cannot cut ")
           << tensor << " into tiles " << tile
           << ": element type and number of dimensions must be equal";
  if (block.getNumResults() != tile.getRank() || index.getNumResults() != 1 ||
      !areOf(block.getResults(), 2) || !areOf(index.getResults(), 2))
    return op.emitOpError("needs an expression of y and x for its slot, and "
                          "one for each of ")
           << tile.getRank() << " dimensions";
  return verifySlot(op, buffer, index, std::nullopt); // place_c2, collect_c2
}

/// place_c4, collect_c4: calls `visit` with each block that a core has.
template <typename Op>
static LogicalResult verifyBlocks(Op op,
                                  function_ref<void(ArrayRef<int64_t>)> visit) {
  LogicalResult result = success();
  forEachPoint(domainOf(op), op.getBlock().getResults(), std::nullopt,
               [&](ArrayRef<int64_t> point, auto values) {
                 auto isWrong = [](auto value) {
                   return value.value_or(-1) < 0;
                 };
                 if (llvm::any_of(values, isWrong)) {
                   result = op.emitOpError("takes a negative block where ")
                            << describe(point);
                   return false;
                 }
                 visit(llvm::map_to_vector(values, [](auto v) { return *v; }));
                 return true;
               });
  return result;
}

LogicalResult PlaceOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyPlacement(*this)))
    return failure();
  return verifyBlocks(*this, [](ArrayRef<int64_t>) {});
}

LogicalResult CollectOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyPlacement(*this)))
    return failure();
  auto tensor = cast<RankedTensorType>(getTensor().getType());
  ArrayRef<int64_t> tile =
      findIn<BufferOp>(*this, getBufferAttr()).getTileType().getShape();
  SmallVector<int64_t> counts;
  int64_t total = 1;
  for (auto [size, part] : llvm::zip_equal(tensor.getShape(), tile)) {
    counts.push_back(llvm::divideCeilSigned(size, part));
    total *= counts.back();
  }
  llvm::DenseSet<int64_t> seen;
  bool looked = false;
  if (failed(verifyBlocks(*this, [&](ArrayRef<int64_t> block) {
        looked = true;
        int64_t number = 0;
        for (auto [at, count] : llvm::zip_equal(block, counts)) {
          if (at >= count)
            return;
          number = number * count + at;
        }
        seen.insert(number);
      })))
    return failure();
  if (!looked || int64_t(seen.size()) == total) // collect_c4
    return success();
  return emitOpError("finds ") << seen.size() << " of " << total
                               << " blocks of " << tensor << " on the cores";
}
