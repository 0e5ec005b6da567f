//===- TileKernelOps.cpp - tile.kernel ------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// What kernels and programs share
//===----------------------------------------------------------------------===//

LogicalResult shared::verifySignature(Operation *op, FunctionType type) {
  // kernel_c1, program_c1
  if (type.getNumResults() != 0)
    return op->emitOpError("has no results: it writes to its arguments");
  for (auto [number, input] : llvm::enumerate(type.getInputs()))
    if (!isa<MemRefType>(input) && !TileType::isValidElementType(input))
      return op->emitOpError("argument ")
             << number << " must be a memref, integer, float or index, got "
             << input;
  return success();
}

void shared::printArguments(OpAsmPrinter &printer,
                            FunctionOpInterface function) {
  auto inputs = static_cast<unsigned>(function.getArgumentTypes().size());
  printer << '(';
  for (unsigned number = 0; number < inputs; ++number) {
    if (number > 0)
      printer << ", ";
    printer.printRegionArgument(function.getFunctionBody().getArgument(number),
                                function.getArgAttrs(number));
  }
  printer << ')';
}

ParseResult
shared::parseArguments(OpAsmParser &parser, OperationState &result,
                       SmallVectorImpl<OpAsmParser::Argument> &arguments,
                       StringAttr typeName, StringAttr argAttrsName,
                       StringAttr resAttrsName) {
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true, /*allowAttrs=*/true))
    return failure();
  Builder &builder = parser.getBuilder();
  SmallVector<Type> types;
  for (const OpAsmParser::Argument &argument : arguments)
    types.push_back(argument.type);
  result.addAttribute(typeName,
                      TypeAttr::get(builder.getFunctionType(types, {})));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, {},
                                            argAttrsName, resAttrsName);
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, int64_t gridRank) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getGridRankAttrName(state.name),
                     builder.getI64IntegerAttr(gridRank));
  auto *block = new Block;
  state.addRegion()->push_back(block);
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
  for (int64_t dim = 0; dim < gridRank; ++dim)
    block->addArgument(builder.getIndexType(), state.location);
}

ArrayRef<BlockArgument> KernelOp::getInputs() {
  return ArrayRef<BlockArgument>(getBody().getArguments())
      .take_front(getFunctionType().getNumInputs());
}

ArrayRef<BlockArgument> KernelOp::getGridIds() {
  return ArrayRef<BlockArgument>(getBody().getArguments())
      .drop_front(getFunctionType().getNumInputs());
}

/// `grid(%i, %j) cluster [1, 2]`, both optional.
static ParseResult
parseGrid(OpAsmParser &parser, OperationState &result, StringAttr rankName,
          StringAttr clusterName,
          SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> ids;
  if (succeeded(parser.parseOptionalKeyword("grid")) &&
      parser.parseArgumentList(ids, OpAsmParser::Delimiter::Paren))
    return failure();
  for (OpAsmParser::Argument &id : ids)
    id.type = builder.getIndexType();
  llvm::append_range(arguments, ids);
  result.addAttribute(rankName, builder.getI64IntegerAttr(ids.size()));
  if (failed(parser.parseOptionalKeyword("cluster")))
    return success();
  DenseI64ArrayAttr cluster;
  return parser.parseCustomAttributeWithFallback(cluster, Type(), clusterName,
                                                 result.attributes);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  (void)impl::parseOptionalVisibilityKeyword(parser, result.attributes);
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      shared::parseArguments(
          parser, result, arguments, getFunctionTypeAttrName(result.name),
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)) ||
      parseGrid(parser, result, getGridRankAttrName(result.name),
                getClusterAttrName(result.name), arguments) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  shared::printArguments(printer, *this);
  if (!getGridIds().empty()) {
    printer << " grid(";
    llvm::interleaveComma(getGridIds(), printer);
    printer << ')';
  }
  if (DenseI64ArrayAttr cluster = getClusterAttr()) {
    printer << " cluster ";
    printer.printStrippedAttrOrType(cluster);
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getFunctionTypeAttrName(), getGridRankAttrName(),
       getClusterAttrName(), getArgAttrsAttrName(), getResAttrsAttrName(),
       getSymVisibilityAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verifyType() {
  return shared::verifySignature(*this, getFunctionType());
}

/// Stands in for FunctionOpInterface's check, which knows no coordinates.
LogicalResult KernelOp::verifyBody() {
  // kernel_c2
  size_t inputs = getFunctionType().getNumInputs();
  Block &entry = getBody().front();
  if (entry.getNumArguments() != inputs + getGridRank())
    return emitOpError("entry block must have ")
           << inputs << " arguments and " << getGridRank()
           << " coordinates, got " << entry.getNumArguments();
  for (auto [number, argument] : llvm::enumerate(entry.getArguments())) {
    Type expected = number < inputs ? getFunctionType().getInput(number)
                                    : IndexType::get(getContext());
    if (argument.getType() != expected)
      return emitOpError("entry block argument ")
             << number << " must have type " << expected << ", got "
             << argument.getType();
  }
  return success();
}

LogicalResult KernelOp::verify() {
  // kernel_c3
  if (std::optional<ArrayRef<int64_t>> cluster = getCluster())
    if (cluster->size() != getGridRank() ||
        llvm::any_of(*cluster, [](int64_t size) { return size <= 0; }))
      return emitOpError("cluster needs a positive size for each of the ")
             << getGridRank() << " coordinates";
  // kernel_c4
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  WalkResult result = getBody().walk([&](Operation *op) {
    if (llvm::none_of(op->getOperandTypes(), isTensor) &&
        llvm::none_of(op->getResultTypes(), isTensor))
      return WalkResult::advance();
    op->emitOpError("uses a tensor inside a tile.kernel, which holds tiles, "
                    "memrefs and scalars only");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
