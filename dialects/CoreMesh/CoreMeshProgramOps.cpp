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
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parseBindings(parser, arguments, operands) ||
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
    << ") ";
  printBindings(p, getBody().getArguments(), getInputs());
  p << " : ";
  p.printFunctionalType(*this);
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getNameAttrName(), getHeightAttrName(), getWidthAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// program_c6
static LogicalResult verifyNames(ProgramOp program, StringRef attribute,
                                 size_t count) {
  Attribute given = program->getAttr(attribute);
  if (!given)
    return success();
  llvm::SmallDenseSet<Attribute> names;
  auto list = dyn_cast<ArrayAttr>(given);
  for (Attribute name : list ? list.getValue() : ArrayRef<Attribute>())
    if (isa<StringAttr>(name))
      names.insert(name);
  if (list && names.size() == count && list.size() == count)
    return success();
  return program.emitOpError("needs ")
         << count << " different names as " << attribute << ", not " << given;
}

LogicalResult ProgramOp::verify() {
  if (failed(verifyNames(*this, "input_names", getNumOperands())) ||
      failed(verifyNames(*this, "output_names", getNumResults()))) // program_c6
    return failure();
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
      (element.getIntOrFloatBitWidth() % 8 != 0 && !element.isInteger(1)))
    return emitOpError("cannot hold ")
           << tile << ": a tile has a static shape, no size of 0, elements of "
           << "whole bytes or i1, and no encoding";
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
  if (!divideByPositive(source.getResults())) // route_c1
    return emitOpError("divides by what is no positive number");
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

namespace {
/// A slot of each core and the block of a tensor in it.
struct Piece {
  FlatSymbolRefAttr name;
  AffineMap index, block;
};
} // namespace

/// Labels 1 to 3 of place and collect; the buffer, null after an error.
static BufferOp verifyPiece(Operation *op, RankedTensorType tensor,
                            const Piece &piece) {
  auto buffer = findIn<BufferOp>(op, piece.name); // place_c1, collect_c1
  if (!buffer)
    return {};
  RankedTensorType tile = buffer.getTileType();
  // place_c3, collect_c3
  if (tensor.getElementType() != tile.getElementType() ||
      tensor.getRank() != tile.getRank()) {
    op->emitOpError("cannot cut ")
        << tensor << " into tiles " << tile
        << ": element type and number of dimensions must be equal";
    return {};
  }
  if (piece.block.getNumResults() != tile.getRank() ||
      piece.index.getNumResults() != 1 || !areOf(piece.block.getResults(), 2) ||
      !areOf(piece.index.getResults(), 2)) {
    op->emitOpError("needs an expression of y and x for its slot, and one for "
                    "each of ")
        << tile.getRank() << " dimensions";
    return {};
  }
  // place_c2, collect_c2
  bool isSound = succeeded(verifySlot(op, buffer, piece.index, std::nullopt));
  return isSound ? buffer : BufferOp();
}

/// place_c4, collect_c4: calls `visit` with each block that a core has.
static LogicalResult verifyBlocks(Operation *op, AffineMap block,
                                  function_ref<void(ArrayRef<int64_t>)> visit) {
  LogicalResult result = success();
  forEachPoint(domainOf(op), block.getResults(), std::nullopt,
               [&](ArrayRef<int64_t> point, auto values) {
                 auto isWrong = [](auto value) {
                   return value.value_or(-1) < 0;
                 };
                 if (llvm::any_of(values, isWrong)) {
                   result = op->emitOpError("takes a negative block where ")
                            << describe(point);
                   return false;
                 }
                 visit(llvm::map_to_vector(values, [](auto v) { return *v; }));
                 return true;
               });
  return result;
}

LogicalResult PlaceOp::verifySymbolUses(SymbolTableCollection &) {
  if (!verifyPiece(*this, getTensor().getType(),
                   {getBufferAttr(), getIndex(), getBlock()}))
    return failure();
  return verifyBlocks(*this, getBlock(), [](ArrayRef<int64_t>) {});
}

namespace {
/// Which blocks of a tensor lie on some core.
struct Cover {
  Cover(RankedTensorType tensor, RankedTensorType tile) {
    for (auto [size, part] :
         llvm::zip_equal(tensor.getShape(), tile.getShape())) {
      counts.push_back(llvm::divideCeilSigned(size, part));
      total *= counts.back();
    }
  }

  /// Blocks behind the tensor are all padding.
  void note(ArrayRef<int64_t> block) {
    int64_t number = 0;
    for (auto [at, count] : llvm::zip_equal(block, counts)) {
      if (at >= count)
        return;
      number = number * count + at;
    }
    seen.insert(number);
  }

  SmallVector<int64_t> counts;
  int64_t total = 1;
  llvm::DenseSet<int64_t> seen;
};
} // namespace

LogicalResult CollectOp::verifySymbolUses(SymbolTableCollection &) {
  auto tensor = cast<RankedTensorType>(getTensor().getType());
  if (getBuffers().empty() || getBuffers().size() != getIndices().size() ||
      getBuffers().size() != getBlocks().size()) // collect_c1
    return emitOpError("needs a slot at least, and one block for each");
  std::optional<Cover> cover;
  RankedTensorType tile;
  bool isComplete = true; // whether all points were looked at
  for (auto [name, index, block] :
       llvm::zip(getBuffers().getAsRange<FlatSymbolRefAttr>(),
                 getIndices().getAsRange<AffineMapAttr>(),
                 getBlocks().getAsRange<AffineMapAttr>())) {
    BufferOp buffer =
        verifyPiece(*this, tensor, {name, index.getValue(), block.getValue()});
    if (!buffer)
      return failure();
    if (tile && tile != buffer.getTileType()) // collect_c3
      return emitOpError("collects tiles ")
             << tile << " and " << buffer.getTileType()
             << ": they must have one type";
    tile = buffer.getTileType();
    if (!cover)
      cover.emplace(tensor, tile);
    bool looked = false;
    if (failed(verifyBlocks(*this, block.getValue(), [&](ArrayRef<int64_t> at) {
          looked = true;
          cover->note(at);
        })))
      return failure();
    isComplete &= looked;
  }
  if (!isComplete || int64_t(cover->seen.size()) == cover->total) // collect_c4
    return success();
  return emitOpError("finds ") << cover->seen.size() << " of " << cover->total
                               << " blocks of " << tensor << " on the cores";
}
